import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { seededRandom, type Random } from '../../../lib/random.ts'
import type { Subject } from './subjects.ts'
import { admit, Caller, countsOf, equals, listOf, poolOf } from './support.ts'

/** A request, and who may take it: the members that are in, and where `among` is set only those of them that it names. */
interface Step {
  members: boolean[]
  among: boolean[] | null
  key: number
  /** The pick comes to nothing. */
  givenBack: boolean
}

const masks = (members: number) => fc.array(fc.boolean(), { minLength: members, maxLength: members })
const steps = (members: number) => fc.array(fc.record<Step>({
  members: fc.oneof(fc.constant(new Array<boolean>(members).fill(true)), masks(members)),
  among: fc.option(masks(members)),
  key: fc.oneof(fc.constant(-1), fc.nat(2 ** 32 - 1)),
  givenBack: fc.boolean()
}), { maxLength: 120 })
const runs = fc.integer({ min: 1, max: 9 }).chain((members) => fc.record({ members: fc.constant(members), seed: fc.integer(), steps: steps(members) }))

interface Pick {
  usable: readonly boolean[]
  pick: number
}

/** Plays steps against a new balancer, with one exchange after the other; where nobody is asked to pick, there is none. */
function play ({ make }: Subject, members: number, seed: number, all: readonly Step[], weights = equals(members)): Pick[] {
  const pool = poolOf(weights)
  const caller = new Caller(make(pool, seededRandom(seed)), pool)
  const picks: Pick[] = []
  let before = ''
  for (const step of all) {
    if (before !== step.members.join()) admit(caller.balancer, weights.map((weight, index) => step.members[index] === true ? weight : 0), caller.now)
    before = step.members.join()
    const usable = step.members.map((isIn, index) => isIn && (step.among?.[index] ?? true))
    if (step.among !== null && !usable.includes(true)) continue
    const pick = step.among === null ? caller.begin(step.key) : caller.beginAmong(usable, step.key)
    caller.now++
    picks.push({ usable, pick })
    if (pick === -1) continue
    if (step.givenBack) caller.giveBack(pick)
    else caller.end(pick)
  }
  return picks
}

const without = (picks: readonly Step[]): Step[] => picks.map((step) => ({ ...step, key: -1, givenBack: false }))
const constantly = (members: readonly boolean[], times: number): Step[] => Array.from({ length: times }, () => ({ members: [...members], among: null, key: -1, givenBack: false }))
const all = (members: number): boolean[] => new Array<boolean>(members).fill(true)
const but = (members: number, out: number): boolean[] => all(members).map((_isIn, index) => index !== out)

const gc = (): void => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
}

/** Registers the tests that every balancer has to pass. */
export function conforms (subject: Subject): void {
  const { name, make, spread, exactGiveBack, weightsHoldIdle } = subject
  /** A balancer of so many equal members, all in. */
  const callerOf = (weights: readonly number[], random: Random): Caller => {
    const pool = poolOf(weights)
    const caller = new Caller(make(pool, random), pool)
    admit(caller.balancer, weights)
    return caller
  }
  const countsIn = (picks: readonly Pick[], members: number): number[] => countsOf(picks.map(({ pick }) => pick), members)

  describe(`${name} as a balancer`, () => {
    it('never picks a member that is out or excluded', () => {
      fc.assert(fc.property(runs, (run) => {
        for (const { usable, pick } of play(subject, run.members, run.seed, run.steps)) {
          if (usable.includes(true)) equal(usable[pick], true, `${pick} of ${usable.join()}`)
          else equal(pick, -1)
        }
      }), { numRuns: 400 })
    })

    it('picks nobody of nobody, before and after there was somebody', () => {
      const pool = poolOf(equals(3))
      const balancer = make(pool, seededRandom(1))
      equal(balancer.pick(-1, 0), -1)
      equal(balancer.pick(7, 0), -1)
      admit(balancer, [1, 1, 1])
      ok(balancer.pick(7, 0) >= 0)
      admit(balancer, [0, 0, 0])
      equal(balancer.pick(-1, 1), -1)
      equal(balancer.pick(7, 1), -1)
      const empty = make([], seededRandom(1))
      admit(empty, [])
      equal(empty.pick(-1, 0), -1)
    })

    it('picks the only one', () => {
      const caller = callerOf([0, 0, 0, 0.25, 0], seededRandom(1))
      for (let i = 0; i < 20; i++) equal(caller.begin(i % 2 === 0 ? -1 : i), 3)
      for (let i = 0; i < 20; i++) equal(caller.beginAmong([false, false, false, true, false], i), 3)
    })

    it('leaves the list of the usable as it was', () => {
      const { balancer } = callerOf(equals(4), seededRandom(1))
      const usable = Int32Array.of(0, 1, 3, 2)
      for (let i = 0; i < 10; i++) ok(balancer.pickAmong(usable, 3, i, 0) !== 2)
      equal(usable.join(), '0,1,3,2')
    })

    it('is fair to any two members, over any time in which both may be picked', () => {
      fc.assert(fc.property(runs, (run) => {
        const picks = play(subject, run.members, run.seed, without(run.steps))
        for (let a = 0; a < run.members; a++) for (let b = 0; b < a; b++) fairTo(a, b, picks, run.members)
      }), { numRuns: 300 })
    })

    /** The difference a - b walks up and down; within a stretch its highest and lowest values are the worst that any part of it shows. */
    function fairTo (a: number, b: number, picks: readonly Pick[], members: number): void {
      let difference = 0
      let highest = 0
      let lowest = 0
      let length = 0
      for (const { usable, pick } of picks) {
        if (usable[a] !== true || usable[b] !== true) {
          difference = highest = lowest = length = 0
          continue
        }
        length++
        difference += Number(pick === a) - Number(pick === b)
        highest = Math.max(highest, difference)
        lowest = Math.min(lowest, difference)
        // Others may be out: the fewer there are, the faster it walks.
        ok(highest - lowest <= spread(length, Math.min(2, members)), `${a} and ${b} differ by ${highest - lowest} within ${length} picks`)
      }
    }

    for (const members of [2, 3, 7]) {
      it(`gives each of ${members} members its share of 21000 picks`, () => {
        const counts = countsOf(callerOf(equals(members), seededRandom(3)).sequence(21000), members)
        for (const count of counts) ok(Math.abs(count - 21000 / members) <= spread(21000, members), counts.join())
      })
    }

    it('gives nobody the share of a member that is out', () => {
      for (let out = 0; out < 4; out++) {
        const counts = countsIn(play(subject, 4, out, constantly(but(4, out), 3000)), 4)
        equal(counts[out], 0)
        for (const [index, count] of counts.entries()) if (index !== out) ok(Math.abs(count - 1000) <= spread(3000, 3), counts.join())
      }
    })

    it('gives nobody the share of a member that is out, or excluded, every other time', () => {
      for (const among of [false, true]) {
        const picks = Array.from({ length: 3000 }, (_, i): Step => {
          const mask = i % 2 === 0 ? all(4) : but(4, 2)
          return { members: among ? all(4) : mask, among: among ? mask : null, key: -1, givenBack: false }
        })
        const rest = countsIn(play(subject, 4, 5, picks), 4).filter((_count, index) => index !== 2)
        ok(Math.max(...rest) - Math.min(...rest) <= spread(3000, 4), rest.join())
      }
    })

    it('neither floods nor forgets a member that comes back', () => {
      const counts = countsIn(play(subject, 4, 7, [...constantly(but(4, 1), 10000), ...constantly(all(4), 400)]).slice(10000), 4)
      for (const count of counts) ok(Math.abs(count - counts[1]!) <= spread(400, 4), counts.join())
    })

    for (const weights of [[5, 3, 1, 1], [0.1, 1, 0.5], [1000, 600]]) {
      it(`shares 100000 picks by the weights ${weights.join(', ')}, to 1 %`, () => {
        const total = weights.reduce((sum, weight) => sum + weight, 0)
        const counts = countsOf(callerOf(weights, seededRandom(9)).stream(100000, 2000), weights.length)
        for (const [index, weight] of weights.entries()) ok(Math.abs(counts[index]! - 100000 * weight / total) <= 1000, counts.join())
      })
    }

    if (weightsHoldIdle) {
      it('shares by the weights where one exchange comes after the other', () => {
        const counts = countsOf(callerOf([5, 3, 1, 1], seededRandom(8)).sequence(20000), 4)
        for (const [index, weight] of [5, 3, 1, 1].entries()) ok(Math.abs(counts[index]! - 2000 * weight) <= 500, counts.join())
      })
    }

    it('goes by weights that change, and back', () => {
      const caller = callerOf([1, 1, 1], seededRandom(10))
      caller.stream(3000, 300)
      for (const weights of [[4, 1, 1], [1, 1, 0.1], [1, 1, 1]]) {
        admit(caller.balancer, weights, caller.now)
        caller.stream(2000, 300)
        const counts = countsOf(caller.stream(20000, 300), 3)
        const total = weights.reduce((sum, weight) => sum + weight, 0)
        for (const [index, weight] of weights.entries()) ok(Math.abs(counts[index]! - 20000 * weight / total) <= 500, `${weights.join()}: ${counts.join()}`)
      }
    })

    it('gives the turn back with a pick that came to nothing', () => {
      const caller = callerOf(equals(3), seededRandom(12))
      const counts = [0, 0, 0]
      for (let kept = 0; kept < 9000;) {
        const pick = caller.begin()
        caller.now++
        if (caller.now % 3 === 0) {
          caller.giveBack(pick)
        } else {
          counts[pick]!++
          kept++
          caller.end(pick)
        }
      }
      for (const count of counts) ok(Math.abs(count - 3000) <= spread(9000, 3), counts.join())
    })

    if (exactGiveBack) {
      it('takes a pick back as if it had never been made', () => {
        fc.assert(fc.property(runs, (run) => {
          const wavering = run.steps.filter(({ among }) => among?.includes(true) !== false).map((step) => ({ ...step, members: all(run.members) }))
          const steady = wavering.filter(({ givenBack }) => !givenBack)
          const weights = equals(run.members).map((_one, index) => 1 + index * 7 % 5)
          const picks = play(subject, run.members, run.seed, wavering, weights)
          deepEqual(picks.filter((_pick, i) => !wavering[i]!.givenBack), play(subject, run.members, run.seed, steady, weights))
        }), { numRuns: 300 })
      })
    }

    it('starts anywhere', () => {
      const firsts = countsOf(Array.from({ length: 1000 }, (_, seed) => callerOf(equals(4), seededRandom(seed)).begin()), 4)
      for (const count of firsts) ok(count > 190 && count < 310, firsts.join())
    })

    it('makes the same picks of the same seed', () => {
      const picks = (): string => callerOf([3, 1, 1, 2], seededRandom(11)).stream(200, 7).join()
      equal(picks(), picks())
    })

    it('allocates nothing', () => {
      // A number that a random source returns may be boxed: this one is there already.
      const { balancer, members } = callerOf(equals(8), () => 0.5)
      const { list, count } = listOf(all(8))
      let key = 0
      const pickMany = (): void => {
        for (let i = 0; i < 25000; i++) {
          key = (key + 12345) & 0xffff
          const picked = balancer.pick(key, i)
          members[picked]!.inFlight++
          balancer.loadChanged(picked)
          const again = balancer.pickAmong(list, count, key, i)
          members[picked]!.inFlight--
          balancer.loadChanged(picked)
          balancer.giveBack(again)
        }
      }
      for (let i = 0; i < 10; i++) pickMany()
      // The least of several rounds: whatever else runs in the process is not the balancer's.
      let least = Infinity
      for (let round = 0; round < 10; round++) {
        gc()
        const before = process.memoryUsage().heapUsed
        pickMany()
        least = Math.min(least, Math.max(0, process.memoryUsage().heapUsed - before))
      }
      ok(least < 50000, `${least / 25000} bytes a pick`)
    })
  })
}
