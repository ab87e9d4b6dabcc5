import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { isQuick } from '../../../lib/breaker/stall.ts'
import type { Waiter } from '../../../lib/breaker/silence.ts'
import type { Outcome, Permit } from '../../../lib/breaker/types.ts'
import type { BreakerOptions } from '../../../config/schema.ts'
import { optionsWith, Rig } from './support.ts'

const tickMs = 100

interface Waiting extends Waiter {
  /** In the order of their beginning. */
  number: number
  permit: Permit
  watch: number
  /** The tick at which it began to wait. */
  since: number
  /** Whether the model holds that its silence counts. */
  counts: boolean
}

/** The trigger as one would write it without a thought for memory: it keeps every attempt and when it began. */
class StallModel {
  readonly options: BreakerOptions['stall']
  attempts: Waiting[] = []
  ticks = 0
  /** The tick at which the first attempt of this silence began to wait. */
  began = 0
  #lastHeard = 0

  constructor (options: BreakerOptions['stall']) {
    this.options = options
  }

  /** Those whose silence counts. */
  get silent (): Waiting[] {
    return this.attempts.filter(({ counts }) => counts)
  }

  /** Whether an attempt that begins now counts. */
  counts (routeMs: number, usualMs: number): boolean {
    const known = usualMs > 0 && isQuick(routeMs, usualMs, this.options)
    return known && (this.silent.length > 0 || this.ticks - this.#lastHeard <= 600)
  }

  heard (): void {
    this.#lastHeard = this.ticks
    for (const attempt of this.attempts) attempt.counts = false
  }

  /** How many attempts have waited for longer than `limitMs`, and by how much they may be younger: the width of a slot. */
  older (limitMs: number): { certainly: number, possibly: number, names: string[] } {
    const limit = Math.max(1, Math.ceil(limitMs / tickMs))
    const slot = Math.ceil(limit / 7)
    // an attempt began somewhere between two ticks: what lies before the first one is not counted
    const waited = this.silent.map(({ since }) => this.ticks - since - 1)
    const possibly = this.silent.filter((_, i) => waited[i]! >= limit)
    return { certainly: waited.filter(ticks => ticks >= limit + slot - 1).length, possibly: possibly.length, names: possibly.toSorted((a, b) => a.number - b.number).map(({ name }) => name) }
  }
}

type Step =
  | { do: 'send', times: number, routeMs: number }
  | { do: 'answer', which: number, ms: number }
  | { do: 'heard' }
  | { do: 'gaveUp', which: number, twice: boolean }
  | { do: 'settle', which: number, outcome: Outcome }
  | { do: 'tick', times: number }
  | { do: 'jump', ms: number }
  | { do: 'reset' }
  | { do: 'force' }

const which = fc.nat(1000)
const steps: fc.Arbitrary<Step[]> = fc.array(fc.oneof(
  { weight: 10, arbitrary: fc.record({ do: fc.constant('send' as const), times: fc.integer({ min: 1, max: 5 }), routeMs: fc.constantFrom(10, 10, 10, 10, 0, 200, 900, 30000) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('answer' as const), which, ms: fc.constantFrom(0, 5, 10, 60, 400, 9000) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'heard' as const }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('gaveUp' as const), which, twice: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('settle' as const), which, outcome: fc.constantFrom<Outcome>('cancelled', 'ignored', 'success') }) },
  { weight: 12, arbitrary: fc.record({ do: fc.constant('tick' as const), times: fc.oneof({ weight: 12, arbitrary: fc.integer({ min: 1, max: 4 }) }, { weight: 1, arbitrary: fc.constantFrom(20, 90, 650) }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('jump' as const), ms: fc.integer({ min: -1e7, max: 1e7 }) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'reset' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'force' as const }) }
), { minLength: 10, maxLength: 150 })

const configs = fc.record({
  outstanding: fc.constantFrom(1, 2, 4, 8),
  factor: fc.constantFrom(1, 8, 20),
  minMs: fc.constantFrom(1, 100, 500, 701, 2000),
  usualMs: fc.constantFrom(10, 60, 300),
  mode: fc.constantFrom('enforce' as const, 'enforce' as const, 'observe' as const)
})
type Config = typeof configs extends fc.Arbitrary<infer T> ? T : never

class Pair {
  readonly rig: Rig
  readonly model: StallModel
  trips = 0
  #sent = 0

  constructor ({ usualMs, mode, ...stall }: Config) {
    const options = optionsWith({ mode, consecutiveFailures: 0, window: { failureRatio: 0 }, stall })
    this.rig = new Rig({ ...options, stall })
    this.model = new StallModel(stall)
    for (let i = 0; i < 40; i++) {
      const permit = this.rig.admit()
      this.rig.breaker.answered(permit, 0, usualMs)
      this.rig.settle(permit, 'success')
    }
  }

  get usualMs (): number {
    return this.rig.snapshot.outstanding.usualMs ?? 0
  }

  run (step: Step): void {
    const { rig, model } = this
    const { breaker } = rig
    switch (step.do) {
      case 'send': return this.#send(step.times, step.routeMs)
      case 'tick': {
        for (let i = 0; i < step.times && rig.state === 'closed'; i++) this.#tick()
        return
      }
      case 'heard': {
        breaker.heard()
        model.heard()
        return
      }
      case 'jump': {
        rig.now += step.ms
        return
      }
      case 'reset': {
        breaker.reset(rig.now)
        return model.heard()
      }
      case 'force': {
        breaker.force('closed', 1000, null, rig.now)
        breaker.force('auto', undefined, null, rig.now)
        return model.heard()
      }
      default: return this.#end(step)
    }
  }

  check (): void {
    const { oldestMs } = this.rig.snapshot.outstanding
    const { silent, ticks } = this.model
    if (silent.length === 0) return assert.equal(oldestMs, null)
    const waited = tickMs * (ticks - Math.min(...silent.map(({ since }) => since)))
    // one of the oldest may have left: that is not always known
    const longest = tickMs * (ticks - this.model.began)
    const slot = tickMs * Math.ceil(Math.max(1, Math.ceil((this.rig.snapshot.outstanding.stallAfterMs ?? 0) / tickMs)) / 7)
    assert.ok(oldestMs !== null && oldestMs >= waited - slot && oldestMs <= longest, `${oldestMs} of ${waited}, ${longest}`)
  }

  #send (times: number, routeMs: number): void {
    const { rig, model } = this
    for (let i = 0; i < times; i++) {
      const permit = rig.admit()
      const counts = rig.state === 'closed' && model.counts(routeMs, this.usualMs)
      const attempt: Waiting = { number: ++this.#sent, name: `r${this.#sent}`, permit, watch: 0, since: model.ticks, counts, waitsSince: 0, waitsBefore: null, waitsAfter: null }
      attempt.watch = rig.breaker.waits(permit, routeMs, attempt)
      const { watch } = attempt
      assert.equal(watch !== 0, counts, `route ${routeMs}, usual ${this.usualMs}`)
      if (counts && model.silent.length === 0) model.began = model.ticks
      model.attempts.push(attempt)
    }
  }

  #end (step: Step & { which: number }): void {
    const { rig, model } = this
    if (model.attempts.length === 0) return
    const [attempt] = model.attempts.splice(step.which % model.attempts.length, 1) as [Waiting]
    const { permit, watch } = attempt
    if (step.do === 'settle') {
      // settled first, and answered later
      rig.settle(permit, step.outcome)
      model.attempts.push(attempt)
    } else if (step.do === 'answer') {
      rig.breaker.answered(permit, watch, step.ms)
      model.heard()
    } else if (step.do === 'gaveUp') {
      rig.breaker.gaveUp(watch, attempt)
      // once more does no harm where its slot is empty by then
      if (step.twice && model.silent.length === 0) rig.breaker.gaveUp(watch, attempt)
    }
  }

  #tick (): void {
    const { rig, model } = this
    model.ticks++
    rig.now += tickMs
    const { stallAfterMs } = rig.snapshot.outstanding
    const { outstanding } = model.options
    const { certainly, possibly, names } = model.older(stallAfterMs ?? Number.POSITIVE_INFINITY)
    const suspected = rig.breaker.tick()
    const opened = rig.breaker.judgeStall(rig.now)
    assert.equal(suspected, opened)
    if (opened) assert.ok(possibly >= outstanding, `opened with ${possibly} of ${outstanding}`)
    else assert.ok(certainly < outstanding, `not opened with ${certainly} of ${outstanding}`)
    if (!opened) return
    this.trips++
    const { evidence, cause, waiting } = rig.transitions.at(-1)!
    const { stall } = evidence
    assert.equal(cause, 'stall')
    assert.ok(stall !== undefined && stall.outstanding >= certainly && stall.outstanding <= possibly && stall.oldestMs >= stall.stallAfterMs, JSON.stringify(stall))
    assert.deepEqual(waiting, names.slice(0, Math.min(10, stall.outstanding)))
    rig.breaker.reset(rig.now)
    model.heard()
  }
}

describe('the stall trigger against a model that keeps every attempt', () => {
  it('opens the circuit exactly when the model says so, within the width of a slot', () => {
    let trips = 0
    fc.assert(fc.property(configs, steps, (config, history) => {
      const pair = new Pair(config)
      for (const step of history) {
        pair.run(step)
        pair.check()
      }
      trips += pair.trips
    }), { numRuns: 500 })
    assert.ok(trips > 50, `only ${trips} stalls were seen`)
  })
})
