import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { RoundRobin } from '../../../lib/balance/round-robin.ts'
import { seededRandom } from '../../../lib/random.ts'
import { conforms } from './conformance.ts'

conforms({ name: 'round-robin', make: (members, random) => new RoundRobin(members, random), spread: () => 1, randomStart: true })

const everyone = (members: number): Int32Array => Int32Array.from({ length: members }, (_, index) => index)

describe('round-robin', () => {
  it('goes round in one order', () => {
    const balancer = new RoundRobin(5, seededRandom(2))
    const round = (): number[] => Array.from({ length: 5 }, () => balancer.pick(everyone(5), 5))
    const first = round()
    equal(new Set(first).size, 5)
    for (let i = 0; i < 10; i++) deepEqual(round(), first)
  })

  it('starts in every order of three', () => {
    const orders = new Map<string, number>()
    for (let seed = 0; seed < 6000; seed++) {
      const balancer = new RoundRobin(3, seededRandom(seed))
      const order = [0, 1, 2].map(() => balancer.pick(everyone(3), 3)).join('')
      orders.set(order, (orders.get(order) ?? 0) + 1)
    }
    equal(orders.size, 6)
    for (const count of orders.values()) ok(count > 800 && count < 1200)
  })

  it('lets a member that came back go first', () => {
    const balancer = new RoundRobin(3, seededRandom(1))
    for (let i = 0; i < 7; i++) balancer.pick(Int32Array.of(0, 2), 2)
    equal(balancer.pick(everyone(3), 3), 1)
    ok(balancer.pick(everyone(3), 3) !== 1)
  })

  it('takes a pick back as if it had never been made', () => {
    const picks = fc.array(fc.record({ mask: fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }), givenBack: fc.boolean() }), { maxLength: 60 })
    fc.assert(fc.property(fc.integer(), picks, (seed, all) => {
      const steady = new RoundRobin(5, seededRandom(seed))
      const wavering = new RoundRobin(5, seededRandom(seed))
      for (const { mask, givenBack } of all) {
        const usable = Int32Array.from([0, 1, 2, 3, 4].filter((index) => mask[index]))
        if (usable.length === 0) continue
        const pick = wavering.pick(usable, usable.length)
        if (givenBack) wavering.giveBack(pick)
        else equal(pick, steady.pick(usable, usable.length))
      }
    }))
  })

  it('lets no member wait for longer than one round of the others', () => {
    const runs = fc.integer({ min: 1, max: 8 }).chain((members) => fc.record({
      members: fc.constant(members), seed: fc.integer(), always: fc.nat(members - 1), others: fc.array(fc.array(fc.boolean(), { minLength: members, maxLength: members }), { maxLength: 100 })
    }))
    fc.assert(fc.property(runs, ({ members, seed, always, others }) => {
      const balancer = new RoundRobin(members, seededRandom(seed))
      let waited = 0
      for (const mask of others) {
        const usable = [...everyone(members)].filter((index) => index === always || mask[index] === true)
        waited = balancer.pick(Int32Array.from(usable), usable.length) === always ? 0 : waited + 1
        ok(waited < members, `${always} waited for ${waited} picks`)
      }
    }))
  })
})
