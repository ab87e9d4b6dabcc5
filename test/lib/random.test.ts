import { deepEqual, equal, notDeepEqual, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seededRandom, systemRandom } from '../../lib/random.ts'

const take = (seed: number, count: number): number[] => {
  const random = seededRandom(seed)
  return Array.from({ length: count }, random)
}

describe('seeded random', () => {
  it('gives the numbers of mulberry32', () => {
    deepEqual(take(0, 3).map((value) => value * 2 ** 32), [1144304738, 1416247, 958946056])
    deepEqual(take(42, 3).map((value) => value * 2 ** 32), [2581720956, 1925393290, 3661312704])
  })

  it('gives the same sequence for the same seed, another for another', () => {
    deepEqual(take(7, 100), take(7, 100))
    notDeepEqual(take(7, 100), take(8, 100))
  })

  it('gives each source a sequence of its own', () => {
    const [one, two] = [seededRandom(1), seededRandom(1)]
    const first = Array.from({ length: 10 }, one)
    deepEqual(Array.from({ length: 10 }, two), first)
  })

  it('stays in [0, 1) for any seed', () => {
    fc.assert(fc.property(fc.oneof(fc.integer(), fc.double({ noNaN: true }), fc.constantFrom(-1, 0, 4294967295, 4294967296, 1.5)), (seed) => {
      for (const value of take(seed, 50)) ok(value >= 0 && value < 1)
    }))
  })

  it('is spread evenly', () => {
    const buckets = new Array<number>(10).fill(0)
    for (const value of take(1, 100000)) buckets[Math.floor(value * 10)]!++
    for (const count of buckets) ok(count > 9500 && count < 10500, buckets.join())
  })
})

it('the system\'s random stays in [0, 1) and does not repeat itself', () => {
  const values = Array.from({ length: 100 }, systemRandom)
  ok(values.every((value) => value >= 0 && value < 1))
  equal(new Set(values).size, 100)
})
