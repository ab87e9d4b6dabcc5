import { deepEqual, equal } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RoundRobin } from '../../../lib/balance/round-robin.ts'
import { Lane, type Member, type SelectBreaker } from '../../../lib/balance/select.ts'

class FakeBreaker implements SelectBreaker {
  readonly would: boolean
  permit: number
  readonly afterMs: number
  admits = 0
  constructor (would: boolean, permit: number, afterMs = 0) {
    this.would = would
    this.permit = permit
    this.afterMs = afterMs
  }

  wouldAdmit (): boolean { return this.would }
  retryAfterMs (): number { return this.afterMs }
  settle (): void {}
  admit (): number {
    this.admits++
    return this.permit
  }
}

interface Given extends Partial<Member> {
  /** `open`: would not admit · `late`: would, and refuses the permit all the same · `closed`: admits · left out: no breaker */
  breaker?: 'open' | 'late' | 'closed'
  afterMs?: number
}

const breakerOf = ({ breaker, afterMs }: Given): FakeBreaker | null =>
  breaker === undefined ? null : new FakeBreaker(breaker !== 'open', breaker === 'closed' ? 7 : 0, afterMs)

/** Members are picked in the order of the list. */
function laneOf (...given: Given[]): { lane: Lane, members: Member[], breakers: Array<FakeBreaker | null> } {
  const members = given.map((each) => ({ healthy: true, draining: false, weight: 1, hasRoom: true, inFlight: 0, ...each }))
  const breakers = given.map(breakerOf)
  const balancer = new RoundRobin(members.length, () => 0.999)
  return { lane: new Lane({ upstreams: members, balancer, options: { health: { intervalMs: 5000 } } }, (member) => breakers[members.indexOf(member as never)] ?? null), members, breakers }
}

const unhealthy: Given = { healthy: false }
const drained: Given = { draining: true }
const weightless: Given = { weight: 0 }
const full: Given = { hasRoom: false, breaker: 'closed' }
const fullAndOpen: Given = { hasRoom: false, breaker: 'open' }
const open: Given = { breaker: 'open' }
const late: Given = { breaker: 'late' }
const closed: Given = { breaker: 'closed' }
const bare: Given = {}

describe('selection', () => {
  const table: [string, Given[], string | number][] = [
    ['the only one', [bare], 0],
    ['one with a closed breaker', [closed], 0],
    ['nobody of an empty pool', [], 'no_upstream_healthy'],
    ['nobody healthy', [unhealthy, unhealthy], 'no_upstream_healthy'],
    ['all drained', [drained, drained], 'no_upstream_healthy'],
    ['all without weight', [weightless], 'no_upstream_healthy'],
    ['all full', [full], 'upstream_capacity'],
    ['all open', [open, open], 'breaker_open'],
    ['a permit refused at the last moment', [late], 'breaker_open'],
    ['capacity before the breaker', [full, open], 'upstream_capacity'],
    ['capacity before the breaker, whatever the order', [open, full], 'upstream_capacity'],
    ['capacity before a refused permit', [late, full], 'upstream_capacity'],
    ['capacity before health', [unhealthy, full], 'upstream_capacity'],
    ['the breaker before health', [unhealthy, open, drained], 'breaker_open'],
    ['the gate of a member is asked before its breaker', [fullAndOpen], 'upstream_capacity'],
    ['an unhealthy one that is full is only unhealthy', [{ ...full, healthy: false }], 'no_upstream_healthy'],
    ['a drained one that is open is only drained', [{ ...open, draining: true }], 'no_upstream_healthy'],
    ['whoever is left', [unhealthy, drained, weightless, full, open, late, closed], 6],
    ['the next one after a refused permit', [late, bare], 1]
  ]
  for (const [name, given, expected] of table) {
    it(name, () => {
      const { lane, members } = laneOf(...given)
      const refusal = lane.select(0)
      equal(refusal ?? lane.index, expected)
      deepEqual(members.map(({ inFlight }) => inFlight), members.map((_member, index) => Number(index === expected)), 'one place is taken, or none')
      if (refusal === null) equal(lane.permit, given[lane.index]?.breaker === undefined ? 0 : 7)
    })
  }

  it('burns no probe of an upstream that it does not take', () => {
    const { lane, breakers } = laneOf(fullAndOpen, full, closed, closed)
    equal(lane.select(0), null)
    deepEqual(breakers.map((each) => each?.admits), [0, 0, 1, 0])
  })

  it('asks a breaker that refused its permit once only', () => {
    const { lane, breakers } = laneOf(late, late, closed)
    equal(lane.select(0), null)
    deepEqual(breakers.map((each) => each?.admits), [1, 1, 1])
  })

  it('leaves the turn to an upstream whose permit was refused', () => {
    const { lane, breakers } = laneOf(late, bare, bare)
    lane.select(0)
    equal(lane.index, 1)
    breakers[0]!.permit = 9
    lane.select(0)
    deepEqual([lane.index, lane.permit], [0, 9], 'before the third one, who has waited for less long')
  })

  it('expects a refusal to be over when the first breaker may admit again', () => {
    const { lane } = laneOf({ breaker: 'open', afterMs: 9000 }, { breaker: 'open', afterMs: 4000 }, { breaker: 'closed' }, bare)
    equal(lane.expectedMs('breaker_open', 0), 4000)
    equal(lane.expectedMs('no_upstream_healthy', 0), 5000)
    equal(lane.expectedMs('upstream_capacity', 0), 1000)
    equal(laneOf({ breaker: 'open' }).lane.expectedMs('breaker_open', 0), 1000)
  })
})
