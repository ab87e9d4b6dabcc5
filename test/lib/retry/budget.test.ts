import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { RetryBudget } from '../../../lib/retry/budget.ts'

const requests = (budget: RetryBudget, count: number, now: number): void => {
  for (let i = 0; i < count; i++) budget.request(now)
}

/** How many of so many tries are granted. */
const granted = (budget: RetryBudget, tries: number, now: number): number => {
  let count = 0
  for (let i = 0; i < tries; i++) if (budget.tryTake(now)) count++
  return count
}

describe('retry budget', () => {
  it('grants at most a fifth of a thousand requests that fail at the same moment, though none has been sent yet', () => {
    const budget = new RetryBudget({ ratio: 0.2, minPerSecond: 0 }, 0)
    requests(budget, 1000, 100)
    equal(granted(budget, 1000, 100), 200)
    deepEqual(budget.snapshot(100), { requests: 1000, taken: 200, allowed: 200, remaining: 0 })
  })

  it('grants nothing at all where both numbers are 0', () => {
    const budget = new RetryBudget({ ratio: 0, minPerSecond: 0 }, 0)
    requests(budget, 100000, 0)
    equal(granted(budget, 10, 0), 0)
  })

  it('grants the least number without any request, and again ten seconds later', () => {
    const budget = new RetryBudget({ ratio: 0.2, minPerSecond: 1 }, 0)
    equal(granted(budget, 50, 500), 10)
    equal(granted(budget, 50, 9999), 0)
    equal(granted(budget, 50, 10000), 10)
  })

  const boundaries: Array<[ratio: number, minPerSecond: number, requests: number, allowed: number]> = [
    [0.2, 0, 4, 0],
    [0.2, 0, 5, 1],
    [0.29, 0, 100, 29],
    [0.07, 0, 100, 7],
    [0.1, 0.1, 20, 3],
    [0.7, 0, 10, 7],
    [1, 0, 1, 1],
    [0, 0.3, 1000, 3],
    [0, 0.05, 1000, 0],
    [0.2, 1000, 0, 10000]
  ]
  for (const [ratio, minPerSecond, count, allowed] of boundaries) {
    it(`allows ${allowed} for ${count} requests at ${ratio} and ${minPerSecond} a second`, () => {
      const budget = new RetryBudget({ ratio, minPerSecond }, 0)
      requests(budget, count, 0)
      equal(budget.snapshot(0).allowed, allowed)
      equal(granted(budget, allowed + 5, 0), allowed)
    })
  }

  it('forgets requests and grants second by second', () => {
    const budget = new RetryBudget({ ratio: 0.5, minPerSecond: 0 }, 0)
    requests(budget, 10, 0)
    requests(budget, 4, 5000)
    equal(granted(budget, 9, 5000), 7)
    deepEqual(budget.snapshot(9999), { requests: 14, taken: 7, allowed: 7, remaining: 0 })
    deepEqual(budget.snapshot(10000), { requests: 4, taken: 7, allowed: 2, remaining: 0 })
    equal(granted(budget, 9, 14999), 0)
    deepEqual(budget.snapshot(15000), { requests: 0, taken: 0, allowed: 0, remaining: 0 })
  })

  it('keeps what it counted when its numbers change', () => {
    const budget = new RetryBudget({ ratio: 0.1, minPerSecond: 0 }, 0)
    requests(budget, 100, 0)
    equal(granted(budget, 100, 0), 10)
    budget.configure({ ratio: 0.3, minPerSecond: 0 })
    equal(granted(budget, 100, 0), 20)
    budget.configure({ ratio: 0, minPerSecond: 0 })
    deepEqual(budget.snapshot(0), { requests: 100, taken: 30, allowed: 0, remaining: 0 })
    equal(granted(budget, 100, 0), 0)
  })

  it('takes a clock that steps back for one that stands still', () => {
    const budget = new RetryBudget({ ratio: 0.2, minPerSecond: 0 }, 3600000)
    requests(budget, 50, 3600000)
    equal(granted(budget, 50, 1000), 10)
    requests(budget, 50, 0)
    equal(granted(budget, 50, 0), 10)
    deepEqual(budget.snapshot(3600500), { requests: 100, taken: 20, allowed: 20, remaining: 0 })
  })
})

const options = fc.record({
  ratio: fc.oneof(fc.constantFrom(0, 0.2, 1), fc.double({ min: 0, max: 1, noNaN: true })),
  minPerSecond: fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 5, noNaN: true }))
})
/** The clock moves, mostly on and at times back; then come requests and tries. */
const step = fc.record({
  advance: fc.oneof({ weight: 6, arbitrary: fc.integer({ min: 0, max: 2500 }) }, { weight: 1, arbitrary: fc.integer({ min: -5000, max: 30000 }) }),
  requests: fc.integer({ min: 0, max: 40 }),
  tries: fc.integer({ min: 0, max: 40 })
})

describe('property: a retry budget', () => {
  it('grants what a plain list of everything that was counted allows, and not one less', () => {
    fc.assert(fc.property(options, fc.array(step, { maxLength: 60 }), (given, steps) => {
      const budget = new RetryBudget(given, 0)
      const asked: number[] = []
      const taken: number[] = []
      let now = 0
      let newest = 0
      for (const { advance, requests: count, tries } of steps) {
        now = Math.max(0, now + advance)
        newest = Math.max(newest, Math.floor(now / 1000))
        const held = (seconds: number[]): number => seconds.filter((second) => newest - second < 10).length
        for (let i = 0; i < count; i++) {
          budget.request(now)
          asked.push(newest)
        }
        for (let i = 0; i < tries; i++) {
          const allowed = 10 * given.minPerSecond + given.ratio * held(asked) + 1e-9
          equal(budget.tryTake(now), held(taken) + 1 <= allowed)
          if (held(taken) + 1 <= allowed) taken.push(newest)
        }
        const { requests: total, taken: counted, allowed, remaining } = budget.snapshot(now)
        deepEqual([total, counted, remaining], [held(asked), held(taken), Math.max(0, allowed - counted)])
      }
    }))
  })

  it('never amplifies more than its ratio and least number say, over any time', () => {
    fc.assert(fc.property(options, fc.array(step, { maxLength: 200 }), (given, steps) => {
      const budget = new RetryBudget(given, 0)
      let now = 0
      let newest = 0
      let asked = 0
      let taken = 0
      for (const { advance, requests: count, tries } of steps) {
        now = Math.max(0, now + advance)
        newest = Math.max(newest, now)
        requests(budget, count, now)
        asked += count
        taken += granted(budget, tries, now)
        const tens = Math.floor(Math.floor(newest / 1000) / 10) + 1
        ok(taken <= tens * (10 * given.minPerSecond + 1e-9) + given.ratio * asked, `${taken} of ${asked} in ${newest} ms`)
      }
    }))
  })
})

describe('memory', () => {
  it('counting requests and asking for retries allocates nothing once it is compiled', () => {
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    const budget = new RetryBudget({ ratio: 0.2, minPerSecond: 1 }, 1)
    const traffic = (from: number, count: number): void => {
      for (let i = 0; i < count; i++) {
        const now = from + Math.trunc(i / 100)
        budget.request(now)
        budget.tryTake(now)
      }
    }
    traffic(1, 300000)
    // compiling and the test runner allocate beside us, so the least of several rounds counts
    let least = Number.POSITIVE_INFINITY
    for (let round = 1; round <= 8; round++) {
      gc()
      const before = process.memoryUsage().heapUsed
      traffic(round * 5000, 400000)
      least = Math.min(least, process.memoryUsage().heapUsed - before)
    }
    ok(least / 400000 < 1, `${least / 400000} bytes a request`)
  })
})
