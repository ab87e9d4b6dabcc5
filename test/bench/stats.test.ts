import { test } from 'node:test'
import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { median, pairedRatios, rotate, spread } from '../../bench/stats.ts'

test('the median is the middle value, or the mean of the two middle ones', () => {
  const cases: Array<[number[], number]> = [[[], NaN], [[7], 7], [[9, 1, 5], 5], [[4, 1, 3, 2], 2.5], [[10, 9, 100], 10]]
  for (const [values, expected] of cases) assert.equal(median(values), expected)
})

test('taking the median leaves the values in their order', () => {
  const values = [3, 1, 2]
  median(values)
  assert.deepEqual(values, [3, 1, 2])
})

test('the median lies between the least and the greatest value, whatever their order', () => {
  fc.assert(fc.property(fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1 }), values => {
    const { min, median: middle, max } = spread(values)
    assert.ok(min <= middle && middle <= max)
    // + 0: a zero has a sign, and either may be the middle.
    assert.equal(middle + 0, median(values.toReversed()) + 0)
  }))
})

test('a spread of nothing has no figures', () => {
  assert.deepEqual(spread([]), { median: NaN, min: NaN, max: NaN })
})

test('ratios are made round by round, so that a slow round cancels out', () => {
  assert.deepEqual(pairedRatios([10, 20, 10], [20, 40, 20]), [0.5, 0.5, 0.5])
})

test('a round without a figure on either side makes no ratio', () => {
  assert.deepEqual(pairedRatios([10, NaN, 30], [20, 40, NaN]), [0.5])
  assert.deepEqual(pairedRatios([10, 10], [20, 0]), [0.5])
  assert.deepEqual(pairedRatios([10, 10], [20]), [0.5])
})

test('each peer comes first in turn', () => {
  const peers = ['a', 'b', 'c']
  assert.deepEqual([0, 1, 2, 3].map(round => rotate(peers, round).join('')), ['abc', 'bca', 'cab', 'abc'])
  assert.deepEqual(rotate([], 2), [])
})
