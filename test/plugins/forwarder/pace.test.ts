import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Pace } from '../../../plugins/forwarder/pace.ts'

const limits = (requestMs: number, bodyIdleMs = 1000, minUploadBytesPerSecond = 100) => ({ connectMs: 0, headersMs: 0, totalMs: 0, requestMs, bodyIdleMs, minUploadBytesPerSecond })

describe('the pace of an upload', () => {
  it('is late at the time for the whole request, however quick it was', () => {
    const pace = new Pace(limits(500), 100)
    pace.waits(100)
    pace.came(100_000, 400)
    equal(pace.left(400), 200)
    equal(pace.left(600), 0)
    deepEqual(pace.evidence(600), { limit: 'timeouts.requestMs' })
  })

  it('is late behind a window that brought too little', () => {
    const pace = new Pace(limits(0), 0)
    pace.waits(0)
    for (let t = 100; t <= 900; t += 100) {
      pace.came(10, t)
      pace.waits(t)
    }
    equal(pace.left(900), 100)
    equal(pace.left(1000), 0)
    deepEqual(pace.evidence(1000), { limit: 'timeouts.minUploadBytesPerSecond', bytes: 90, needed: 100, windowMs: 1000 })
  })

  it('begins a new window behind one that brought enough, and being quick in one earns nothing in the next', () => {
    const pace = new Pace(limits(0), 0)
    pace.waits(0)
    pace.came(1_000_000, 10)
    pace.waits(10)
    equal(pace.left(1000), 1000)
    equal(pace.left(1600), 400)
    equal(pace.left(2000), 0)
  })

  it('is not late a moment before the end of a window that brought enough: a timer may be a fraction early', () => {
    const pace = new Pace(limits(0), 0)
    pace.waits(0)
    pace.came(1_000_000, 10)
    pace.waits(10)
    equal(pace.left(999.75), 1000)
    equal(pace.left(1999.75), 0)
  })

  it('counts no time in which nobody waits for the client', () => {
    const pace = new Pace(limits(0), 0)
    pace.waits(0)
    pace.came(10, 100)
    equal(pace.left(90_000), 900)
    pace.waits(90_000)
    pace.waits(90_100)
    equal(pace.left(90_200), 700)
    pace.rests(90_200)
    pace.rests(95_000)
    equal(pace.left(95_000), 700)
  })

  it('is neither late nor looked at all the time while nobody waits for the client, however little of its window is left', () => {
    const pace = new Pace(limits(0), 0)
    pace.waits(0)
    pace.came(10, 999)
    equal(pace.left(999), 100)
    equal(pace.left(50_000), 100)
    pace.waits(50_000)
    equal(pace.left(50_000), 1)
    pace.rests(50_002)
    equal(pace.left(50_002), 100)
    pace.waits(60_000)
    ok(pace.left(60_000) <= 0)
    pace.came(90, 60_000)
    equal(pace.left(60_000), 1000)
  })

  it('has no limits where they are 0, and a window of its own without bodyIdleMs', () => {
    const free = new Pace(limits(0, 1000, 0), 0)
    free.waits(0)
    equal(free.left(1e9), Infinity)
    const pace = new Pace(limits(0, 0), 0)
    pace.waits(0)
    equal(pace.left(1000), 29_000)
    deepEqual([limits(0), limits(500), limits(0, 0), limits(0, 1000, 0), { ...limits(0), requestMs: undefined as never }].map((each) => Pace.shortest(each)), [1000, 500, 30_000, Infinity, Infinity])
  })
})
