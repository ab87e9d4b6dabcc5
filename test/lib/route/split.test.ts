import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { SplitOptions } from '../../../config/schema.ts'
import { seededRandom } from '../../../lib/random.ts'
import { Split, type SplitFacts } from '../../../lib/route/split.ts'

const never = () => { throw new Error('a draw, where the key decides') }
const split = (pools: Record<string, number>, options: Partial<SplitOptions> = {}) => new Split({ pools, by: 'client-address', ...options }, never)
const facts = (clientIp: string, headers: Record<string, string> = {}): SplitFacts => ({ clientIp, headers })
/** Clients as they come: addresses that are near to each other. */
const address = (index: number): string => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`

function sharesOf (one: Split, keys: number): Record<string, number> {
  const counts: Record<string, number> = {}
  for (let i = 0; i < keys; i++) {
    const pool = one.poolFor(facts(address(i)))
    counts[pool] = (counts[pool] ?? 0) + 1
  }
  return Object.fromEntries(Object.entries(counts).map(([pool, count]) => [pool, count / keys]))
}

const pools = fc.uniqueArray(fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/), { minLength: 1, maxLength: 5 })
  .chain((names) => fc.tuple(...names.map((name) => fc.tuple(fc.constant(name), fc.integer({ min: 1, max: 100 })))))
  .map((entries) => Object.fromEntries(entries))

describe('split', () => {
  it('gives each pool its share of the clients, within 1 %', () => {
    fc.assert(fc.property(pools, (weights) => {
      const total = Object.values(weights).reduce((sum, weight) => sum + weight, 0)
      const shares = sharesOf(split(weights), 50000)
      for (const [pool, weight] of Object.entries(weights)) ok(Math.abs((shares[pool] ?? 0) - weight / total) < 0.01, `${pool}: ${shares[pool]} of ${JSON.stringify(weights)}`)
    }), { numRuns: 30, seed: 1 })
  })

  it('gives a canary of one in a hundred its share', () => {
    const { canary = 0 } = sharesOf(split({ stable: 99, canary: 1 }), 200000)
    ok(Math.abs(canary - 0.01) < 0.001, String(canary))
  })

  it('gives a client one pool, however the pools are written down', () => {
    fc.assert(fc.property(pools, fc.string(), (weights, key) => {
      const reversed = Object.fromEntries(Object.entries(weights).toReversed())
      equal(split(weights).poolFor(facts(key)), split(reversed).poolFor(facts(key)))
    }))
  })

  it('raising a weight only moves clients into that pool, and lowering it only out of it', () => {
    fc.assert(fc.property(pools, fc.integer({ min: 1, max: 200 }), fc.nat(), (weights, more, which) => {
      const names = Object.keys(weights)
      const raised = names[which % names.length] as string
      const before = split(weights)
      const after = split({ ...weights, [raised]: weights[raised]! + more })
      for (let i = 0; i < 500; i++) {
        const [was, is] = [before.poolFor(facts(address(i * 97))), after.poolFor(facts(address(i * 97)))]
        ok(was === is || is === raised, `${was} -> ${is}, while ${raised} was raised`)
      }
    }), { numRuns: 300 })
  })

  it('a pool that comes takes its clients from all others, and none moves between these', () => {
    const [before, after] = [split({ one: 50, two: 30 }), split({ one: 50, two: 30, three: 20 })]
    for (let i = 0; i < 5000; i++) {
      const is = after.poolFor(facts(address(i)))
      if (is !== 'three') equal(is, before.poolFor(facts(address(i))))
    }
  })

  it('gives a pool of weight 0 nobody, and one alone everybody', () => {
    deepEqual(sharesOf(split({ stable: 1, canary: 0 }), 1000), { stable: 1 })
    deepEqual(sharesOf(split({ stable: 0, canary: 7 }), 1000), { canary: 1 })
  })

  it('by request it draws for each, by the weights', () => {
    const one = new Split({ pools: { stable: 80, canary: 20, off: 0 }, by: 'request' }, seededRandom(5))
    let canary = 0
    for (let i = 0; i < 20000; i++) {
      const pool = one.poolFor(facts('10.0.0.1'))
      ok(pool !== 'off')
      if (pool === 'canary') canary++
    }
    ok(Math.abs(canary / 20000 - 0.2) < 0.01, String(canary))
    for (const drawn of [0, 1 - Number.EPSILON]) ok(['stable', 'canary'].includes(new Split({ pools: { off: 0, stable: 80, canary: 20, last: 0 }, by: 'request' }, () => drawn).poolFor(facts(''))))
  })
})

describe('split: what decides', () => {
  const halves = { a: 50, b: 50 }
  /** Two clients of different pools. */
  const plain = split(halves)
  const ofA = [...Array(100).keys()].map(address).find((key) => plain.poolFor(facts(key)) === 'a') as string
  const ofB = [...Array(100).keys()].map(address).find((key) => plain.poolFor(facts(key)) === 'b') as string

  it('is a header, in any case, or the address where there is none', () => {
    const one = split(halves, { by: 'header', name: 'X-User' })
    equal(one.poolFor(facts(ofA, { 'x-user': ofB })), 'b')
    equal(one.by(facts(ofA, { 'x-user': ofB })), 'header')
    equal(one.poolFor(facts(ofA)), 'a')
    equal(one.by(facts(ofA)), 'client-address')
    equal(one.by(facts(ofA, { 'x-user': '' })), 'header', 'an empty one is a value like any')
  })

  it('is a cookie, by its exact name, or the address where there is none', () => {
    const one = split(halves, { by: 'cookie', name: 'Session' })
    equal(one.poolFor(facts(ofA, { cookie: `x=1; Session=${ofB}` })), 'b')
    equal(one.by(facts(ofA, { cookie: `x=1; Session=${ofB}` })), 'cookie')
    for (const headers of [{}, { cookie: 'x=1' }, { cookie: `session=${ofB}` }]) equal(one.by(facts(ofA, headers)), 'client-address')
  })

  it('is before all the word of the client, where it names one of the pools, one of weight 0 too', () => {
    for (const by of ['client-address', 'request'] as const) {
      const one = new Split({ pools: { a: 1, b: 0 }, by, overrideHeader: 'X-Pool' }, seededRandom(1))
      equal(one.poolFor(facts(ofA, { 'x-pool': 'b' })), 'b')
      equal(one.by(facts(ofA, { 'x-pool': 'b' })), 'override')
      for (const named of ['c', '', 'B', 'toString', '__proto__', 'a, b']) {
        equal(one.poolFor(facts(ofA, { 'x-pool': named })), 'a')
        equal(one.by(facts(ofA, { 'x-pool': named })), by)
      }
    }
    equal(split({ a: 1, b: 0 }).poolFor(facts(ofA, { 'x-pool': 'b' })), 'a', 'nobody said that clients may')
  })
})
