import { Pool, type Client } from 'undici'
import type { PoolOptions, UpstreamOptions } from '../../config/schema.ts'
import { parseUpstreamUrl, type UpstreamUrl } from '../../lib/upstream-url.ts'
import { Carrier } from './carrier.ts'
import { connectSettings, exactConnector, type ConnectSettings, type Connector } from './connector.ts'

/** Who waits for a connection: `start` is called once when there is one. */
export interface Waiter {
  start (): void
}

/** Size that a response head may have, in bytes; more is an invalid response. */
const maxResponseHeadBytes = 65536

/** One server of a pool, with what is known about it now. Its state is keyed by pool and id and outlives a reload. */
export class Upstream {
  readonly pool: string
  readonly id: string
  readonly url: UpstreamUrl
  /** The Host that it is asked for. */
  readonly host: string
  readonly weight: number
  /**
   * undici's connections to it: never more than `connections.max`. No more are ever busy at the same time; but a request that needs
   * a connection of its own opens it beside these, so that there may be more open ones for as long as it lasts.
   */
  readonly dispatcher: Pool
  /** The belief of the health checks; written by health-polling alone. */
  healthy = true
  /** Set by an operator: takes no new exchanges. */
  draining = false
  /** Exchanges at it now, from the pick to the end of the answer. */
  inFlight = 0
  /** Connections made so far. */
  connects = 0

  readonly #maxConnections: number
  readonly #maxInFlight: number
  readonly #settings: ConnectSettings
  readonly #connector: Connector
  readonly #clientOptions: Client.Options
  readonly #waiting = new Set<Waiter>()
  readonly #fresh = new Set<Client>()
  #busy = 0

  constructor (pool: string, options: UpstreamOptions, poolOptions: PoolOptions) {
    this.pool = pool
    this.url = parseUpstreamUrl(options.url)
    this.id = this.url.id
    this.host = this.url.socketPath === null ? this.url.origin.slice(this.url.origin.indexOf('//') + 2) : 'localhost'
    this.weight = options.weight
    this.#maxConnections = poolOptions.connections.max
    this.#maxInFlight = poolOptions.maxInFlightPerUpstream
    this.#settings = connectSettings(this.url, poolOptions.tls)
    this.#connector = exactConnector(this.#settings, poolOptions.timeouts.connectMs, () => { this.connects++ })
    const keepAliveMs = poolOptions.connections.keepAliveMs
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
    this.dispatcher = new Pool(this.url.origin, { ...this.#clientOptions, connections: this.#maxConnections, factory: () => this.#client() })
  }

  #client (): Client {
    return new Carrier(this.url.origin, this.#clientOptions, this.#connector.connect)
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
  connector (): ConnectSettings {
    return { ...this.#settings }
  }

  /** False when one more exchange would have to be refused with `upstream_capacity`. */
  get hasRoom (): boolean {
    return (this.#maxInFlight === 0 || this.inFlight < this.#maxInFlight) &&
      (this.#busy < this.#maxConnections || this.#waiting.size < this.#maxConnections)
  }

  /** True while undici is told of the end of a connection that was in fact reset: a body that ends with it is not whole. */
  get connectionBroken (): boolean { return this.#connector.broken }

  get waiting (): number { return this.#waiting.size }
  get busyConnections (): number { return this.#busy }

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
  }

  async close (): Promise<void> {
    this.#connector.close()
    await Promise.all([this.dispatcher, ...this.#fresh].map((each) => each.destroy()))
  }
}
