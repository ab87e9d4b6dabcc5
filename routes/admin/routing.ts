import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { redactConfig } from '../../config/redact.ts'
import type { RouteOptions } from '../../config/schema.ts'
import { problem, sendProblem } from '../../lib/http/problem.ts'
import { isAuthority, parseTarget } from '../../lib/http/target.ts'
import { attemptLimits } from '../../lib/retry/limits.ts'
import type { CompiledRoute } from '../../lib/route/compiled.ts'
import type { HeaderFields } from '../../lib/route/conditions.ts'
import type { SplitFacts } from '../../lib/route/split.ts'
import type { PassedOver } from '../../lib/route/table.ts'
import type {} from '../../plugins/routing.ts'
import type {} from '../../plugins/upstream-pools.ts'
import { read } from './define.ts'
import { AdminError } from './replies.ts'
import { MatchQuery, MatchView, RouteList } from './schemas.ts'
import { inTurns } from './turns.ts'

const routesAtOnce = 200

/** Values that are secrets read `[redacted]`. */
const shown = (options: RouteOptions): RouteOptions => redactConfig({ routes: [options] } as never).routes[0] as RouteOptions
const actionOf = ({ disabled, split }: RouteOptions): 'answer' | 'split' | 'forward' => disabled !== undefined ? 'answer' : split !== undefined ? 'split' : 'forward'

/** Each as JSON: all at once, thousands of them take as long as a hundred requests. */
function* written (routes: readonly CompiledRoute[]): Generator<undefined, string[]> {
  const texts: string[] = []
  for (const { options, index } of routes) {
    texts.push(JSON.stringify({ index, action: actionOf(options), ...shown(options) }))
    yield
  }
  return texts
}

/** GET /routes, /routes/match: which route a request would take and what would be done with it, asked without sending it. */
export function routingRoutes (app: FastifyInstance, source: FastifyInstance, config: () => unknown): void {
  read(app, '/routes', { summary: 'The routes in matching order', reply: RouteList }, async (_request, reply) => {
    const texts = await inTurns(written(source.routeTable.routes), routesAtOnce)
    return reply.type('application/json; charset=utf-8').serializer((text: unknown) => text as string).send(`{"routes":[${texts.join(',')}]}`)
  })

  read(app, '/routes/match', { summary: 'Which route a request would take, and why', querystring: MatchQuery, reply: MatchView }, async (request, reply) => {
    const { method, host, path, header = [], client } = request.query
    if (host !== '' && !isAuthority(host)) throw new AdminError(400, 'querystring.host would be refused with 400 before any route is looked for')
    if (client !== '' && isIP(client) === 0) throw new AdminError(400, 'querystring.client must be an IP address')
    const target = parseTarget(path, method)
    if (target === null) throw new AdminError(400, 'querystring.path would be refused with 400 before any route is looked for')
    if (['TRACE', 'CONNECT', 'SOURCE'].includes(method)) throw new AdminError(400, `querystring.method: ${method} is refused before any route is looked for`)
    const asked = { method, authority: target.authority ?? host, path: target.path, search: target.search, headers: fieldsOf([header].flat()) }
    const { match, passedOver } = source.routeTable.explain(asked)
    if (match === null) {
      const allow = source.routeTable.allowed(asked)
      const detail = `no route takes it; tried: ${passedOver.length === 0 ? 'none, as none is for this host and path' : passedOver.slice(0, 20).map(inWords).join(', ')}`
      return sendProblem(allow.length === 0 ? reply : reply.header('allow', allow.join(', ')), problem(allow.length === 0 ? 'no_route' : 'method_not_allowed', request.id, detail))
    }
    const { route, by } = match
    const { options, index, label } = route
    const facts = { clientIp: client, headers: asked.headers }
    const pool = poolOf(route, facts)
    return {
      route: label,
      index,
      by,
      matched: { host: options.host ?? null, methods: options.methods ?? null, headers: Object.keys(options.headers ?? {}), query: Object.keys(options.query ?? {}) },
      passedOver: passedOver.map(({ route: each, why, name }) => ({ route: each.label, index: each.index, why, name })),
      action: actionOf(options),
      pool,
      split: route.split === null || options.split === undefined ? null : { by: route.split.by(facts), pools: options.split.pools },
      mirror: options.mirror?.pool ?? null,
      forwardedPath: options.disabled === undefined ? route.path(target.path, '') + target.search : null,
      limits: limitsOf(source, options, pool, config),
      options: shown(options)
    }
  })
}

/** As Node gives them: names in lower case, lines of one name joined. */
function fieldsOf (lines: readonly string[]): HeaderFields {
  const fields: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    const [name, value] = [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    const before = Object.hasOwn(fields, name) ? fields[name] : undefined
    fields[name] = before === undefined ? value : `${before}${name === 'cookie' ? ';' : ','} ${value}`
  }
  return fields
}

const inWords = ({ route: { index, label }, why, name }: PassedOver): string => `routes[${index}] ${label} (${name === null ? why : `${why} ${name}`})`

/** Null where it is not known: what is drawn for each request, or hangs on an address that is not given. */
function poolOf ({ options, pool, split }: CompiledRoute, facts: SplitFacts): string | null {
  if (options.disabled !== undefined) return null
  if (split === null) return pool
  const by = split.by(facts)
  return by === 'request' || (by === 'client-address' && facts.clientIp === '') ? null : split.poolFor(facts)
}

function limitsOf (source: FastifyInstance, route: RouteOptions, pool: string | null, config: () => unknown): object {
  const { priority = 'normal', rateLimit = null, maxBodyBytes = serverLimit(config()) } = route
  const own = pool === null || !source.hasDecorator('pools') ? undefined : source.pools.get(pool)?.options
  if (own === undefined) return { priority, maxBodyBytes, rateLimit, timeouts: null, attempt: null, retry: null }
  const timeouts = { ...own.timeouts, ...route.timeouts }
  const retry = { ...own.retry, ...route.retry }
  return { priority, maxBodyBytes, rateLimit, timeouts, attempt: attemptLimits(timeouts, retry.retries), retry }
}

/** Whoever registers the admin routes alone may have given any configuration, or none. */
function serverLimit (config: unknown): number | null {
  const { server } = (config ?? {}) as { server?: { maxBodyBytes?: unknown } }
  return typeof server?.maxBodyBytes === 'number' ? server.maxBodyBytes : null
}
