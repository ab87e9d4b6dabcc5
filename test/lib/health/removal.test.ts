import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { removalLimit, RemovalLimit, servesNobody, type RemovalOptions } from '../../../lib/health/removal.ts'

const limits: Array<[members: number, share: number, limit: number]> = [
  [1, 0.5, 1], [2, 0.5, 1], [3, 0.5, 1], [4, 0.5, 2], [5, 0.5, 2], [10, 0.5, 5], [100, 0.29, 29], [100, 0.07, 7], [3, 0.99, 2],
  [1, 0, 1], [10, 0, 1], [1, 1, Infinity], [10, 1, Infinity]
]

test('the limit is the share of the pool, rounded down, but never less than one; share 1 is none', () => {
  for (const [members, share, limit] of limits) assert.equal(removalLimit(members, { share }), limit, `${members} x ${share}`)
})

interface Fall { at: number, member: string, falls: boolean, refused?: true }

/** Members a, b, ... fail at their times, in seconds: who falls and who is held back. */
const table: Array<[name: string, count: number, options: Partial<RemovalOptions>, falls: Fall[]]> = [
  ['a pool of one may lose it, again and again', 1, {}, [{ at: 0, member: 'a', falls: true }, { at: 1, member: 'a', falls: true }, { at: 2, member: 'a', falls: true }]],
  ['two of four at once, the third not', 4, {}, [{ at: 0, member: 'a', falls: true }, { at: 0, member: 'b', falls: true }, { at: 0, member: 'c', falls: false }]],
  ['the next one when the first is as old as the time', 2, {}, [
    { at: 0, member: 'a', falls: true }, { at: 5, member: 'b', falls: false }, { at: 9.999, member: 'b', falls: false }, { at: 10, member: 'b', falls: true }
  ]],
  ['who is held back takes no place', 3, {}, [
    { at: 0, member: 'a', falls: true }, { at: 1, member: 'b', falls: false }, { at: 9, member: 'b', falls: false }, { at: 10, member: 'c', falls: true }, { at: 11, member: 'b', falls: false }
  ]],
  ['the time is sliding', 4, {}, [
    { at: 0, member: 'a', falls: true }, { at: 6, member: 'b', falls: true }, { at: 11, member: 'c', falls: true }, { at: 12, member: 'd', falls: false }, { at: 16, member: 'd', falls: true }
  ]],
  ['a member that falls twice counts once, from its last fall', 2, {}, [
    { at: 0, member: 'a', falls: true }, { at: 8, member: 'a', falls: true }, { at: 12, member: 'b', falls: false }, { at: 18, member: 'b', falls: true }
  ]],
  ['share 0 is still one', 4, { share: 0 }, [{ at: 0, member: 'a', falls: true }, { at: 1, member: 'b', falls: false }, { at: 10, member: 'b', falls: true }]],
  ['share 1 is no limit', 3, { share: 1 }, [{ at: 0, member: 'a', falls: true }, { at: 0, member: 'b', falls: true }, { at: 0, member: 'c', falls: true }]],
  ['its own time', 2, { seconds: 1 }, [{ at: 0, member: 'a', falls: true }, { at: 0.9, member: 'b', falls: false }, { at: 1, member: 'b', falls: true }]],
  ['who serves nobody leaves at once, and counts', 4, {}, [
    { at: 0, member: 'a', falls: true, refused: true }, { at: 0, member: 'b', falls: true, refused: true }, { at: 1, member: 'c', falls: false }, { at: 2, member: 'c', falls: true, refused: true }
  ]]
]

const fall = (limit: RemovalLimit, { at, member, refused }: Omit<Fall, 'falls'>, count: number, options: RemovalOptions): boolean => {
  if (refused !== true) return limit.admit(member, count, at * 1000, options)
  limit.record(member, at * 1000)
  return true
}

for (const [name, count, given, falls] of table) {
  test(`removal: ${name}`, () => {
    const limit = new RemovalLimit()
    const options = { share: 0.5, seconds: 10, ...given }
    for (const each of falls) assert.equal(fall(limit, each, count, options), each.falls, JSON.stringify(each))
  })
}

test('a member that has left the pool is not counted', () => {
  const limit = new RemovalLimit()
  const options = { share: 0.5, seconds: 10 }
  assert.ok(limit.admit('a', 2, 0, options))
  limit.forget('a')
  assert.equal(limit.removed(0, options), 0)
  assert.ok(limit.admit('b', 1, 1, options))
})

test('a larger share or a shorter time counts at once', () => {
  const limit = new RemovalLimit()
  limit.admit('a', 4, 0, { share: 0, seconds: 100 })
  assert.ok(!limit.admit('b', 4, 1000, { share: 0, seconds: 100 }))
  assert.ok(limit.admit('b', 4, 1000, { share: 0.5, seconds: 100 }))
  assert.ok(limit.admit('c', 4, 2000, { share: 0, seconds: 1 }))
})

test('only a refused connection at the upstream\'s own port says that it serves nobody', () => {
  assert.ok(servesNobody('connect_refused', true))
  assert.ok(!servesNobody('connect_refused', false))
  for (const cause of ['timeout', 'dns_failed', 'tls_failed', 'connection_reset', 'status_503', 'json_mismatch'] as const) assert.ok(!servesNobody(cause, true))
})

test('property: within any time, no more members than the limit fall unless they serve nobody, and those leave at once', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  fc.assert(fc.property(
    fc.integer({ min: 1, max: 7 }), fc.double({ min: 0, max: 0.99, noNaN: true }), fc.integer({ min: 1, max: 20 }),
    fc.array(fc.record({ after: fc.double({ min: 0, max: 12, noNaN: true }), who: fc.nat(), refused: fc.boolean() }), { maxLength: 80 }),
    (count, share, seconds, failures) => {
      const options = { share, seconds }
      const limit = new RemovalLimit()
      const fallen: Array<{ at: number, member: string }> = []
      let at = 0
      for (const { after, who, refused } of failures) {
        at += after
        const member = names[who % count]!
        const within = (): Set<string> => new Set(fallen.filter((each) => at * 1000 - each.at * 1000 < seconds * 1000).map((each) => each.member))
        const others = [...within()].filter((each) => each !== member).length
        const fell = fall(limit, { at, member, ...(refused && { refused }) }, count, options)
        if (refused) assert.ok(fell)
        else assert.equal(fell, others < removalLimit(count, options))
        if (fell) fallen.push({ at, member })
        if (fell && !refused) assert.ok(within().size <= removalLimit(count, options))
        assert.equal(limit.removed(at * 1000, options), within().size)
      }
    }
  ))
})

test('property: a member that goes on failing falls in the end', () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 12 }), fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 1, max: 30 }), (count, share, seconds) => {
    const options = { share, seconds }
    const limit = new RemovalLimit()
    let up = Array.from({ length: count }, (_, index) => `${index}`)
    let now = 0
    for (; up.length > 0 && now <= count * seconds * 1000; now += 500) up = up.filter((member) => !limit.admit(member, count, now, options))
    assert.deepEqual(up, [])
  }))
})
