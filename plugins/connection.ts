import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Breaks a response off so that no client takes it for whole: by a reset, since on a connection that ends the message by closing
 * (HTTP/1.0) an orderly end would complete it.
 */
export function abortConnection (response: ServerResponse): void {
  const socket = response.socket
  if (socket !== null && !socket.destroyed && typeof socket.resetAndDestroy === 'function') socket.resetAndDestroy()
  response.destroy()
}

/** How long a client that was answered early may go on sending before its connection is cut. */
const lingerMs = 5000

/**
 * Lets a client read our answer although it is still sending its body: closing at once would reset the connection and take the
 * answer away. Our side is closed after the answer; what the client goes on to send is dropped, for a bounded time.
 */
export function linger (request: IncomingMessage, response: ServerResponse): void {
  const socket = response.socket as (Socket & { destroySoon?: () => void }) | null
  if (socket === null || socket.destroyed || request.complete) return
  const destroy = (): void => { socket.destroy() }
  const destroySoon = socket.destroySoon?.bind(socket) ?? destroy
  socket.destroySoon = () => {
    if (request.complete) return destroySoon()
    socket.end()
    const timer = setTimeout(destroy, lingerMs)
    timer.unref()
    socket.once('close', () => { clearTimeout(timer) })
    request.once('end', destroy)
    request.resume()
  }
}
