import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const kWaiting = Symbol('breakwater.waiting')
interface TaggedSocket extends Socket { [kWaiting]?: Set<ServerResponse> }

/**
 * Makes a response close with its connection although it waits behind another one there (its `socket` is null). When a connection
 * breaks, Node closes only the response that was being sent: whoever waits for the `close` of one of the others, to give something
 * back, would wait for ever. Once for each response; a further call does nothing.
 */
export function closeWithConnection (socket: TaggedSocket, response: ServerResponse): void {
  const waiting = socket[kWaiting] ?? watch(socket)
  if (waiting.has(response)) return
  waiting.add(response)
  response.on('close', () => { waiting.delete(response) })
  // Its connection broke while hooks were at work; whoever calls gets to listen first.
  if (socket.closed) process.nextTick(close, response)
}

function watch (socket: TaggedSocket): Set<ServerResponse> {
  const waiting = new Set<ServerResponse>()
  socket[kWaiting] = waiting
  socket.on('close', () => { for (const response of waiting) close(response) })
  return waiting
}

function close (response: ServerResponse): void {
  // Its turn came meanwhile: then Node closes it itself. Or it was closed already.
  if (response.socket !== null || response.destroyed) return
  response.destroy()
  response.emit('close')
}
