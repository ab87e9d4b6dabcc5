import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { attemptHeadersMs, attemptLimits } from '../../../lib/retry/limits.ts'

const none = Number.POSITIVE_INFINITY

describe('the time limit of an attempt', () => {
  const table: Array<[name: string, headersMs: number, msLeft: number, retriesLeft: number, ms: number]> = [
    ['leaves time for those that follow', 5000, 3000, 2, 1000],
    ['gives the second of three half of what is left', 5000, 2000, 1, 1000],
    ['gives the last one what is configured, for the deadline ends it anyway', 5000, 1000, 0, 5000],
    ['is what is configured where there is time enough', 5000, 30000, 2, 5000],
    ['is what is configured at the boundary', 5000, 15000, 2, 5000],
    ['is its share where none is configured', 0, 9000, 2, 3000],
    ['is what is configured where the exchange has no limit', 5000, none, 2, 5000],
    ['is none where neither has one', 0, none, 2, 0],
    ['is none without retries where none is configured', 0, 9000, 0, 0],
    ['is a millisecond, and not none, when all time is spent', 5000, 0, 2, 1],
    ['is a millisecond when more than all time is spent', 0, -50, 1, 1],
    ['is no more than what is configured even then', 1, 0.5, 1, 1]
  ]
  for (const [name, headersMs, msLeft, retriesLeft, ms] of table) {
    it(name, () => equal(attemptHeadersMs(headersMs, msLeft, retriesLeft), ms))
  }

  it('property: attempts that all use up their limit end within the time of the exchange, but for a millisecond each', () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: 60000 }), fc.integer({ min: 1, max: 60000 }), fc.integer({ min: 1, max: 5 }), (headersMs, totalMs, retries) => {
      let left = totalMs
      for (let retriesLeft = retries; retriesLeft > 0; retriesLeft--) {
        const ms = attemptHeadersMs(headersMs, left, retriesLeft)
        ok(ms >= 1)
        if (headersMs > 0) ok(ms <= headersMs)
        left -= ms
      }
      ok(left >= Math.floor(totalMs / (retries + 1)) - retries, `${left} of ${totalMs} ms for the last one`)
    }))
  })
})

describe('the limits of a fresh exchange', () => {
  const rest = { connectMs: 2000, bodyIdleMs: 30000 }
  it('are what is configured where there are no retries', () => {
    deepEqual(attemptLimits({ ...rest, headersMs: 5000, totalMs: 3000 }, 0), { headersMs: 5000, totalMs: 3000 })
  })
  it('are shared by the attempts', () => {
    deepEqual(attemptLimits({ ...rest, headersMs: 5000, totalMs: 9000 }, 2), { headersMs: 3000, totalMs: 9000 })
  })
  it('are 0 where there are none', () => {
    deepEqual(attemptLimits({ ...rest, headersMs: 0, totalMs: 0 }, 2), { headersMs: 0, totalMs: 0 })
    deepEqual(attemptLimits({ ...rest, headersMs: 5000, totalMs: 0 }, 2), { headersMs: 5000, totalMs: 0 })
    deepEqual(attemptLimits({ ...rest, headersMs: 0, totalMs: 6000 }, 1), { headersMs: 3000, totalMs: 6000 })
  })
})
