import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { WebSocket, WebSocketServer, type ClientOptions, type ServerOptions } from 'ws'
import { send, type RawHandler } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway, type GatewayOptions } from '../../support/gateway.ts'
import { rawConnect, type RawConnection } from '../../support/raw-client.ts'

export interface WebSocketUpstream {
  readonly url: string
  /** Every handshake that came. */
  readonly handshakes: IncomingMessage[]
  readonly sockets: WebSocket[]
  readonly server: WebSocketServer
}

/** A WebSocket server; it echoes, unless told otherwise. Plain requests get 200 and their Upgrade field. */
export async function webSockets (t: TestContext, onOpen: (socket: WebSocket, request: IncomingMessage) => void = echo, options: ServerOptions = {}): Promise<WebSocketUpstream> {
  const http = createServer((request, response) => { response.end(`plain ${request.headers.upgrade ?? 'none'}`) })
  const server = new WebSocketServer({ server: http, ...options })
  const handshakes: IncomingMessage[] = []
  const sockets: WebSocket[] = []
  http.on('upgrade', (request: IncomingMessage) => { handshakes.push(request) })
  server.on('connection', (socket, request) => {
    sockets.push(socket)
    socket.on('error', () => {})
    onOpen(socket, request)
  })
  http.listen(0, '127.0.0.1')
  await new Promise((resolve) => { http.once('listening', resolve) })
  t.after(() => {
    for (const socket of server.clients) socket.terminate()
    http.closeAllConnections()
    http.close()
  })
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, handshakes, sockets, server }
}

export function echo (socket: WebSocket): void {
  socket.on('message', (data, binary) => { socket.send(data, { binary }) })
}

/** A gateway in front of a WebSocket server. */
export async function inFrontOf (t: TestContext, upstream: { url: string }, options: GatewayOptions = {}): Promise<Gateway> {
  return startGateway(t, { upstreams: [upstream.url], ...options })
}

/** A client that is connected. */
export async function connected (t: TestContext, { port }: { port: number }, path = '/', options: ClientOptions = {}, protocols: string[] = []): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, protocols, options)
  t.after(() => { socket.terminate() })
  await new Promise((resolve, reject) => { socket.once('open', resolve).once('error', reject) })
  socket.on('error', () => {})
  return socket
}

/** What a client that is refused gets. */
export function refused ({ port }: { port: number }, path = '/', options: ClientOptions = {}): Promise<{ status: number, headers: IncomingMessage['headers'], body: string }> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, options)
    socket.on('open', () => { reject(new Error('it was opened')) }).on('error', () => {})
    socket.on('unexpected-response', (_request, response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => { body += text })
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body })
        socket.terminate()
      })
    })
  })
}

export const next = (socket: WebSocket): Promise<{ data: Buffer, binary: boolean }> =>
  new Promise((resolve) => { socket.once('message', (data, binary) => { resolve({ data: data as Buffer, binary }) }) })

export const closing = (socket: WebSocket): Promise<{ code: number, reason: string }> =>
  new Promise((resolve) => { socket.once('close', (code, reason) => { resolve({ code, reason: reason.toString() }) }) })

/** The bytes of a handshake. */
export const handshake = (path = '/', ...more: string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: shop', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', ...more, '', ''].join('\r\n')

/** The bytes of an answer that switches. */
export const switching = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=', '', ''].join('\r\n')

/** A text frame of a server. */
export const frame = (text: string): Buffer => Buffer.concat([Buffer.of(0x81, text.length), Buffer.from(text)])

/** A handler that switches and goes on with the bare connection. */
export const switched = (then: (socket: Socket) => unknown, head: string | Buffer = switching): RawHandler => async (socket) => {
  await send(socket, head)
  await then(socket)
}

/** A client by hand whose handshake has been answered with 101. */
export async function rawTunnel (t: TestContext, { port }: { port: number }, bytes: string | Buffer = handshake(), options: { allowHalfOpen?: boolean } = {}): Promise<RawConnection> {
  const client = await rawConnect(port, options)
  t.after(() => { client.destroy() })
  await client.write(bytes)
  const { status } = await client.readHead()
  if (status !== 101) throw new Error(`answered ${status}`)
  return client
}
