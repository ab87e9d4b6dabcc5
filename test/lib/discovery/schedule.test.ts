import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { delayAfterAnswer, delayAfterFailure } from '../../../lib/discovery/schedule.ts'

const usual = { minTtlMs: 1000, maxTtlMs: 60000 }
const bounds = fc.record({ minTtlMs: fc.integer({ min: 1, max: 2147483647 }), maxTtlMs: fc.integer({ min: 1, max: 2147483647 }) })
const random = fc.double({ min: 0, max: 0.999999, noNaN: true })

test('a TTL is kept within its bounds and lengthened by at most a tenth', () => {
  for (const [ttlMs, lowest, highest] of [
    [0, 1000, 1100],
    [1000, 1000, 1100],
    [5000, 5000, 5500],
    // At the cap the tenth is taken off.
    [60000, 54000, 60000],
    [3_600_000, 54000, 60000],
    [4294967295000, 54000, 60000],
    [58000, 54200, 60000],
    // Not told.
    [null, 10000, 11000]
  ] as const) {
    assert.equal(delayAfterAnswer(ttlMs, usual, () => 0), lowest, `${ttlMs}`)
    assert.ok(Math.abs(delayAfterAnswer(ttlMs, usual, () => 0.999999) - highest) < 1, `${ttlMs}`)
  }
})

test('a life that is not told is within the bounds, too', () => {
  assert.equal(delayAfterAnswer(null, { minTtlMs: 20000, maxTtlMs: 60000 }, () => 0), 20000)
  assert.equal(delayAfterAnswer(null, { minTtlMs: 1, maxTtlMs: 100 }, () => 0), 90)
})

test('failures are followed by waits that double up to the cap', () => {
  const waits = [1, 2, 3, 4, 5, 6, 7, 8, 1e9].map((failures) => delayAfterFailure(failures, usual, () => 0))
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000])
  assert.deepEqual([1, 3, 9].map((failures) => delayAfterFailure(failures, usual, () => 0.5)), [1000, 3800, 57000])
})

test('every wait is within the bounds, whatever they are', () => {
  fc.assert(fc.property(bounds, fc.option(fc.double({ min: 0, max: 1e15, noNaN: true })), fc.integer({ min: 1, max: 1000 }), random, (within, ttlMs, failures, drawn) => {
    const least = Math.min(within.minTtlMs, within.maxTtlMs)
    for (const delay of [delayAfterAnswer(ttlMs, within, () => drawn), delayAfterFailure(failures, within, () => drawn)]) {
      assert.ok(delay >= least && delay <= within.maxTtlMs, `${delay}`)
    }
  }))
})

test('an answer is not asked for before its TTL ends, but at the cap', () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: 120000 }), random, (ttlMs, drawn) => {
    assert.ok(delayAfterAnswer(ttlMs, usual, () => drawn) >= Math.min(ttlMs, usual.maxTtlMs * 0.9))
  }))
})
