import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Note, RecordRing, type Entry } from '../../../lib/record/ring.ts'

const entry = (id: string, line = 'x'.repeat(500), note: Note | null = null): Entry => ({ id, at: Number(id.replace(/\D/g, '')) || 0, kept: 'failed', reason: null, status: 500, pool: null, line, note })

test('the oldest ones make room, and are told', () => {
  const evicted: string[] = []
  const ring = new RecordRing(65536, (id) => { evicted.push(id) })
  for (let i = 1; i <= 1000; i++) ring.add(entry(`r${i}`))
  assert.ok(ring.bytes <= 65536 && ring.bytes > 60000, String(ring.bytes))
  assert.deepEqual(evicted, Array.from({ length: 1000 - ring.size }, (_, i) => `r${i + 1}`))
  assert.equal(ring.newest()[0]?.id, 'r1000')
  assert.equal(ring.get('r1'), undefined)
  assert.equal(ring.get('r1000')?.id, 'r1000')
  assert.equal(ring.oldestAt, 1001 - ring.size)
})

test('a text that several share counts once, for as long as one of them is kept', () => {
  const ring = new RecordRing(65536, () => {})
  const note = new Note('n'.repeat(10000), 0)
  ring.add(entry('a', '{}', note))
  const one = ring.bytes
  assert.ok(one > 10000)
  ring.add(entry('b', '{}', note))
  assert.ok(ring.bytes - one < 1000)
  ring.clear()
  assert.deepEqual([ring.bytes, ring.size, note.refs], [0, 0, 0])
})

test('a text that would leave no room for others is not taken', () => {
  const ring = new RecordRing(65536, () => {})
  assert.deepEqual([ring.takes(new Note('n'.repeat(20000), 0)), ring.takes(new Note('n'.repeat(10000), 0)), ring.takes(new Note('é€'.repeat(5000), 0))], [false, true, false])
})

test('of two with one id the later one is found, and the earlier one making room does not take it away', () => {
  const evicted: string[] = []
  const ring = new RecordRing(65536, (id) => { evicted.push(id) })
  ring.add(entry('same', 'first'.repeat(10)))
  for (let i = 0; i < 10; i++) ring.add(entry(`other${i}`))
  ring.add(entry('same', 'second'))
  ring.setMaxBytes(ring.bytes - 1)
  assert.equal(ring.get('same')?.line, 'second')
  assert.deepEqual(evicted, [])
})

test('a smaller size holds at once', () => {
  const ring = new RecordRing(1048576, () => {})
  for (let i = 0; i < 1000; i++) ring.add(entry(`r${i}`))
  ring.setMaxBytes(65536)
  assert.ok(ring.bytes <= 65536)
  assert.equal(ring.newest()[0]?.id, 'r999')
})

test('whatever comes, it is within its bytes, the newest are kept, and the sum is right', () => {
  fc.assert(fc.property(fc.array(fc.record({ id: fc.integer({ min: 0, max: 40 }), length: fc.integer({ min: 0, max: 9000 }), note: fc.integer({ min: 0, max: 4 }) }), { maxLength: 200 }), (steps) => {
    const ring = new RecordRing(65536, () => {})
    const notes = [null, ...[1000, 4000, 12000, 16000].map((length) => new Note('n'.repeat(length), 0))]
    const all: Entry[] = []
    for (const { id, length, note } of steps) {
      const made = entry(`r${id}`, 'x'.repeat(length), notes[note] ?? null)
      all.push(made)
      ring.add(made)
      assert.ok(ring.bytes <= 65536)
    }
    assert.deepEqual(ring.newest(), all.slice(all.length - ring.size).toReversed())
    ring.clear()
    assert.equal(ring.bytes, 0)
  }))
})
