import type { Socket } from 'node:net'
import { Dispatcher } from 'undici'
import { ProtocolError } from './errors.ts'
import type { Http2Exchange } from './exchange.ts'
import type { Sender, SendOptions } from './sender.ts'
import { Http2Sessions, type SessionsOptions } from './sessions.ts'

/** How long it is believed that an upstream does not speak HTTP/2, in ms. */
const believedMs = 300000

/**
 * The connections to an upstream that may speak HTTP/2: what it picks when a connection is made (ALPN) holds for what follows.
 * Where it picks HTTP/1.1, that connection is not wasted, and it is asked again from time to time; where it picked HTTP/2 before,
 * each new connection asks.
 */
export class Negotiated extends Dispatcher implements Sender {
  readonly #http1: Sender
  readonly #http2: Http2Sessions
  readonly #onHttp1: () => void
  /** Connections that speak HTTP/1.1, made while that was not known, and not used yet. */
  readonly #spare: Socket[] = []
  /** Monotonic time until which nothing but HTTP/1.1 is asked for. */
  #http1Until = 0

  /**
   * @param http1 makes what sends over HTTP/1.1; its connector asks `spare` first
   * @param onHttp1 told that it does not speak HTTP/2
   */
  constructor (http1: (spare: () => Socket | null) => Sender, options: Omit<SessionsOptions, 'onHttp1'>, onHttp1: () => void) {
    super()
    this.#http1 = http1(() => this.#takeSpare())
    this.#http2 = new Http2Sessions({ ...options, onHttp1: (socket, waiting) => { this.#fallBack(socket, waiting) } })
    this.#onHttp1 = onHttp1
  }

  get closed (): boolean { return this.#http1.closed }

  override dispatch (options: SendOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (performance.now() >= this.#http1Until) return this.#http2.dispatch(options, handler)
    this.#sendHttp1(options, handler)
    return true
  }

  dispatchFresh (options: SendOptions, handler: Dispatcher.DispatchHandler): boolean {
    return this.#http2.dispatchFresh(options, handler)
  }

  override async close (): Promise<void> {
    this.#dropSpare()
    await Promise.all([this.#http2.close(), this.#http1.close()])
  }

  override async destroy (): Promise<void> {
    this.#dropSpare()
    await Promise.all([this.#http2.destroy(), this.#http1.destroy()])
  }

  #sendHttp1 (options: SendOptions, handler: Dispatcher.DispatchHandler): void {
    if (options.http2Only === true) (handler as { onError (error: Error): void }).onError(new ProtocolError())
    else if (options.overHttp1 != null) options.overHttp1(this.#http1, options, handler)
    else this.#http1.dispatch(options, handler)
  }

  #fallBack (socket: Socket, waiting: readonly Http2Exchange[]): void {
    this.#http1Until = performance.now() + believedMs
    this.#onHttp1()
    if (this.#http1.closed) socket.destroy()
    else this.#keepSpare(socket)
    for (const { options, handler } of waiting) this.#sendHttp1(options, handler as Dispatcher.DispatchHandler)
    // Nobody may have taken it.
    this.#dropSpare()
  }

  #keepSpare (socket: Socket): void {
    this.#spare.push(socket)
    socket.on('error', () => {})
  }

  #takeSpare (): Socket | null {
    const socket = this.#spare.pop()
    return socket === undefined || socket.destroyed || !socket.readable ? null : socket
  }

  #dropSpare (): void {
    for (const socket of this.#spare.splice(0)) socket.destroy()
  }
}
