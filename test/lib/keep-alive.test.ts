import { equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { IdleLimit } from '../../lib/keep-alive.ts'

/** Events as [at, idle time], and what is known after them. */
function learnt (events: ReadonlyArray<readonly [at: number, idleMs: number]>, at = (events.at(-1)?.[0] ?? 0) + 101): number {
  const limit = new IdleLimit()
  for (const [now, idleMs] of events) limit.ended(idleMs, now)
  return limit.limitMs(at)
}

describe('how long idle connections may be used again', () => {
  const table: Array<[string, ReadonlyArray<readonly [number, number]>, number]> = [
    ['nothing was seen: nothing is known', [], 0],
    ['two times that agree are not enough', [[1000, 300], [2000, 301]], 0],
    ['three that agree are, with a margin below the shortest', [[1000, 300], [2000, 305], [3000, 310]], 240],
    ['three that differ are not', [[1000, 300], [2000, 900], [3000, 310]], 0],
    ['a stray one among them is forgotten once three in a row agree', [[1000, 2000], [2000, 300], [3000, 305], [4000, 310]], 240],
    ['a restart ends connections of all ages at once, and teaches nothing', [[1000, 300], [1001, 1200], [1002, 700], [1003, 60]], 0],
    ['a restart between two that agree does not help them', [[1000, 300], [2000, 305], [3000, 300], [3001, 4000]], 0],
    ['many that end together after the same time are one event', [[1000, 300], [1001, 300], [1002, 301], [1003, 300]], 0],
    ['an end right behind an answer is none of an idle connection', [[1000, 3], [2000, 2], [3000, 1], [4000, 49]], 0],
    ['what is no time is passed over', [[1000, NaN], [2000, -5], [3000, NaN]], 0],
    ['an upstream that waits less than before is noticed', [[1000, 900], [2000, 900], [3000, 900], [4000, 300], [5000, 300], [6000, 300]], 240]
  ]
  for (const [name, events, expected] of table) {
    it(name, () => { equal(learnt(events), expected) })
  }

  it('is forgotten after ten minutes without a further end', () => {
    const events = [[1000, 300], [2000, 300], [3000, 300]] as const
    equal(learnt(events, 3000 + 599999), 240)
    equal(learnt(events, 3000 + 600000), 0)
  })

  it('is learnt anew after it was forgotten, from three again', () => {
    const limit = new IdleLimit()
    for (const now of [1000, 2000, 3000]) limit.ended(300, now)
    limit.ended(800, 700000)
    equal(limit.limitMs(700000), 0)
    limit.ended(800, 701000)
    limit.ended(800, 702000)
    equal(limit.limitMs(703000), 640)
  })

  it('tells without a clock whether there is anything to ask for', () => {
    const limit = new IdleLimit()
    for (const now of [1000, 2000]) limit.ended(300, now)
    equal(limit.mayKnow, false)
    limit.ended(300, 3000)
    equal(limit.mayKnow, true)
    equal(limit.limitMs(4000), 240)
    equal(limit.mayKnow, true)
    const restarted = new IdleLimit()
    for (const [now, idleMs] of [[1000, 300], [2000, 900], [3000, 60]] as const) restarted.ended(idleMs, now)
    equal(restarted.mayKnow, true)
    equal(restarted.limitMs(4000), 0)
    equal(restarted.mayKnow, false)
  })

  it('waits until it is clear that an end was not the first one of many', () => {
    const limit = new IdleLimit()
    for (const now of [1000, 2000, 3000]) limit.ended(300, now)
    equal(limit.limitMs(3050), 0)
    limit.ended(2000, 3060)
    equal(limit.limitMs(4000), 0)
  })

  it('survives a clock that steps back', () => {
    const limit = new IdleLimit()
    for (const now of [3000, 1000, 2000]) limit.ended(300, now)
    ok(limit.limitMs(500) >= 0)
  })

  it('is never above any of the times that it was learnt from', () => {
    fc.assert(fc.property(fc.array(fc.tuple(fc.nat(5000), fc.double({ min: 0, max: 10000, noNaN: true })), { maxLength: 30 }), (steps) => {
      const limit = new IdleLimit()
      let now = 0
      const latest: number[] = []
      for (const [wait, idleMs] of steps) {
        now += wait
        limit.ended(idleMs, now)
        if (idleMs >= 50) latest.push(idleMs)
        ok(limit.limitMs(now) <= Math.max(0, ...latest))
        ok(limit.limitMs(now) === 0 || limit.limitMs(now) >= 40)
      }
    }))
  })
})
