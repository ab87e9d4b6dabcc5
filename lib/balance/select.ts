import type { Outcome, Reason } from '../failure.ts'
import type { Balancer } from './balancer.ts'

/** A member of a pool as selection sees it. */
export interface Member {
  readonly healthy: boolean
  /** Set by an operator: takes no new exchanges. */
  readonly draining: boolean
  /** 0: takes no new exchanges. */
  readonly weight: number
  /** False when one more exchange would be too many. */
  readonly hasRoom: boolean
  /** Exchanges at it; a pick counts as one. */
  inFlight: number
}

/** The breaker as selection sees it. */
export interface SelectBreaker {
  /** A permit, or 0. */
  admit (now: number): number
  wouldAdmit (now: number): boolean
  /** Milliseconds until it may admit again; 0 where it does already, or nobody knows. */
  retryAfterMs (now: number): number
  settle (permit: number, outcome: Outcome, now: number): void
}

export interface Candidates<M extends Member = Member> {
  readonly upstreams: readonly M[]
  readonly balancer: Balancer
  readonly options: { readonly health: { readonly intervalMs: number } }
}

/** A pool with the breakers of its members at hand: nothing is looked up while a request waits. */
export class Lane<M extends Member = Member> {
  readonly pool: Candidates<M>
  readonly breakers: ReadonlyArray<SelectBreaker | null>
  readonly #usable: Int32Array
  /** The pick: the member's index and the breaker's permit (0 where it has no breaker). */
  index = 0
  permit = 0

  constructor (pool: Candidates<M>, breakerOf: (member: M) => SelectBreaker | null) {
    this.pool = pool
    this.breakers = pool.upstreams.map(breakerOf)
    this.#usable = new Int32Array(pool.upstreams.length)
  }

  /**
   * Picks an upstream and takes its place and its permit: the gate first, the breaker last, so that no probe is burnt by a
   * refusal of our own. On success `index` and `permit` tell the pick and null is returned; else the reason of the refusal:
   * capacity if that refused anybody, else the breaker, else health.
   */
  select (now: number): Reason | null {
    const { upstreams, balancer } = this.pool
    const usable = this.#usable
    let count = 0
    let refusal: Reason = 'no_upstream_healthy'
    for (let i = 0; i < upstreams.length; i++) {
      const upstream = upstreams[i] as M
      if (!upstream.healthy || upstream.draining || upstream.weight === 0) continue
      if (!upstream.hasRoom) {
        refusal = 'upstream_capacity'
        continue
      }
      const breaker = this.breakers[i]
      if (breaker != null && !breaker.wouldAdmit(now)) {
        if (refusal === 'no_upstream_healthy') refusal = 'breaker_open'
        continue
      }
      usable[count++] = i
    }
    while (count > 0) {
      const index = balancer.pick(usable, count)
      const upstream = upstreams[index] as M
      const breaker = this.breakers[index]
      upstream.inFlight++
      const permit = breaker == null ? 0 : breaker.admit(now)
      if (breaker == null || permit !== 0) {
        this.index = index
        this.permit = permit
        return null
      }
      upstream.inFlight--
      balancer.giveBack(index)
      if (refusal === 'no_upstream_healthy') refusal = 'breaker_open'
      count = without(usable, count, index)
    }
    return refusal
  }

  /** Milliseconds until the refusal may be over, as far as we know. */
  expectedMs (reason: Reason, now: number): number {
    if (reason === 'breaker_open') {
      let soonest = Infinity
      for (const breaker of this.breakers) {
        const ms = breaker?.retryAfterMs(now) ?? 0
        if (ms > 0 && ms < soonest) soonest = ms
      }
      return soonest === Infinity ? 1000 : soonest
    }
    return reason === 'no_upstream_healthy' ? this.pool.options.health.intervalMs : 1000
  }
}

function without (usable: Int32Array, count: number, index: number): number {
  let kept = 0
  for (let i = 0; i < count; i++) {
    if (usable[i] !== index) usable[kept++] = usable[i] as number
  }
  return kept
}
