import { createSecureServer, createServer, type Http2SecureServer, type Http2Server, type IncomingHttpHeaders, type SecureServerOptions, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { startGateway, type Gateway, type GatewayOptions } from '../../support/gateway.ts'

/** What came to an upstream. */
export interface SeenRequest {
  headers: IncomingHttpHeaders
  /** name, value, name, value, ... */
  raw: string[]
  /** Which connection it came over: 1, 2, ... */
  connection: number
}

export type StreamHandler = (stream: ServerHttp2Stream, request: SeenRequest) => unknown

export interface Http2Upstream {
  url: string
  port: number
  server: Http2Server | Http2SecureServer
  requests: SeenRequest[]
  connections: number
  /** Sessions that are open. */
  sockets: Set<Socket>
}

/** An upstream that speaks HTTP/2: with TLS where options for it are given, else in clear text. */
export async function http2Upstream (t: Pick<TestContext, 'after'>, handler: StreamHandler, tls?: SecureServerOptions, settings: object = {}): Promise<Http2Upstream> {
  const server = tls === undefined ? createServer({ settings }) : createSecureServer({ settings, ...tls })
  const upstream: Http2Upstream = { url: '', port: 0, server, requests: [], connections: 0, sockets: new Set() }
  server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    upstream.sockets.add(socket)
    socket.on('close', () => { upstream.sockets.delete(socket) })
  })
  const numbers = new WeakMap<object, number>()
  server.on('session', (session: object) => { numbers.set(session, ++upstream.connections) })
  server.on('sessionError', () => {})
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) => {
    stream.on('error', () => {})
    const request = { headers, raw, connection: numbers.get(stream.session as object) ?? 0 }
    upstream.requests.push(request)
    handler(stream, request)
  })
  t.after(() => {
    server.close()
    for (const socket of upstream.sockets) socket.destroy()
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  upstream.port = (server.address() as AddressInfo).port
  upstream.url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${upstream.port}`
  return upstream
}

/** A gateway whose one pool speaks nothing but HTTP/2. */
export function priorKnowledge (t: Pick<TestContext, 'after'>, url: string, { pool, ...options }: GatewayOptions = {}): Promise<Gateway> {
  return startGateway(t, { upstreams: [url], pool: { http2: 'prior-knowledge', ...pool }, ...options })
}

/** The whole body of a stream. */
export function bodyOf (stream: ServerHttp2Stream): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    stream.on('data', (piece: Buffer) => pieces.push(piece)).on('end', () => { resolve(Buffer.concat(pieces)) }).on('close', () => { reject(new Error('cut')) })
  })
}
