import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Entry } from '../../../lib/record/ring.ts'
import { selectRecords, type RecordQuery } from '../../../lib/record/select.ts'
import type { Kept, RequestRecord } from '../../../lib/record/types.ts'

const entry = (id: string, more: Partial<Entry> = {}): Entry => ({ id, at: 0, kept: 'failed', reason: null, status: 500, pool: 'shop', line: '"a"', note: null, ...more })

/** Those that are read, by their ids: an upstream is whatever their lines have, but for `"no"`, which is no attempt of theirs. */
function select (entries: readonly Entry[], query: RecordQuery): { read: string[], stops: number, found: Array<[string, number?, string[]?]> } {
  const read: string[] = []
  const work = selectRecords(entries, query, ({ id, line, note }) => {
    read.push(id)
    return { requestId: id, attempts: note === null ? [{ upstream: JSON.parse(line) }] : [], candidates: [] } as unknown as RequestRecord
  })
  let stops = 0
  let step = work.next()
  for (; step.done !== true; step = work.next()) stops++
  const records = step.value
  return { read, stops, found: records.map(({ requestId, alike }) => alike === undefined ? [requestId] : [requestId, alike.count, [...alike.requestIds]]) }
}

test('by what they were kept for', () => {
  const entries = (['sample', 'failed', 'slow', 'refused', 'failed'] as const).map((kept, i) => entry(`r${i}`, { kept }))
  const kept = (...wanted: Kept[]): string[] => select(entries, { kept: wanted }).found.map(([id]) => id)
  assert.deepEqual([kept('failed'), kept('failed', 'refused'), kept('retried')], [['r1', 'r4'], ['r1', 'r3', 'r4'], []])
  assert.deepEqual(select(entries, { kept: 'slow' }).found, [['r2']])
})

test('no more are read than are told', () => {
  const many = Array.from({ length: 5000 }, (_each, i) => entry(`r${i}`, { reason: i % 2 === 0 ? null : 'connect_refused' }))
  const two = select(many, { limit: 2 })
  assert.deepEqual([two.read, two.found], [['r0', 'r1'], [['r0'], ['r1']]])
  const { read, found } = select(many, { distinct: true })
  assert.deepEqual([read, found.map(([id, count, ids]) => [id, count, ids?.length])], [['r0', 'r1'], [['r0', 2500, 10], ['r1', 2500, 10]]])
})

test('it can be left after each one that is read, and while none is wanted', () => {
  const many = Array.from({ length: 3000 }, (_each, i) => entry(`r${i}`))
  assert.ok(select(many, { limit: 1000 }).stops >= 1000)
  assert.ok(select(many, { upstream: 'a', distinct: true }).stops >= 3000)
  assert.ok(select(many, { kept: 'slow' }).stops >= 15)
})

test('one kind more than may be told does not hide what is alike to the others', () => {
  const entries = [entry('a1', { pool: 'a' }), entry('b1', { pool: 'b' }), entry('a2', { pool: 'a' })]
  const { read, found } = select(entries, { distinct: true, limit: 1 })
  assert.deepEqual([read, found], [['a1'], [['a1', 2, ['a1', 'a2']]]])
})

test('answers of the upstream\'s own are alike where their status is the same', () => {
  const entries = [entry('r0', { status: 503 }), entry('r1'), entry('r2'), entry('r3', { status: 503 })]
  assert.deepEqual(select(entries, { distinct: true }).found, [['r0', 2, ['r0', 'r3']], ['r1', 2, ['r1', 'r2']]])
})

test('of an upstream, those count that had to do with it', () => {
  // The text has its name, the record does not.
  const entries = [entry('r0', { line: '"b"' }), entry('r1', { note: { text: '"b"' } as Entry['note'] }), entry('r2'), entry('r3', { line: '"b"' })]
  const { read, found } = select(entries, { upstream: 'b', distinct: true })
  assert.deepEqual([read, found], [['r0', 'r1', 'r3'], [['r0', 2, ['r0', 'r3']]]])
})

test('whatever is recorded, what is alike adds up to all of it', () => {
  const one = fc.record({ kept: fc.constantFrom<Kept>('refused', 'failed', 'slow'), reason: fc.constantFrom('breaker_open' as const, 'connect_refused' as const, null), pool: fc.constantFrom('a', 'b', null), at: fc.nat(9) })
  fc.assert(fc.property(fc.array(one, { maxLength: 60 }), fc.nat(9), (entries, since) => {
    const all = entries.map((each, i) => entry(`r${i}`, each))
    const { found } = select(all, { distinct: true, since, limit: 1000 })
    assert.equal(found.reduce((sum, [, count = 0]) => sum + count, 0), all.filter(({ at }) => at >= since).length)
    assert.equal(new Set(all.filter(({ at }) => at >= since).map(({ kept, reason, pool }) => `${kept} ${reason} ${pool}`)).size, found.length)
    for (const [id, , ids] of found) assert.equal(ids?.[0], id)
  }))
})
