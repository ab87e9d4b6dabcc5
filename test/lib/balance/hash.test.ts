import { equal, notEqual, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ConsistentHash } from '../../../lib/balance/hash.ts'
import { hashKey } from '../../../lib/hash.ts'
import { seededRandom } from '../../../lib/random.ts'
import { conforms } from './conformance.ts'
import { subjects } from './subjects.ts'
import { admit, Caller, countsOf, equals, listOf, poolOf } from './support.ts'

conforms(subjects.hash)
conforms(subjects.boundedHash)

const keys = Array.from({ length: 3000 }, (_, i) => hashKey(`192.0.2.${i & 255}:${i >> 8}`))

function callerOf (weights: readonly number[], boundedLoad = 0): Caller {
  const members = poolOf(weights, 'http://upstream')
  const caller = new Caller(new ConsistentHash(members, boundedLoad, seededRandom(1)), members)
  admit(caller.balancer, weights)
  return caller
}

const homes = ({ balancer }: Caller): number[] => keys.map((key) => balancer.pick(key, 0))

const pools = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 2, maxLength: 8 })
  .chain((weights) => fc.record({ weights: fc.constant(weights), masks: fc.array(fc.array(fc.boolean(), { minLength: weights.length, maxLength: weights.length }), { maxLength: 6 }) }))

describe('by hash', () => {
  it('keeps a key where it is', () => {
    const caller = callerOf(equals(5))
    const before = homes(caller)
    for (let i = 0; i < 10; i++) caller.begin(keys[i])
    equal(homes(caller).join(), before.join())
    equal(homes(callerOf(equals(5))).join(), before.join())
  })

  it('moves only the keys of members that leave, spreads them, and gives them back exactly', () => {
    fc.assert(fc.property(pools, ({ weights, masks }) => {
      const caller = callerOf(weights)
      const before = homes(caller)
      for (const mask of masks) {
        admit(caller.balancer, weights.map((weight, index) => mask[index] === true ? weight : 0))
        for (const [i, home] of homes(caller).entries()) {
          if (mask[before[i]!] === true) equal(home, before[i])
          else equal(mask[home], mask.includes(true) ? true : undefined)
        }
      }
      admit(caller.balancer, weights)
      equal(homes(caller).join(), before.join())
    }), { numRuns: 60 })
  })

  it('spreads the keys of a member that leaves over all others', () => {
    const caller = callerOf(equals(5))
    const before = homes(caller)
    admit(caller.balancer, [1, 1, 0, 1, 1])
    const gained = countsOf(homes(caller).filter((_home, i) => before[i] === 2), 5)
    const lost = before.filter((home) => home === 2).length
    for (const index of [0, 1, 3, 4]) ok(Math.abs(gained[index]! - lost / 4) < lost / 10, gained.join())
  })

  it('sends a request whose home is excluded where the key would go if that had left', () => {
    fc.assert(fc.property(pools, ({ weights, masks }) => {
      const caller = callerOf(weights)
      const left = callerOf(weights)
      for (const mask of masks) {
        if (!mask.includes(true)) continue
        admit(left.balancer, weights.map((weight, index) => mask[index] === true ? weight : 0))
        const { list, count } = listOf(mask)
        for (const key of keys.slice(0, 200)) equal(caller.balancer.pickAmong(list, count, key, 0), left.balancer.pick(key, 0))
      }
    }), { numRuns: 60 })
  })

  it('knows members by their ids, not by where they stand', () => {
    const members = poolOf([1, 2, 3, 1], 'http://upstream')
    const before = callerOf([1, 2, 3, 1])
    const turned = new ConsistentHash(members.toReversed(), 0, seededRandom(2))
    admit(turned, [1, 3, 2, 1])
    for (const key of keys) equal(3 - turned.pick(key), before.balancer.pick(key, 0))
  })

  it('spreads requests without a key', () => {
    const counts = countsOf(callerOf([3, 1]).sequence(8000), 2)
    ok(Math.abs(counts[1]! - 2000) < 200, counts.join())
  })
})

describe('bounded load', () => {
  const loads = ({ members }: Caller): number[] => members.map(({ inFlight }) => inFlight)

  it('leaves keys at home while nobody is full', () => {
    const caller = callerOf(equals(4), 2)
    const free = callerOf(equals(4))
    for (const key of keys) equal(caller.balancer.pick(key, 0), free.balancer.pick(key, 0))
  })

  it('never gives a member more than its bound, even if all requests have one key', () => {
    const all = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 })
    const events = fc.array(fc.record({ key: fc.oneof(fc.constantFrom(-1, 5), fc.nat(2 ** 32 - 1)), ends: fc.boolean() }), { maxLength: 150 })
    fc.assert(fc.property(all, fc.constantFrom(1, 1.25, 2), events, (weights, factor, happens) => {
      const caller = callerOf(weights, factor)
      const total = weights.reduce((sum, weight) => sum + weight, 0)
      const open: number[] = []
      for (const { key, ends } of happens) {
        if (ends && open.length > 0) caller.end(open.shift()!)
        const index = caller.begin(key)
        open.push(index)
        ok(caller.members[index]!.inFlight <= Math.ceil(factor * open.length * weights[index]! / total), `${index} of ${loads(caller).join()}`)
      }
    }))
  })

  it('moves a hot key on, and home again when there is room', () => {
    const caller = callerOf(equals(4), 1.25)
    const home = caller.begin(5)
    caller.end(home)
    const picks = Array.from({ length: 40 }, () => caller.begin(5))
    ok(Math.max(...loads(caller)) <= 13, loads(caller).join())
    equal(new Set(picks).size, 4)
    for (const index of picks) caller.end(index)
    equal(caller.begin(5), home)
  })

  it('lets the home take it where all that may be asked are full', () => {
    const caller = callerOf(equals(4), 1)
    const home = caller.balancer.pick(5, 0)
    const others = [0, 1, 2, 3].filter((index) => index !== home)
    for (const index of [0, 1, 2, 3]) if (index !== others[0]) for (let i = 0; i < 3; i++) {
      caller.members[index]!.inFlight++
      caller.balancer.loadChanged(index)
    }
    equal(caller.balancer.pick(5, 0), others[0])
    const mask = [0, 1, 2, 3].map((index) => index !== others[0])
    const { list, count } = listOf(mask)
    equal(caller.balancer.pickAmong(list, count, 5, 0), home)
    const without = listOf(mask.map((isIn, index) => isIn && index !== home))
    notEqual(caller.balancer.pickAmong(without.list, without.count, 5, 0), home)
  })

  it('ends with the home for a factor that leaves no room at all', () => {
    const caller = callerOf(equals(3), 0.1)
    for (const key of keys.slice(0, 30)) caller.begin(key)
    const free = callerOf(equals(3))
    const counts = loads(caller)
    ok(Math.min(...counts) > 0, counts.join())
    for (const key of keys.slice(0, 30)) equal(caller.balancer.pick(key, 0), free.balancer.pick(key, 0))
    ok(caller.balancer.pick(-1, 0) >= 0)
  })

  it('counts what was in flight at a member that comes in, and forgets what is at one that leaves', () => {
    const caller = callerOf([1, 1, 0], 1)
    caller.members[2]!.inFlight = 50
    caller.balancer.loadChanged(2)
    for (let i = 0; i < 10; i++) caller.begin(5)
    equal(loads(caller).join(), '5,5,50')
    admit(caller.balancer, [1, 1, 1])
    for (let i = 0; i < 20; i++) caller.begin(5)
    equal(caller.members[2]!.inFlight, 50)
    const [most, least] = loads(caller).slice(0, 2).toSorted((a, b) => b - a)
    ok(most! > least!)
    // 30 without those 50: no more than 16 each.
    admit(caller.balancer, [1, 1, 0])
    caller.begin(5)
    equal(Math.max(...loads(caller).slice(0, 2)), most)
  })
})
