import type { Server } from 'node:http'
import type { ServerOptions } from '../../config/schema-server.ts'
import { Front } from './front.ts'
import { createHttp1, headersTimeoutOf, type RequestHandler } from './http1.ts'
import { createHttp2 } from './http2.ts'
import { TlsTermination } from './tls.ts'

/**
 * The public listener. Where connections begin with HTTP/1 it is Node's own server, and nothing else.
 * @throws what reading certificates throws
 */
export function createListener (options: ServerOptions, handler: RequestHandler): Server {
  const server = createHttp1(options, handler)
  const { tls, http2, proxyProtocolFrom } = options
  const cleartext = tls === undefined && http2.cleartext
  if (tls === undefined && !cleartext && proxyProtocolFrom.length === 0) return server
  const speaksHttp2 = tls === undefined ? cleartext : http2.enabled
  const openMs = headersTimeoutOf(options)
  const front = new Front(server, {
    openMs,
    proxyProtocolFrom,
    tls: tls === undefined ? null : new TlsTermination(tls, speaksHttp2 ? ['h2', 'http/1.1'] : ['http/1.1'], openMs),
    http2: speaksHttp2 ? createHttp2(options, handler, (flood) => { server.emit('flood', flood) }) : null,
    cleartext
  })
  return front.server
}
