import { equal, notEqual, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { WeightedDraw } from '../../../lib/balance/weighted-draw.ts'
import { seededRandom, type Random } from '../../../lib/random.ts'
import { countsOf } from './support.ts'

function drawOf (weights: readonly number[], random: Random): WeightedDraw {
  const draw = new WeightedDraw(weights.length, random)
  const members = Int32Array.from(weights.keys()).filter((index) => weights[index]! > 0)
  draw.update(members, members.length, Float64Array.from(weights))
  return draw
}

const near = (count: number, expected: number): boolean => Math.abs(count - expected) < 5 * Math.sqrt(expected)
const uneven = [4, 0, 3, 2, 1]
const even = [0.1, 0, 0.1, 0.1, 0.1]

describe('weighted draw', () => {
  it('draws one by weight, of all and of some', () => {
    const draw = drawOf(uneven, seededRandom(1))
    const counts = countsOf(Array.from({ length: 50000 }, () => draw.one()), 5)
    for (const [index, weight] of uneven.entries()) ok(weight === 0 ? counts[index] === 0 : near(counts[index]!, 5000 * weight), counts.join())
    const some = countsOf(Array.from({ length: 50000 }, () => draw.oneAmong(Int32Array.of(4, 0, 2), 2)), 5)
    ok(near(some[4]!, 10000) && near(some[0]!, 40000) && some[2] === 0, some.join())
  })

  it('draws the second of a pair by weight from the rest', () => {
    for (const [among, weights] of [[false, uneven], [true, uneven], [false, even], [true, even]] as const) {
      const draw = drawOf(weights, seededRandom(2))
      const pairs = new Map<string, number>()
      for (let i = 0; i < 100000; i++) {
        if (among) draw.pairAmong(Int32Array.of(0, 2, 3, 4), 4)
        else draw.pair()
        const pair = `${draw.first}${draw.second}`
        pairs.set(pair, (pairs.get(pair) ?? 0) + 1)
      }
      equal(pairs.size, 12)
      for (const [pair, count] of pairs) {
        const [first, second] = [weights[Number(pair[0])]!, weights[Number(pair[1])]!]
        const total = weights.reduce((sum, weight) => sum + weight, 0)
        ok(near(count, 100000 * first / total * second / (total - first)), `${pair}: ${count}`)
      }
    }
  })

  it('never draws a pair of one and the same, whatever the random source and the weights are', () => {
    const edges = fc.oneof(fc.constantFrom(0, 1 - Number.EPSILON / 2, 0.5), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }))
    const somewhat = fc.array(fc.oneof(fc.double({ min: 1e-9, max: 1e9, noNaN: true }), fc.constantFrom(0.1, 0.2, 0.3, 1)), { minLength: 2, maxLength: 6 })
    const alike = fc.tuple(fc.double({ min: 1e-9, max: 1e9, noNaN: true }), fc.integer({ min: 2, max: 6 })).map(([weight, count]) => new Array<number>(count).fill(weight))
    fc.assert(fc.property(fc.oneof(somewhat, alike), fc.array(edges, { minLength: 2, maxLength: 20 }), (all, numbers) => {
      let at = 0
      const draw = drawOf(all, () => numbers[at++ % numbers.length]!)
      const everyone = Int32Array.from(all.keys())
      for (let i = 0; i < numbers.length; i++) {
        if (i % 2 === 0) draw.pair()
        else draw.pairAmong(everyone, everyone.length)
        notEqual(draw.first, draw.second)
        for (const drawn of [draw.first, draw.second, draw.one(), draw.oneAmong(everyone, everyone.length)]) ok(drawn >= 0 && drawn < all.length)
      }
    }), { numRuns: 1000 })
  })

  it('draws a single one alone, and nobody of nobody', () => {
    const draw = drawOf([0, 5], seededRandom(3))
    draw.pair()
    equal(`${draw.first} ${draw.second} ${draw.one()}`, '1 -1 1')
    draw.pairAmong(Int32Array.of(1, 0), 1)
    equal(`${draw.first} ${draw.second}`, '1 -1')
    draw.update(new Int32Array(0), 0, new Float64Array(2))
    draw.pair()
    equal(`${draw.first} ${draw.second} ${draw.one()}`, '-1 -1 -1')
  })
})
