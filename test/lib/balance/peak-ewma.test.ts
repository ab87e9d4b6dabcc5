import { equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { PeakEwma } from '../../../lib/balance/peak-ewma.ts'

const tau = 10000
/** What one request to an idle upstream costs. */
const ms = (latency: PeakEwma, now: number): number => latency.cost(0, now)
const about = (actual: number, expected: number): void => { ok(Math.abs(actual - expected) <= 1e-6 * expected, `${actual}, not ${expected}`) }

describe('peak EWMA', () => {
  type Event = ['record' | 'penalise' | 'asked', ms: number] | ['read']
  const table: Array<[title: string, events: Array<[at: number, event: Event, cost: number]>]> = [
    ['takes the first answer for the usual', [
      [0, ['record', 200], 200]
    ]],
    ['rises to a slower answer at once', [
      [0, ['record', 20], 20],
      [1, ['record', 900], 900],
      [2, ['record', 901], 901]
    ]],
    ['falls with time, not with the number of answers', [
      [0, ['record', 1000], 1000],
      [0, ['record', 10], 1000],
      [0, ['record', 10], 1000],
      [tau, ['record', 10], 1000 / Math.E + 10 * (1 - 1 / Math.E)]
    ]],
    ['falls alike in many steps and in one', [
      [0, ['record', 1000], 1000],
      [tau / 4, ['record', 10], 10 + 990 * Math.exp(-1 / 4)],
      [tau / 2, ['record', 10], 10 + 990 * Math.exp(-1 / 2)],
      [tau, ['record', 10], 10 + 990 * Math.exp(-1)]
    ]],
    ['decays while nobody answers, to 1 ms', [
      [0, ['record', 500], 500],
      [tau, ['read'], 500 / Math.E],
      [2 * tau, ['read'], 500 / Math.E ** 2],
      [10 * tau, ['read'], 1],
      [1e12, ['read'], 1]
    ]],
    ['counts in full again while a request is on its way to it', [
      [0, ['record', 500], 500],
      [3 * tau, ['read'], 500 / Math.E ** 3],
      [3 * tau, ['asked', 0], 500],
      [4 * tau, ['read'], 500 / Math.E],
      [4 * tau, ['record', 20], 20 + 480 * Math.exp(-4)]
    ]],
    ['of which nothing is known costs nothing, once, and then a second until it has answered', [
      [0, ['read'], 1],
      [0, ['asked', 0], 1000],
      [10, ['read'], 1000 * Math.exp(-10 / tau)],
      [30, ['record', 30], 30]
    ]],
    ['takes a failure for an answer of 5 s, however fast it was', [
      [0, ['record', 20], 20],
      [1, ['penalise', 0], 5000],
      [1, ['penalise', 4999], 5000]
    ]],
    ['takes a failure with Retry-After for an answer of that time, up to 5 minutes', [
      [0, ['penalise', 30000], 30000],
      [1, ['penalise', 86400000], 300000],
      [2, ['penalise', Infinity], 300000],
      [3, ['record', Infinity], 300000]
    ]],
    ['forgives: after the longest penalty it is tried again within two minutes, and then as fast as it is', [
      [0, ['penalise', 86400000], 300000],
      [120000, ['read'], 300000 * Math.exp(-12)],
      [120000, ['asked', 0], 300000],
      [120020, ['record', 20], 20 + 299980 * Math.exp(-12.002)]
    ]],
    ['ignores what is no time', [
      [0, ['record', 20], 20],
      [1, ['record', NaN], 20 * Math.exp(-1 / tau)],
      [1, ['record', -5], 20 * Math.exp(-1 / tau)]
    ]],
    ['has answers that take no time cost 1 ms', [
      [0, ['record', 0], 1]
    ]],
    ['only stops decaying while the clock is behind', [
      [50000, ['record', 500], 500],
      [1000, ['read'], 500],
      [1000, ['record', 10], 500],
      [1000, ['asked', 0], 500],
      [50000 + tau, ['read'], 500 / Math.E]
    ]]
  ]
  for (const [title, events] of table) {
    it(title, () => {
      const latency = new PeakEwma()
      for (const [at, [event, value = 0], cost] of events) {
        if (event === 'asked') latency.asked(at)
        else if (event !== 'read') latency[event](value, at)
        about(ms(latency, at), cost)
      }
    })
  }

  it('costs more with each exchange at it', () => {
    const latency = new PeakEwma()
    latency.record(40, 0)
    for (let inFlight = 0; inFlight < 5; inFlight++) about(latency.cost(inFlight, 0), 40 * (inFlight + 1))
  })

  it('is as it was when a request did not go to it after all', () => {
    const latency = new PeakEwma()
    latency.asked(5)
    latency.notAsked()
    equal(ms(latency, 5), 1)
    latency.record(500, 10)
    latency.asked(2 * tau)
    latency.notAsked()
    about(ms(latency, tau + 10), 500 / Math.E)
  })

  it('stays between 1 ms and 5 minutes, and never rises by itself', () => {
    const events = fc.array(fc.record({
      what: fc.constantFrom('record', 'penalise', 'asked'),
      ms: fc.oneof(fc.double({ min: -10, max: 1e6 }), fc.constantFrom(NaN, Infinity, -Infinity)),
      step: fc.double({ min: -100, max: 1e5, noNaN: true })
    }), { maxLength: 50 })
    fc.assert(fc.property(events, (all) => {
      const latency = new PeakEwma()
      let now = 0
      for (const event of all) {
        now += event.step
        if (event.what === 'record') latency.record(event.ms, now)
        else if (event.what === 'penalise') latency.penalise(event.ms, now)
        else latency.asked(now)
        const cost = ms(latency, now)
        ok(cost >= 1 && cost <= 300000, `${cost}`)
        ok(ms(latency, now + 1000) <= cost)
      }
    }))
  })
})
