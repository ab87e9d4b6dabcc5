import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Episodes } from '../../lib/episode.ts'

test('an episode begins with the first time and ends when it has been quiet for long enough', () => {
  const episodes = new Episodes(5000)
  assert.equal(episodes.current, null)
  assert.equal(episodes.note('full', 100), true)
  assert.equal(episodes.note('full', 200), false)
  assert.equal(episodes.note('late', 4000), false)
  assert.equal(episodes.ended(8999), null)
  assert.deepEqual(episodes.ended(9000), { startedAt: 100, lastAt: 4000, total: 3, reasons: { full: 2, late: 1 }, peakPerSecond: 2 })
  assert.equal(episodes.ended(20000), null)
  assert.equal(episodes.note('full', 20000), true)
  assert.deepEqual(episodes.end(), { startedAt: 20000, lastAt: 20000, total: 1, reasons: { full: 1 }, peakPerSecond: 1 })
  assert.equal(episodes.end(), null)
})

test('its peak is what came within one second', () => {
  const episodes = new Episodes(5000)
  for (const [now, count] of [[100, 3], [900, 4], [1100, 5], [2500, 1]] as const) episodes.note('x', now, count)
  assert.equal(episodes.current?.peakPerSecond, 7)
})

test('whatever comes, the reasons add up, and no episode is told twice or lost', () => {
  fc.assert(fc.property(fc.array(fc.record({ wait: fc.integer({ min: 0, max: 8000 }), reason: fc.constantFrom('a', 'b'), count: fc.integer({ min: 1, max: 9 }) })), (steps) => {
    const episodes = new Episodes(5000)
    let now = 0
    let told = 0
    let begun = 0
    let sum = 0
    for (const { wait, reason, count } of steps) {
      now += wait
      const ended = episodes.ended(now)
      if (ended !== null) told += ended.total
      if (ended !== null) assert.equal(Object.values(ended.reasons).reduce((a, b) => a + b, 0), ended.total)
      assert.equal(ended !== null, begun > 0 && wait >= 5000)
      if (episodes.note(reason, now, count)) begun++
      sum += count
    }
    assert.equal(told + (episodes.end()?.total ?? 0), sum)
  }))
})
