import type { PoolOptions } from '../../config/schema.ts'
import type { Ramp } from './ramp.ts'
import { rampShare } from './slow-start.ts'
import { tierLoads } from './tiers.ts'

/** What the roster reads of a member. */
export interface Enlisted {
  readonly weight: number
  /** Tier: 0 is asked first. */
  readonly priority: number
  /** The belief of the health checks. */
  readonly healthy: boolean
  /** False until a first check has ended: nobody sends anything to a server that has never been seen. */
  readonly checked: boolean
  /** Set by an operator, or gone from the pool: takes no new exchanges. */
  readonly draining: boolean
  /** Until when it is ejected; in the past, or -Infinity, where it is not. */
  readonly ejectedUntil: number
  readonly ramp: Ramp
  /** The part of its in-flight limit that it may use, by its slow start. */
  share: number
}

/** What the roster asks a breaker. */
export interface EnlistedBreaker {
  /** Only one that enforces keeps anybody out. */
  readonly mode: 'enforce' | 'observe' | 'off'
  readonly state: 'closed' | 'open' | 'half-open'
  wouldAdmit (now: number): boolean
  retryAfterMs (now: number): number
}

export type RosterOptions = Pick<PoolOptions, 'balancer' | 'slowStart' | 'panic' | 'spillOver'>

/** The members of one tier that may be picked now. */
export interface Tier {
  readonly priority: number
  /** All of its members, by index. */
  readonly all: readonly number[]
  /** `members[0 .. count-1]` may be picked. */
  readonly members: Int32Array
  count: number
  /** Its share of the traffic. */
  load: number
  panic: boolean
}

const rampStepMs = 100

/**
 * Who may be picked, by tier: recomputed when something about a member has changed or a time has come, and not for every request.
 * What changes from request to request (room, probes) is asked when a member is picked.
 */
export class Roster {
  readonly tiers: readonly Tier[]
  /** By member: its weight now, a slow start counted in. */
  readonly weights: Float64Array
  /** Monotonic time at which it must be computed anew, changes or not. */
  wakeAt = Number.NEGATIVE_INFINITY
  /** Members that may take traffic at all, and those of them that are well; over all tiers. */
  standing = 0
  usable = 0
  /** Another roster writes the members' shares. */
  superseded = false
  readonly #members: readonly Enlisted[]
  readonly #breakers: ReadonlyArray<EnlistedBreaker | null>
  readonly #options: RosterOptions
  readonly #tierOf: Int32Array
  /** 0: out · 1: kept out by its breaker alone · 2: in. */
  readonly #standing: Uint8Array

  constructor (members: readonly Enlisted[], breakers: ReadonlyArray<EnlistedBreaker | null>, options: RosterOptions) {
    this.#members = members
    this.#breakers = breakers
    this.#options = options
    this.weights = new Float64Array(members.length)
    this.#standing = new Uint8Array(members.length)
    this.#tierOf = new Int32Array(members.length)
    const priorities = [...new Set(members.map(({ priority }) => priority))].toSorted((a, b) => a - b)
    this.tiers = priorities.map((priority, tier) => {
      const all = members.flatMap((member, index) => member.priority === priority ? [index] : [])
      for (const index of all) this.#tierOf[index] = tier
      return { priority, all, members: new Int32Array(all.length), count: 0, load: 0, panic: false }
    })
  }

  get panic (): boolean { return this.tiers.some((tier) => tier.panic) }

  isIn (index: number): boolean { return this.#standing[index] === 2 }
  /** It would take traffic if its breaker let it. */
  isWell (index: number): boolean { return this.#standing[index] !== 0 }
  tierOf (index: number): number { return this.#tierOf[index] as number }

  refresh (now: number): void {
    this.wakeAt = Infinity
    const { panic: { threshold, whenNone }, spillOver } = this.#options
    const counts = this.tiers.map(({ all }) => this.#count(all, now))
    this.standing = counts.reduce((sum, { standing }) => sum + standing, 0)
    this.usable = counts.reduce((sum, { well }) => sum + well, 0)
    const { capacity } = tierLoads(counts.map(({ standing, well }) => ({ standing, usable: well })), spillOver)
    const mayPanic = threshold > 0 && capacity < 1 && (this.usable > 0 || whenNone)
    for (const [index, tier] of this.tiers.entries()) {
      const { standing, well } = counts[index] as { standing: number, well: number }
      tier.panic = mayPanic && standing > 0 && well / standing < threshold
      this.#enlist(tier, now)
    }
    this.#spareNobodyAlone()
    this.#share(spillOver)
  }

  /** Where everybody is in a slow start there is nobody to spare them: who has come furthest may use all of its limit. */
  #spareNobodyAlone (): void {
    if (this.superseded) return
    let furthest = 0
    for (const [index, member] of this.#members.entries()) if (this.isIn(index)) furthest = Math.max(furthest, member.share)
    if (furthest === 0 || furthest === 1) return
    for (const [index, member] of this.#members.entries()) if (this.isIn(index)) member.share = Math.min(1, member.share / furthest)
  }

  #count (all: readonly number[], now: number): { standing: number, well: number } {
    let standing = 0
    let well = 0
    for (const index of all) {
      const member = this.#members[index] as Enlisted
      if (!mayStand(member)) continue
      standing++
      if (this.#isWell(member, now)) well++
    }
    return { standing, well }
  }

  #isWell (member: Enlisted, now: number): boolean {
    if (!member.healthy) return false
    if (now >= member.ejectedUntil) return true
    this.wakeAt = Math.min(this.wakeAt, member.ejectedUntil)
    return false
  }

  #enlist (tier: Tier, now: number): void {
    tier.count = 0
    for (const index of tier.all) {
      const member = this.#members[index] as Enlisted
      const isWell = this.#isWell(member, now)
      const asked = mayStand(member) && (isWell || tier.panic)
      const standing = !asked ? 0 : this.#isOpen(index, now) || (!isWell && this.#isDoubted(index)) ? 1 : 2
      this.#standing[index] = standing
      if (standing === 2) {
        // Round-robin goes by the slow start alone: discovery may bring weights that nobody has chosen for it.
        this.weights[index] = (this.#options.balancer === 'round-robin' ? 1 : member.weight) * this.#rampOf(index, member, now)
        tier.members[tier.count++] = index
      } else {
        member.ramp.leave(member.checked)
        this.weights[index] = 0
      }
    }
  }

  #isOpen (index: number, now: number): boolean {
    const breaker = this.#breakers[index]
    if (breaker == null || breaker.state !== 'open' || breaker.wouldAdmit(now)) return false
    this.wakeAt = Math.min(this.wakeAt, now + Math.max(1, breaker.retryAfterMs(now)))
    return true
  }

  /**
   * Panic overrules the checks, and not the checks and the breaker together: a probe sent to an upstream that both believe dead
   * fails, and doubles the time for which it is left alone once it is back.
   */
  #isDoubted (index: number): boolean {
    const breaker = this.#breakers[index]
    return breaker != null && breaker.mode === 'enforce' && breaker.state !== 'closed'
  }

  /** A half-open circuit limits the traffic by itself; the slow start begins when it has closed. */
  #rampOf (index: number, member: Enlisted, now: number): number {
    const { slowStart } = this.#options
    if (this.#isDoubted(index)) {
      member.ramp.leave(true)
      return this.#setShare(member, slowStart.ms === 0 ? 1 : slowStart.minimumShare)
    }
    // It is noted in any case: a slow start that is switched on later is for those that come then.
    const share = rampShare(slowStart, member.ramp.enter(now))
    if (share < 1) this.wakeAt = Math.min(this.wakeAt, now + Math.min(rampStepMs, slowStart.ms / 10))
    return this.#setShare(member, share)
  }

  #setShare (member: Enlisted, share: number): number {
    if (!this.superseded) member.share = share
    return share
  }

  /** The traffic by tier: a tier in panic carries what all of its members would. */
  #share (spillOver: number): void {
    const { loads } = tierLoads(this.tiers.map(({ all, count }) => ({
      standing: all.reduce((sum, index) => sum + Number(mayStand(this.#members[index] as Enlisted)), 0),
      usable: count
    })), spillOver)
    for (const [index, tier] of this.tiers.entries()) tier.load = loads[index] as number
  }
}

/** One that no check has seen yet is nobody so far: that several join must not make those that are there look few. */
function mayStand ({ draining, weight, checked, healthy }: Enlisted): boolean {
  return !draining && weight > 0 && (checked || healthy)
}
