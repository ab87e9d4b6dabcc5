import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { hedgeDelayMs } from '../../../lib/retry/hedge.ts'

const table: Array<[name: string, usualMs: number, percentile: number, minMs: number, ms: number]> = [
  ['is sent after the usual time', 80, 0.95, 10, 80],
  ['is never sent before the least time', 3, 0.95, 10, 10],
  ['is sent at the least time where both are the same', 10, 0.95, 10, 10],
  ['is not sent while nothing is known', 0, 0.95, 10, -1],
  ['is not sent where it is off', 80, 0, 10, -1],
  ['is not sent where it is off and nothing is known', 0, 0, 10, -1]
]

for (const [name, usualMs, percentile, minMs, ms] of table) {
  test(`a hedge ${name}`, () => equal(hedgeDelayMs(usualMs, { percentile, minMs }), ms))
}
