import { equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { TwoChoices } from '../../../lib/balance/p2c.ts'
import { seededRandom } from '../../../lib/random.ts'
import { conforms } from './conformance.ts'
import { subjects } from './subjects.ts'
import { admit, Caller, countsOf, equals, poolOf } from './support.ts'

conforms(subjects.twoChoices)

function callerOf (weights: readonly number[], seed: number): Caller {
  const members = poolOf(weights)
  const caller = new Caller(new TwoChoices(members, seededRandom(seed)), members)
  admit(caller.balancer, weights)
  return caller
}

describe('the power of two choices', () => {
  it('never takes the busier one of two, for their weights', () => {
    const load = fc.nat(20)
    const weight = fc.integer({ min: 1, max: 9 })
    fc.assert(fc.property(load, load, weight, weight, fc.integer(), (a, b, weightA, weightB, seed) => {
      const { balancer, members } = callerOf([weightA, weightB], seed)
      members[0]!.inFlight = a
      members[1]!.inFlight = b
      const difference = (a + 1) * weightB - (b + 1) * weightA
      if (difference !== 0 && a + b > 0) equal(balancer.pick(-1, 0), difference < 0 ? 0 : 1)
    }))
  })

  it('takes either one of two that are equal', () => {
    const { balancer, members } = callerOf([1, 2], 1)
    members[0]!.inFlight = 3
    members[1]!.inFlight = 7
    const counts = countsOf(Array.from({ length: 3000 }, () => balancer.pick(-1, 0)), 2)
    ok(counts[0]! > 800 && counts[1]! > 800, counts.join())
  })

  it('leaves light traffic to the weights: neither the heaviest nor the ramped one takes it all', () => {
    const counts = countsOf(callerOf([1, 1, 0.1], 2).sequence(21000), 3)
    ok(Math.abs(counts[2]! - 1000) < 150, counts.join())
  })

  it('keeps the fullest of 100 near the mean, where chance does not', () => {
    const fullest = (choices: boolean): number => {
      const caller = callerOf(equals(100), 3)
      const random = seededRandom(4)
      for (let i = 0; i < 10000; i++) {
        if (choices) caller.begin()
        else caller.members[Math.floor(random() * 100)]!.inFlight++
      }
      return Math.max(...caller.members.map(({ inFlight }) => inFlight))
    }
    ok(fullest(true) <= 104, `${fullest(true)}`)
    ok(fullest(false) > 115, `${fullest(false)}`)
  })

  it('turns from a member that answers no more', () => {
    const caller = callerOf(equals(3), 5)
    let stuck = 0
    for (let i = 0; i < 1000; i++) {
      const index = caller.begin()
      if (index === 0) stuck++
      else caller.end(index)
    }
    ok(stuck <= 2, `${stuck}`)
  })
})
