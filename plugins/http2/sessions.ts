import type { Socket } from 'node:net'
import { Dispatcher, type buildConnector } from 'undici'
import { GivenUpError, StreamClosedError } from './errors.ts'
import { Http2Exchange } from './exchange.ts'
import type { Handler, Sender, SendOptions } from './sender.ts'
import { Session, type SessionOptions, type SessionOwner } from './session.ts'

export interface SessionsOptions extends Omit<SessionOptions, 'origin'> {
  origin: string
  /** Connections at the same time. */
  maxSessions: number
  /** undici's connector. */
  connect: (options: buildConnector.Options, callback: buildConnector.Callback) => Socket
  /** Gets a connection on which the upstream wants to speak HTTP/1.1, and the requests that waited for it. Left out: it is spoken to in HTTP/2. */
  onHttp1?: (socket: Socket, waiting: readonly Http2Exchange[]) => void
  /** Told how many exchanges a session takes. */
  onLimit?: (streams: number) => void
}

/** A connection that is being made, and the exchanges that it is made for. */
interface Coming {
  socket: Socket | null
  session: Session | null
  readonly waiting: Set<Http2Exchange>
}

interface Withdrawable { carrier?: unknown }

/**
 * The connections to one upstream that speaks HTTP/2. An exchange goes on the first one that has room; a further one is made when
 * there is none, up to a bound. Where that is reached it waits until a stream ends; how many may wait is its caller's to bound.
 */
export class Http2Sessions extends Dispatcher implements Sender, SessionOwner {
  readonly #options: SessionsOptions
  readonly #origin: URL
  readonly #sessions = new Set<Session>()
  /** Those that were put away, and still have exchanges. */
  readonly #leaving = new Set<Session>()
  readonly #coming = new Set<Coming>()
  readonly #waiting = new Set<Http2Exchange>()
  readonly #ends: Array<() => void> = []
  #closing = false

  constructor (options: SessionsOptions) {
    super()
    this.#options = options
    this.#origin = new URL(options.origin)
  }

  get closed (): boolean { return this.#closing }

  override dispatch (options: SendOptions, handler: Dispatcher.DispatchHandler): boolean {
    const exchange = this.#exchange(options, handler)
    if (exchange !== null) this.#place(exchange)
    return true
  }

  /** Sends over a connection that is made for it, where one more may be; else like any other. */
  dispatchFresh (options: SendOptions, handler: Dispatcher.DispatchHandler): boolean {
    const exchange = this.#exchange(options, handler)
    if (exchange === null) return true
    if (this.#mayConnect) this.#connect(exchange)
    else this.#place(exchange)
    return true
  }

  #exchange (options: SendOptions, handler: Dispatcher.DispatchHandler): Http2Exchange | null {
    const exchange = new Http2Exchange(options, handler as Handler)
    if ('carrier' in handler) (handler as Withdrawable).carrier = new Ticket(this, exchange)
    if (!this.#closing) return exchange
    exchange.fail(new StreamClosedError('the connections were closed', { unprocessed: true }))
    return null
  }

  /** Takes an exchange back that has not begun. */
  withdraw (exchange: Http2Exchange): void {
    this.#waiting.delete(exchange)
    for (const coming of this.#coming) {
      if (!coming.waiting.delete(exchange) || coming.waiting.size > 0) continue
      // Nobody wants it any more: an upstream that does not answer would keep it, and those that come later, waiting.
      this.#coming.delete(coming)
      coming.session?.destroy()
      coming.socket?.destroy(new GivenUpError())
    }
    exchange.fail(new GivenUpError())
    this.#serveWaiting()
  }

  override close (): Promise<void> {
    this.#closing = true
    for (const session of this.#sessions) session.close()
    return new Promise((resolve) => {
      this.#ends.push(resolve)
      this.#ended()
    })
  }

  override async destroy (): Promise<void> {
    this.#closing = true
    const sessions = [...this.#sessions, ...this.#leaving]
    for (const exchange of this.#waiting) exchange.fail(new GivenUpError())
    this.#waiting.clear()
    for (const { socket, session, waiting } of this.#coming) {
      for (const exchange of waiting) exchange.fail(new GivenUpError())
      session?.destroy()
      socket?.destroy()
    }
    this.#coming.clear()
    for (const session of sessions) session.destroy()
    this.#ended()
  }

  // ---- where an exchange goes

  get #mayConnect (): boolean { return this.#sessions.size + this.#coming.size < this.#options.maxSessions }

  #place (exchange: Http2Exchange): void {
    for (const session of this.#sessions) if (session.hasRoom) return exchange.start(session, this.#origin)
    for (const { waiting } of this.#coming) {
      if (waiting.size >= this.#options.maxStreams) continue
      waiting.add(exchange)
      return
    }
    if (this.#mayConnect) this.#connect(exchange)
    else this.#waiting.add(exchange)
  }

  #serveWaiting (): void {
    for (const exchange of this.#waiting) {
      if (!this.#mayConnect && !this.#anyRoom()) return
      this.#waiting.delete(exchange)
      this.#place(exchange)
    }
    this.#ended()
  }

  #anyRoom (): boolean {
    for (const session of this.#sessions) if (session.hasRoom) return true
    for (const { waiting } of this.#coming) if (waiting.size < this.#options.maxStreams) return true
    return false
  }

  // ---- connections

  #connect (exchange: Http2Exchange): void {
    const coming: Coming = { socket: null, session: null, waiting: new Set([exchange]) }
    this.#coming.add(coming)
    const { hostname, host, protocol, port } = this.#origin
    const target = { hostname: hostname.replace(/^\[(.*)\]$/, '$1'), host, protocol, port }
    try {
      coming.socket = this.#options.connect(target, (error, socket) => {
        if (!this.#coming.has(coming)) socket?.destroy()
        else if (error !== null) this.#failed(coming, error)
        else this.#connected(coming, socket)
      })
    } catch (error) {
      this.#failed(coming, error as Error)
    }
  }

  #connected (coming: Coming, socket: Socket): void {
    const { onHttp1 } = this.#options
    if (onHttp1 !== undefined && (socket as { alpnProtocol?: unknown }).alpnProtocol !== 'h2') {
      this.#coming.delete(coming)
      onHttp1(socket, [...coming.waiting])
      return this.#serveWaiting()
    }
    coming.session = new Session(socket, { ...this.#options, origin: this.#origin }, this)
  }

  #failed (coming: Coming, error: Error): void {
    this.#coming.delete(coming)
    for (const exchange of coming.waiting) exchange.fail(error)
    this.#serveWaiting()
  }

  #comingWith (session: Session): Coming | null {
    for (const coming of this.#coming) if (coming.session === session) return coming
    return null
  }

  limitIs (streams: number): void { this.#options.onLimit?.(streams) }

  roomOn (session: Session): void {
    const coming = this.#comingWith(session)
    if (coming !== null) {
      this.#coming.delete(coming)
      this.#sessions.add(session)
      for (const exchange of coming.waiting) {
        if (session.hasRoom) exchange.start(session, this.#origin)
        else this.#place(exchange)
      }
      if (this.#closing) session.close()
    }
    this.#serveWaiting()
  }

  noMoreOn (session: Session): void {
    if (!this.#sessions.delete(session)) return
    this.#leaving.add(session)
    this.#serveWaiting()
  }

  goneSession (session: Session, error: Error): void {
    this.#sessions.delete(session)
    this.#leaving.delete(session)
    const coming = this.#comingWith(session)
    if (coming !== null) this.#failed(coming, error)
    else this.#serveWaiting()
  }

  #ended (): void {
    if (!this.#closing || this.#sessions.size + this.#leaving.size + this.#coming.size + this.#waiting.size > 0) return
    for (const resolve of this.#ends.splice(0)) resolve()
  }
}

/** What an exchange has of its connection, for whoever wants to take it back. */
class Ticket {
  readonly http2 = true
  readonly socket = null
  readonly #sessions: Http2Sessions
  readonly #exchange: Http2Exchange

  constructor (sessions: Http2Sessions, exchange: Http2Exchange) {
    this.#sessions = sessions
    this.#exchange = exchange
  }

  giveUp (): void { this.#sessions.withdraw(this.#exchange) }
  begin (): void {}
  end (): void {}
  stale (): void {}
}
