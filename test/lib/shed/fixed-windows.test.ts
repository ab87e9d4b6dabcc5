import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { FixedWindows } from '../../../lib/shed/fixed-windows.ts'

describe('fixed windows', () => {
  it('begin with a key\'s first event and end after their time', () => {
    const windows = new FixedWindows(1000, 10)
    const table: [at: number, key: string, current: number, ttl: number][] = [
      [5000, 'a', 1, 1000], [5400, 'a', 2, 600], [5400, 'b', 1, 1000], [5999, 'a', 3, 1], [6000, 'a', 1, 1000], [6300, 'b', 2, 100], [9000, 'b', 1, 1000], [9000, 'b', 2, 1000]
    ]
    for (const [at, key, current, ttl] of table) {
      const window = windows.count(key, at)
      deepEqual([window.current, window.ttl], [current, ttl], `${key} at ${at}`)
    }
  })

  it('are not lengthened by who asks on', () => {
    const windows = new FixedWindows(1000, 10)
    for (let at = 0; at < 1000; at++) windows.count('a', at)
    equal(windows.count('a', 1000).current, 1)
  })

  it('forget the key that was not counted for the longest time', () => {
    const windows = new FixedWindows(1000, 2)
    windows.count('a', 0)
    windows.count('b', 1)
    windows.count('a', 2)
    windows.count('c', 3)
    equal(windows.size, 2)
    equal(windows.count('a', 4).current, 3)
    equal(windows.count('b', 5).current, 1, 'forgotten')
  })

  it('never hold more keys than they may, and count each right as long as they hold it', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 5 }), fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), fc.nat(300)), { maxLength: 100 }), (maxKeys, events) => {
      const windows = new FixedWindows(1000, maxKeys)
      let now = 0
      const order: string[] = []
      const model = new Map<string, { count: number, start: number }>()
      for (const [key, later] of events) {
        now += later
        const before = model.get(key)
        const expected = before === undefined || now - before.start >= 1000 ? { count: 1, start: now } : { count: before.count + 1, start: before.start }
        if (order.includes(key)) order.splice(order.indexOf(key), 1)
        order.push(key)
        model.set(key, expected)
        if (order.length > maxKeys) model.delete(order.shift() as string)
        const { current, ttl } = windows.count(key, now)
        deepEqual([current, ttl], [expected.count, expected.start + 1000 - now])
        ok(windows.size <= maxKeys)
        ok(ttl > 0 && ttl <= 1000)
      }
    }))
  })
})
