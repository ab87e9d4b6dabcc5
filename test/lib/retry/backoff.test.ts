import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { seededRandom } from '../../../lib/random.ts'
import { backoffMs } from '../../../lib/retry/backoff.ts'

const almostOne = () => 1 - 2 ** -32

const limits: Array<[attempt: number, baseMs: number, maxMs: number, limit: number]> = [
  [1, 25, 250, 25],
  [2, 25, 250, 50],
  [3, 25, 250, 100],
  [4, 25, 250, 200],
  [5, 25, 250, 250],
  [6, 25, 250, 250],
  [1, 500, 250, 250],
  [1, 1, 1, 1],
  [2000, 25, 250, 250]
]

for (const [attempt, baseMs, maxMs, limit] of limits) {
  test(`after attempt ${attempt} a back-off of ${baseMs} to ${maxMs} ms is below ${limit}`, () => {
    const options = { baseMs, maxMs }
    equal(backoffMs(attempt, options, () => 0), 0)
    equal(backoffMs(attempt, options, () => 0.5), limit / 2)
    equal(Math.round(backoffMs(attempt, options, almostOne)), limit)
    ok(backoffMs(attempt, options, almostOne) < limit)
  })
}

test('the same seed gives the same waits, which are spread over the whole time', () => {
  const draw = () => {
    const random = seededRandom(7)
    return Array.from({ length: 1000 }, () => backoffMs(2, { baseMs: 25, maxMs: 250 }, random))
  }
  const waits = draw()
  deepEqual(draw(), waits)
  for (let from = 0; from < 50; from += 10) {
    const share = waits.filter((ms) => ms >= from && ms < from + 10).length / 1000
    ok(share > 0.15 && share < 0.25, `${share} from ${from} ms`)
  }
})

test('property: a back-off lies between 0 and its cap', () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 2147483647 }), fc.integer({ min: 1, max: 2147483647 }), fc.integer(), (attempt, baseMs, maxMs, seed) => {
    const ms = backoffMs(attempt, { baseMs, maxMs }, seededRandom(seed))
    ok(ms >= 0 && ms < maxMs && ms < baseMs * 2 ** (attempt - 1))
  }))
})
