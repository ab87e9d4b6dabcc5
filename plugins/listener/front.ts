/**
 * Stands before an HTTP/1 server where a connection does not begin with HTTP/1: reads the PROXY header, makes TLS, finds out which
 * protocol is spoken, and gives the connection to who speaks it. All of that has to be done within the time for a head.
 *
 * The server keeps its own listening socket, so that whoever has it (Fastify, our plugins) finds a `http.Server` as ever, which
 * counts all connections and closes with the last of them. Its `connection` events are those of connections that are ready for
 * HTTP/1, and `session` those of HTTP/2 sessions, as of Node's http2 servers.
 */
import type { Server } from 'node:http'
import type { Http2Server, ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { compileTrust, plainAddress, type Trust } from '../../lib/http/trust.ts'
import type { ProxyHeader } from '../../lib/http/proxy-protocol.ts'
import { cutSession } from '../http2/cut.ts'
import { exactTimer } from '../exact-timer.ts'
import type { ParserError } from '../malformed.ts'
import { readForTls, readPreface, readProxyHeader, standIn } from './opening.ts'
import type { TlsTermination } from './tls.ts'

export interface FrontOptions {
  /** Time until a connection must be ready for its first request, in ms. */
  openMs: number
  /** Who begins with a PROXY header: addresses, CIDRs, `unix`. */
  proxyProtocolFrom: readonly string[]
  /** null: there is no TLS. */
  tls: TlsTermination | null
  /** Speaks HTTP/2; null: nobody does. */
  http2: Http2Server | null
  /** Without TLS the first bytes tell the protocol. */
  cleartext: boolean
}

/** Why a connection was closed before it could carry a request. */
export type OpeningFailure = 'proxy_header' | 'tls_handshake' | 'client_certificate' | 'opening_timeout'

/** Is told of connections that failed before they were ready, with the address of the client as far as it is known. */
export type FailureListener = (failure: OpeningFailure, address: string, error: Error | null) => void

const kFront = Symbol('breakwater.front')
interface FrontedServer extends Server { [kFront]?: Front }

/** The front of a server; null: it has none. */
export function frontOf (server: Server): Front | null {
  return (server as FrontedServer)[kFront] ?? null
}

const kHeader = Symbol('breakwater.proxyHeader')
interface RawSocket extends Socket { [kHeader]?: ProxyHeader }
/** Node keeps the connection that TLS is made on. */
interface WrappingSocket extends TLSSocket { _parent?: RawSocket | null }

export class Front {
  readonly server: Server
  readonly #options: FrontOptions
  readonly #beginsWithHeader: Trust
  /** Connections that are not ready yet, with what stops the timers that end them. */
  readonly #opening = new Map<Socket, () => void>()
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #announce: Server['emit']
  /** Null: nobody wants to know. */
  onFailure: FailureListener | null = null

  /** Puts a front before a server that does not listen yet. */
  constructor (server: FrontedServer, options: FrontOptions) {
    server[kFront] = this
    this.server = server
    this.#options = options
    this.#beginsWithHeader = compileTrust(options.proxyProtocolFrom)
    this.#announce = server.emit.bind(server)
    this.#takeConnections()
    this.#closeAlong()
    options.tls?.server.on('secureConnection', (socket) => { this.#secured(socket) })
    options.tls?.server.on('tlsClientError', (error, socket) => { this.#failed(socket, 'tls_handshake', error) })
    options.http2?.on('session', (session) => {
      this.#sessions.add(session)
      session.on('close', () => { this.#sessions.delete(session) })
      this.#announce('session', session)
    })
  }

  get tls (): TlsTermination | null { return this.#options.tls }

  /** `net.Server` tells of what it accepts by the same event that HTTP/1 connections are served by. */
  #takeConnections (): void {
    const announce = this.#announce
    this.server.emit = (event: string, ...args: unknown[]): boolean => {
      if (event !== 'connection') return announce(event as never, ...args as never[])
      this.#open(args[0] as Socket)
      return true
    }
  }

  #closeAlong (): void {
    const server = this.server
    const close = server.close.bind(server)
    const closeAll = server.closeAllConnections.bind(server)
    server.close = (callback) => {
      // Nothing was accepted on them that could be lost.
      this.#cutOpening()
      for (const session of this.#sessions) session.close()
      return close(callback)
    }
    server.closeAllConnections = () => {
      this.#cutOpening()
      for (const session of this.#sessions) cutSession(session)
      closeAll()
    }
  }

  #cutOpening (): void {
    for (const socket of this.#opening.keys()) socket.destroy()
  }

  #open (socket: RawSocket): void {
    const withHeader = this.#beginsWithHeader(this.#isUnix() ? '' : plainAddress(socket.remoteAddress))
    const { tls, cleartext } = this.#options
    if (!withHeader && tls === null && !cleartext) return this.#serveHttp1(socket)
    this.#limitOpening(socket)
    socket.on('error', ignore)
    socket.on('close', () => { this.#ready(socket) })
    if (!withHeader) return this.#chooseProtocol(socket)
    readProxyHeader(socket, (header) => {
      if (header === null) return this.#failed(socket, 'proxy_header', null)
      standIn(socket, header)
      socket[kHeader] = header
      this.#chooseProtocol(socket)
    })
  }

  /** Where our own loop stood still meanwhile the client has its time once more: a handshake takes several turns. */
  #limitOpening (socket: RawSocket): void {
    this.#opening.set(socket, exactTimer(this.#options.openMs, (stalled) => {
      if (stalled) this.#limitOpening(socket)
      else this.#failed(socket, 'opening_timeout', null)
    }))
  }

  #isUnix (): boolean {
    return typeof this.server.address() === 'string'
  }

  #chooseProtocol (socket: RawSocket): void {
    const { tls, cleartext } = this.#options
    if (tls !== null) {
      readForTls(socket, (isHttp) => {
        if (isHttp) return this.#refuseHttp(socket)
        // A client that ends its side in the midst of a handshake has left: Node would not tell before the time for it is over.
        socket.allowHalfOpen = false
        tls.server.emit('connection', socket)
      })
    } else if (cleartext) {
      readPreface(socket, (isHttp2) => {
        if (isHttp2) this.#serveHttp2(socket, socket)
        else this.#serveHttp1(socket)
      })
    } else {
      this.#serveHttp1(socket)
    }
  }

  /** What is no TLS is refused like anything that is no HTTP, in clear: whoever asks by http:// is told. */
  #refuseHttp (socket: RawSocket): void {
    this.#ready(socket)
    const error: ParserError = Object.assign(new Error('plain HTTP'), { code: 'HPE_INVALID_CONSTANT', detail: 'This port speaks TLS: ask by https://' })
    if (!this.#announce('clientError', error, socket)) socket.destroy()
  }

  #secured (socket: WrappingSocket): void {
    const raw = socket['_parent'] ?? null
    if (raw?.[kHeader] !== undefined) standIn(socket, raw[kHeader])
    const refusal = this.#options.tls?.refusalOf(socket) ?? null
    if (refusal !== null) return this.#failed(socket, 'client_certificate', new Error(refusal))
    socket.disableRenegotiation()
    for (const each of raw === null ? [socket] : [raw, socket]) each.allowHalfOpen = true
    if (socket.alpnProtocol === 'h2') this.#serveHttp2(socket, raw)
    else this.#serveHttp1(socket, raw)
  }

  #serveHttp1 (socket: Socket, raw: Socket | null = socket): void {
    if (raw !== null) this.#ready(raw)
    this.#announce('connection', socket)
    // It was paused when its beginning was read.
    if (socket.isPaused()) socket.resume()
  }

  #serveHttp2 (socket: Socket, raw: Socket | null): void {
    if (raw !== null) this.#ready(raw)
    // A client that ends its side has left: over HTTP/2 it could not even acknowledge anything more.
    socket.allowHalfOpen = false
    this.#options.http2?.emit('connection', socket)
    // It was paused when its beginning was read: its end would never be told. The beginning itself is read first.
    if (socket.isPaused()) setImmediate(() => { socket.resume() })
  }

  #ready (socket: Socket): void {
    this.#opening.get(socket)?.()
    this.#opening.delete(socket)
  }

  #failed (socket: Socket, failure: OpeningFailure, error: Error | null): void {
    const raw = (socket as WrappingSocket)['_parent'] ?? socket
    // A connection that was only looked at, or made ahead of its use, is nobody's failure.
    const silent = raw.bytesRead === 0
    socket.destroy()
    raw.destroy()
    if (!silent) this.onFailure?.(failure, plainAddress(raw.remoteAddress), error)
  }
}

function ignore (): void {}
