/**
 * The admin routes: what the proxy believes and why, and the few things that an operator may do about it. A plain plugin, to be
 * registered with `prefix` in any app, or on a listener of its own (plugins/admin-listener.ts). It owns everything below its prefix.
 */
import createError from '@fastify/error'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import findMyWay from 'find-my-way'
import probes from '../probes.ts'
import { breakerRoutes } from './breakers.ts'
import { configRoutes } from './config.ts'
import { read } from './define.ts'
import { discoveryRoutes } from './discovery.ts'
import { eventRoutes } from './events.ts'
import { originGuard, tokenGuard } from './guard.ts'
import { healthRoutes } from './health.ts'
import { historyRoutes } from './history.ts'
import { metricsRoutes } from './metrics.ts'
import { openApiOf, type ShownRoute } from './openapi.ts'
import { pageRoutes } from './page.ts'
import { poolRoutes } from './pools.ts'
import { refuse, setReplies } from './replies.ts'
import { requestRoutes } from './requests.ts'
import { routingRoutes } from './routing.ts'
import { OpenApi, SheddingView } from './schemas.ts'

export interface AdminRoutesOptions {
  /** The app that is shown. Default: the one that the routes are registered in. What it is not decorated with has no routes. */
  source?: FastifyInstance
  /** Wanted as `Authorization: Bearer` by every route but the probes. Empty or left out: none, which needs `loopbackOnly`. */
  token?: string
  /** Answer only connections from this machine, asked for as localhost or by a loopback address. Default: false. */
  loopbackOnly?: boolean
  /** What is served at /config, as it is or as this tells each time: redact it before. */
  config?: unknown
}

const TokenRequired = createError('BREAKWATER_ADMIN_TOKEN_REQUIRED', 'the admin routes need a token, or loopbackOnly: true')

const adminRoutes: FastifyPluginAsync<AdminRoutesOptions> = async (app, options) => {
  const { source = app, token = '', loopbackOnly = false, config } = options
  const configOf = typeof config === 'function' ? config as () => unknown : () => config
  if (token === '' && !loopbackOnly) throw new TokenRequired()

  setReplies(app)
  const shown: ShownRoute[] = []
  const methods = markRoutes(app, shown)
  app.addHook('onRequest', originGuard(loopbackOnly))
  if (source.hasDecorator('readiness')) await app.register(probes, { source })
  await pageRoutes(app)

  await app.register(async (scope) => {
    if (token !== '') scope.addHook('onRequest', tokenGuard(token))
    scope.addHook('onRequest', refuseNobody)
    if (source.hasDecorator('pools')) poolRoutes(scope, source)
    if (source.hasDecorator('breakers')) breakerRoutes(scope, source)
    if (source.hasDecorator('health')) healthRoutes(scope, source)
    if (source.hasDecorator('discovery')) discoveryRoutes(scope, source)
    if (source.hasDecorator('shedding')) {
      read(scope, '/shedding', { summary: 'The gate and the pressure on the process', reply: SheddingView }, async () => source.shedding.view())
    }
    if (source.hasDecorator('routeTable')) routingRoutes(scope, source, configOf)
    if (config !== undefined) configRoutes(scope, source, configOf)
    if (source.hasDecorator('edgeMetrics')) metricsRoutes(scope, source)
    if (source.hasDecorator('events')) eventRoutes(scope, source)
    if (source.hasDecorator('recorder')) requestRoutes(scope, source)
    if (source.hasDecorator('history')) historyRoutes(scope, source)
    read(scope, '/openapi.json', { summary: 'These routes as an OpenAPI document', reply: OpenApi }, async () => openApiOf(shown, app.prefix))
    refuseTheRest(scope, methods)
  })
}

/** Admin calls are not shed and leave no access lines. Gives the methods of each path of ours, and notes each route. */
function markRoutes (app: FastifyInstance, shown: ShownRoute[]): Map<string, Set<string>> {
  const methods = new Map<string, Set<string>>()
  const quieter = ['error', 'fatal', 'silent'].includes(app.log.level)
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, shedExempt: true, accessLog: false }
    if (!quieter) route.logLevel = 'warn'
    // Below a prefix, Fastify makes two of a slash: with and without it.
    const path = route.routePath === '' ? '/' : route.routePath
    const known = methods.get(path) ?? new Set()
    shown.push({ url: path, method: route.method, ...route.schema !== undefined && { schema: route.schema } })
    for (const method of [route.method].flat()) known.add(method)
    methods.set(path, known)
  })
  return methods
}

/** A path that ends where a name should stand is no path of ours, as in any app whose router tells slashes apart. */
const lacksName = (params: unknown): boolean => Object.entries(params as Record<string, string | undefined>).some(([name, value]) => name !== '*' && value === '')

function refuseNobody (request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  if (lacksName(request.params)) refuse(request, reply, 404, 'there is nothing here')
  else done()
}

/** 405 for another method on a path of ours, 404 for any other path: answered before a body is read, and by us, whatever the app has. */
function refuseTheRest (app: FastifyInstance, methods: ReadonlyMap<string, ReadonlySet<string>>): void {
  const paths = findMyWay()
  for (const [url, own] of methods) paths.on('GET', `${app.prefix}${url}`, () => {}, own)
  refuseAll(app, '/*', app.supportedMethods, ({ method, url }) => {
    const found = paths.find('GET', url)
    const own = found === null || lacksName(found.params) ? undefined : found.store as ReadonlySet<string>
    // One that the path takes has not got here for its method.
    return own === undefined || own.has(method) ? undefined : [...own].join(', ')
  })
  // The prefix alone is below no wildcard.
  const root = [...methods.get('/') ?? []]
  refuseAll(app, '/', app.supportedMethods.filter((method) => !root.includes(method)), () => root.join(', '))
}

/** @param allow the methods that the path takes; none: it is no path of ours */
function refuseAll (app: FastifyInstance, url: string, method: string[], allow: (request: FastifyRequest) => string | undefined): void {
  app.route({
    method,
    url,
    exposeHeadRoute: false,
    schema: { hide: true } as object,
    onRequest: (request, reply) => {
      // The server as a whole (RFC 9110 section 9.3.7): only a listener of its own is asked so.
      if (request.method === 'OPTIONS' && request.raw.url === '*') return void reply.code(204).headers({ allow: 'GET, HEAD, POST, OPTIONS' }).send()
      const known = allow(request)
      if (known === undefined) refuse(request, reply, 404, 'there is nothing here')
      else refuse(request, reply.headers({ allow: known }), 405, `this path takes ${known}`)
    },
    handler: async () => undefined
  })
}

export default adminRoutes
