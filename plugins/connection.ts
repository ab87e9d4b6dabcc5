import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Resets a connection, or, where there is no reset (TLS, a Unix socket), just destroys it. */
export function reset (socket: Socket): void {
  try {
    socket.resetAndDestroy()
  } catch {
    socket.destroy()
  }
}

/**
 * Breaks a response off so that no client takes it for whole: by a reset, since on a connection that ends the message by closing
 * (HTTP/1.0) an orderly end would complete it.
 */
export function abortConnection (response: ServerResponse): void {
  const socket = response.socket
  if (socket !== null && !socket.destroyed) reset(socket)
  response.destroy()
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
  const socket = response.socket as (Socket & { destroySoon?: () => void }) | null
  if (socket === null || socket.destroyed || !bodyPending(request)) return
  const destroy = (): void => { socket.destroy() }
  const destroySoon = socket.destroySoon?.bind(socket) ?? destroy
  socket.destroySoon = () => {
    if (request.complete) return destroySoon()
    closeGently(socket, lingerMs)
    request.once('end', destroy)
    request.resume()
  }
}
