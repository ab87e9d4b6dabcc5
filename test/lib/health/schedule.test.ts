import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { delayUntil, firstShare, nextCheckAt, repeatAt } from '../../../lib/health/schedule.ts'
import { seededRandom } from '../../../lib/random.ts'

const check = { startedAt: 1000, endedAt: 1010, share: 1, random: 0.5 }

const table: Array<[name: string, check: Partial<typeof check>, jitter: number, next: number]> = [
  ['an interval after the start, not after the end', {}, 0, 6000],
  ['jitter shortens', { random: 0 }, 0.1, 5500],
  ['jitter lengthens', { random: 0.75 }, 0.1, 6250],
  ['no jitter in the middle', { random: 0.5 }, 0.1, 6000],
  ['full jitter leaves the least gap', { random: 0 }, 1, 1010],
  ['a share of the interval after the first check', { share: 0.5 }, 0, 3500],
  ['a check longer than the interval is followed at once', { endedAt: 9000 }, 0, 9000]
]

for (const [name, given, jitter, next] of table) {
  test(`next check: ${name}`, () => assert.equal(nextCheckAt({ ...check, ...given }, { intervalMs: 5000, jitter }), next))
}

test('the second checks of a pool are spread evenly over the interval', () => {
  assert.deepEqual([0, 1, 2, 3].map((index) => firstShare(index, 4)), [0.25, 0.5, 0.75, 1])
  assert.equal(firstShare(0, 1), 1)
})

test('a check that said nothing is repeated soon, at most once a second', () => {
  assert.equal(repeatAt(100, { intervalMs: 50 }), 150)
  assert.equal(repeatAt(100, { intervalMs: 60000 }), 1100)
})

test('a delay is whole, never negative, and never more than a timer holds', () => {
  assert.equal(delayUntil(10.2, 10), 1)
  assert.equal(delayUntil(10, 20), 0)
  assert.equal(delayUntil(2147483647 * 1.1, 0), 2147483647)
})

test('property: checks never overlap, and their starts keep the interval within the jitter', () => {
  fc.assert(fc.property(
    fc.integer({ min: 10, max: 100000 }), fc.double({ min: 0, max: 1, noNaN: true }), fc.integer(), fc.array(fc.integer({ min: 0, max: 200000 }), { maxLength: 30 }),
    (intervalMs, jitter, seed, durations) => {
      const random = seededRandom(seed)
      let startedAt = 0
      for (const duration of durations) {
        const endedAt = startedAt + duration
        const next = nextCheckAt({ startedAt, endedAt, share: 1, random: random() }, { intervalMs, jitter })
        assert.ok(next >= endedAt && next >= startedAt + 10)
        assert.ok(next <= Math.max(endedAt, startedAt + Math.max(10, intervalMs * (1 + jitter))))
        startedAt = next
      }
    }
  ))
})

test('upstreams that were first checked together are not in step any more, and stay so', () => {
  const random = seededRandom(3)
  const starts = [0, 1, 2].map((index) => {
    let at = 0
    return Array.from({ length: 20 }, (_, round) => {
      at = nextCheckAt({ startedAt: at, endedAt: at, share: round === 0 ? firstShare(index, 3) : 1, random: random() }, { intervalMs: 3000, jitter: 0.1 })
      return at
    })
  })
  assert.equal(new Set(starts.flat()).size, 60)
  assert.ok(starts[0]![0]! < starts[1]![0]! && starts[1]![0]! < starts[2]![0]!)
})
