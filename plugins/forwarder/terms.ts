import type { RetryOptions, RouteOptions, TimeoutOptions } from '../../config/schema.ts'
import type { Lane } from '../../lib/balance/lane.ts'
import type { Waiter } from '../../lib/breaker/silence.ts'
import { UsualLatency } from '../../lib/latency.ts'
import type { NoRetry } from '../../lib/retry/policy.ts'
import type { Observers } from '../observation.ts'
import type { MirrorCounts } from './mirror.ts'
import type { Upstream, UpstreamPool } from '../upstream-pools.ts'

/** The lane of a pool as the forwarder takes it. */
export type UpstreamLane = Lane<UpstreamPool, Upstream>

/** What a breaker wants to know of the attempts that wait. */
export interface StallWatch {
  waits (permit: number, routeMs: number, who: Waiter | null): number
  answered (permit: number, watch: number, ms: number): void
  heard (): void
  gaveUp (watch: number, who: Waiter | null): void
}

/** What was done for a pool beside first attempts; only upwards. */
export interface ForwardCounts {
  /** Further attempts after a failed one; moves are among them. */
  retries: number
  /** Attempts that were moved away from an upstream that answers nobody, or that took more than its share of the time. */
  moves: number
  hedges: number
  hedgesWon: number
  /** Requests that were repeated on a fresh connection because the kept one had been closed. */
  repeats: number
  /** Failures that were not followed by another attempt, by why; only where retries are configured. */
  notRetried: Record<NoRetry, number>
}

export const noCounts = (): ForwardCounts => ({
  retries: 0,
  moves: 0,
  hedges: 0,
  hedgesWon: 0,
  repeats: 0,
  notRetried: { off: 0, limit: 0, begun: 0, client: 0, failure: 0, method: 0, body: 0, deadline: 0, budget: 0, retry_after: 0, no_upstream: 0 }
})

/** Somebody who waits for the head of an answer and could be moved. */
export interface Movable {
  /** The upstream has fallen silent towards everybody. */
  stalled (breaker: object): void
}

/** Who waits at each upstream and could be moved, by the upstream's breaker, which outlives reloads. Oldest first. */
export class WaitingLists {
  readonly #byBreaker = new WeakMap<object, Set<Movable>>()

  of (breaker: object): Set<Movable> {
    let waiting = this.#byBreaker.get(breaker)
    if (waiting === undefined) this.#byBreaker.set(breaker, waiting = new Set())
    return waiting
  }

  stalled (breaker: object): void {
    for (const each of this.#byBreaker.get(breaker) ?? []) each.stalled(breaker)
  }
}

/** What the options of a route say that counts here. */
export type TermOptions = Pick<RouteOptions, 'timeouts' | 'retry'>

/** The usual time to a head at each upstream, by its id. */
export type UsualTimes = ReadonlyMap<string, UsualLatency>

/** What is kept of a pool by its name, whatever its options are now. */
export interface PoolRecord {
  readonly counts: ForwardCounts
  readonly mirrors: MirrorCounts
  /** The percentile of the time to a head after which a second attempt is sent; null: none is. */
  hedging: { readonly percentile: number, readonly latency: UsualLatency } | null
}

/**
 * What holds for the exchanges of one route at one pool, worked out once for as long as both stay as they are: the limits, the
 * retries, and what is usual.
 */
export class Terms {
  readonly lane: UpstreamLane
  readonly limits: TimeoutOptions
  readonly retry: RetryOptions
  readonly counts: ForwardCounts
  /** Further attempts may follow the first one, or go beside it. */
  readonly repeats: boolean
  /** The route's usual time to a head at each upstream; null: the breaker does not ask for it. */
  readonly usual: readonly UsualLatency[] | null
  /** The pool's time to a head after which a second attempt is sent; null: none is. */
  readonly hedging: UsualLatency | null
  /** By upstream: who could be moved away from it; null: it has no breaker. */
  readonly waiting: ReadonlyArray<Set<Movable> | null>

  /** null: nobody looks. */
  readonly observers: Observers | null

  private constructor (lane: UpstreamLane, limits: TimeoutOptions, retry: RetryOptions, shared: Pick<Terms, 'counts' | 'usual' | 'hedging' | 'waiting' | 'observers'>) {
    this.lane = lane
    this.limits = limits
    this.retry = retry
    this.counts = shared.counts
    this.repeats = retry.retries > 0 || retry.hedge.percentile > 0
    this.usual = shared.usual
    this.hedging = shared.hedging
    this.waiting = shared.waiting
    this.observers = shared.observers
  }

  /** @param before what was usual until the pool changed: for those who stay it is not forgotten */
  static of (lane: UpstreamLane, own: TermOptions, record: PoolRecord, lists: WaitingLists, before: UsualTimes | null, observers: Observers | null): Terms {
    const { options, upstreams } = lane.pool
    const { mode, stall } = options.breaker
    return new Terms(lane, limitsOf(options.timeouts, own), retryOf(options.retry, own), {
      counts: record.counts,
      usual: mode === 'off' || stall.outstanding === 0 ? null : upstreams.map(({ id }) => before?.get(id) ?? new UsualLatency()),
      hedging: hedgingOf(record, options.retry.hedge.percentile),
      waiting: lane.breakers.map((breaker) => breaker === null ? null : lists.of(breaker)),
      observers
    })
  }

  /** The same, with limits and retries of one's own. */
  but (own: TermOptions): Terms {
    return new Terms(this.lane, limitsOf(this.limits, own), retryOf(this.retry, own), this)
  }

  /** What is usual, without the lane that it was found in. */
  times (): UsualTimes {
    return new Map(this.usual?.map((usual, index) => [(this.lane.pool.upstreams[index] as Upstream).id, usual]))
  }
}

function limitsOf (limits: TimeoutOptions, { timeouts }: TermOptions): TimeoutOptions {
  return timeouts === undefined ? limits : { ...limits, ...timeouts }
}

function retryOf (options: RetryOptions, { retry }: TermOptions): RetryOptions {
  return retry === undefined ? options : { ...options, ...retry }
}

function hedgingOf (record: PoolRecord, percentile: number): UsualLatency | null {
  if (percentile === 0) return null
  if (record.hedging?.percentile !== percentile) record.hedging = { percentile, latency: new UsualLatency(percentile) }
  return record.hedging.latency
}
