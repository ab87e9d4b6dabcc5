import { ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { seededRandom } from '../../../lib/random.ts'
import { subjects, type Subject } from './subjects.ts'
import { admit, Caller, equals, listOf, poolOf } from './support.ts'

const kinds = ['Float64Array', 'Int32Array', 'Uint32Array', 'Uint8Array'] as const
const global = globalThis as unknown as Record<string, NewableFunction>

let reads = 0

/** An object whose elements are counted as they are read. */
function counted<T extends object> (target: T): T {
  return new Proxy(target, {
    get (from, key) {
      if (typeof key === 'string' && /^\d+$/.test(key)) reads++
      const value = Reflect.get(from, key, from) as unknown
      return typeof value === 'function' ? value.bind(from) as unknown : value
    },
    set: (to, key, value) => Reflect.set(to, key, value, to)
  })
}

/** Makes something while every typed array is one that counts. */
function withCountedArrays<T> (make: () => T): T {
  const originals = kinds.map((kind) => global[kind]!)
  for (const kind of kinds) {
    global[kind] = new Proxy(global[kind]!, {
      construct: (target, given) => counted(Reflect.construct(target, given) as object),
      get (target, key) {
        const value = Reflect.get(target, key, target) as unknown
        return typeof value === 'function' ? (...given: unknown[]) => counted(value.apply(target, given) as object) : value
      }
    })
  }
  try {
    return make()
  } finally {
    for (const [i, kind] of kinds.entries()) global[kind] = originals[i]!
  }
}

/** The most that one request reads, of so many members: the pick and what is said about loads. */
function readsOfPick (subject: Subject, members: number): number {
  const pool = poolOf(equals(members))
  const caller = withCountedArrays(() => new Caller(subject.make(counted(pool), seededRandom(1)), pool))
  admit(caller.balancer, equals(members))
  caller.stream(members, 50)
  let most = 0
  for (let i = 0; i < 200; i++) {
    reads = 0
    const index = caller.begin(i % 2 === 0 ? -1 : i * 7919)
    if (i % 3 === 0) caller.giveBack(index)
    else caller.end(index)
    most = Math.max(most, reads)
  }
  ok(most > 0, 'nothing was counted')
  return most
}

/** What a pick among half of the members reads, on average. */
function readsOfPickAmong (subject: Subject, members: number): number {
  const pool = poolOf(equals(members))
  const caller = withCountedArrays(() => new Caller(subject.make(counted(pool), seededRandom(1)), pool))
  admit(caller.balancer, equals(members))
  const { list, count } = listOf(equals(members).map((_one, index) => index % 2 === 0))
  const usable = counted(list)
  reads = 0
  for (let i = 0; i < 50; i++) caller.balancer.pickAmong(usable, count, i * 85899345, i)
  return reads / 50
}

describe('the cost of a pick', () => {
  for (const subject of Object.values(subjects)) {
    it(`grows no faster than a logarithm of the members: ${subject.name}`, () => {
      const few = readsOfPick(subject, 16)
      const many = readsOfPick(subject, 256)
      // The logarithm doubles.
      ok(many <= 3 * few && many < 200, `${few} for 16, ${many} for 256`)
    })

    it(`among some is no more than a few looks at each: ${subject.name}`, () => {
      for (const members of [16, 256]) {
        const each = readsOfPickAmong(subject, members) / (members / 2)
        ok(each < 12, `${each} for each of ${members / 2}`)
      }
    })
  }
})
