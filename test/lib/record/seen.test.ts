import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { SeenIds } from '../../../lib/record/seen.ts'

test('an id that was added is never denied, among the last 400000', () => {
  const seen = new SeenIds()
  const ids = Array.from({ length: 20000 }, () => randomUUID())
  for (const id of ids) seen.add(id)
  assert.ok(ids.every((id) => seen.has(id)))
  for (let i = 0; i < 380000; i++) seen.add(`other-${i}`)
  assert.ok(ids.every((id) => seen.has(id)))
})

test('of ids that were never added hardly any is taken for one', () => {
  const seen = new SeenIds()
  for (let i = 0; i < 800000; i++) seen.add(`request-${i}`)
  let mistaken = 0
  for (let i = 0; i < 20000; i++) if (seen.has(randomUUID())) mistaken++
  assert.ok(mistaken < 20000 * 0.03, String(mistaken))
})

test('what was added long ago is forgotten', () => {
  const seen = new SeenIds()
  for (let i = 0; i < 1000; i++) seen.add(`old-${i}`)
  for (let i = 0; i < 1200000; i++) seen.add(`new-${i}`)
  let remembered = 0
  for (let i = 0; i < 1000; i++) if (seen.has(`old-${i}`)) remembered++
  assert.ok(remembered < 50, String(remembered))
})

test('short ids, one character and strange ones are told apart', () => {
  const seen = new SeenIds()
  for (const id of ['a', '1', 'x.y:z', 'é'.repeat(200)]) seen.add(id)
  assert.deepEqual(['a', '1', 'x.y:z', 'é'.repeat(200), 'b', '2', ''].map((id) => seen.has(id)), [true, true, true, true, false, false, false])
})
