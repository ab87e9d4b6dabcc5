import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Outbox } from '../../lib/outbox.ts'

test('batches go out in order, one at a time, and what comes back goes first', () => {
  const outbox = new Outbox<number>(10)
  for (let i = 1; i <= 5; i++) outbox.push(i)
  assert.deepEqual(outbox.take(2), [1, 2])
  assert.deepEqual(outbox.take(2), [1, 2])
  outbox.cameBack()
  assert.deepEqual(outbox.take(3), [1, 2, 3])
  outbox.delivered()
  assert.deepEqual(outbox.take(9), [4, 5])
  outbox.refused()
  assert.deepEqual([outbox.take(9), outbox.size, outbox.dropped], [[], 0, 2])
})

test('it waits for longer with each failure, up to a minute, and a delivery ends that', () => {
  const outbox = new Outbox<number>(10)
  const waits = Array.from({ length: 9 }, () => {
    outbox.push(1)
    outbox.take(1)
    outbox.cameBack()
    return outbox.waitMs(() => 1)
  })
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000])
  assert.equal(outbox.waitMs(() => 0), 30000)
  outbox.take(1)
  outbox.delivered()
  assert.equal(outbox.waitMs(() => 1), 0)
})

test('it waits for what was asked where that is more, up to five minutes, and once', () => {
  const outbox = new Outbox<number>(10)
  const after = (askedMs: number): number => {
    outbox.push(1)
    outbox.take(1)
    outbox.cameBack(askedMs)
    return outbox.waitMs(() => 1)
  }
  assert.deepEqual([after(400), after(30000), after(2147483647), after(0)], [1000, 30000, 300000, 8000])
  outbox.forgive()
  assert.deepEqual([outbox.waitMs(() => 1), outbox.size], [0, 4])
})

test('whatever happens, it holds no more than it may, keeps the order, and what is missing was counted', () => {
  const step = fc.constantFrom('push', 'push', 'push', 'take', 'delivered', 'cameBack', 'refused')
  fc.assert(fc.property(fc.array(step, { maxLength: 300 }), fc.integer({ min: 1, max: 8 }), (steps, most) => {
    const outbox = new Outbox<number>(most)
    let next = 0
    let delivered = 0
    let seen = 0
    for (const each of steps) {
      if (each === 'push') outbox.push(++next)
      const batch = outbox.take(each === 'take' ? 3 : 1)
      assert.deepEqual(batch, batch.toSorted((a, b) => a - b))
      if (each === 'delivered') {
        for (const item of batch) assert.ok(item > seen)
        seen = batch.at(-1) ?? seen
        delivered += batch.length
        outbox.delivered()
      } else if (each === 'cameBack') outbox.cameBack()
      else if (each === 'refused') outbox.refused()
      assert.ok(outbox.size <= most + 3)
      assert.equal(delivered + outbox.dropped + outbox.size, next)
    }
  }))
})
