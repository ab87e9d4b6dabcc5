import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { RollingWindow } from '../../lib/window.ts'

/** `[total, failures]` at a time. */
const at = (window: RollingWindow, now: number) => [window.total(now), window.failures(now)]

const add = (window: RollingWindow, now: number, successes: number, failures: number) => {
  for (let i = 0; i < successes; i++) window.record(now, false)
  for (let i = 0; i < failures; i++) window.record(now, true)
}

describe('rolling window', () => {
  it('counts a second until it is exactly one window old', () => {
    const window = new RollingWindow(60, 0)
    window.record(500, true)
    assert.deepEqual(at(window, 59999.999), [1, 1])
    assert.deepEqual(at(window, 60000), [0, 0])
  })

  it('expires seconds when it is read, not only when it is written', () => {
    const window = new RollingWindow(5, 0)
    add(window, 0, 1, 1)
    add(window, 800, 0, 1)
    assert.deepEqual(at(window, 4800), [3, 2])
    assert.deepEqual(at(window, 5800), [0, 0])
    add(window, 5900, 1, 0)
    assert.deepEqual(at(window, 5900), [1, 0])
    add(window, 10900, 1, 0)
    assert.deepEqual(at(window, 10900), [1, 0])
  })

  it('drops one second after the other', () => {
    const window = new RollingWindow(5, 0)
    add(window, 0, 0, 1)
    add(window, 100, 1, 0)
    add(window, 200, 1, 0)
    const steps: Array<[now: number, successes: number, failures: number, expected: [number, number]]> = [
      [1200, 1, 0, [4, 1]],
      [2200, 1, 0, [5, 1]],
      [3200, 0, 1, [6, 2]],
      [4200, 1, 0, [7, 2]],
      [5200, 1, 0, [5, 1]],
      [6200, 1, 0, [5, 1]],
      [11200, 1, 0, [1, 0]]
    ]
    for (const [now, successes, failures, expected] of steps) {
      add(window, now, successes, failures)
      assert.deepEqual(at(window, now), expected, `at ${now}`)
    }
  })

  it('keeps what gaps of any length leave of it', () => {
    const window = new RollingWindow(4, 0)
    const steps: Array<[now: number, successes: number, failures: number, expected: [number, number]]> = [
      [900, 10, 40, [50, 40]],
      [1000, 10, 0, [60, 40]],
      [2500, 0, 20, [80, 60]],
      [3100, 5, 20, [105, 80]],
      [5400, 8, 0, [53, 40]],
      [7300, 0, 5, [13, 5]],
      [22500, 0, 0, [0, 0]],
      [23100, 3, 0, [3, 0]]
    ]
    for (const [now, successes, failures, expected] of steps) {
      add(window, now, successes, failures)
      assert.deepEqual(at(window, now), expected, `at ${now}`)
    }
  })

  it('keeps only the newest of ten seconds after nine more', () => {
    const window = new RollingWindow(10, 0)
    for (let second = 0; second < 10; second++) add(window, second * 1000, 2 ** second, 0)
    assert.equal(window.total(9000), 1023)
    assert.equal(window.total(18000), 512)
    assert.equal(window.total(19000), 0)
  })

  it('clears more than one second after a long idle time', () => {
    const window = new RollingWindow(5, 0)
    for (let second = 0; second < 4; second++) add(window, second * 1000, 0, 1)
    assert.deepEqual(at(window, 300000), [0, 0])
    add(window, 300000, 0, 1)
    assert.deepEqual(at(window, 300000), [1, 1])
  })

  it('can be a single second long', () => {
    const window = new RollingWindow(1, 0)
    add(window, 999, 0, 2)
    assert.deepEqual(at(window, 999), [2, 2])
    assert.deepEqual(at(window, 1000), [0, 0])
    add(window, 1000, 1, 0)
    assert.deepEqual(at(window, 1999.5), [1, 0])
  })

  it('takes a clock that steps back for one that stands still', () => {
    const window = new RollingWindow(10, 3600000)
    add(window, 3600000, 1, 1)
    for (let i = 0; i < 100; i++) window.record(1000 - i, true)
    assert.deepEqual(at(window, 0), [102, 101])
    assert.deepEqual(at(window, 3609999), [102, 101])
    assert.deepEqual(at(window, 3610000), [0, 0])
  })

  for (const [days, note] of [[24.86, '2^31 ms'], [49.72, '2^32 ms'], [3650, 'ten years']] as const) {
    it(`works on across an uptime of ${note}`, () => {
      const day = days * 86400000
      const window = new RollingWindow(60, day - 30000)
      for (let now = day - 30000; now < day + 30000; now += 1000) window.record(now, false)
      assert.equal(window.total(day + 29999), 60)
      assert.equal(window.total(day + 30000), 59)
      assert.equal(window.total(2 * day), 0)
    })
  }

  it('lists the seconds that are not empty, newest first, with their age', () => {
    const window = new RollingWindow(60, 0)
    add(window, 1000, 1, 2)
    add(window, 11500, 4, 0)
    assert.deepEqual(window.buckets(12000), [[1, 4, 0], [11, 3, 2]])
    assert.deepEqual(window.buckets(61000), [[50, 4, 0]])
  })

  it('forgets everything when it is cleared', () => {
    const window = new RollingWindow(5, 0)
    add(window, 0, 3, 3)
    window.clear(1000)
    assert.deepEqual(at(window, 1000), [0, 0])
    assert.deepEqual(window.buckets(1000), [])
    add(window, 1000, 1, 0)
    assert.deepEqual(at(window, 5999), [1, 0])
    assert.deepEqual(at(window, 6000), [0, 0])
  })

  it('keeps its newest seconds when it gets another length', () => {
    const window = new RollingWindow(10, 0)
    for (let second = 0; second < 10; second++) add(window, second * 1000, second, 1)
    const longer = window.resized(60, 9000)
    assert.deepEqual(longer.buckets(9000), window.buckets(9000))
    assert.equal(longer.total(68999), 10, 'the newest second of the longer window')
    assert.equal(longer.total(69000), 0)
    const shorter = window.resized(3, 9000)
    assert.deepEqual(shorter.buckets(9000), [[0, 10, 1], [1, 9, 1], [2, 8, 1]])
    assert.deepEqual(at(shorter, 11000), [10, 1])
  })

  it('always sums up to its buckets and to what a plain list of results says', () => {
    const step = fc.record({ advance: fc.oneof(fc.constant(0), fc.integer({ min: -3000, max: 3000 }), fc.integer({ min: 0, max: 90000 })), failed: fc.boolean() })
    fc.assert(fc.property(fc.integer({ min: 1, max: 61 }), fc.array(step, { maxLength: 100 }), (seconds, steps) => {
      const window = new RollingWindow(seconds, 0)
      const results: Array<{ second: number, failed: boolean }> = []
      let now = 0
      let newest = 0
      for (const { advance, failed } of steps) {
        now = Math.max(0, now + advance)
        newest = Math.max(newest, Math.floor(now / 1000))
        window.record(now, failed)
        results.push({ second: newest, failed })
        const held = results.filter(({ second }) => newest - second < seconds)
        const expected = [held.length, held.filter(result => result.failed).length]
        assert.deepEqual(at(window, now), expected)
        const buckets = window.buckets(now)
        assert.deepEqual([buckets.reduce((sum, [, total]) => sum + total, 0), buckets.reduce((sum, [,, failures]) => sum + failures, 0)], expected)
      }
    }))
  })
})
