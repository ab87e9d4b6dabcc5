import { equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { LowestLatency } from '../../../lib/balance/lowest-latency.ts'
import { seededRandom } from '../../../lib/random.ts'
import { conforms } from './conformance.ts'
import { subjects } from './subjects.ts'
import { admit, Caller, equals, poolOf, simulate, type Answer, type Fake } from './support.ts'

conforms(subjects.peakEwma)

interface Run {
  balancer: LowestLatency
  members: Fake[]
  /** Requests at a mean rate, and what each member got. */
  run: (perSecond: number, durationMs: number, answer: (index: number, now: number) => Answer) => number[]
}

function runOf (weights: readonly number[], seed: number): Run {
  const members = poolOf(weights)
  const balancer = new LowestLatency(members, seededRandom(seed))
  admit(balancer, weights)
  return { balancer, members, run: (perSecond, durationMs, answer) => simulate(balancer, members, seededRandom(seed + 1), perSecond, durationMs, answer) }
}

const good = (ms: number): Answer => ({ ms, failed: false })
const bad = (ms: number): Answer => ({ ms, failed: true })
const share = (counts: readonly number[], index: number): number => counts[index]! / counts.reduce((sum, count) => sum + count, 0)

describe('by latency', () => {
  it('takes the cheaper of two, for their weights', () => {
    const value = fc.integer({ min: 1, max: 1000 })
    const few = fc.integer({ min: 1, max: 9 })
    fc.assert(fc.property(value, value, few, few, few, few, (msA, msB, loadA, loadB, weightA, weightB) => {
      const { balancer, members } = runOf([weightA, weightB], 1)
      for (const [index, [ms, load]] of [[msA, loadA], [msB, loadB]].entries()) {
        members[index]!.latency.record(ms!, 0)
        members[index]!.inFlight = load!
      }
      const difference = msA * (loadA + 1) * weightB - msB * (loadB + 1) * weightA
      if (difference !== 0) equal(balancer.pick(-1, 0), difference < 0 ? 0 : 1)
    }))
  })

  it('gives a slow one of three a small share, and still some', () => {
    for (const perSecond of [5, 100, 1000]) {
      const counts = runOf(equals(3), 2).run(perSecond, 60000, (index) => good(index === 1 ? 500 : 25))
      ok(share(counts, 1) < 0.1 && counts[1]! > 1, `${perSecond} a second: ${counts.join()}`)
    }
  })

  it('takes traffic from one that answers 503 at once to one that answers 200 in 50 ms', () => {
    for (const perSecond of [5, 100, 1000]) {
      const counts = runOf(equals(2), 3).run(perSecond, 60000, (index) => index === 0 ? bad(1) : good(50))
      ok(share(counts, 0) < 0.05, `${perSecond} a second: ${counts.join()}`)
    }
  })

  it('gives one that has recovered its share again', () => {
    const { run } = runOf(equals(2), 4)
    const failing = run(50, 20000, (index) => index === 0 ? bad(1) : good(50))
    ok(share(failing, 0) < 0.05, failing.join())
    const counts = run(50, 300000, () => good(50))
    ok(share(counts, 0) > 0.3, counts.join())
  })

  it('spreads evenly where all fail alike', () => {
    const counts = runOf(equals(3), 5).run(100, 60000, () => bad(1))
    for (const count of counts) ok(Math.abs(count - 2000) < 400, counts.join())
  })

  it('sends one of which nothing is known a single request, until that is answered', () => {
    const { balancer, members } = runOf(equals(3), 6)
    const caller = new Caller(balancer, members)
    for (const index of [0, 1]) members[index]!.latency.record(20, 0)
    const picks = Array.from({ length: 30 }, () => {
      const index = caller.begin()
      if (index !== 2) caller.end(index)
      return index
    })
    equal(picks.filter((index) => index === 2).length, 1, picks.join())
  })

  it('does not flood one that comes back after a long time', () => {
    const { balancer, members } = runOf(equals(2), 7)
    const caller = new Caller(balancer, members)
    members[0]!.latency.record(50, 0)
    members[1]!.latency.record(50, 300000)
    caller.now = 300000
    for (let i = 0; i < 20; i++) caller.begin()
    ok(Math.abs(members[0]!.inFlight - members[1]!.inFlight) <= 1, `${members[0]!.inFlight}, ${members[1]!.inFlight}`)
  })

  it('turns from one that answers no more', () => {
    const { balancer, members } = runOf(equals(3), 8)
    const caller = new Caller(balancer, members)
    let stuck = 0
    for (; caller.now < 30000; caller.now += 10) {
      const index = caller.begin()
      if (index === 0) stuck++
      else caller.end(index)
    }
    ok(stuck < 10, `${stuck}`)
  })

  it('leaves no trace of a pick that came to nothing', () => {
    const { balancer, members } = runOf(equals(1), 9)
    members[0]!.latency.record(500, 0)
    const before = members[0]!.latency.cost(0, 20000)
    balancer.giveBack(balancer.pick(-1, 20000))
    equal(members[0]!.latency.cost(0, 20000), before)
    balancer.pick(-1, 20000)
    ok(members[0]!.latency.cost(0, 20000) > before)
  })
})
