import type { RetryOptions } from '../../config/schema.ts'
import { RollingWindow } from '../window.ts'

type BudgetOptions = RetryOptions['budget']

const seconds = 10

/** The budget's numbers at one moment, all of them counts of the last ten seconds. */
export interface BudgetSnapshot {
  requests: number
  /** Retries and hedges that were granted. */
  taken: number
  /** How many of them these requests allow. */
  allowed: number
  /** How many more would be granted now. */
  remaining: number
}

/**
 * What retries and hedges may add to the load of one pool. Within ten slots of a second, the current one included:
 *
 *     taken <= 10 * minPerSecond + ratio * requests
 *
 * holds after each grant. So over any time, however long, the grants stay below `ratio` of the requests and ten times
 * `minPerSecond` for each ten seconds begun. A further attempt is counted when it is scheduled: those that wait in their back-off
 * count (envoy#30205), and one that is not made in the end is not given back. With both numbers 0 nothing is ever granted.
 *
 * Times are monotonic milliseconds. A clock that steps back counts in the newest slot. Nothing is allocated after construction.
 * Source: the token budget of tower, over an interval as asked for in envoy#43022, in place of a count of what runs at the moment.
 */
export class RetryBudget {
  #options: BudgetOptions
  readonly #requests: RollingWindow
  readonly #taken: RollingWindow
  /** How often none was granted; only upwards. */
  refused = 0

  constructor (options: BudgetOptions, now: number) {
    this.#options = options
    this.#requests = new RollingWindow(seconds, now)
    this.#taken = new RollingWindow(seconds, now)
  }

  /** Counts a request: an exchange's first attempt, whether it is ever retried or not. */
  request (now: number): void {
    this.#requests.record(now, false)
  }

  /** Whether one more attempt may be scheduled; if so, it is counted. */
  tryTake (now: number): boolean {
    if (this.#taken.total(now) + 1 > this.#allowed(now)) {
      this.refused++
      return false
    }
    this.#taken.record(now, false)
    return true
  }

  /** Other numbers from now on. What was counted stays. */
  configure (options: BudgetOptions): void {
    this.#options = options
  }

  snapshot (now: number): BudgetSnapshot {
    const taken = this.#taken.total(now)
    const allowed = this.#allowed(now)
    return { requests: this.#requests.total(now), taken, allowed, remaining: Math.max(0, allowed - taken) }
  }

  #allowed (now: number): number {
    const { ratio, minPerSecond } = this.#options
    // 0.29 * 100 is a little less than 29 in floating point, and must not grant 28
    return Math.floor(seconds * minPerSecond + ratio * this.#requests.total(now) + 1e-9)
  }
}
