import type { BreakerState } from '../../../lib/breaker/types.ts'
import { Lane, Signal, type Candidates, type LaneObserver, type LaneOptions, type Member, type SelectBreaker } from '../../../lib/balance/lane.ts'
import { PeakEwma } from '../../../lib/balance/peak-ewma.ts'
import { Ramp } from '../../../lib/balance/ramp.ts'
import { EjectionState } from '../../../lib/health/ejection.ts'
import type { Outcome } from '../../../lib/failure.ts'
import { seededRandom, type Random } from '../../../lib/random.ts'

/** Refuses or admits as it is told, and counts what it was asked. */
export class FakeBreaker implements SelectBreaker {
  would: boolean
  permit: number
  afterMs: number
  state: BreakerState
  mode: 'enforce' | 'observe' | 'off' = 'enforce'
  admits = 0
  settled: Array<[permit: number, outcome: Outcome]> = []

  constructor (state: BreakerState, would: boolean, permit: number, afterMs = 0) {
    this.state = state
    this.would = would
    this.permit = permit
    this.afterMs = afterMs
  }

  wouldAdmit (): boolean { return this.would }
  retryAfterMs (): number { return this.afterMs }
  settle (permit: number, outcome: Outcome): void { this.settled.push([permit, outcome]) }
  failing (): void {}
  admit (): number {
    this.admits++
    return this.permit
  }
}

export interface Given extends Partial<Member> {
  /** `open`: would not admit · `late`: would, and refuses the permit all the same · `closed`: admits · left out: no breaker */
  breaker?: 'open' | 'late' | 'closed'
  afterMs?: number
}

const breakerOf = ({ breaker, afterMs }: Given): FakeBreaker | null =>
  breaker === undefined ? null : new FakeBreaker(breaker === 'open' ? 'open' : breaker === 'late' ? 'half-open' : 'closed', breaker !== 'open', breaker === 'closed' ? 7 : 0, afterMs)

export const options: LaneOptions = {
  balancer: 'round-robin',
  hash: { by: 'client-address' as const, boundedLoad: 0 },
  slowStart: { ms: 0, minimumShare: 0.1, aggression: 1 },
  panic: { threshold: 0, whenNone: false },
  spillOver: 1.4,
  ejection: { mode: 'enforce', consecutiveFailures: 5, window: { seconds: 10, minimumRequests: 20, failureRatio: 0 }, baseMs: 30000, maxMs: 300000, maxShare: 0.5 },
  health: { intervalMs: 5000 }
}

export interface Kit {
  lane: Lane<Candidates>
  members: Member[]
  breakers: Array<FakeBreaker | null>
  signal: Signal
}

/** Whether a member is ejected is in its ejection state. */
const memberOf = ({ breaker: _breaker, afterMs: _afterMs, ...given }: Given, index: number): Member => {
  const ejection = given.ejection ?? new EjectionState()
  return {
    id: `m${index}`, healthy: true, checked: true, draining: false, weight: 1, priority: 0, hasRoom: true, inFlight: 0, share: 1, watch: null, slot: 0,
    latency: new PeakEwma(), ejection, ramp: new Ramp(false), get ejectedUntil () { return ejection.until }, ...given
  }
}

export function laneOf (given: Given[], changed: Partial<LaneOptions> = {}, observer: LaneObserver | null = null, random: Random = seededRandom(1)): Kit {
  const members = given.map(memberOf)
  const breakers = given.map(breakerOf)
  const signal = new Signal()
  const lane = new Lane<Candidates>({ upstreams: members, options: { ...options, ...changed }, signal }, (member) => breakers[members.indexOf(member)] ?? null, random, observer)
  return { lane, members, breakers, signal }
}

/** How often each member is picked in so many picks, each of which ends at once. */
export function shares ({ lane, members }: Kit, picks: number, now = 0): number[] {
  const counts = members.map(() => 0)
  for (let i = 0; i < picks; i++) {
    if (lane.select(now) !== null) continue
    counts[lane.index]!++
    lane.release(lane.index)
  }
  return counts
}
