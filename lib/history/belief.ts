import type { BreakerState } from '../breaker/types.ts'
import { codes } from './column.ts'

/** What is believed of an upstream at a moment. */
export interface Belief {
  /** null: it has none. */
  readonly breaker: BreakerState | null
  readonly healthy: boolean
  readonly draining: boolean
  readonly ejected: boolean
}

/** By severity: of what was seen in a step, the worst is kept. */
const breakerStates = [null, 'closed', 'half-open', 'open'] as const

/** The figures of some steps, oldest first. */
export interface BeliefFigures {
  /** The worst that was seen: 0 no breaker, 1 closed, 2 half-open, 3 open. */
  readonly breaker: readonly number[]
  /** What was true at any time, as a sum: 1 unhealthy, 2 draining, 4 ejected. */
  readonly out: readonly number[]
}

/** What was believed of an upstream in each of the last steps: 360 bytes. */
export class BeliefHistory {
  readonly #breaker = codes()
  readonly #out = codes()

  begin (step: number): void {
    this.#breaker.clear(step)
    this.#out.clear(step)
  }

  note (step: number, { breaker, healthy, draining, ejected }: Belief): void {
    this.#breaker.raise(step, breakerStates.indexOf(breaker))
    this.#out.put(step, this.#out.at(step) | (healthy ? 0 : 1) | (draining ? 2 : 0) | (ejected ? 4 : 0))
  }

  figures (first: number, last: number): BeliefFigures {
    return { breaker: this.#breaker.slice(first, last), out: this.#out.slice(first, last) }
  }
}

/** Whether it would be sent requests. */
export const isUsable = ({ breaker, healthy, draining, ejected }: Belief): boolean => breaker !== 'open' && healthy && !draining && !ejected
