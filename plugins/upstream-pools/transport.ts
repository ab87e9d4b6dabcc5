import { Pool, type Client } from 'undici'
import type { PoolOptions } from '../../config/schema.ts'
import { IdleLimit } from '../../lib/keep-alive.ts'
import type { UpstreamUrl } from '../../lib/upstream-url.ts'
import { Carrier } from './carrier.ts'
import { exactConnector, type ConnectSettings, type Connector } from './connector.ts'

/** Who waits for a connection: `start` is called once when there is one. */
export interface Waiter {
  start (): void
}

/** Size that a response head may have, in bytes; more is an invalid response. */
const maxResponseHeadBytes = 65536

/** What connections are made by, beside the settings of the upstream. */
export type ConnectionOptions = Pick<PoolOptions, 'connections'> & { readonly timeouts: Pick<PoolOptions['timeouts'], 'connectMs'> }

/** All that connections depend on, as text: two of one text may share theirs. The contents of certificates are in it, not their files. */
export const connectionKey = (url: UpstreamUrl, address: string | null, settings: ConnectSettings, { connections, timeouts: { connectMs } }: ConnectionOptions): string =>
  JSON.stringify([url.origin, address, settings, connections, connectMs])

/**
 * The connections to one upstream, bounded, and who waits for one. It outlives a reload that changes nothing about connections;
 * otherwise another takes its place, and this one ends with the exchanges that are on it.
 */
export class Transport {
  /** Connections made so far. */
  connects = 0
  readonly #maxConnections: number
  readonly #origin: string
  readonly #idle: IdleLimit | null
  readonly #settings: ConnectSettings
  readonly #connector: Connector
  readonly #clientOptions: Client.Options
  readonly #waiting = new Set<Waiter>()
  readonly #fresh = new Set<Client>()
  /** Dispatchers that were put away and still have requests. */
  readonly #ending = new Set<Pool>()
  #dispatcher: Pool
  #busy = 0
  #retired: (() => void) | null = null

  constructor (origin: string, settings: ConnectSettings, options: ConnectionOptions) {
    const { max, keepAliveMs, learnKeepAlive } = options.connections
    this.#maxConnections = max
    this.#idle = learnKeepAlive ? new IdleLimit() : null
    this.#origin = origin
    this.#settings = settings
    this.#connector = exactConnector(this.#settings, options.timeouts.connectMs, () => { this.connects++ })
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
    this.#dispatcher = this.#pool()
  }

  /**
   * undici's connections to it: never more than `connections.max`. No more are ever busy at the same time; but a request that needs
   * a connection of its own opens it beside these, so that there may be more open ones for as long as it lasts.
   */
  get dispatcher (): Pool { return this.#dispatcher }

  #pool (): Pool {
    return new Pool(this.#origin, { ...this.#clientOptions, connections: this.#maxConnections, factory: () => this.#client() })
  }

  #client (): Client {
    return new Carrier(this.#origin, this.#clientOptions, this.#connector.connect, this.#idle)
  }

  /** Gives a request to a client of its own, with a connection of its own, which closes when the request is done. */
  dispatchFresh (dispatch: (client: Client) => void): void {
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
    return this.#busy < this.#maxConnections || this.#waiting.size < this.#maxConnections
  }

  /** True while undici is told of the end of a connection that was in fact reset: a body that ends with it is not whole. */
  get connectionBroken (): boolean { return this.#connector.broken }

  /** How long its connections may have been idle to be used again, where it was seen to end them before `keepAliveMs`; 0: that is not known. */
  get idleLimitMs (): number { return this.#idle?.limitMs(performance.now()) ?? 0 }

  get waiting (): number { return this.#waiting.size }
  get busy (): number { return this.#busy }

  /** Starts the waiter when a connection is free: at once, or in its turn. The caller has asked `hasRoom`. */
  enter (waiter: Waiter): void {
    if (this.#busy < this.#maxConnections) {
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
    for (const next of this.#waiting) {
      this.#waiting.delete(next)
      next.start()
      return
    }
    this.#busy--
    this.#endIfRetired()
  }

  /** Closes connections as they become idle. What comes after that gets new ones. */
  renew (): void {
    this.#end(this.#dispatcher)
    this.#dispatcher = this.#pool()
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
  #end (dispatcher: Pool, then: () => void = () => {}): void {
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
    await Promise.all([this.#dispatcher, ...this.#ending, ...this.#fresh].map((each) => each.destroy()))
  }
}
