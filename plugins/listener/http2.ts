import { createServer, type Http2Server } from 'node:http2'
import type { ServerOptions } from '../../config/schema-server.ts'
import type { RequestHandler } from './http1.ts'

/** Memory that one connection may take, in MB: Node's own default, far above what its streams' windows can hold. */
const maxSessionMemory = 10

/**
 * The HTTP/2 server. It never listens: connections whose protocol is known are given to it, with `emit('connection', socket)`, TLS
 * or not.
 */
export function createHttp2 ({ http2, maxHeaderBytes }: ServerOptions, handler: RequestHandler): Http2Server {
  return createServer({
    maxSessionMemory,
    settings: { maxConcurrentStreams: http2.maxConcurrentStreams, maxHeaderListSize: maxHeaderBytes, enablePush: false }
  }, handler as never)
}
