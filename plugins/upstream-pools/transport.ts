import type { Socket } from 'node:net'
import { Pool, type Client, type Dispatcher } from 'undici'
import type { PoolOptions } from '../../config/schema.ts'
import { IdleLimit } from '../../lib/keep-alive.ts'
import type { UpstreamUrl } from '../../lib/upstream-url.ts'
import { Negotiated } from '../http2/negotiated.ts'
import type { Sender, SendOptions } from '../http2/sender.ts'
import { Http2Sessions } from '../http2/sessions.ts'
import { Carrier } from './carrier.ts'
import { exactConnector, http2Connector, type ConnectSettings, type Connector } from './connector.ts'

/** Who waits for a connection: `start` is called once when there is one. */
export interface Waiter {
  start (): void
}

/** Size that a response head may have, in bytes; more is an invalid response. */
const maxResponseHeadBytes = 65536

/** What connections are made by, beside the settings of the upstream. */
export type ConnectionOptions = Pick<PoolOptions, 'connections' | 'http2'> & { readonly timeouts: Pick<PoolOptions['timeouts'], 'connectMs'> }

/** All that connections depend on, as text: two of one text may share theirs. The contents of certificates are in it, not their files. */
export const connectionKey = (url: UpstreamUrl, address: string | null, settings: ConnectSettings, { connections, http2, timeouts: { connectMs } }: ConnectionOptions): string =>
  JSON.stringify([url.origin, address, settings, connections, protocolOf(url.origin, http2), connectMs])

/** What is spoken to an upstream. In clear text nothing can be agreed on. */
const protocolOf = (origin: string, http2: PoolOptions['http2']): PoolOptions['http2'] => http2 === 'alpn' && !origin.startsWith('https:') ? 'off' : http2

/** What sends a request over a connection of its own. */
export type FreshSender = Pick<Sender, 'dispatch'>

/**
 * The connections to one upstream, bounded, and who waits for one. It outlives a reload that changes nothing about connections;
 * otherwise another takes its place, and this one ends with the exchanges that are on it.
 */
export class Transport {
  /** Connections made so far. */
  connects = 0
  /** off: HTTP/1.1 alone · alpn: what the upstream picks · prior-knowledge: HTTP/2 alone */
  readonly http2: PoolOptions['http2']
  readonly #maxConnections: number
  readonly #maxStreams: number
  readonly #connectMs: number
  readonly #origin: string
  readonly #idle: IdleLimit | null
  readonly #settings: ConnectSettings
  readonly #connector: Connector
  /** For connections on which HTTP/2 may be spoken; null: it is not. */
  readonly #http2Connector: Omit<Connector, 'broken'> | null
  readonly #clientOptions: Client.Options
  readonly #waiting = new Set<Waiter>()
  readonly #fresh = new Set<Client>()
  /** Dispatchers that were put away and still have requests. */
  readonly #ending = new Set<Sender>()
  #dispatcher: Sender
  /** Connections that speak HTTP/1.1 and wait for their first request. */
  #spare: (() => Socket | null) | null = null
  /** Exchanges that may be on connections at the same time. */
  #places: number
  #busy = 0
  #retired: (() => void) | null = null

  constructor (origin: string, settings: ConnectSettings, options: ConnectionOptions) {
    const { max, maxStreams, keepAliveMs, learnKeepAlive } = options.connections
    this.http2 = protocolOf(origin, options.http2)
    this.#maxConnections = max
    this.#maxStreams = maxStreams
    this.#connectMs = options.timeouts.connectMs
    this.#places = this.http2 === 'prior-knowledge' ? max * maxStreams : max
    this.#idle = learnKeepAlive ? new IdleLimit() : null
    this.#origin = origin
    this.#settings = settings
    const connected = (): void => { this.connects++ }
    this.#connector = exactConnector(this.#settings, this.#connectMs, connected, () => this.#spare?.() ?? null)
    this.#http2Connector = this.http2 === 'off' ? null : http2Connector(this.#settings, this.#connectMs, connected)
    this.#clientOptions = {
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      // An upstream's own Keep-Alive hint may only shorten the time.
      keepAliveMaxTimeout: keepAliveMs,
      keepAliveTimeoutThreshold: 1000,
      maxHeaderSize: maxResponseHeadBytes,
      // The time limits are the attempt's own: undici's timers are coarse, and its queue is not counted by them.
      headersTimeout: 0,
      bodyTimeout: 0
    }
    this.#dispatcher = this.#sender()
  }

  /**
   * undici's connections to it: never more than `connections.max`. No more are ever busy at the same time; but a request that needs
   * a connection of its own opens it beside these, so that there may be more open ones for as long as it lasts.
   */
  get dispatcher (): Sender { return this.#dispatcher }

  #sender (): Sender {
    if (this.#http2Connector === null) return this.#pool()
    const options = {
      origin: this.#origin,
      maxSessions: this.#maxConnections,
      maxStreams: this.#maxStreams,
      keepAliveMs: this.#clientOptions.keepAliveTimeout as number,
      answerMs: this.#connectMs,
      connect: this.#http2Connector.connect,
      onLimit: (streams: number) => { this.#setPlaces(this.#maxConnections * Math.max(1, streams)) }
    }
    if (this.http2 === 'prior-knowledge') return new Http2Sessions(options)
    const http1 = (spare: () => Socket | null): Sender => {
      this.#spare = spare
      return this.#pool()
    }
    return new Negotiated(http1, options, () => { this.#setPlaces(this.#maxConnections) })
  }

  #pool (): Pool {
    return new Pool(this.#origin, { ...this.#clientOptions, connections: this.#maxConnections, factory: () => this.#client() })
  }

  #client (): Client {
    return new Carrier(this.#origin, this.#clientOptions, this.#connector.connect, this.#idle)
  }

  /**
   * Gives a request to a connection of its own, which closes when the request is done. One that speaks HTTP/2 stays, for others.
   * @param http1 it must be HTTP/1.1
   */
  dispatchFresh (http1: boolean, dispatch: (sender: FreshSender) => void): void {
    const sender = this.#dispatcher
    if (sender instanceof Http2Sessions || (sender instanceof Negotiated && !http1)) {
      dispatch({ dispatch: (options: SendOptions, handler: Dispatcher.DispatchHandler) => sender.dispatchFresh(options, handler) })
      return
    }
    const client = this.#client()
    const gone = (): void => { this.#fresh.delete(client) }
    this.#fresh.add(client)
    try {
      dispatch(client)
    } finally {
      client.close().then(gone, gone)
    }
  }

  /** What a plugin needs to make connections of its own to this upstream. */
  settings (): ConnectSettings {
    return { ...this.#settings }
  }

  /** True when an exchange that comes now gets a connection, or a place in the queue for one. */
  get hasRoom (): boolean {
    return this.#busy < this.#places || this.#waiting.size < this.#maxConnections
  }

  /** True while undici is told of the end of a connection that was in fact reset: a body that ends with it is not whole. */
  get connectionBroken (): boolean { return this.#connector.broken }

  /** How long its connections may have been idle to be used again, where it was seen to end them before `keepAliveMs`; 0: that is not known. */
  get idleLimitMs (): number { return this.#idle?.limitMs(performance.now()) ?? 0 }

  get waiting (): number { return this.#waiting.size }
  get maxWaiting (): number { return this.#maxConnections }
  get busy (): number { return this.#busy }

  /** Starts the waiter when a connection is free: at once, or in its turn. The caller has asked `hasRoom`. */
  enter (waiter: Waiter): void {
    if (this.#busy < this.#places) {
      this.#busy++
      waiter.start()
    } else {
      this.#waiting.add(waiter)
    }
  }

  /** Takes a waiter out of the queue; true if it was still there. */
  withdraw (waiter: Waiter): boolean {
    return this.#waiting.delete(waiter)
  }

  /** Gives back the connection of a started waiter, exactly once. */
  leave (): void {
    if (this.#busy <= this.#places) {
      for (const next of this.#waiting) {
        this.#waiting.delete(next)
        next.start()
        return
      }
    }
    this.#busy--
    this.#endIfRetired()
  }

  /** How many streams a connection has is known once there is one, and may change. */
  #setPlaces (places: number): void {
    this.#places = places
    for (const next of this.#waiting) {
      if (this.#busy >= places) return
      this.#waiting.delete(next)
      this.#busy++
      next.start()
    }
  }

  /** Closes connections as they become idle. What comes after that gets new ones. */
  renew (): void {
    this.#end(this.#dispatcher)
    this.#dispatcher = this.#sender()
  }

  /**
   * Nothing new comes: connections close as they become idle.
   * @param ended called when the last exchange has ended
   */
  retire (ended: () => void): void {
    this.#retired = ended
    this.#endIfRetired()
  }

  #endIfRetired (): void {
    if (this.#retired === null || this.#busy > 0 || this.#waiting.size > 0) return
    const ended = this.#retired
    this.#retired = null
    this.#end(this.#dispatcher, ended)
  }

  /** undici ends a dispatcher when its last request has ended; idle connections at once. */
  #end (dispatcher: Sender, then: () => void = () => {}): void {
    const ended = (): void => {
      this.#ending.delete(dispatcher)
      then()
    }
    this.#ending.add(dispatcher)
    dispatcher.close().then(ended, ended)
  }

  /** Cuts everything off. */
  async close (): Promise<void> {
    this.#connector.close()
    this.#http2Connector?.close()
    await Promise.all([this.#dispatcher, ...this.#ending, ...this.#fresh].map((each) => each.destroy()))
  }
}
