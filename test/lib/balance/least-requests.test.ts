import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { LeastRequests } from '../../../lib/balance/least-requests.ts'
import { seededRandom } from '../../../lib/random.ts'
import { conforms } from './conformance.ts'
import { subjects } from './subjects.ts'
import { admit, Caller, countsOf, equals, poolOf } from './support.ts'

conforms(subjects.leastRequests)

function callerOf (weights: readonly number[], seed: number): Caller {
  const members = poolOf(weights)
  const caller = new Caller(new LeastRequests(members, seededRandom(seed)), members)
  admit(caller.balancer, weights)
  return caller
}

const loads = ({ members }: Caller): number[] => members.map(({ inFlight }) => inFlight)

/** An exchange begins, or one of those that are open ends. */
type Event = 'begin' | number
const events = fc.array(fc.oneof<[fc.Arbitrary<Event>, fc.Arbitrary<Event>]>(fc.constant('begin'), fc.nat(1000)), { maxLength: 200 })

describe('least requests', () => {
  it('always takes one that no other beats, for its weight', () => {
    const weights = fc.array(fc.integer({ min: 1, max: 10 }), { minLength: 1, maxLength: 9 })
    fc.assert(fc.property(weights, fc.integer(), events, (all, seed, happens) => {
      const caller = callerOf(all, seed)
      const open: number[] = []
      for (const event of happens) {
        if (event !== 'begin') {
          if (open.length > 0) caller.end(open.splice(event % open.length, 1)[0]!)
          continue
        }
        const costs = loads(caller).map((load, index) => (load + 1) / all[index]!)
        const index = caller.begin()
        if (open.length > 0) equal(costs[index], Math.min(...costs), `${index} at ${costs.join()}`)
        open.push(index)
      }
    }))
  })

  it('keeps the loads of equal members within one, while exchanges end where most are', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 9 }), fc.integer(), events, (members, seed, happens) => {
      const caller = callerOf(equals(members), seed)
      for (const event of happens) {
        const most = Math.max(...loads(caller))
        if (event === 'begin') {
          caller.begin()
        } else if (most > 0) {
          const fullest = loads(caller).flatMap((load, index) => load === most ? [index] : [])
          caller.end(fullest[event % fullest.length]!)
        }
        ok(Math.max(...loads(caller)) - Math.min(...loads(caller)) <= 1, loads(caller).join())
      }
    }))
  })

  it('makes no difference of loads greater by a pick', () => {
    fc.assert(fc.property(fc.integer({ min: 2, max: 6 }), fc.integer(), events, (members, seed, happens) => {
      const caller = callerOf(equals(members), seed)
      const open: number[] = []
      for (const event of happens) {
        const spread = Math.max(...loads(caller)) - Math.min(...loads(caller))
        if (event !== 'begin') {
          if (open.length > 0) caller.end(open.splice(event % open.length, 1)[0]!)
          continue
        }
        open.push(caller.begin())
        ok(Math.max(...loads(caller)) - Math.min(...loads(caller)) <= Math.max(1, spread), loads(caller).join())
      }
    }))
  })

  it('goes round among equal loads', () => {
    const caller = callerOf(equals(4), 1)
    // One exchange stays open at each, so that none is idle.
    for (let i = 0; i < 4; i++) caller.begin()
    const round = caller.sequence(4)
    equal(new Set(round).size, 4)
    for (let i = 0; i < 5; i++) deepEqual(caller.sequence(4), round)
  })

  it('goes on round equal loads as if a pick that came to nothing had never been made', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 6 }), fc.integer(), fc.array(fc.boolean(), { maxLength: 40 }), (members, seed, givenBack) => {
      const [steady, wavering] = [callerOf(equals(members), seed), callerOf(equals(members), seed)]
      for (const caller of [steady, wavering]) for (let i = 0; i < members; i++) caller.begin()
      for (const isGivenBack of givenBack) {
        const index = wavering.begin()
        if (isGivenBack) wavering.giveBack(index)
        else equal(index, steady.begin())
      }
    }))
  })

  it('compares what was in flight before it was told who is in', () => {
    for (let seed = 0; seed < 20; seed++) {
      const caller = callerOf(equals(3), seed)
      caller.members[0]!.inFlight = caller.members[2]!.inFlight = 2
      admit(caller.balancer, equals(3))
      equal(caller.begin(), 1)
    }
  })

  it('does not take members for busy that are out', () => {
    const caller = callerOf([5, 1, 0], 6)
    caller.members[2]!.inFlight = 3
    caller.balancer.loadChanged(2)
    equal(countsOf(caller.sequence(60), 3)[1], 10)
  })

  it('leaves light traffic to the weights: neither the heaviest nor the ramped one takes it all', () => {
    const counts = countsOf(callerOf([1, 1, 0.1], 2).sequence(2100), 3)
    ok(Math.abs(counts[2]! - 100) <= 1, counts.join())
  })

  it('knows the load that a member had when it comes in, told or not', () => {
    const members = poolOf(equals(3))
    const balancer = new LeastRequests(members, seededRandom(3))
    members[1]!.inFlight = 5
    balancer.loadChanged(1)
    admit(balancer, [1, 0, 1])
    const caller = new Caller(balancer, members)
    caller.begin()
    // Nobody says that exchanges begin and end at it while it is out.
    members[1]!.inFlight = 9
    balancer.loadChanged(1)
    members[1]!.inFlight = 2
    for (let i = 0; i < 9; i++) ok(caller.begin() !== 1)
    admit(balancer, [1, 1, 1])
    for (let i = 0; i < 3; i++) equal(caller.begin(), 1)
    deepEqual(loads(caller), [5, 5, 5])
    equal(new Set([caller.begin(), caller.begin(), caller.begin()]).size, 3)
  })

  it('is idle again once all exchanges have ended, also those of members that went', () => {
    const caller = callerOf([5, 1], 4)
    for (let i = 0; i < 20; i++) caller.begin()
    admit(caller.balancer, [5, 0])
    while (caller.members[1]!.inFlight > 0) caller.end(1)
    while (caller.members[0]!.inFlight > 0) caller.end(0)
    admit(caller.balancer, [5, 1])
    equal(countsOf(caller.sequence(60), 2)[1], 10)
  })
})
