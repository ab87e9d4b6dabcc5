import { equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { SlowStartOptions } from '../../../config/schema.ts'
import { rampShare } from '../../../lib/balance/slow-start.ts'

describe('slow start', () => {
  const options = (ms: number, minimumShare = 0.1, aggression = 1): SlowStartOptions => ({ ms, minimumShare, aggression })
  const table: Array<[title: string, options: SlowStartOptions, shares: Array<[elapsedMs: number, share: number]>]> = [
    ['is off at 0 ms', options(0), [[0, 1], [5, 1], [-5, 1]]],
    ['is a straight line from the least share on', options(10000), [[0, 0.1], [500, 0.1], [1000, 0.1], [2500, 0.25], [5000, 0.5], [9999, 0.9999], [10000, 1], [1e9, 1]]],
    ['is faster at first with more aggression', options(10000, 0.1, 2), [[0, 0.1], [100, 0.1], [400, 0.2], [2500, 0.5], [8100, 0.9], [10000, 1]]],
    ['is slower at first with less', options(10000, 0.1, 0.5), [[0, 0.1], [2500, 0.1], [5000, 0.25], [9000, 0.81], [10000, 1]]],
    ['begins with all of it where the least share is 1', options(10000, 1), [[0, 1], [5000, 1]]],
    ['begins again where the clock goes back', options(10000), [[-1, 0.1], [-1e9, 0.1]]],
    ['lasts a millisecond at least', options(1), [[0, 0.1], [0.5, 0.5], [1, 1]]]
  ]
  for (const [title, given, shares] of table) {
    it(title, () => {
      for (const [elapsedMs, share] of shares) ok(Math.abs(rampShare(given, elapsedMs) - share) < 1e-12, `${rampShare(given, elapsedMs)} after ${elapsedMs} ms`)
    })
  }

  it('never falls, and stays between the least share and 1', () => {
    const time = fc.integer({ min: -1000, max: 100000 })
    const given = fc.record({ ms: fc.nat(60000), minimumShare: fc.double({ min: 0.001, max: 1, noNaN: true }), aggression: fc.double({ min: 0.1, max: 10, noNaN: true }) })
    fc.assert(fc.property(given, time, time, (all, a, b) => {
      const [before, after] = [rampShare(all, Math.min(a, b)), rampShare(all, Math.max(a, b))]
      ok(all.minimumShare <= before && before <= after && after <= 1, `${before}, ${after}`)
      equal(rampShare(all, all.ms), 1)
    }))
  })
})
