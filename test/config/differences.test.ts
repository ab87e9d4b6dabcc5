import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { differences } from '../../config/differences.ts'

test('paths at which two trees differ', () => {
  const table: [Record<string, unknown>, Record<string, unknown>, string[]][] = [
    [{}, {}, []],
    [{ a: 1 }, { a: 1 }, []],
    [{ a: 1, b: 2 }, { b: 2, a: 1 }, []],
    [{ a: 1 }, { a: '1' }, ['a']],
    [{ a: 0 }, { a: null }, ['a']],
    [{ a: { b: { d: 2, c: 1 } } }, { a: { b: { c: 2, d: 3 } } }, ['a.b.c', 'a.b.d']],
    [{ a: { b: 1 } }, {}, ['a']],
    [{}, { a: {} }, ['a']],
    [{ a: { b: 1 } }, { a: [1] }, ['a']],
    [{ a: [1, 2] }, { a: [1, 2] }, []],
    [{ a: [1, 2] }, { a: [2, 1] }, ['a']],
    [{ a: [1] }, { a: [1, 2] }, ['a']],
    [{ a: [{ b: 1 }] }, { a: [{ b: 1 }] }, []],
    [{ a: [{ b: 1 }] }, { a: [{ b: 2 }] }, ['a']],
    [{ 'x-a': 1, 'x.b': 1 }, { 'x-a': 2, 'x.b': 2 }, ['x-a', '["x.b"]']]
  ]
  for (const [before, after, paths] of table) deepEqual(differences(before, after), paths, JSON.stringify([before, after]))
  deepEqual(differences({ a: { b: 1 } }, { a: { b: 2 } }, 'server'), ['server.a.b'])
})

test('a tree differs nowhere from its copy, and both ways at the same paths', () => {
  const trees = fc.object({ key: fc.stringMatching(/^[a-c]$/), maxDepth: 3, values: [fc.integer(), fc.boolean(), fc.constant(null), fc.string()] }) as fc.Arbitrary<Record<string, unknown>>
  fc.assert(fc.property(trees, trees, (one, other) => {
    deepEqual(differences(one, structuredClone(one)), [])
    deepEqual(differences(one, other).toSorted(), differences(other, one).toSorted())
  }), { seed: 15, numRuns: 300 })
})
