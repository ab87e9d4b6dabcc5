import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { Journal } from '../../lib/journal.ts'

const at = '2026-01-02T03:04:05.678Z'

test('events are numbered from 1 and come back oldest first', () => {
  const journal = new Journal(10)
  assert.deepEqual(journal.since(0), { events: [], firstSeq: 1, lastSeq: 0 })
  journal.append('a', at, { pool: 'shop' })
  journal.append('b', at)
  assert.deepEqual(journal.since(0), {
    events: [{ seq: 1, at, type: 'a', pool: 'shop' }, { seq: 2, at, type: 'b' }],
    firstSeq: 1,
    lastSeq: 2
  })
  assert.deepEqual(journal.since(1).events.map(({ type }) => type), ['b'])
  assert.deepEqual(journal.since(2).events, [])
})

test('a number of an earlier run of the process gets all that is kept', () => {
  const journal = new Journal(10)
  journal.append('a', at)
  assert.deepEqual(journal.since(4711).events.map(({ seq }) => seq), [1])
})

test('what was asked for and is no longer kept shows in firstSeq', () => {
  const journal = new Journal(2)
  for (const type of ['a', 'b', 'c', 'd']) journal.append(type, at)
  const { events, firstSeq, lastSeq } = journal.since(1)
  assert.deepEqual([events.map(({ seq }) => seq), firstSeq, lastSeq], [[3, 4], 3, 4])
})

test('an event is a frozen copy, and its number, time and type are its own', () => {
  const fields = { seq: 99, at: 'yesterday', type: 'other', evidence: { total: 1, list: [{ x: 1 }] } }
  const event = new Journal(1).append('a', at, fields)
  fields.evidence.total = 2
  assert.deepEqual(event, { seq: 1, at, type: 'a', evidence: { total: 1, list: [{ x: 1 }] } })
  const evidence = event['evidence'] as typeof fields.evidence
  for (const part of [event, evidence, evidence.list, evidence.list[0]]) assert.ok(Object.isFrozen(part))
})

test('an event is as JSON says it, so that none spoils the page that it is on', () => {
  const journal = new Journal(2)
  const event = journal.append('a', at, { n: 1n, list: [2n, () => {}], when: new Date(0), never: new Date(Number.NaN), toJSON: () => { throw new Error('asked') } })
  assert.deepEqual(JSON.parse(JSON.stringify(journal.since(0).events)), [{ seq: 1, at, type: 'a', n: '1', list: ['2', null], when: '1970-01-01T00:00:00.000Z', never: null }])
  const own: Record<string, unknown> = {}
  own['own'] = own
  assert.throws(() => journal.append('b', at, own), RangeError)
  assert.deepEqual([journal.lastSeq, journal.since(0).events], [1, [event]], 'what cannot be taken leaves nothing behind')
})

test('capacities that are none are refused', () => {
  for (const capacity of [0, -1, 1.5, Number.NaN, 1000001]) assert.throws(() => new Journal(capacity), RangeError, String(capacity))
  assert.equal(new Journal().capacity, 1000)
})

test('it is the tail of the list of all events, whatever the capacity and the page', () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 9 }), (capacity, count, since, limit) => {
    const journal = new Journal(capacity)
    const all = Array.from({ length: count }, (_, index) => journal.append('x', at, { index }))
    const kept = all.slice(-capacity)
    const page = journal.since(since, limit)
    assert.deepEqual(page.events, kept.filter(({ seq }) => since > count || seq > since).slice(0, limit))
    assert.equal(page.lastSeq, count)
    assert.equal(page.firstSeq, kept[0]?.seq ?? 1)
  }))
})

test('paging by the last number sees every kept event once', () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 0, max: 30 }), fc.integer({ min: 1, max: 5 }), (capacity, count, limit) => {
    const journal = new Journal(capacity)
    for (let index = 0; index < count; index++) journal.append('x', at)
    const seen: number[] = []
    for (let seq = 0; ;) {
      const { events } = journal.since(seq, limit)
      if (events.length === 0) break
      seen.push(...events.map((event) => event.seq))
      seq = seen.at(-1) as number
    }
    assert.deepEqual(seen, Array.from({ length: Math.min(capacity, count) }, (_, index) => Math.max(0, count - capacity) + index + 1))
  }))
})
