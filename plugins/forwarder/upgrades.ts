import { ServerResponse, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { announcesBody, isWebSocketHandshake } from '../../lib/http/upgrade.ts'
import { closeGently } from '../connection.ts'
import type { ParserError } from '../malformed.ts'

/** Bytes that a client may send behind its handshake before it is answered; then it has to wait. */
const maxEarlyBytes = 65536

/** How long a client that was refused may go on sending until its connection is cut, in ms. */
const lingerMs = 500

const kHandshake = Symbol('breakwater.handshake')
interface TaggedMessage extends IncomingMessage { [kHandshake]?: Handshake }
interface ServedSocket extends Socket { _httpMessage?: ServerResponse | null }

const kWatched = Symbol('breakwater.upgradesWatched')
interface WatchedServer extends Server { [kWatched]?: true }

/** The handshake that a request is; null: it is none, and whatever it asks for it is answered like any other. */
export function handshakeOf (raw: IncomingMessage): Handshake | null {
  return (raw as TaggedMessage)[kHandshake] ?? null
}

/**
 * Makes the requests that Node hands over with their connections requests like any: they go to the same handlers, with a response of
 * their own. Once for each server. Returns what ends it.
 */
export function watchUpgrades (server: WatchedServer): () => void {
  if (server[kWatched] === true) return () => {}
  server[kWatched] = true
  const listener = (request: IncomingMessage, socket: Socket, head: Buffer): void => { new Handshake(server, request, socket).begin(head) }
  server.on('upgrade', listener)
  return () => {
    delete server[kWatched]
    server.off('upgrade', listener)
  }
}

/**
 * A client that waits for the answer to its handshake. Node has let go of its connection: what the client sends meanwhile is kept for
 * the tunnel, and that it leaves is noticed here.
 */
export class Handshake {
  readonly socket: ServedSocket
  readonly #server: Server
  readonly #request: IncomingMessage
  #early: Buffer[] = []
  #earlyBytes = 0
  #response: ServerResponse | null = null
  /** Nobody will get what the client sends. */
  #deaf = false

  constructor (server: Server, request: IncomingMessage, socket: Socket) {
    this.#server = server
    this.#request = request
    this.socket = socket
  }

  begin (head: Buffer): void {
    const { socket } = this
    socket.on('error', ignore)
    if (socket.destroyed) return
    // Earlier answers may still be on their way, and Node does not tell them any more when the client takes more of them.
    socket.on('drain', onDrain)
    socket.on('data', this.#onData).on('end', this.#onEnd)
    if (head.length > 0) this.#onData(head)
    this.#answerInTurn()
  }

  /**
   * Hands the connection over, paused, to be read by somebody else.
   * @returns what the client has sent behind its handshake
   */
  take (): Buffer[] {
    const { socket } = this
    socket.off('data', this.#onData).off('end', this.#onEnd).off('drain', onDrain)
    socket.pause()
    const early = this.#early
    this.#early = []
    return early
  }

  /** Pipelined requests are answered in their order. */
  #answerInTurn (): void {
    const before = this.socket['_httpMessage'] ?? null
    if (before === null) this.#answer()
    else before.once('close', () => { this.#answerInTurn() })
  }

  #answer (): void {
    const { socket } = this
    const request = this.#request
    if (!socket.writable) return
    // What an answer before this one has set.
    socket.setTimeout(0)
    if (announcesBody(request.headers)) return this.#refuse()
    if (isWebSocketHandshake(request)) (request as TaggedMessage)[kHandshake] = this
    const response = this.#response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    response.on('finish', this.#onFinish)
    this.#server.emit('request', request, response)
  }

  /** Node has thrown away what tells where the body ends. A server with our own IncomingMessage has kept it, and never comes here. */
  #refuse (): void {
    const error: ParserError = Object.assign(new Error('an upgrade with a body, which is not made here'), { code: 'HPE_INVALID_HEADER_TOKEN', method: this.#request.method as string })
    this.#stopListening()
    this.#server.emit('clientError', error, this.socket)
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#deaf) return
    this.#early.push(chunk)
    this.#earlyBytes += chunk.length
    if (this.#earlyBytes >= maxEarlyBytes) this.socket.pause()
  }

  /** A FIN before the answer counts as leaving, as for any other request. */
  readonly #onEnd = (): void => {
    if (this.#response?.writableFinished !== true) this.socket.destroy()
  }

  /** It was answered with something else than a tunnel: nothing that comes on the connection is anybody's request. */
  readonly #onFinish = (): void => {
    if (this.#response?.statusCode === 101) return
    this.#stopListening()
    closeGently(this.socket, lingerMs)
  }

  #stopListening (): void {
    this.#deaf = true
    this.#early = []
    this.socket.resume()
  }
}

function ignore (): void {}

function onDrain (this: ServedSocket): void { this['_httpMessage']?.emit('drain') }
