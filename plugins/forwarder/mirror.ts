import type { MirrorOptions, TimeoutOptions } from '../../config/schema.ts'
import type { Exchange } from '../../lib/exchange.ts'
import type { Outcome } from '../../lib/failure.ts'
import type { Random } from '../../lib/random.ts'
import { exactTimer } from '../exact-timer.ts'
import { Attempt } from './attempt.ts'
import type { AttemptOwner } from './owner.ts'
import { endByLimit } from './phases.ts'
import type { Outgoing } from './outgoing.ts'
import type { Terms } from './terms.ts'

/** What was copied to a pool; only upwards. */
export interface MirrorCounts {
  /** Copies that were sent. */
  sent: number
  /** Of these, those without a whole answer. */
  failed: number
  /** Copies that were not made: as many as may be were under way, or no upstream took them. */
  dropped: number
}

export const noMirrors = (): MirrorCounts => ({ sent: 0, failed: 0, dropped: 0 })

/** The longest time for a copy whose pool sets no limit, in ms. */
const longestMs = 60000

/** Copies of requests for another pool: nothing that becomes of them is seen by anybody but the counters and that pool's breakers. */
export class Mirrors {
  readonly #random: Random
  readonly #underWay = new WeakMap<MirrorOptions, number>()

  constructor (random: Random) {
    this.#random = random
  }

  /** Whether a copy of a request is wanted. @param contentLength of its body; -1: unknown */
  wants ({ share, maxBodyBytes }: MirrorOptions, contentLength: number): boolean {
    return contentLength >= 0 && contentLength <= maxBodyBytes && (share >= 1 || this.#random() < share)
  }

  /**
   * Sends a copy, if there is room for one.
   * @param terms of the pool that gets it
   * @param original whose copy it is
   */
  send (options: MirrorOptions, terms: Terms, counts: MirrorCounts, original: Exchange | null, outgoing: Outgoing, body: Buffer | null): void {
    const underWay = this.#underWay.get(options) ?? 0
    const { lane } = terms
    const now = performance.now()
    if (underWay >= options.maxInFlight || lane.select(now) !== null) {
      counts.dropped++
      return
    }
    const { index, permit } = lane
    this.#underWay.set(options, underWay + 1)
    counts.sent++
    const ended = (failed: boolean): void => {
      this.#underWay.set(options, (this.#underWay.get(options) ?? 1) - 1)
      if (failed) counts.failed++
    }
    let copy: Copy | null = null
    try {
      const { totalMs } = terms.limits
      copy = new Copy(terms, ended)
      const attempt = new Attempt(copy, terms, index, permit, outgoing.copyFor(lane.pool, body, totalMs === 0 ? Infinity : now + totalMs), now)
      attempt.copyOf = original
      attempt.count('copy')
      copy.begin(attempt)
    } catch (error) {
      if (copy?.begun !== true) {
        lane.release(index)
        lane.settle(index, permit, 'ignored', false, now)
      }
      ended(true)
      throw error
    }
  }
}

/** One copy on its way: its answer is read and dropped, in a bounded time. */
class Copy implements AttemptOwner {
  readonly exchange = null
  readonly #limits: TimeoutOptions
  readonly #ended: (failed: boolean) => void
  #stop: () => void = () => {}
  #over = false
  begun = false

  constructor ({ limits }: Terms, ended: (failed: boolean) => void) {
    this.#limits = limits
    this.#ended = ended
  }

  begin (attempt: Attempt): void {
    const { headersMs, totalMs } = this.#limits
    this.begun = true
    this.#limit(attempt, Math.min(headersMs || longestMs, totalMs || longestMs), (stalled) => endByLimit(attempt, null, false, stalled).outcome)
    attempt.upstream.enter(attempt)
  }

  /** The head has come: what is left of the time is the body's, and cutting that blames nobody. */
  responseHead (attempt: Attempt): void {
    this.#stop()
    this.#limit(attempt, this.#limits.totalMs || longestMs, () => 'ignored')
  }

  informational (): void {}
  bodyChunk (): boolean { return true }
  bodyEnd (): void { this.#end(false) }
  attemptFailed (): void { this.#end(true) }

  #limit (attempt: Attempt, ms: number, outcome: (stalled: boolean) => Outcome): void {
    this.#stop = exactTimer(ms, (stalled) => {
      attempt.cancel(outcome(stalled))
      this.#end(true)
    })
  }

  #end (failed: boolean): void {
    if (this.#over) return
    this.#over = true
    this.#stop()
    this.#ended(failed)
  }
}
