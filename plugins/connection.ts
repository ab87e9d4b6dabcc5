import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { breakStream } from './http2/abort.ts'
import { isHttp2 } from './http2/is-http2.ts'

/** Node keeps the connection that TLS is made on. */
interface WrappingSocket extends Socket { _parent?: Socket | null }

/**
 * Resets a connection, with TLS the one below it: a client would take an orderly end of TLS for the end of a body. Where there is no
 * reset (a Unix socket), it is just destroyed; one that is ending, too: Node would fail to reset it, and keep its descriptor for ever.
 */
export function reset (socket: WrappingSocket): void {
  try {
    if (socket.writableEnded && socket.writableLength === 0) socket.destroy()
    else (socket['_parent'] ?? socket).resetAndDestroy()
  } catch {
    socket.destroy()
  }
}

/**
 * Breaks a response off so that no client takes it for whole: by a reset, since on a connection that ends the message by closing
 * (HTTP/1.0) an orderly end would complete it.
 */
export function abortConnection (response: ServerResponse & { stream?: Http2Stream }): void {
  // Of a connection that it shares with others, it breaks its own stream.
  if (response.stream !== undefined) return breakStream(response.stream)
  const socket = response.socket
  // One that waits behind another is broken off in its turn, once the other has been sent.
  if (socket === null) response.once('socket', (own: Socket) => { breakBy(own, response) })
  else if (!socket.destroyed) breakBy(socket, response)
  response.destroy()
}

function breakBy (socket: BreakableSocket, response: ServerResponse): void {
  socket[kOnBreak]?.(response)
  reset(socket)
}

const kOnBreak = Symbol('breakwater.onBreak')
interface BreakableSocket extends Socket { [kOnBreak]?: (response: ServerResponse) => void }

/** `listener` is told the response for which `abortConnection` breaks a connection, right before. One for each connection. */
export function onBreak (socket: BreakableSocket, listener: (response: ServerResponse) => void): void {
  socket[kOnBreak] = listener
}

/**
 * Closes our side, and lets the client go on sending for so many milliseconds before the connection is cut: closing at once would
 * reset it, and take an answer away that has not been read.
 */
export function closeGently (socket: Socket, ms: number): void {
  socket.end()
  const timer = setTimeout(() => { socket.destroy() }, ms)
  timer.unref()
  socket.once('close', () => { clearTimeout(timer) })
}

/**
 * From now on nothing that comes on a connection is anybody's request (RFC 9112 section 9.6): it is read and dropped, and the
 * client gets to read what we still have to say. Node's parser would go on: with requests whose answers nobody will get, with
 * the rest of a refused one, or with one error for each further packet.
 */
export function hearNoMore (socket: Socket): void {
  const parsing = socket.listeners('data')
  // The first listener of our own makes Node hand the bytes to listeners at all.
  socket.on('data', ignore)
  for (const listener of parsing) socket.off('data', listener as () => void)
  socket.resume()
  socket.destroySoon = () => { closeGently(socket, deafMs) }
}

/**
 * Makes an answer the last one on its connection, with time for the client to read it although it goes on sending: what it sends is
 * nobody's request. A body that is still to come is `linger`'s to drop.
 */
export function closeBehind (request: IncomingMessage, response: ServerResponse): void {
  if (isHttp2(request)) return
  response.shouldKeepAlive = false
  if (bodyPending(request)) return
  const { socket } = response
  if (socket === null) response.once('socket', (own: Socket) => { own.destroySoon = () => { closeGently(own, deafMs) } })
  else socket.destroySoon = () => { closeGently(socket, deafMs) }
}

interface ParsedSocket extends Socket { parser?: { onIncoming: unknown } | null }

/**
 * No further request of a connection comes to be, not even of the bytes that Node's parser has in hand, which are up to 64 KiB and may hold
 * thousands. The parser reads on to the end of the body at hand, and stops with an error of its own at the next head.
 */
export function beginNoMore ({ parser }: ParsedSocket): void {
  if (parser !== undefined && parser !== null) parser.onIncoming = refuseHead
}

/** What Node's parser takes for neither of its answers to a head. */
const refuseHead = (): number => -1

function ignore (): void {}

/** How long a client may go on sending what nobody reads, behind our last answer. */
const deafMs = 500

/**
 * True when bytes of the request's body are still to come. `complete` alone does not tell: while the first hooks run, Node has
 * not yet noticed the end of a request that has no body at all.
 */
export function bodyPending (request: IncomingMessage): boolean {
  if (request.complete) return false
  const length = request.headers['content-length']
  return request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/** How long a client that was answered early may go on sending before its connection is cut. */
const lingerMs = 5000

/**
 * Lets a client read our answer although it is still sending its body: our side is closed after the answer; what the client goes
 * on to send is dropped, for a bounded time.
 */
export function linger (request: IncomingMessage, response: ServerResponse): void {
  // Over HTTP/2 the stream is reset behind the answer, and the client told so.
  if (isHttp2(request)) return
  if (!bodyPending(request)) return keepAfterExpect(response)
  // Told here as well as in the head, which hooks may still hold back: no further request may begin meanwhile.
  response.shouldKeepAlive = false
  const socket = response.socket as (Socket & { destroySoon: Socket['destroySoon'] | undefined }) | null
  if (socket === null) response.once('socket', () => { linger(request, response) })
  if (socket === null || socket.destroyed) return
  // Behind its body a client may have sent more, which nobody reads.
  const closeSoon = (): void => { closeGently(socket, deafMs) }
  socket.destroySoon = () => {
    if (request.complete) return closeSoon()
    closeGently(socket, lingerMs)
    request.once('end', closeSoon)
    request.resume()
  }
}

/** A body that came without being asked for is there: Node would close, as if the client might still hold it back. */
function keepAfterExpect (response: ServerResponse & { _expect_continue?: boolean }): void {
  if (response['_expect_continue'] === true) response['_expect_continue'] = false
}
