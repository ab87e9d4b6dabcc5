import assert from 'node:assert/strict'
import { Value } from 'typebox/value'
import { BreakerOptions } from '../../../config/schema.ts'
import { Breaker } from '../../../lib/breaker/breaker.ts'
import type { BreakerState, Outcome, Permit, Transition } from '../../../lib/breaker/types.ts'

type Sections = 'window' | 'stall' | 'halfOpen'
export type Overrides = Partial<Omit<BreakerOptions, Sections>> & { [K in Sections]?: Partial<BreakerOptions[K]> }

/** The schema's defaults without jitter and without the share of the usual volume, so that tables can be exact. */
export function optionsWith (overrides: Overrides = {}): BreakerOptions {
  const { window, stall, halfOpen, ...rest } = overrides
  return Value.Default(BreakerOptions, {
    jitter: 0,
    ...rest,
    window: { minimumShare: 0, ...window },
    stall: { ...stall },
    halfOpen: { ...halfOpen }
  }) as BreakerOptions
}

const outcomes: Record<string, Outcome> = { S: 'success', F: 'failure', X: 'cancelled', I: 'ignored' }

/** A breaker with a hand on its clock. */
export class Rig {
  readonly breaker: Breaker
  readonly transitions: Transition[] = []
  now: number

  constructor (overrides: Overrides = {}, { now = 0, random = () => 0 }: { now?: number, random?: () => number } = {}) {
    this.now = now
    this.breaker = new Breaker(optionsWith(overrides), random, now, transition => this.transitions.push(transition))
  }

  get state (): BreakerState {
    return this.breaker.state
  }

  get snapshot () {
    return this.breaker.snapshot(this.now)
  }

  /** `[successes, failures]` in the window. */
  get counts (): [number, number] {
    const { total, failures } = this.snapshot.window
    return [total - failures, failures]
  }

  get causes (): string[] {
    return this.transitions.map(({ cause }) => cause)
  }

  admit (): Permit {
    return this.breaker.admit(this.now)
  }

  settle (permit: Permit, outcome: Outcome): void {
    this.breaker.settle(permit, outcome, this.now)
  }

  /** Admits and settles one request, which fails like this. */
  fail (what: string): this {
    const permit = this.admit()
    this.breaker.failing(permit, what, this.now)
    this.settle(permit, 'failure')
    return this
  }

  /** Steps the clock and lets time have its effect. */
  wait (ms: number): this {
    this.now += ms
    this.breaker.sweep(this.now)
    return this
  }

  /** One request after the other, each admitted and settled now. F failure, S success, X cancelled, I ignored, `-` must be refused. */
  play (script: string): this {
    for (const letter of script) {
      const permit = this.admit()
      if (letter === '-') {
        assert.equal(permit, 0, `should be refused at ${this.now}`)
        continue
      }
      assert.notEqual(permit, 0, `should be admitted at ${this.now}`)
      this.settle(permit, outcomes[letter]!)
    }
    return this
  }

  /** Opens the circuit by failures in a row. */
  trip (): this {
    for (let left = 1000; this.state !== 'open'; left--) {
      assert.ok(left > 0, 'does not open')
      this.play('F')
    }
    return this
  }
}
