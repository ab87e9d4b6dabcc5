import { METHODS } from 'node:http'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { RouteOptions } from '../config/schema.ts'
import { parseTarget } from '../lib/http/target.ts'
import { RouteTable } from '../lib/route/table.ts'
import type {} from '../plugins/forwarder.ts'

export interface ProxyOptions {
  routes: readonly RouteOptions[]
}

const mediaType = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*(?:;|$)/
const opaque = 'application/octet-stream'

/**
 * Fastify refuses bodies whose type it cannot read; a proxy passes them on. The forwarder takes fields from the raw list, which
 * stays as it came.
 */
function acceptAnyType (request: FastifyRequest, _reply: FastifyReply, payload: unknown, done: (error: null, payload: never) => void): void {
  const { headers, method } = request.raw
  const type = headers['content-type']
  if (type === undefined ? method === 'QUERY' : !mediaType.test(type)) headers['content-type'] = opaque
  done(null, payload as never)
}

/** The catch-all: finds the route and forwards. It holds no policy. */
const proxy: FastifyPluginAsync<ProxyOptions> = async (app, { routes }) => {
  const table = new RouteTable(routes)
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method) && method !== 'CONNECT') app.addHttpMethod(method, { hasBody: true })
  }
  app.removeAllContentTypeParsers()
  // The body stays where it is: the forwarder streams it.
  app.addContentTypeParser('*', (_request, _payload, done) => { done(null) })

  app.setErrorHandler((error, request, reply) => {
    request.log.error({ err: error }, 'internal_error')
    return reply.refuse('internal_error')
  })

  app.all('*', { preParsing: acceptAnyType }, (request, reply) => {
    const { raw } = request
    const method = raw.method as string
    const target = parseTarget(raw.url as string, method)
    if (target === null) return reply.refuse('bad_request')
    if (method === 'TRACE') return reply.header('allow', allowed).refuse('method_not_allowed')
    if (method === 'OPTIONS' && raw.headers['max-forwards'] === '0') return reply.code(204).header('allow', allowed).send()
    const match = table.match(method, target.authority ?? raw.headers.host ?? '', target.path)
    if (match === null) return reply.refuse('no_route')
    return reply.forward(match.route)
  })
}

const allowed = METHODS.filter((method) => method !== 'TRACE' && method !== 'CONNECT').join(', ')

export default proxy
