import type { PoolOptions } from '../../config/schema.ts'
import type { Outcome, Reason } from '../failure.ts'
import { isEjected, observe, releaseExcess, type Ejection, type EjectionPool, type EjectionState } from '../health/ejection.ts'
import type { Random } from '../random.ts'
import type { Balancer, Loaded } from './balancer.ts'
import { makeBalancer } from './make.ts'
import { Roster, type Enlisted, type EnlistedBreaker, type Tier } from './roster.ts'

/** What the lanes of one pool, each of which is made anew by a change, have in common. */
export class Signal {
  /** Counts the changes of the members: health, drain, ejection, breaker state. Who sees another number looks again. */
  revision = 0
  /** Panic, as it was told last. */
  panic = false
  /** Picks that were made in panic. */
  panicPicks = 0
  touch (): void { this.revision++ }
}

/** Told when the load of a member changes; `slot` is its index there. */
export interface LoadWatch {
  loadChanged (slot: number): void
}

/** A member of a pool as selection sees it: the running state of an upstream. */
export interface Member extends Enlisted, Loaded {
  readonly id: string
  /** False when one more exchange would be too many. */
  readonly hasRoom: boolean
  /** Exchanges at it; a pick counts as one. */
  inFlight: number
  readonly ejection: EjectionState
  watch: LoadWatch | null
  slot: number
}

/** The breaker as selection sees it. */
export interface SelectBreaker extends EnlistedBreaker {
  /** A permit, or 0. */
  admit (now: number): number
  settle (permit: number, outcome: Outcome, now: number): void
  /** What the failure is that is settled next. */
  failing (permit: number, what: string | null, now: number): void
}

export type LaneOptions = Pick<PoolOptions, 'balancer' | 'hash' | 'slowStart' | 'panic' | 'spillOver' | 'ejection'> & { readonly health: { readonly intervalMs: number } }

export interface Candidates<M extends Member = Member> {
  readonly upstreams: readonly M[]
  readonly options: LaneOptions
  readonly signal: Signal
}

/** Who is told what a lane finds out by itself. */
export interface LaneObserver<M extends Member = Member> {
  panicChanged (panic: boolean, usable: number, standing: number): void
  ejection (member: M, ejection: Ejection): void
  /** It was ended so many ms before its time, for the sake of the pool. */
  ejectionEnded (member: M, earlyMs: number): void
}

/** How slow an answer that fails counts at least and at most, in ms: Linkerd's load biaser. */
const fastFailureMs = 5000
const maxPenaltyMs = 300000

/** A pool with the breakers of its members at hand: nothing is looked up while a request waits. */
export class Lane<P extends Candidates<M>, M extends Member = Member> implements LoadWatch, EjectionPool {
  readonly pool: P
  readonly breakers: ReadonlyArray<SelectBreaker | null>
  readonly #roster: Roster
  readonly #balancers: readonly Balancer[]
  readonly #random: Random
  readonly #observer: LaneObserver<M> | null
  readonly #usable: Int32Array
  #seen = -1
  #superseded = false
  /** The pick: the member's index and the breaker's permit (0 where it has no breaker). */
  index = 0
  permit = 0
  /** The latest pick went the long way: somebody was passed over for want of room or of a permit. */
  searched = false
  /** Kept by a recorder: what it has written down of the members. Null once the roster is not the same any more. */
  note: object | null = null

  constructor (pool: P, breakerOf: (member: M) => SelectBreaker | null, random: Random, observer: LaneObserver<M> | null = null) {
    const { upstreams, options } = pool
    this.pool = pool
    this.breakers = upstreams.map(breakerOf)
    this.#roster = new Roster(upstreams, this.breakers, options)
    this.#balancers = this.#roster.tiers.map(() => makeBalancer(options, upstreams, random))
    this.#random = random
    this.#observer = observer
    this.#usable = new Int32Array(upstreams.length)
    for (const [index, upstream] of upstreams.entries()) {
      upstream.slot = index
      upstream.watch = options.balancer === 'least-requests' || (options.balancer === 'hash' && options.hash.boundedLoad > 0) ? this : null
      if (options.ejection.mode === 'off') upstream.ejection.clear()
    }
  }

  /**
   * Picks an upstream and takes its place and its permit: the gate first, the breaker last, so that no probe is burnt by a
   * refusal of our own. On success `index` and `permit` tell the pick and null is returned; else the reason of the refusal:
   * capacity if that refused anybody, else the breaker, else health.
   * @param key hash of the request's key in 0 .. 2^32-1, -1: none
   * @param preferred index of the member that is asked first, -1: none
   * @param tried members that are not asked again; null: none
   */
  select (now: number, key = -1, preferred = -1, tried: readonly number[] | null = null): Reason | null {
    this.#look(now)
    this.searched = false
    // A pool that waits for its discovery has nobody.
    if (tried === null && this.#balancers.length > 0) {
      if (preferred >= 0 && this.#roster.isIn(preferred) && this.#take(preferred, now)) return null
      const tier = this.#drawTier()
      const balancer = this.#balancers[tier] as Balancer
      const index = balancer.pick(key, now)
      if (index >= 0) {
        if (this.#take(index, now)) return null
        balancer.giveBack(index)
      }
    }
    this.searched = true
    return this.#search(now, key, tried)
  }

  /** Settles a pick, exactly once: the permit goes back to the breaker, and passive observation is told. */
  settle (index: number, permit: number, outcome: Outcome, gatewayFailure: boolean, now: number): void {
    const breaker = this.breakers[index]
    breaker?.settle(permit, outcome, now)
    const { ejection } = this.pool.options
    if (ejection.mode === 'off' || (outcome !== 'success' && outcome !== 'failure')) return
    const member = this.pool.upstreams[index] as M
    const found = observe(member.ejection, gatewayFailure, this, ejection, now)
    if (found === null) return
    if (found.held === null) this.pool.signal.touch()
    this.#observer?.ejection(member, found)
  }

  /**
   * The head of an answer has come after `ms`. One that fails is quick for a bad reason, and must not draw traffic.
   * @param retryAfterMs what the answer asks for; 0: nothing
   */
  answered (index: number, ms: number, failed: boolean, retryAfterMs: number, now: number): void {
    const { latency } = this.pool.upstreams[index] as M
    if (failed) latency.penalise(Math.max(fastFailureMs, Math.min(retryAfterMs, maxPenaltyMs)), now)
    else latency.record(ms, now)
  }

  /** Gives the place of a pick back, exactly once. */
  release (index: number): void {
    const member = this.pool.upstreams[index] as M
    member.inFlight--
    member.watch?.loadChanged(member.slot)
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

  // ---- what passive observation asks

  members (): number { return this.#count(() => true) }
  ejected (now: number): number { return this.#count(({ ejection }) => isEjected(ejection, now)) }
  usable (now: number): number { return this.#count(({ healthy, ejection }) => healthy && !isEjected(ejection, now)) }

  #count (which: (member: M) => boolean): number {
    return this.pool.upstreams.reduce((count, member) => count + Number(!member.draining && member.weight > 0 && which(member)), 0)
  }

  // ---- for those who look

  /** Another lane has taken its place. Exchanges that began with it may go on with it; what outlives it is not its to change any more. */
  supersede (): void {
    this.#superseded = true
    this.#roster.superseded = true
  }

  /** Commits what time alone has brought. */
  sweep (now: number): void { this.#look(now) }
  get panic (): boolean { return this.pool.signal.panic }
  get panicPicks (): number { return this.pool.signal.panicPicks }
  get tiers (): readonly Tier[] { return this.#roster.tiers }
  /** The weight by which it is picked now, a slow start counted in; 0: it is not. */
  weightOf (index: number): number { return this.#roster.weights[index] ?? 0 }

  /** It may be picked, as far as what changes from request to request lets it. */
  isIn (index: number): boolean { return this.#roster.isIn(index) }
  /** It is in, or kept out by its breaker alone. */
  isWell (index: number): boolean { return this.#roster.isWell(index) }
  tierOf (index: number): Tier { return this.#roster.tiers[this.#roster.tierOf(index)] as Tier }

  loadChanged (slot: number): void {
    this.#balancers[this.#roster.tierOf(slot)]?.loadChanged(slot)
  }

  #look (now: number): void {
    const { signal } = this.pool
    if (signal.revision === this.#seen && now < this.#roster.wakeAt) return
    this.#seen = signal.revision
    const roster = this.#roster
    this.#releaseExcess(now)
    roster.refresh(now)
    this.note = null
    for (const [tier, { members, count }] of roster.tiers.entries()) this.#balancers[tier]?.update(members, count, roster.weights, now)
    if (roster.panic === signal.panic || this.#superseded) return
    signal.panic = roster.panic
    this.#observer?.panicChanged(signal.panic, roster.usable, roster.standing)
  }

  /** A pool that has shrunk meanwhile, or whose other members have become unhealthy, must not be left with everybody ejected. */
  #releaseExcess (now: number): void {
    const { ejection } = this.pool.options
    if (ejection.mode === 'off') return
    const standing = this.pool.upstreams.filter(({ draining, weight }) => !draining && weight > 0)
    const out = standing.filter((member) => isEjected(member.ejection, now))
    if (out.length === 0) return
    const ends = out.map((member) => member.ejection.until)
    releaseExcess(standing.map((member) => member.ejection), ejection, now)
    const healthy = standing.flatMap((member) => member.healthy ? [member.ejection] : [])
    if (healthy.length > 0 && healthy.every((state) => isEjected(state, now))) {
      healthy.reduce((earliest, state) => state.until < earliest.until ? state : earliest).until = now
    }
    if (ejection.mode === 'observe' || this.#superseded) return
    for (const [i, member] of out.entries()) if (!isEjected(member.ejection, now)) this.#observer?.ejectionEnded(member, (ends[i] as number) - now)
  }

  #drawTier (): number {
    const { tiers } = this.#roster
    if (tiers.length < 2) return 0
    let left = this.#random()
    for (let tier = 0; tier < tiers.length; tier++) {
      left -= (tiers[tier] as Tier).load
      if (left < 0) return tier
    }
    return 0
  }

  #take (index: number, now: number): boolean {
    const member = this.pool.upstreams[index] as M
    if (!member.hasRoom) return false
    const breaker = this.breakers[index]
    let permit = 0
    if (breaker != null) {
      permit = breaker.admit(now)
      if (permit === 0) return false
    }
    member.inFlight++
    member.watch?.loadChanged(member.slot)
    if (this.pool.signal.panic) this.pool.signal.panicPicks++
    this.index = index
    this.permit = permit
    return true
  }

  /** The long way, where the first choice was refused: everybody who is left, the tiers in their order. */
  #search (now: number, key: number, tried: readonly number[] | null): Reason | null {
    const { upstreams } = this.pool
    const usable = this.#usable
    let refusal: Reason = 'no_upstream_healthy'
    for (let tier = 0; tier < this.#roster.tiers.length; tier++) {
      const balancer = this.#balancers[tier] as Balancer
      let count = 0
      for (const index of (this.#roster.tiers[tier] as Tier).all) {
        if (!this.#roster.isWell(index) || (tried !== null && tried.includes(index))) continue
        const breaker = this.breakers[index]
        if (!(upstreams[index] as M).hasRoom) refusal = 'upstream_capacity'
        else if (this.#roster.isIn(index) && (breaker == null || breaker.wouldAdmit(now))) usable[count++] = index
        else if (refusal === 'no_upstream_healthy') refusal = 'breaker_open'
      }
      while (count > 0) {
        const index = balancer.pickAmong(usable, count, key, now)
        if (this.#take(index, now)) return null
        balancer.giveBack(index)
        if (refusal === 'no_upstream_healthy') refusal = 'breaker_open'
        count = without(usable, count, index)
      }
    }
    return refusal
  }
}

function without (usable: Int32Array, count: number, index: number): number {
  let kept = 0
  for (let i = 0; i < count; i++) {
    if (usable[i] !== index) usable[kept++] = usable[i] as number
  }
  return kept
}
