import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How long requests that are being answered may take when the listener closes. */
const graceMs = 1000

/** The connections of a server, and how to be rid of them: Node takes one on which nothing ever came for a busy one. */
export class Connections {
  readonly #server: Server
  /** Open requests by connection. */
  readonly #open = new Map<Socket, number>()
  #closing = false

  constructor (server: Server) {
    this.#server = server
    server.on('connection', (socket) => { this.#add(socket) })
    server.on('request', (request, response) => { this.#follow(request, response) })
  }

  /** Closes idle connections at once and each other one after its answer, cuts what is left after a second, and runs `close` meanwhile. */
  async close (close: () => Promise<unknown>): Promise<void> {
    this.#closing = true
    for (const [socket, requests] of this.#open) if (requests === 0) socket.destroy()
    const timer = setTimeout(() => { this.#server.closeAllConnections() }, graceMs)
    try {
      await close()
    } finally {
      clearTimeout(timer)
    }
  }

  #add (socket: Socket): void {
    if (this.#closing) {
      socket.destroy()
      return
    }
    this.#open.set(socket, 0)
    socket.on('close', () => { this.#open.delete(socket) })
  }

  #follow ({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#open.set(socket, (this.#open.get(socket) ?? 0) + 1)
    response.on('close', () => {
      const left = (this.#open.get(socket) ?? 1) - 1
      if (this.#open.has(socket)) this.#open.set(socket, left)
      if (this.#closing && left === 0) socket.destroySoon()
    })
  }
}
