import { equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import type { Balancer } from '../../../lib/balance/balancer.ts'
import { seededRandom, type Random } from '../../../lib/random.ts'

/** A balancer under test, and what it promises beyond "one of the usable". */
export interface Subject {
  name: string
  /** A balancer of so many equal members. */
  make (members: number, random: Random): Balancer
  /**
   * By how much the picks of two members may differ over any stretch of time in which both are usable.
   * @param picks how many were made in that stretch
   */
  spread (picks: number, members: number): number
  /** Whether the random source decides who is first. */
  randomStart: boolean
}

/** The indexes that are set in a mask, as a balancer gets them: a longer array than count says, with rubbish behind. */
function usableOf (mask: readonly boolean[]): { usable: Int32Array, count: number } {
  const usable = new Int32Array(mask.length).fill(-1)
  let count = 0
  for (const [index, isUsable] of mask.entries()) if (isUsable) usable[count++] = index
  return { usable, count }
}

/** Plays masks against a new balancer and returns its picks; a mask in which nobody is usable is skipped, as a caller would. */
function play (balancer: Balancer, masks: ReadonlyArray<readonly boolean[]>): { mask: readonly boolean[], pick: number }[] {
  return masks.filter((mask) => mask.includes(true)).map((mask) => {
    const { usable, count } = usableOf(mask)
    return { mask, pick: balancer.pick(usable, count) }
  })
}

const masksOf = (members: number) => fc.array(fc.array(fc.boolean(), { minLength: members, maxLength: members }), { maxLength: 120 })
const runs = fc.integer({ min: 1, max: 9 }).chain((members) => fc.record({ members: fc.constant(members), seed: fc.integer(), masks: masksOf(members) }))

const all = (members: number): boolean[] => new Array<boolean>(members).fill(true)
const but = (members: number, out: number): boolean[] => all(members).map((_usable, index) => index !== out)

function countsOf (picks: readonly { pick: number }[], members: number): number[] {
  const counts = new Array<number>(members).fill(0)
  for (const { pick } of picks) counts[pick]!++
  return counts
}

const gc = (): void => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
}

/** Registers the tests that every balancer has to pass. */
export function conforms ({ name, make, spread, randomStart }: Subject): void {
  describe(`${name} as a balancer`, () => {
    it('never picks an excluded member', () => {
      fc.assert(fc.property(runs, ({ members, seed, masks }) => {
        for (const { mask, pick } of play(make(members, seededRandom(seed)), masks)) equal(mask[pick], true, `${pick} of ${mask.join()}`)
      }), { numRuns: 300 })
    })

    it('picks the only one', () => {
      const balancer = make(5, seededRandom(1))
      for (let i = 0; i < 20; i++) equal(balancer.pick(Int32Array.of(3, 0, 1), 1), 3)
    })

    it('leaves the list of the usable as it was', () => {
      const balancer = make(4, seededRandom(1))
      const usable = Int32Array.of(3, 1, 0, 2)
      for (let i = 0; i < 10; i++) balancer.pick(usable, 3)
      equal(usable.join(), '3,1,0,2')
    })

    it('is fair to any two members, over any time in which both are usable', () => {
      fc.assert(fc.property(runs, ({ members, seed, masks }) => {
        const picks = play(make(members, seededRandom(seed)), masks)
        for (let a = 0; a < members; a++) for (let b = 0; b < a; b++) fairTo(a, b, picks, members)
      }), { numRuns: 300 })
    })

    /** The difference a - b walks up and down; within a stretch its highest and lowest values are the worst that any part of it shows. */
    function fairTo (a: number, b: number, picks: readonly { mask: readonly boolean[], pick: number }[], members: number): void {
      let difference = 0
      let highest = 0
      let lowest = 0
      let length = 0
      for (const { mask, pick } of picks) {
        if (mask[a] !== true || mask[b] !== true) {
          difference = highest = lowest = length = 0
          continue
        }
        length++
        difference += Number(pick === a) - Number(pick === b)
        highest = Math.max(highest, difference)
        lowest = Math.min(lowest, difference)
        ok(highest - lowest <= spread(length, members), `${a} and ${b} differ by ${highest - lowest} within ${length} picks`)
      }
    }

    for (const members of [2, 3, 7]) {
      it(`gives each of ${members} usable members its share of 21000 picks`, () => {
        const counts = countsOf(play(make(members, seededRandom(3)), new Array(21000).fill(all(members))), members)
        for (const count of counts) ok(Math.abs(count - 21000 / members) <= spread(21000, members), counts.join())
      })
    }

    it('gives nobody the share of a member that is out', () => {
      for (let out = 0; out < 4; out++) {
        const counts = countsOf(play(make(4, seededRandom(out)), new Array(3000).fill(but(4, out))), 4)
        equal(counts[out], 0)
        for (const [index, count] of counts.entries()) if (index !== out) ok(Math.abs(count - 1000) <= spread(3000, 4), counts.join())
      }
    })

    it('gives nobody the share of a member that is out every other time', () => {
      const masks = Array.from({ length: 3000 }, (_, i) => i % 2 === 0 ? all(4) : but(4, 2))
      const counts = countsOf(play(make(4, seededRandom(5)), masks), 4)
      const rest = counts.filter((_count, index) => index !== 2)
      ok(Math.max(...rest) - Math.min(...rest) <= spread(3000, 4), counts.join())
    })

    it('does not flood a member that comes back', () => {
      const balancer = make(4, seededRandom(7))
      play(balancer, new Array(10000).fill(but(4, 1)))
      const counts = countsOf(play(balancer, new Array(40).fill(all(4))), 4)
      ok(counts[1]! - Math.min(...counts) <= spread(40, 4), counts.join())
    })

    it('reads the list no more than a few times over, whatever its length', () => {
      const { usable } = usableOf(all(1000))
      let reads = 0
      const counted = new Proxy(usable, { get: (target, key) => { reads++; return Reflect.get(target, key, target) as unknown } })
      const balancer = make(1000, seededRandom(1))
      for (let i = 0; i < 10; i++) {
        reads = 0
        balancer.pick(counted, 1000)
        ok(reads <= 4 * 1000 + 8, `${reads} reads`)
      }
    })

    it('allocates nothing', () => {
      const { usable, count } = usableOf(all(8))
      // A number that a random source returns may be boxed: this one is there already.
      const balancer = make(8, () => 0.5)
      const pickMany = (): void => { for (let i = 0; i < 50000; i++) balancer.pick(usable, count) }
      for (let i = 0; i < 10; i++) pickMany()
      // The least of several rounds: whatever else runs in the process is not the balancer's.
      let least = Infinity
      for (let round = 0; round < 10; round++) {
        gc()
        const before = process.memoryUsage().heapUsed
        pickMany()
        least = Math.min(least, Math.max(0, process.memoryUsage().heapUsed - before))
      }
      ok(least < 50000, `${least / 50000} bytes a pick`)
    })

    if (randomStart) {
      it('starts anywhere', () => {
        const firsts = countsOf(Array.from({ length: 4000 }, (_, seed) => ({ pick: make(4, seededRandom(seed)).pick(usableOf(all(4)).usable, 4) })), 4)
        for (const count of firsts) ok(count > 800 && count < 1200, firsts.join())
      })
    }

    it('makes the same picks of the same seed', () => {
      const masks = new Array<boolean[]>(50).fill(all(5))
      const picks = (): string => play(make(5, seededRandom(11)), masks).map(({ pick }) => pick).join()
      equal(picks(), picks())
    })
  })
}
