import { equal } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { IndexedHeap } from '../../../lib/balance/indexed-heap.ts'

const capacity = 12
const members = fc.subarray(Array.from({ length: capacity }, (_, index) => index), { minLength: 0 })
const key = fc.integer({ min: 0, max: 4 })
const moves = fc.array(fc.oneof(
  fc.record({ index: fc.nat(capacity - 1), key }),
  fc.record({ members })
), { maxLength: 60 })

describe('indexed heap', () => {
  it('has the smallest key on top, and of equal ones the smallest order', () => {
    fc.assert(fc.property(moves, (all) => {
      const heap = new IndexedHeap(capacity)
      let inside: number[] = []
      let order = 0
      const firstOf = (indexes: readonly number[]): number =>
        indexes.toSorted((a, b) => heap.keys[a]! - heap.keys[b]! || heap.orders[a]! - heap.orders[b]!)[0] ?? -1
      for (let index = 0; index < capacity; index++) heap.orders[index] = order++
      for (const move of all) {
        if ('members' in move) {
          inside = move.members
          heap.fill(Int32Array.of(...inside, 99), inside.length)
        } else {
          heap.keys[move.index] = move.key
          heap.orders[move.index] = order++
          heap.moved(move.index)
        }
        equal(heap.top(), firstOf(inside))
        for (let index = 0; index < capacity; index++) equal(heap.has(index), inside.includes(index))
        const some = inside.filter((index) => index % 2 === 0)
        if (some.length > 0) equal(heap.first(Int32Array.from(some), some.length), firstOf(some))
      }
    }), { numRuns: 500 })
  })
})
