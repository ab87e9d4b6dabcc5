import { test } from 'node:test'
import assert from 'node:assert/strict'
import { densest, isLost, quantile, tallyText } from '../../../bin/load/figures.ts'
import type { Sample } from '../../../bin/load/load.ts'
import { deliveries, peakConcurrency } from '../../../bench/drills/record.ts'
import { dueTimes } from '../../../bin/load/schedule.ts'
import type { Seen } from '../../../bench/drills/upstream.ts'

const sample = (status: number, failure: Sample['failure'] = ''): Sample => ({ id: 'r0', at: 0, ms: 1, status, failure, reason: '' })

test('a quantile is the value that this share does not exceed', () => {
  const values = [5, 1, 4, 2, 3]
  assert.deepEqual([0, 0.2, 0.5, 0.99, 1].map(q => quantile(values, q)), [1, 1, 3, 5, 5])
  assert.ok(Number.isNaN(quantile([], 0.5)))
})

test('what was refused, cut, not sent or not answered is lost; a 404 too, a 302 not', () => {
  assert.deepEqual([sample(200), sample(302), sample(404), sample(503), sample(0, 'cut'), sample(0, 'unsent')].map(isLost), [false, false, true, true, true, true])
  assert.equal(tallyText([sample(200), sample(503), sample(200), sample(0, 'cut')]), '2 x 200, 1 x 503, 1 x cut')
  assert.equal(tallyText([]), 'none')
})

test('the densest span is found wherever it lies, and its end does not count', () => {
  assert.equal(densest([0, 500, 600, 700, 1499, 1500, 4000], 1000), 4)
  assert.equal(densest([], 1000), 0)
})

test('requests are due once in each slot, at the same moments for the same seed', () => {
  const times = [...dueTimes(100, 2, 7)]
  assert.equal(times.length, 200)
  for (const [slot, at] of times.entries()) assert.equal(Math.floor(at / 10), slot)
  assert.deepEqual([...dueTimes(100, 2, 7)], times)
  assert.notDeepEqual([...dueTimes(100, 2, 8)], times)
})

const seen = (what: Seen['what'], at: number, id = ''): Seen => ({ what, at, id })

test('a request that arrives at two upstreams, or twice at one, was delivered twice', () => {
  const counts = deliveries([[seen('request', 1, 'a'), seen('request', 2, 'b'), seen('request', 3, 'b')], [seen('request', 4, 'a'), seen('request', 5, 'c')]])
  assert.deepEqual([...counts], [['a', 2], ['b', 2], ['c', 1]])
})

test('the peak of concurrency counts what was there before, and a start ends what a kill left behind', () => {
  const record = [seen('start', 0), seen('request', 1, 'a'), seen('request', 2, 'b'), seen('end', 3, 'a'), seen('start', 10), seen('request', 11, 'c'), seen('end', 12, 'c')]
  assert.equal(peakConcurrency(record, 0, 100), 2)
  assert.equal(peakConcurrency(record, 5, 9), 1)
  assert.equal(peakConcurrency(record, 10, 100), 1)
  assert.equal(peakConcurrency([], 0, 100), 0)
})
