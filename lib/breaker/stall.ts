import type { BreakerOptions } from '../../config/schema.ts'
import { UsualLatency } from '../latency.ts'
import { Silence, tickMs, type Waiter } from './silence.ts'
import type { StallEvidence } from './types.ts'

export type StallOptions = BreakerOptions['stall']

/** A route may be so many times slower than its upstream and still counts as quick. */
const tolerance = 4
/** A silence that would have to last longer than this, in ms, is never judged: time limits are shorter. */
const patienceMs = 60000
/** So many ticks without an answer on a quick route, ten seconds, and every answer teaches what is usual. */
const estrangedTicks = 10000 / tickMs

/** How long a silence must last, in ms, at an upstream with this usual time. */
export const stallAfter = (usualMs: number, { factor, minMs }: StallOptions): number => Math.max(minMs, factor * usualMs)

/**
 * Whether the silence of an attempt on this route says anything. It does not where the route is unknown (0), or by its nature far slower
 * than the upstream is (long polls, reports): not up to a fixed multiple of the upstream's usual time, nor of what `minMs` stands for.
 * @param routeMs the usual time of the route, @param upstreamMs that of the upstream; in ms, 0 while unknown
 */
export const isQuick = (routeMs: number, upstreamMs: number, { factor, minMs }: StallOptions): boolean =>
  routeMs > 0 && factor * routeMs <= patienceMs && routeMs <= tolerance * Math.max(upstreamMs, minMs / factor)

/**
 * The trigger for an upstream that was quick and goes silent: `outstanding` attempts on quick routes older than max(`minMs`,
 * `factor` x its usual 95th percentile), and nothing heard from it since the oldest of them began to wait. What is usual of the upstream
 * is in the same object: there is one for each breaker, and its memory counts.
 */
export class StallTrigger extends UsualLatency {
  readonly #silence = new Silence()
  /** Ticks since the last answer on a quick route. */
  #estranged = 0

  /** The usual time to a response's head, in ms; 0 while fewer than 20 are known. */
  get usualMs (): number {
    return this.value
  }

  /** How many attempts wait in silence, and how many of them for too long. */
  get waiting (): number {
    return this.#silence.waiting
  }

  get overdue (): number {
    return this.#silence.overdue
  }

  /** How long the oldest attempt has waited since the upstream was last heard, in ms; null when none does. */
  get oldestMs (): number | null {
    return this.#silence.oldestMs
  }

  /** The names of attempts that have waited for too long, of those that have one, the oldest first, at most ten; frozen. */
  overdueNames (): readonly string[] {
    return this.#silence.overdueNames()
  }

  /** An attempt begins to wait. Returns its watch, 0 if it is not watched. */
  waits (routeMs: number, options: StallOptions, who: Waiter | null): number {
    const usualMs = this.value
    return usualMs > 0 && isQuick(routeMs, usualMs, options) ? this.#silence.waits(who) : 0
  }

  /**
   * A response's head came after `ms`. Slow routes do not teach: a tenth of long polls would make them the usual. But where nothing
   * is known, or nothing quick is left (an upstream whose routes have all become slower), all teach that answer in a time that could be judged.
   */
  learn (watch: number, ms: number, { factor }: StallOptions): void {
    if (watch !== 0) this.#estranged = 0
    else if (factor * ms > patienceMs || (this.value !== 0 && this.#estranged < estrangedTicks)) return
    this.record(ms)
  }

  /** The upstream was heard, or all is to begin anew. */
  end (): void {
    this.#silence.end()
  }

  /** An attempt waits no longer, though nothing came. */
  leaves (watch: number, who: Waiter | null): void {
    this.#silence.leaves(watch, who)
  }

  /** To be called every `tickMs`; not while our own event loop stands still. */
  tick (options: StallOptions): void {
    if (this.#estranged < estrangedTicks) this.#estranged++
    this.#silence.tick(stallAfter(this.value, options))
  }

  /** Whether the silence has become a stall. */
  reached ({ outstanding }: StallOptions): boolean {
    return this.#silence.overdue >= outstanding
  }

  /** The numbers behind that; frozen. */
  evidence (options: StallOptions): StallEvidence {
    return Object.freeze({
      outstanding: this.#silence.overdue,
      oldestMs: this.#silence.oldestMs ?? 0,
      stallAfterMs: Math.round(stallAfter(this.value, options))
    })
  }
}
