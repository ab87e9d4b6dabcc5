import type { BreakerOptions } from '../../config/schema.ts'
import type { Random } from '../random.ts'

/**
 * How long a circuit stays open: `min(openMs * 2^k, maxOpenMs)`, lengthened by at most `jitter`. `k` rises with each opening while
 * the cap is not reached, and falls by one for each full open time that was then spent closed, so that an upstream that flaps
 * does back off, and one that recovered for good is trusted again step by step.
 * Source: Envoy's outlier ejection, which decays likewise but grows by multiples.
 */
export class Backoff {
  #exponent = 0
  #lastMs = 0.5
  /** When the circuit was closed for the last time, and how often it opened again since then. */
  leftClosedAt = 0.5
  reopened = 0

  /** The circuit opens: from closed, or again. */
  opens (fromClosed: boolean, now: number): void {
    if (fromClosed) {
      this.leftClosedAt = now
      this.reopened = 0
    } else this.reopened++
  }

  /**
   * The next open time, in ms.
   * @param closedMs how long the circuit was closed since it last opened
   */
  next (closedMs: number, options: BreakerOptions, random: Random): number {
    this.#exponent = Math.max(0, this.#exponent - Math.floor(Math.max(0, closedMs) / this.#lastMs))
    const grown = options.openMs * 2 ** this.#exponent
    // growing on beyond the cap would only make the way back longer; it also keeps 2^k finite
    if (grown < options.maxOpenMs) this.#exponent++
    // the cap comes before the jitter: a fleet at its cap must not come back in step
    this.#lastMs = Math.min(grown, options.maxOpenMs) * (1 + options.jitter * random())
    return this.#lastMs
  }
}
