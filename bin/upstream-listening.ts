import type { Server } from 'node:http'
import type { Socket } from 'node:net'

const listenAgainMs = 100

/** Whether a server listens: it may stop for a while, and come back at the same port. */
export class Listening {
  readonly #server: Server
  readonly #sockets: ReadonlySet<Socket>
  readonly #at: { port: number, host: string }
  #wanted = true
  #closed = false
  #retry: NodeJS.Timeout | undefined

  constructor (server: Server, sockets: ReadonlySet<Socket>, port: number, host: string) {
    this.#server = server
    this.#sockets = sockets
    this.#at = { port, host }
    // The port may be taken for a moment: by a connection of somebody who got it as his own.
    server.on('error', () => {
      if (!this.#closed && this.#wanted) this.#retry = setTimeout(() => this.#listen(), listenAgainMs)
    })
  }

  setDead (dead: boolean): void {
    if (this.#wanted === !dead || this.#closed) return
    this.#wanted = !dead
    clearTimeout(this.#retry)
    if (dead) this.#stop()
    else this.#listen()
  }

  #listen (): void {
    if (!this.#closed && this.#wanted && !this.#server.listening) this.#server.listen(this.#at.port, this.#at.host)
  }

  #stop (): void {
    if (this.#server.listening) this.#server.close()
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  async close (): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    const ended = this.#server.listening ? new Promise(resolve => this.#server.close(resolve)) : null
    const gone = [...this.#sockets].map(socket => new Promise(resolve => socket.once('close', resolve)))
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all([ended, ...gone])
  }
}
