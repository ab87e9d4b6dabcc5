import { METHODS, type IncomingMessage } from 'node:http'
import type { FastifyError, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { ExchangeError } from '../lib/exchange.ts'
import { isMediaType } from '../lib/http/media-type.ts'
import { isAuthority, type Target } from '../lib/http/target.ts'
import type { CompiledRoute } from '../lib/route/compiled.ts'
import type {} from '../plugins/forwarder.ts'
import type {} from '../plugins/routing.ts'

const opaque = 'application/octet-stream'

/**
 * Fastify refuses bodies whose type it cannot read; a proxy passes them on. The forwarder takes fields from the raw list, which
 * stays as it came.
 */
function acceptAnyType (request: FastifyRequest, _reply: FastifyReply, payload: unknown, done: (error: null, payload: never) => void): void {
  const { headers, method } = request.raw
  const type = headers['content-type']
  if (type === undefined ? method === 'QUERY' : !isMediaType(type)) headers['content-type'] = opaque
  done(null, payload as never)
}

/** The catch-all: asks for the route and forwards. It holds no policy. */
const proxy: FastifyPluginAsync = async (app) => {
  if (!app.hasDecorator('routeTable')) throw new Error('the proxy needs routes: register breakwater-routing before it')
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method) && method !== 'CONNECT') app.addHttpMethod(method, { hasBody: true })
  }
  app.removeAllContentTypeParsers()
  // The body stays where it is: the forwarder streams it.
  app.addContentTypeParser('*', (_request, _payload, done) => { done(null) })

  app.setErrorHandler<FastifyError>((error, request, reply) => {
    if (error instanceof ExchangeError) return reply.refuse(error.reason)
    // What a hook of the app refuses on purpose (401, 429) is the app's to answer.
    if (error.statusCode !== undefined && error.statusCode < 500) throw error
    request.log.error({ err: error }, 'internal_error')
    return reply.refuse('internal_error')
  })

  const bodyless = ['GET', 'HEAD']
  app.route({ method: bodyless, url: '*', handler: handle })
  app.route({ method: app.supportedMethods.filter((method) => !bodyless.includes(method)), url: '*', preParsing: acceptAnyType, handler: handle })

  // Returns nothing: for a reply that is returned Fastify would wait as for a promise.
  function handle (request: FastifyRequest, reply: FastifyReply): void {
    const { raw } = request
    const method = raw.method as string
    const { target, match } = app.routeTable.of(raw)
    if (target === null || !isUnderstood(raw)) {
      reply.refuse('bad_request', { wrong: target === null ? 'target' : 'HTTP version or Host' })
    } else if (refusedMethods.includes(method)) {
      reply.header('allow', allowed).refuse('method_not_allowed', { method, for: 'every route' })
    } else if (method === 'OPTIONS' && raw.headers['max-forwards'] === '0') {
      reply.code(204).header('allow', allowed).send()
    } else if (match === null) {
      refuseUnrouted(raw, target, reply)
    } else {
      const admitted = app.routeTable.admit(reply, match.route)
      if (admitted === true) reply.forward(match.route)
      else if (admitted !== false) forwardOnce(admitted, match.route, reply)
    }
  }

  async function forwardOnce (admitted: Promise<boolean>, route: CompiledRoute, reply: FastifyReply): Promise<void> {
    try {
      if (await admitted) reply.forward(route)
    } catch (error) {
      reply.send(error)
    }
  }

  function refuseUnrouted (raw: IncomingMessage, { authority, path, search }: Target, reply: FastifyReply): void {
    if (hasNoOneHost(raw)) {
      reply.refuse('bad_request', { wrong: 'Host' })
      return
    }
    const { method = '', headers } = raw
    const methods = app.routeTable.allowed({ method, authority: authority ?? headers.host ?? '', path, search, headers })
    if (methods.length === 0) reply.refuse('no_route', { routes: app.routeTable.routes.length })
    else reply.header('allow', methods.join(', ')).refuse('method_not_allowed', { method, allowed: methods })
  }
}

/** HTTP/1.0 and 1.1, the latter with a Host, and HTTP/2 where the app speaks it: Node lets other versions through. */
function isUnderstood (raw: IncomingMessage): boolean {
  const { httpVersionMajor: major, httpVersionMinor: minor } = raw
  if (major !== 1) return major === 2 && 'stream' in raw
  return minor === 0 || (minor === 1 && raw.headers.host !== undefined)
}

/** With two of them, or one that is none, nobody knows which host has no route. Where a route was found, the forwarder refuses them. */
function hasNoOneHost ({ rawHeaders, headers: { host = '' } }: IncomingMessage): boolean {
  return (host !== '' && !isAuthority(host)) || rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host').length > 1
}

/** SOURCE is the method of Icecast, whose protocol (`ICE/1.0`) Node's parser takes for HTTP/1.0 without a word. */
const refusedMethods = ['TRACE', 'SOURCE']
const allowed = METHODS.filter((method) => !refusedMethods.includes(method) && method !== 'CONNECT').join(', ')

export default proxy
