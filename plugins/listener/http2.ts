import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ServerOptions } from '../../config/schema-server.ts'
import { maxRequestFields } from '../../lib/http/field-limit.ts'
import { isGrpc } from '../../lib/http/grpc.ts'
import { plainAddress } from '../../lib/http/trust.ts'
import { ClientRequest, setSocket } from '../http2/client-request.ts'
import { ClientResponse } from '../http2/client-response.ts'
import { ClientSessions, type Flood } from '../http2/client-sessions.ts'
import { endLater } from '../http2/end-later.ts'
import { continueOnRead, headersTimeoutOf, type RequestHandler } from './http1.ts'

/** Memory that one connection may take, in MB: Node's own default, far above what its streams' windows can hold. */
const maxSessionMemory = 10
/** Bytes of bodies that a client may send before anybody reads them: on a stream, and on all streams of a connection. */
const streamWindow = 262144
const connectionWindow = 4194304

/**
 * The HTTP/2 server. It never listens: connections whose protocol is known are given to it, with `emit('connection', socket)`, TLS
 * or not. Its requests and responses are what the rest of the proxy knows from HTTP/1.
 * @param onFlood told once for each connection that was closed because of what its client sends
 */
export function createHttp2 (options: ServerOptions, handler: RequestHandler, onFlood: (flood: Flood) => void): Http2Server {
  const { http2, maxHeaderBytes, keepAliveTimeoutMs, requestTimeoutMs } = options
  const sessions = new ClientSessions({
    headersMs: headersTimeoutOf(options),
    requestMs: requestTimeoutMs,
    keepAliveMs: keepAliveTimeoutMs,
    maxResetsPerSecond: http2.maxResetsPerSecond
  }, onFlood)
  const server = createServer({
    maxSessionMemory,
    // A head that is somewhat too large, or has some fields too many, is seen and gets its 431.
    maxHeaderListPairs: 2 * maxRequestFields,
    settings: { maxConcurrentStreams: http2.maxConcurrentStreams, maxHeaderListSize: 2 * maxHeaderBytes + 65536, initialWindowSize: streamWindow, enablePush: false },
    Http2ServerRequest: ClientRequest as never,
    Http2ServerResponse: ClientResponse as never
  })
  const take = (request: ClientRequest, response: ServerResponse): void => {
    const session = request.stream.session as ServerHttp2Session | undefined
    // Reset in one packet with its head: nothing was begun for it.
    if (session === undefined) return
    if (!request.complete && !isGrpc(request.headers['content-type'])) sessions.receives(session, request)
    handler(request as unknown as IncomingMessage, response)
  }
  let accepted: Socket | null = null
  server.prependListener('connection', (socket: Socket) => { accepted = socket })
  server.on('session', (session: ServerHttp2Session) => {
    const socket = accepted as Socket
    setSocket(session, socket)
    endLater(session)
    session.setLocalWindowSize(connectionWindow)
    sessions.add(session, plainAddress(socket.remoteAddress), socket)
  })
  server.on('request', take as never)
  // It has no target; it is refused like any other request that is none.
  server.on('connect', take as never)
  server.on('checkContinue', (request: ClientRequest, response: ServerResponse) => {
    continueOnRead(request as unknown as IncomingMessage, response)
    take(request, response)
  })
  server.on('checkExpectation', take as never)
  // What a client breaks is its own connection alone.
  server.on('sessionError', () => {})
  return server
}
