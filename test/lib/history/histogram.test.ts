import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { TimeHistogram } from '../../../lib/history/histogram.ts'

test('a quantile is within a tenth of the exact one, from 0.1 ms to six minutes', () => {
  fc.assert(fc.property(fc.array(fc.double({ min: 0.1, max: 345000, noNaN: true }), { minLength: 1, maxLength: 200 }), fc.constantFrom(0.01, 0.5, 0.95, 0.99, 1), (times, q) => {
    const histogram = new TimeHistogram()
    for (const ms of times) histogram.record(ms)
    const exact = times.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(q * times.length)) - 1] as number
    const ratio = histogram.quantile(q) / exact
    assert.ok(ratio > 0.9 && ratio < 1.1, `${histogram.quantile(q)} for ${exact}`)
  }))
})

test('without a time there is no quantile; what is no time counts as the shortest, what is too long as the longest', () => {
  const histogram = new TimeHistogram()
  assert.ok(Number.isNaN(histogram.quantile(0.5)))
  for (const ms of [0, -1, Number.NaN, Number.NEGATIVE_INFINITY]) histogram.record(ms)
  assert.deepEqual([histogram.total, histogram.quantile(1)], [4, 0.1])
  histogram.clear()
  histogram.record(Number.POSITIVE_INFINITY)
  assert.deepEqual([histogram.total, Math.round(histogram.quantile(0.5) / 60000)], [1, 5])
})
