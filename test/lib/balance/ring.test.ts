import { deepEqual, equal } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Ring } from '../../../lib/balance/ring.ts'

const capacity = 9
const index = fc.nat(capacity - 1)
const moves = fc.array(fc.oneof(
  fc.record({ kind: fc.constant('members' as const), members: fc.subarray(Array.from({ length: capacity }, (_, i) => i)) }),
  fc.record({ kind: fc.constant('head' as const), givenBack: fc.boolean() }),
  fc.record({ kind: fc.constant('picked' as const), index, givenBack: fc.boolean(), filled: fc.boolean() })
), { maxLength: 60 })

describe('ring', () => {
  it('is in the order of the turns, whoever was picked, given back, or came and went', () => {
    fc.assert(fc.property(moves, (all) => {
      const orders = Float64Array.from({ length: capacity }, (_, i) => i)
      const ring = new Ring(orders)
      let turn = capacity
      let inside: number[] = []
      const fill = (members: number[]): void => {
        inside = members
        ring.fill(Int32Array.of(...inside, 77), inside.length)
      }
      const pick = (picked: number, givenBack: boolean, filled: boolean): void => {
        const before = orders[picked]!
        orders[picked] = turn++
        ring.picked(picked)
        if (filled) fill(inside)
        if (!givenBack) return
        orders[picked] = before
        ring.returned(picked)
      }
      fill([])
      for (const move of all) {
        if (move.kind === 'members') fill(move.members)
        else if (move.kind === 'picked') pick(move.index, move.givenBack, move.filled)
        else if (ring.head !== -1) pick(ring.head, move.givenBack, false)
        const expected = inside.toSorted((a, b) => orders[a]! - orders[b]!)
        const seen: number[] = []
        for (let i = 0, at = ring.head; i < ring.size; i++, at = ring.after(at)) seen.push(at)
        deepEqual(seen, expected)
        equal(ring.head, expected[0] ?? -1)
        if (expected.length > 0) equal(ring.first(Int32Array.from(inside), inside.length), expected[0])
      }
    }), { numRuns: 500 })
  })
})
