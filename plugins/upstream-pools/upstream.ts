import type { LoadWatch, Member } from '../../lib/balance/lane.ts'
import type { PeakEwma } from '../../lib/balance/peak-ewma.ts'
import type { Ramp } from '../../lib/balance/ramp.ts'
import type { EjectionState } from '../../lib/health/ejection.ts'
import type { UpstreamUrl } from '../../lib/upstream-url.ts'
import type { PoolOptions, UpstreamOptions } from '../../config/schema.ts'
import type { ConnectSettings } from './connector.ts'
import type { Drain, UpstreamState } from './state.ts'
import type { Sender } from '../http2/sender.ts'
import type { FreshSender, Transport, Waiter } from './transport.ts'

export type { Waiter }

/** What an upstream of a snapshot is put together of. */
export interface UpstreamParts {
  pool: string
  url: UpstreamUrl
  /** Where to connect to in the place of what the URL's host resolves to; null: nowhere else. */
  address: string | null
  options: UpstreamOptions
  poolOptions: PoolOptions
  state: UpstreamState
  transport: Transport
  discovered: boolean
  leaving: boolean
}

/**
 * One server of a pool, as it stands in a snapshot: its options, which never change, and at hand its running state and its
 * connections, which outlive the snapshot.
 */
export class Upstream implements Member {
  readonly pool: string
  readonly id: string
  readonly url: UpstreamUrl
  readonly address: string | null
  readonly options: UpstreamOptions
  /** The Host that it is asked for. */
  readonly host: string
  readonly weight: number
  readonly priority: number
  readonly state: UpstreamState
  readonly transport: Transport
  /** It came from the pool's discovery, not from the configuration. */
  readonly discovered: boolean
  /** It is not wanted any more, and serves until those that are have been looked at. */
  readonly leaving: boolean
  readonly #maxInFlight: number
  readonly #ejects: boolean

  constructor ({ pool, url, address, options, poolOptions, state, transport, discovered, leaving }: UpstreamParts) {
    this.pool = pool
    this.url = url
    this.id = url.id
    this.address = address
    this.options = options
    this.host = url.socketPath === null ? url.origin.slice(url.origin.indexOf('//') + 2) : 'localhost'
    this.weight = options.weight
    this.priority = options.priority
    this.state = state
    this.transport = transport
    this.discovered = discovered
    this.leaving = leaving
    this.#maxInFlight = options.maxInFlight ?? poolOptions.maxInFlightPerUpstream
    this.#ejects = poolOptions.ejection.mode === 'enforce'
  }

  /** The belief of the health checks; written by health-polling alone. */
  get healthy (): boolean { return this.state.healthy }
  set healthy (healthy: boolean) { this.state.healthy = healthy }
  /** False until a first check has ended; written by health-polling alone. */
  get checked (): boolean { return this.state.checked }
  set checked (checked: boolean) { this.state.checked = checked }

  /** Takes no new exchanges: drained by an operator, or gone from the pool. */
  get draining (): boolean { return this.state.draining }
  get drain (): Drain | null { return this.state.drain }
  get ejectedUntil (): number { return this.#ejects ? this.state.ejection.until : Number.NEGATIVE_INFINITY }

  /** Exchanges at it now, from the pick to the end of the answer. */
  get inFlight (): number { return this.state.inFlight }
  set inFlight (inFlight: number) { this.state.inFlight = inFlight }
  get latency (): PeakEwma { return this.state.latency }
  get ejection (): EjectionState { return this.state.ejection }
  get ramp (): Ramp { return this.state.ramp }
  get share (): number { return this.state.share }
  set share (share: number) { this.state.share = share }
  get watch (): LoadWatch | null { return this.state.watch }
  set watch (watch: LoadWatch | null) { this.state.watch = watch }
  get slot (): number { return this.state.slot }
  set slot (slot: number) { this.state.slot = slot }

  /** False when one more exchange would have to be refused with `upstream_capacity`. */
  get hasRoom (): boolean {
    const max = this.#maxInFlight
    return (max === 0 || this.state.inFlight < this.inFlightLimit) && this.transport.hasRoom
  }

  /** How many exchanges it may have now, a slow start counted in; 0: no limit. */
  get inFlightLimit (): number {
    const max = this.#maxInFlight
    const { share } = this.state
    return share === 1 ? max : Math.ceil(max * share)
  }

  // ---- its connections

  get dispatcher (): Sender { return this.transport.dispatcher }
  get connects (): number { return this.transport.connects }
  get waiting (): number { return this.transport.waiting }
  /** So many may wait. */
  get maxWaiting (): number { return this.transport.maxWaiting }
  get busyConnections (): number { return this.transport.busy }
  get connectionBroken (): boolean { return this.transport.connectionBroken }
  connector (): ConnectSettings { return this.transport.settings() }
  /** What is spoken to it: HTTP/1.1 (off), what it picks (alpn), or HTTP/2 (prior-knowledge). */
  get http2 (): PoolOptions['http2'] { return this.transport.http2 }
  dispatchFresh (http1: boolean, dispatch: (sender: FreshSender) => void): void { this.transport.dispatchFresh(http1, dispatch) }
  enter (waiter: Waiter): void { this.transport.enter(waiter) }
  withdraw (waiter: Waiter): boolean { return this.transport.withdraw(waiter) }
  leave (): void { this.transport.leave() }
}
