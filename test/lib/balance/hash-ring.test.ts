import { equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { HashRing } from '../../../lib/balance/hash-ring.ts'
import { listOf } from './support.ts'

function select (ring: HashRing, weights: readonly number[]): void {
  const { list, count } = listOf(weights.map((weight) => weight > 0))
  ring.select(list, count, Float64Array.from(weights))
}

const named = (count: number, name = 'http://10.0.0.'): string[] => Array.from({ length: count }, (_, i) => `${name}${i}:8080`)

function ringOf (ids: readonly string[], weights: readonly number[] = ids.map(() => 1)): HashRing {
  const ring = new HashRing(ids, weights)
  select(ring, weights)
  return ring
}

const ownerOf = (ring: HashRing, key: number): number => ring.ownerAt(ring.placeOf(key))

/** The share of all keys that each member owns, from as many places round the ring. */
function shares (ring: HashRing, members: number): number[] {
  const samples = 65536
  const counts = new Array<number>(members).fill(0)
  for (let i = 0; i < samples; i++) counts[ownerOf(ring, i * (2 ** 32 / samples))]! += 1 / samples
  return counts
}

describe('hash ring', () => {
  it('gives each its share of the keys, within a few standard deviations of 512 points', () => {
    for (const weights of [[1, 1, 1], [100, 100, 100, 100], [5, 3, 1, 1], new Array<number>(50).fill(7)]) {
      const total = weights.reduce((sum, weight) => sum + weight, 0)
      for (const [index, share] of shares(ringOf(named(weights.length), weights), weights.length).entries()) {
        const expected = weights[index]! / total
        const points = 512 * weights[index]! / 2 ** Math.floor(Math.log2(Math.max(...weights)))
        ok(Math.abs(share - expected) < 4 * expected / Math.sqrt(points), `${share} instead of ${expected}`)
      }
    }
  })

  it('leads along its points as keys grow, through each of them, and begins again behind the last', () => {
    const ring = ringOf(named(3))
    let key = 0
    for (let place = 0; place < ring.size; place++) {
      // The greatest key of this place, which is its point.
      let above = 2 ** 32
      while (above - key > 1) {
        const middle = Math.floor((key + above) / 2)
        if (ring.placeOf(middle) === place) key = middle
        else above = middle
      }
      equal(ring.placeOf(key), place)
      key++
    }
    ok(key < 2 ** 32)
    for (const behind of [key, 2 ** 32 - 1]) equal(ring.placeOf(behind), 0)
    equal(ring.after(0), 1)
    equal(ring.after(ring.size - 1), 0)
  })

  it('does not depend on the order in which the members are listed', () => {
    const ids = named(6)
    const weights = [1, 2, 3, 4, 5, 6]
    const ring = ringOf(ids, weights)
    const turned = ringOf(ids.toReversed(), weights.toReversed())
    for (let i = 0; i < 4000; i++) equal(ids.toReversed()[ownerOf(turned, i * 1000003)], ids[ownerOf(ring, i * 1000003)])
  })

  it('is the same on every machine', () => {
    const ring = ringOf(named(3))
    equal(Array.from({ length: 40 }, (_, i) => ownerOf(ring, i * 107374182)).join(''), '0120101111112220202221000220022212122020')
  })

  it('moves to a new member only what becomes its own, about its share', () => {
    for (const [before, added] of [[[1, 1, 1], 1], [[100, 100], 100], [[4, 5, 7], 6], [new Array<number>(30).fill(2), 2]] as Array<[number[], number]>) {
      const ids = named(before.length + 1)
      const old = ringOf(ids.slice(0, -1), before)
      const ring = ringOf(ids, [...before, added])
      let moved = 0
      for (let i = 0; i < 20000; i++) {
        const owner = ownerOf(ring, i * 214748)
        if (owner === before.length) moved++
        else equal(owner, ownerOf(old, i * 214748))
      }
      const share = added / (before.reduce((sum, weight) => sum + weight, 0) + added)
      ok(Math.abs(moved / 20000 - share) < 0.25 * share, `${moved / 20000} instead of ${share}`)
    }
  })

  it('is bounded, and then still gives everybody a place', () => {
    const ids = named(600)
    const ring = ringOf(ids, ids.map((_id, index) => index === 0 ? 1000 : 999))
    ok(ring.size <= 140000, `${ring.size}`)
    const lopsided = ringOf(named(300), ids.slice(300).map((_id, index) => index === 0 ? 1 : 1000))
    ok(shares(lopsided, 300).slice(1).every((share) => share > 0))
    select(lopsided, [1])
    equal(ownerOf(lopsided, 5), 0)
  })

  it('has no points for nobody, and one for a member of weight 0', () => {
    equal(ringOf([]).size, 0)
    const ring = new HashRing(named(2), [0, 1])
    select(ring, [0, 1])
    equal(ring.size, 512)
    select(ring, [1, 0])
    equal(ring.size, 1)
    equal(ownerOf(ring, 77), 0)
  })

  it('gives a member at a share of its weight that share of its keys, and those are among its own', () => {
    const ring = ringOf(named(4))
    const owners = Array.from({ length: 20000 }, (_, i) => ownerOf(ring, i * 214748))
    let before = -1
    for (const weight of [0.1, 0.25, 0.5, 0.9, 1]) {
      select(ring, [1, weight, 1, 1])
      let taken = 0
      for (const [i, owner] of owners.entries()) {
        const now = ownerOf(ring, i * 214748)
        if (now === 1) taken++
        ok(now === owner || owner === 1, 'only its keys are elsewhere')
      }
      ok(taken > before && Math.abs(taken / 20000 - weight / (3 + weight)) < 0.05, `${taken}`)
      before = taken
    }
  })
})
