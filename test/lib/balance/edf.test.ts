import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { EarliestDeadline } from '../../../lib/balance/edf.ts'
import { seededRandom } from '../../../lib/random.ts'
import { conforms } from './conformance.ts'
import { subjects } from './subjects.ts'
import { admit, countsOf, equals, listOf } from './support.ts'

conforms(subjects.roundRobin)
conforms(subjects.weighted)

function balancerOf (weights: readonly number[], seed: number): EarliestDeadline {
  const balancer = new EarliestDeadline(weights.length, seededRandom(seed))
  admit(balancer, weights)
  return balancer
}

const picksOf = (balancer: EarliestDeadline, times: number): number[] => Array.from({ length: times }, () => balancer.pick())

/** The most picks of this member in a row. */
function longestRun (picks: readonly number[], member: number): number {
  let longest = 0
  let run = 0
  for (const pick of picks) {
    run = pick === member ? run + 1 : 0
    longest = Math.max(longest, run)
  }
  return longest
}

const someWeights = fc.array(fc.oneof(fc.integer({ min: 1, max: 1000 }), fc.double({ min: 0.05, max: 3, noNaN: true })), { minLength: 1, maxLength: 8 })
/** Without common measures: no two deadlines meet, and rounding decides nothing. */
const oddWeights = someWeights.map((weights) => weights.map((weight, index) => weight * Math.sqrt([2, 3, 5, 7, 11, 13, 17, 19][index]!)))

describe('turns of equal weight', () => {
  it('go round in one order', () => {
    const balancer = balancerOf(equals(5), 2)
    const first = picksOf(balancer, 5)
    equal(new Set(first).size, 5)
    for (let i = 0; i < 10; i++) deepEqual(picksOf(balancer, 5), first)
  })

  it('start in every order of three', () => {
    const orders = new Map<string, number>()
    for (let seed = 0; seed < 6000; seed++) {
      const order = picksOf(balancerOf(equals(3), seed), 3).join('')
      orders.set(order, (orders.get(order) ?? 0) + 1)
    }
    equal(orders.size, 6)
    for (const count of orders.values()) ok(count > 800 && count < 1200)
  })

  it('let a member that came back go first, once', () => {
    const balancer = balancerOf(equals(3), 1)
    picksOf(balancer, 6)
    admit(balancer, [1, 0, 1])
    picksOf(balancer, 7)
    admit(balancer, [1, 1, 1])
    equal(balancer.pick(), 1)
    deepEqual(new Set(picksOf(balancer, 2)), new Set([0, 2]))
  })

  it('let a member that was excluded for long go first, once', () => {
    const balancer = balancerOf(equals(3), 1)
    for (let i = 0; i < 100; i++) ok(balancer.pickAmong(Int32Array.of(0, 2), 2) !== 1)
    equal(balancer.pick(), 1)
    deepEqual(new Set(picksOf(balancer, 2)), new Set([0, 2]))
  })

  it('let no member wait for longer than one round of the others', () => {
    const runs = fc.integer({ min: 1, max: 8 }).chain((members) => fc.record({
      seed: fc.integer(),
      always: fc.nat(members - 1),
      others: fc.array(fc.record({ mask: fc.array(fc.boolean(), { minLength: members, maxLength: members }), out: fc.boolean() }), { maxLength: 100 })
    }))
    fc.assert(fc.property(runs, ({ seed, always, others }) => {
      const members = others[0]?.mask.length ?? 1
      const balancer = balancerOf(equals(members), seed)
      let waited = 0
      for (const { mask, out } of others) {
        const usable = mask.map((isIn, index) => isIn || index === always)
        // Who is left out is no member at all, or a member that is excluded.
        admit(balancer, usable.map((isIn) => Number(isIn || !out)))
        const { list, count } = listOf(usable)
        waited = (out ? balancer.pick() : balancer.pickAmong(list, count)) === always ? 0 : waited + 1
        ok(waited < members, `${always} waited for ${waited} picks`)
      }
    }))
  })
})

describe('turns by weight', () => {
  it('go on from turns of equal weight, and back, without a second turn for anybody', () => {
    for (let seed = 0; seed < 50; seed++) {
      const balancer = balancerOf(equals(4), seed)
      picksOf(balancer, 1 + seed % 7)
      for (let round = 0; round < 6; round++) {
        admit(balancer, round % 2 === 0 ? [2, 1, 1, 1] : equals(4))
        const counts = countsOf(picksOf(balancer, round % 2 === 0 ? 50 : 40), 4)
        for (const [index, count] of counts.entries()) ok(Math.abs(count - (round % 2 === 0 && index === 0 ? 20 : 10)) <= 1, counts.join())
      }
    }
  })

  it('interleave: 5, 1, 1 neither begins with a burst nor has one later', () => {
    for (let seed = 0; seed < 500; seed++) {
      const picks = picksOf(balancerOf([5, 1, 1], seed), 70)
      ok(longestRun(picks, 0) <= 4, picks.join(''))
      equal(countsOf(picks.slice(0, 7), 3).join(), '5,1,1')
    }
  })

  it('put many upstreams of one weight evenly between those of another', () => {
    for (let seed = 0; seed < 50; seed++) {
      const picks = picksOf(balancerOf([10, ...equals(10)], seed), 200)
      ok(longestRun(picks, 0) <= 2, picks.join())
    }
  })

  it('do not make many instances begin with the same upstream', () => {
    const firsts = countsOf(Array.from({ length: 3000 }, (_, seed) => balancerOf([2, 1, 1], seed).pick()), 3)
    ok(firsts[0]! < 2000 && Math.min(...firsts) > 400, firsts.join())
  })

  it('keep the share of each within one pick, over any stretch', () => {
    fc.assert(fc.property(someWeights, fc.integer(), (weights, seed) => {
      const picks = picksOf(balancerOf(weights, seed), 300)
      for (let a = 0; a < weights.length; a++) for (let b = 0; b < a; b++) {
        let difference = 0
        let highest = 0
        let lowest = 0
        for (const pick of picks) {
          difference += (pick === a ? 1 / weights[a]! : 0) - (pick === b ? 1 / weights[b]! : 0)
          highest = Math.max(highest, difference)
          lowest = Math.min(lowest, difference)
        }
        ok(highest - lowest <= (1 / weights[a]! + 1 / weights[b]!) * (1 + 1e-9), `${a} and ${b} of ${weights.join()}: ${picks.join()}`)
      }
    }), { numRuns: 200 })
  })

  it('are not disturbed when nothing has changed', () => {
    fc.assert(fc.property(oddWeights, fc.integer(), fc.array(fc.boolean(), { maxLength: 100 }), (weights, seed, updates) => {
      const steady = balancerOf(weights, seed)
      const told = balancerOf(weights, seed)
      for (const update of updates) {
        if (update) admit(told, weights)
        equal(told.pick(), steady.pick())
      }
    }))
  })

  it('are kept when all weights change by the same factor', () => {
    fc.assert(fc.property(oddWeights, fc.integer(), fc.nat(20), (weights, seed, before) => {
      const steady = balancerOf(weights, seed)
      const scaled = balancerOf(weights, seed)
      deepEqual(picksOf(scaled, before), picksOf(steady, before))
      admit(scaled, weights.map((weight) => weight / 4))
      deepEqual(picksOf(scaled, 50), picksOf(steady, 50))
    }))
  })

  it('let a member that is ramped up take what its weight says at each time, however often it changes', () => {
    for (const every of [1, 7, 50]) {
      const balancer = balancerOf([1, 1, 0], every)
      picksOf(balancer, 101)
      let due = 0
      let taken = 0
      for (let i = 0; i < 1000; i++) {
        const weight = 0.1 + 0.9 * Math.floor(i / every) * every / 1000
        if (i % every === 0) admit(balancer, [1, 1, weight])
        if (balancer.pick() === 2) taken++
        due += weight / (2 + weight)
        ok(Math.abs(taken - due) <= 1.5, `${taken} instead of ${due} after ${i + 1} picks`)
      }
    }
  })

  it('give neither arrears nor a second turn to one that comes and goes', () => {
    const balancer = balancerOf([1, 1, 0.1], 3)
    let taken = 0
    for (let i = 0; i < 2000; i++) {
      admit(balancer, [1, 1, i % 2 === 0 ? 0.1 : 0])
      if (balancer.pick() === 2) taken++
    }
    // In at every other pick, with 0.1 of 2.1 of the weight, it may wait for a pick longer than it would otherwise.
    ok(taken >= 80 && taken <= 100, `${taken}`)
  })

  it('are given back after an update as before it', () => {
    fc.assert(fc.property(oddWeights, fc.integer(), fc.array(fc.record({ givenBack: fc.boolean(), out: fc.option(fc.nat(7)) }), { maxLength: 60 }), (weights, seed, all) => {
      const steady = balancerOf(weights, seed)
      const wavering = balancerOf(weights, seed)
      for (const { givenBack, out } of all) {
        const { list, count } = listOf(weights.map((_weight, index) => index !== out))
        if (count === 0) continue
        const pick = wavering.pickAmong(list, count)
        if (!givenBack) {
          equal(pick, steady.pickAmong(list, count))
          continue
        }
        admit(wavering, weights)
        wavering.giveBack(pick)
      }
    }))
  })

  it('are given back also by a member that has left meanwhile', () => {
    const balancer = balancerOf([3, 2, 1], 4)
    const pick = balancer.pick()
    admit(balancer, [3, 2, 1].map((weight, index) => index === pick ? 0 : weight))
    balancer.giveBack(pick)
    ok(balancer.pick() !== pick)
    admit(balancer, [3, 2, 1])
    equal(balancer.pick(), pick)
  })

  it('stay exact after very many picks', () => {
    const balancer = balancerOf([1000, 1, 0.1], 5)
    for (let i = 0; i < 3000000; i++) balancer.pick()
    const counts = countsOf(picksOf(balancer, 100110), 3)
    ok(Math.abs(counts[1]! - 100) <= 1 && Math.abs(counts[2]! - 10) <= 1, counts.join())
  })
})
