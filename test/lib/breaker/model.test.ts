import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { Breaker } from '../../../lib/breaker/breaker.ts'
import type { Outcome, Permit, Transition } from '../../../lib/breaker/types.ts'
import { Model } from './model.ts'
import { optionsWith } from './support.ts'

type Step =
  | { do: 'admit', times: number }
  | { do: 'settle', which: number, outcome: Outcome }
  | { do: 'wait', ms: number }
  | { do: 'sweep' }
  | { do: 'query' }
  | { do: 'reset' }
  | { do: 'force', state: 'open' | 'closed' | 'auto', ttlMs: number }

const legal: Record<string, string> = {
  consecutive_failures: 'closed>open',
  failure_ratio: 'closed>open',
  open_elapsed: 'open>half-open',
  probes_passed: 'half-open>closed',
  probes_failed: 'half-open>open'
}

const outcomes = fc.oneof({ weight: 4, arbitrary: fc.constantFrom<Outcome>('success', 'failure') }, { weight: 1, arbitrary: fc.constantFrom<Outcome>('cancelled', 'ignored') })
const steps: fc.Arbitrary<Step[]> = fc.array(fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('admit' as const), times: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 16, arbitrary: fc.record({ do: fc.constant('settle' as const), which: fc.nat(50), outcome: outcomes }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.oneof(fc.constantFrom(1, 999, 1000, 4999, 5000, 9999, 10000, 20000), fc.integer({ min: 0, max: 70000 }), fc.double({ min: 0, max: 3000, noNaN: true })) }) },
  { weight: 3, arbitrary: fc.constant({ do: 'sweep' as const }) },
  { weight: 2, arbitrary: fc.constant({ do: 'query' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'reset' as const }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('force' as const), state: fc.constantFrom('open' as const, 'closed' as const, 'auto' as const), ttlMs: fc.integer({ min: 1, max: 30000 }) }) }
), { minLength: 20, maxLength: 250 })

const configs = fc.record({
  mode: fc.constantFrom('enforce' as const, 'enforce' as const, 'observe' as const),
  consecutiveFailures: fc.constantFrom(0, 1, 3, 5),
  failureRatio: fc.constantFrom(0, 0.25, 0.5, 1),
  minimumRequests: fc.constantFrom(1, 4, 10),
  seconds: fc.constantFrom(1, 5, 60),
  probes: fc.constantFrom(1, 2, 5),
  openMs: fc.constantFrom(1000, 5000),
  maxOpenMs: fc.constantFrom(5000, 30000)
})

class Pair {
  readonly breaker: Breaker
  readonly model: Model
  readonly transitions: Transition[] = []
  readonly permits: Array<{ id: number, permit: Permit }> = []
  readonly batch: number
  now: number
  #ids = 0

  constructor (config: typeof configs extends fc.Arbitrary<infer T> ? T : never, now: number) {
    const { failureRatio, minimumRequests, seconds, probes, ...rest } = config
    const options = optionsWith({ ...rest, window: { failureRatio, minimumRequests, seconds }, halfOpen: { probes, probeTimeoutMs: 10000 } })
    this.now = now
    this.batch = probes
    this.breaker = new Breaker(options, () => 0, now, transition => this.transitions.push(transition))
    this.model = new Model(options, now)
  }

  run (step: Step): void {
    if (step.do === 'admit') for (let i = 0; i < step.times; i++) this.#admit()
    else if (step.do === 'settle') this.#settle(step.which, step.outcome)
    else if (step.do === 'wait') this.now += step.ms
    else if (step.do === 'query') this.#query()
    else if (step.do === 'reset') {
      this.breaker.reset(this.now)
      this.model.reset(this.now)
    } else if (step.do === 'force') {
      this.breaker.force(step.state, step.ttlMs, null, this.now)
      this.model.setForce(step.state, step.ttlMs, this.now)
    } else {
      this.breaker.sweep(this.now)
      this.model.look(this.now)
    }
  }

  check (): void {
    const { breaker, model, now } = this
    const snapshot = breaker.snapshot(now)
    assert.equal(snapshot.state, model.state)
    assert.equal(breaker.state, model.state)
    assert.equal(snapshot.outstanding.count, model.held.size)
    assert.equal(snapshot.wouldRefuse, model.wouldRefuse)
    assert.equal(snapshot.consecutiveFailures, model.streak)
    const results = model.inWindow(now)
    assert.deepEqual([snapshot.window.total, snapshot.window.failures], [results.length, results.filter(({ failed }) => failed).length])
    const { buckets } = snapshot.window
    assert.deepEqual([buckets.reduce((sum, [, total]) => sum + total, 0), buckets.reduce((sum, [,, failures]) => sum + failures, 0)], [snapshot.window.total, snapshot.window.failures])
    assert.ok(snapshot.probes.inFlight >= 0 && snapshot.probes.inFlight <= this.batch)
    assert.ok(model.liveProbes(now) <= this.batch)
  }

  /** All that was told: legal, a chain without a gap, and what the model told. */
  checkTransitions (): void {
    let state = 'closed'
    let generation = 0
    for (const { from, to, cause, generation: of, openForMs } of this.transitions) {
      assert.equal(from, state, 'begins where the last one ended')
      if (cause in legal) assert.equal(`${from}>${to}`, legal[cause])
      assert.ok(of > generation, 'a new generation each time')
      assert.ok(to === 'open' ? openForMs >= 0 : openForMs === 0)
      state = to
      generation = of
    }
    assert.deepEqual(this.transitions.map(({ from, to, cause }) => ({ from, to, cause })), this.model.told)
  }

  #admit (): void {
    const wouldAdmit = this.breaker.wouldAdmit(this.now)
    const id = ++this.#ids
    const permit = this.breaker.admit(this.now)
    const kind = this.model.admit(id, this.now)
    assert.equal(wouldAdmit, permit !== 0, 'wouldAdmit tells what admit does')
    assert.equal(permit === 0 ? null : permit < 0, kind === null ? null : kind === 'probe', `${permit} for ${kind}`)
    if (permit !== 0) this.permits.push({ id, permit })
  }

  #settle (which: number, outcome: Outcome): void {
    if (this.permits.length === 0) return
    const [{ id, permit }] = this.permits.splice(which % this.permits.length, 1) as [{ id: number, permit: Permit }]
    this.breaker.settle(permit, outcome, this.now)
    this.model.settle(id, outcome, this.now)
    // a probe's serial is known only once
    if (permit < 0) this.breaker.settle(permit, 'failure', this.now)
  }

  /** Looking changes nothing. */
  #query (): void {
    const before = this.breaker.snapshot(this.now)
    const wait = this.breaker.retryAfterMs(this.now)
    assert.equal(wait === 0, this.breaker.wouldAdmit(this.now))
    assert.ok(wait >= 0 && Number.isFinite(wait), `${wait}`)
    assert.deepEqual(this.breaker.snapshot(this.now), before)
  }
}

describe('the breaker against a model of it', () => {
  for (const [name, start] of [['from boot', 0.5], ['across 2^31 ms of uptime', 2 ** 31 - 60000]] as const) {
    it(`agrees after every step of any history, ${name}`, () => {
      fc.assert(fc.property(configs, steps, (config, history) => {
        const pair = new Pair(config, start)
        for (const step of history) {
          pair.run(step)
          pair.check()
        }
        pair.checkTransitions()
        while (pair.permits.length > 0) pair.run({ do: 'settle', which: 0, outcome: 'ignored' })
        assert.equal(pair.breaker.outstanding, 0)
      }), { numRuns: 250 })
    })
  }
})
