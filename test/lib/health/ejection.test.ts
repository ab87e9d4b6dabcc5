import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import type { EjectionOptions } from '../../../config/schema.ts'
import { EjectionState, isEjected, observe, releaseExcess, type Ejection, type EjectionPool } from '../../../lib/health/ejection.ts'

type Change = Partial<Omit<EjectionOptions, 'window'>> & { window?: Partial<EjectionOptions['window']> }

/** Five failures in a row eject, for 10 s at first, half of the pool at most; the ratio's trigger is off. */
const optionsWith = ({ window, ...rest }: Change = {}): EjectionOptions => ({
  mode: 'enforce', consecutiveFailures: 5, baseMs: 10000, maxMs: 300000, maxShare: 0.5, ...rest,
  window: { seconds: 10, minimumRequests: 20, failureRatio: 0, ...window }
})

/** A pool of members that all take traffic, and those of them that its checks call unhealthy. */
class Pool implements EjectionPool {
  readonly states: EjectionState[]
  readonly unhealthy = new Set<number>()

  constructor (size: number) {
    this.states = Array.from({ length: size }, () => new EjectionState())
  }

  members (): number { return this.states.length }
  ejected (now: number): number { return this.states.filter((state) => isEjected(state, now)).length }
  usable (now: number): number { return this.states.filter((state, at) => !isEjected(state, now) && !this.unhealthy.has(at)).length }

  result (member: number, failed: boolean, options: EjectionOptions, now: number): Ejection | null {
    return observe(this.states[member]!, failed, this, options, now)
  }

  /** So many failures at the same moment; what the last one led to, after none before it led to anything. */
  fail (member: number, times: number, options: EjectionOptions, now: number): Ejection | null {
    for (let i = 1; i < times; i++) equal(this.result(member, true, options, now), null, `failure ${i}`)
    return this.result(member, true, options, now)
  }

  out (now: number): number[] {
    return this.states.flatMap((state, at) => isEjected(state, now) ? [at] : [])
  }
}

describe('ejection by failures in a row', () => {
  it('takes a member out at the fifth one, and says why and for how long', () => {
    const pool = new Pool(4)
    deepEqual(pool.fail(1, 5, optionsWith(), 1000), {
      held: null, enforced: true, trigger: 'consecutive', failures: 5, total: null, ms: 10000, until: 11000, members: 4, ejected: 1
    })
    deepEqual(pool.out(1000), [1])
  })

  it('ends by time alone, to the millisecond', () => {
    const pool = new Pool(2)
    pool.fail(0, 5, optionsWith(), 0)
    deepEqual(pool.out(9999.9), [0])
    deepEqual(pool.out(10000), [])
  })

  it('starts to count again after a success', () => {
    const pool = new Pool(2)
    equal(pool.fail(0, 4, optionsWith(), 0), null)
    equal(pool.result(0, false, optionsWith(), 0), null)
    equal(pool.fail(0, 4, optionsWith(), 0), null)
    equal(pool.fail(0, 1, optionsWith(), 0)?.failures, 5)
  })

  it('takes exactly as many failures each time', () => {
    const pool = new Pool(2)
    let now = 0
    for (let round = 0; round < 20; round++) {
      const ejection = pool.fail(0, 3, optionsWith({ consecutiveFailures: 3 }), now)
      equal(ejection?.failures, 3)
      now = ejection.until
    }
  })

  it('is not prolonged by attempts that were under way, nor do these count afterwards', () => {
    const pool = new Pool(2)
    pool.fail(0, 5, optionsWith(), 0)
    for (let now = 0; now < 10000; now += 10) equal(pool.result(0, true, optionsWith(), now), null)
    deepEqual(pool.out(10000), [])
    equal(pool.fail(0, 4, optionsWith(), 10000), null)
    equal(pool.fail(0, 1, optionsWith(), 10000)?.failures, 5)
  })

  it('is not shortened by a success of an attempt that was under way', () => {
    const pool = new Pool(2)
    pool.fail(0, 5, optionsWith(), 0)
    pool.result(0, false, optionsWith(), 1)
    deepEqual(pool.out(9999), [0])
  })

  it('leaves neighbours alone', () => {
    const pool = new Pool(3)
    pool.fail(0, 4, optionsWith(), 0)
    pool.fail(1, 4, optionsWith(), 0)
    equal(pool.result(2, true, optionsWith(), 0), null)
    deepEqual(pool.out(0), [])
  })

  it('can be switched off', () => {
    const pool = new Pool(3)
    for (let i = 0; i < 1000; i++) equal(pool.result(0, true, optionsWith({ consecutiveFailures: 0 }), i), null)
  })

  it('with a number that a reload made smaller, the next failure suffices', () => {
    const pool = new Pool(3)
    pool.fail(0, 4, optionsWith(), 0)
    equal(pool.result(0, true, optionsWith({ consecutiveFailures: 2 }), 0)?.failures, 5)
  })

  it('takes a clock that steps back for one that stands still', () => {
    const pool = new Pool(2)
    const options = optionsWith({ baseMs: 1 })
    pool.fail(0, 5, options, 50000)
    equal(pool.result(0, true, options, 1000), null, 'it is out until the clock is where it was')
    equal(pool.states[0]?.until, 50001)
    equal(pool.fail(0, 5, options, 50001)?.ms, 2)
  })
})

describe('the time of an ejection', () => {
  /** Envoy's BackoffTime, as (in service before it, how long it lasts). */
  const table: Array<[served: number, ms: number]> = [
    [0, 10000], [0, 20000], [0, 30000], [20000, 20000], [9999, 30000], [10000, 30000], [3600000, 10000], [29999, 10000]
  ]
  it('grows by the base with each, and shrinks by it for each base time in service', () => {
    const pool = new Pool(2)
    let now = 0
    for (const [served, ms] of table) {
      now += served
      equal(pool.fail(0, 5, optionsWith(), now)?.ms, ms, `after ${served} ms in service`)
      now += ms
    }
  })

  it('is capped, and the way back starts at the cap', () => {
    const pool = new Pool(2)
    const options = optionsWith({ maxMs: 35000 })
    const seen: Array<number | undefined> = []
    let now = 0
    for (let round = 0; round < 20; round++) {
      seen.push(pool.fail(0, 5, options, now)?.ms)
      now = pool.states[0]!.until
    }
    deepEqual(seen.slice(0, 6), [10000, 20000, 30000, 35000, 35000, 35000])
    equal(pool.fail(0, 5, options, now + 30000)?.ms, 20000)
  })

  it('is the cap where that is less than the base', () => {
    const pool = new Pool(2)
    const options = optionsWith({ baseMs: 5000, maxMs: 2000 })
    equal(pool.fail(0, 5, options, 0)?.ms, 2000)
    equal(pool.fail(0, 5, options, 2000)?.ms, 2000)
  })
})

describe('ejection by ratio', () => {
  const options = optionsWith({ consecutiveFailures: 0, window: { failureRatio: 0.5 } })

  it('needs the least number of results, and judges at a success too', () => {
    const pool = new Pool(2)
    for (let i = 0; i < 10; i++) equal(pool.result(0, true, options, i), null)
    for (let i = 0; i < 9; i++) equal(pool.result(0, false, options, i), null)
    const ejection = pool.result(0, false, options, 10)
    deepEqual([ejection?.trigger, ejection?.failures, ejection?.total], ['ratio', 10, 20])
  })

  it('lets a member be that fails less often', () => {
    const pool = new Pool(2)
    for (let i = 0; i < 999; i++) equal(pool.result(0, i % 3 === 2, options, i * 10), null)
  })

  it('is exact at its boundary', () => {
    for (const [failures, total, failureRatio, ejects] of [[7, 25, 0.28, true], [3, 10, 0.3, true], [6, 25, 0.28, false], [20, 20, 1, true]] as const) {
      const pool = new Pool(2)
      const exact = optionsWith({ consecutiveFailures: 0, window: { minimumRequests: total, failureRatio } })
      const results = Array.from({ length: total }, (_, at) => pool.result(0, at < failures, exact, 0))
      equal(results.at(-1) !== null, ejects, `${failures} of ${total} at ${failureRatio}`)
      equal(results.slice(0, -1).every((each) => each === null), true)
    }
  })

  it('forgets what is older than the window', () => {
    const pool = new Pool(2)
    for (let i = 0; i < 19; i++) pool.result(0, true, options, 0)
    equal(pool.result(0, true, options, 10000), null)
  })

  it('starts from nothing after each ejection', () => {
    const pool = new Pool(2)
    const soon = { ...options, baseMs: 100 }
    equal(pool.fail(0, 20, soon, 0)?.total, 20)
    equal(pool.fail(0, 20, soon, 100)?.total, 20)
  })

  it('keeps what it holds when the window gets another length, and drops it when it is switched off', () => {
    const pool = new Pool(2)
    pool.fail(0, 15, options, 0)
    const longer = optionsWith({ consecutiveFailures: 0, window: { failureRatio: 0.5, seconds: 60 } })
    equal(pool.fail(0, 5, longer, 1000)?.total, 20)
    pool.fail(1, 15, options, 0)
    pool.result(1, true, optionsWith({ consecutiveFailures: 0 }), 0)
    equal(pool.fail(1, 19, options, 0), null)
  })

  it('gives way to failures in a row where both are reached', () => {
    const pool = new Pool(2)
    equal(pool.fail(0, 20, optionsWith({ consecutiveFailures: 20, window: { failureRatio: 0.5 } }), 0)?.trigger, 'consecutive')
    equal(pool.fail(0, 20, optionsWith({ consecutiveFailures: 21, window: { failureRatio: 0.5 } }), 10000)?.trigger, 'ratio')
  })
})

describe('the caps', () => {
  /** So many members of a pool all fail; so many are ejected, and the next one is held for that. */
  const table: Array<[size: number, maxShare: number, ejected: number, held: Ejection['held']]> = [
    [1, 1, 0, 'last'],
    [2, 0.5, 1, 'last'],
    [2, 0.49, 0, 'share'],
    [3, 0.5, 1, 'share'],
    [3, 0.66, 1, 'share'],
    [3, 0.67, 2, 'last'],
    [3, 0.1, 0, 'share'],
    [10, 0.1, 1, 'share'],
    [10, 0.3, 3, 'share'],
    [10, 0.7, 7, 'share'],
    [10, 1, 9, 'last'],
    [9, 0.1, 0, 'share'],
    [5, 0, 0, 'share'],
    [49, 1 / 49, 1, 'share']
  ]
  for (const [size, maxShare, ejected, held] of table) {
    it(`of ${size} that all fail, ${ejected} are ejected at a share of ${maxShare}`, () => {
      const pool = new Pool(size)
      const results = pool.states.map((_, member) => pool.fail(member, 5, optionsWith({ maxShare }), 0))
      deepEqual(pool.out(0), Array.from({ length: ejected }, (_, at) => at))
      const first = results[ejected]
      deepEqual([first?.held, first?.members, first?.ejected, first?.ms, first?.failures], [held, size, ejected, 0, 5])
    })
  }

  it('do not count a member that is down for the one that is kept', () => {
    const pool = new Pool(3)
    pool.unhealthy.add(1).add(2)
    equal(pool.fail(0, 5, optionsWith(), 0)?.held, 'last')
    pool.unhealthy.delete(1)
    equal(pool.fail(0, 5, optionsWith(), 10000)?.held, null)
  })

  it('eject nobody where a pool has no members', () => {
    const empty: EjectionPool = { members: () => 0, ejected: () => 0, usable: () => 0 }
    const state = new EjectionState()
    for (let i = 0; i < 4; i++) observe(state, true, empty, optionsWith(), 0)
    equal(observe(state, true, empty, optionsWith(), 0)?.held, 'last')
    equal(isEjected(state, 0), false)
  })

  it('are asked only where a member would be ejected', () => {
    const never = (): number => { throw new Error('asked') }
    const pool: EjectionPool = { members: never, ejected: never, usable: never }
    const state = new EjectionState()
    for (let i = 0; i < 1000; i++) equal(observe(state, i % 5 > 0, pool, optionsWith(), i), null)
  })

  it('make a member that is held known once in each base time, while it is judged on', () => {
    const pool = new Pool(2)
    const options = optionsWith()
    pool.fail(0, 5, optionsWith({ baseMs: 25000 }), 0)
    const told: number[] = []
    let ejectedAt = -1
    for (let now = 0; now < 40000 && ejectedAt < 0; now += 100) {
      const ejection = pool.result(1, true, options, now)
      if (ejection?.held === 'last') told.push(now)
      else if (ejection !== null) ejectedAt = now
    }
    deepEqual(told, [400, 10400, 20400])
    equal(ejectedAt, 25400, 'the first judgement after the other one came back at 25000')
  })
})

describe('modes', () => {
  it('observe tells the same, once for each time that it would last', () => {
    const pool = new Pool(2)
    const options = optionsWith({ mode: 'observe' })
    deepEqual(pool.fail(0, 5, options, 0), { held: null, enforced: false, trigger: 'consecutive', failures: 5, total: null, ms: 10000, until: 10000, members: 2, ejected: 1 })
    for (let now = 0; now < 10000; now += 10) equal(pool.result(0, true, options, now), null)
    equal(pool.fail(0, 5, options, 10000)?.ms, 20000)
  })

  it('off tells nothing, and forgets what was', () => {
    const pool = new Pool(2)
    const off = optionsWith({ mode: 'off' })
    pool.fail(0, 5, optionsWith(), 0)
    pool.fail(1, 4, optionsWith({ window: { failureRatio: 0.9 } }), 0)
    for (let i = 0; i < 100; i++) for (const member of [0, 1]) equal(pool.result(member, true, off, i), null)
    deepEqual(pool.out(100), [])
    deepEqual(pool.states, [new EjectionState(), new EjectionState()])
    equal(pool.fail(0, 5, optionsWith(), 200)?.ms, 10000)
  })
})

describe('returns', () => {
  const table: Array<[name: string, size: number, ejected: number, kept: number, maxShare: number, released: number]> = [
    ['a pool that has not changed', 4, 2, 4, 0.5, 0],
    ['a pool that lost its other members', 4, 2, 2, 0.5, 1],
    ['a pool of which one member is left', 4, 2, 1, 0.5, 1],
    ['a pool that lost everything', 4, 2, 0, 0.5, 0],
    ['a smaller share', 10, 5, 10, 0.3, 2],
    ['a share of none', 10, 5, 10, 0, 5],
    ['a share of all', 10, 5, 5, 1, 1]
  ]
  for (const [name, size, ejected, kept, maxShare, released] of table) {
    it(`${name}: ${released} come back at once, the earliest first`, () => {
      const pool = new Pool(size)
      // the later ones are out for less long
      for (let member = 0; member < ejected; member++) pool.fail(member, 5, optionsWith({ baseMs: 10000 - member * 100 }), 0)
      const left = pool.states.slice(0, kept)
      const before = left.filter((state) => isEjected(state, 50))
      equal(releaseExcess(left, { maxShare }, 50), released)
      deepEqual(left.filter((state) => isEjected(state, 50)), before.slice(0, before.length - released))
      equal(releaseExcess(left, { maxShare }, 50), 0)
    })
  }
})

describe('property: ejections', () => {
  const step = fc.record({ member: fc.nat(6), failed: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }), advance: fc.oneof(fc.nat(50), fc.nat(3000)), times: fc.integer({ min: 1, max: 8 }) })
  const given = fc.record({
    size: fc.integer({ min: 1, max: 7 }),
    maxShare: fc.oneof(fc.constantFrom(0, 0.1, 0.34, 0.5, 0.67, 1), fc.double({ min: 0, max: 1, noNaN: true })),
    consecutiveFailures: fc.integer({ min: 0, max: 6 }),
    failureRatio: fc.constantFrom(0, 0.3, 0.5, 1),
    minimumRequests: fc.integer({ min: 1, max: 20 }),
    baseMs: fc.integer({ min: 1, max: 5000 }),
    maxMs: fc.integer({ min: 1, max: 20000 }),
    unhealthy: fc.uniqueArray(fc.nat(6), { maxLength: 3 }),
    steps: fc.array(step, { maxLength: 150 })
  })

  it('keep the share and one member, take the same number of failures each, and last as long as they say', () => {
    fc.assert(fc.property(given, ({ size, unhealthy, steps, failureRatio, minimumRequests, ...rest }) => {
      const options = optionsWith({ ...rest, window: { seconds: 10, failureRatio, minimumRequests } })
      const pool = new Pool(size)
      for (const member of unhealthy) pool.unhealthy.add(member)
      /** What the trigger by failures in a row must do, where it is alone: failures since the latest judgement, and until when a member that is held is not told again. */
      const row = pool.states.map(() => 0)
      const quietUntil = pool.states.map(() => 0)
      let now = 0
      for (const { member: any, failed, advance, times } of steps) {
        now += advance
        const member = any % size
        for (let i = 0; i < times; i++) {
          const before = pool.out(now)
          const usable = pool.usable(now)
          const ejection = pool.result(member, failed, options, now)
          const after = pool.out(now)
          if (before.includes(member)) {
            equal(ejection, null)
            continue
          }
          row[member] = failed ? row[member]! + 1 : 0
          if (failureRatio === 0) {
            const full = rest.consecutiveFailures > 0 && row[member] === rest.consecutiveFailures
            const mayEject = (before.length + 1) / size <= rest.maxShare && before.length + 1 < size && usable > 1
            equal(ejection !== null, full && (mayEject || now >= quietUntil[member]!))
            if (full) row[member] = 0
            if (full && ejection !== null) deepEqual([ejection.held === null, ejection.failures], [mayEject, rest.consecutiveFailures])
            if (full && ejection !== null && !mayEject) quietUntil[member] = now + rest.baseMs
          }
          if (ejection === null || ejection.held !== null) {
            deepEqual(after, before)
            continue
          }
          ok(after.length / size <= rest.maxShare && after.length < size && usable > 1 && pool.usable(now) >= (pool.unhealthy.has(member) ? 2 : 1))
          equal(ejection.until, now + ejection.ms)
          ok(ejection.ms <= rest.maxMs && (ejection.ms === rest.maxMs || ejection.ms % rest.baseMs === 0))
        }
      }
    }), { numRuns: 500 })
  })
})

describe('memory', () => {
  it('a result that ejects nobody allocates nothing once it is compiled', () => {
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    const pool = new Pool(3)
    const options = optionsWith({ window: { failureRatio: 0.5 } })
    const traffic = (from: number, count: number): void => {
      for (let i = 0; i < count; i++) observe(pool.states[0]!, i % 4 === 0, pool, options, from + Math.trunc(i / 100))
    }
    traffic(1, 300000)
    // compiling and the test runner allocate beside us, so the least of several rounds counts
    let least = Number.POSITIVE_INFINITY
    for (let round = 1; round <= 8; round++) {
      gc()
      const before = process.memoryUsage().heapUsed
      traffic(round * 5000, 400000)
      least = Math.min(least, process.memoryUsage().heapUsed - before)
    }
    ok(least / 400000 < 1, `${least / 400000} bytes a result`)
  })
})
