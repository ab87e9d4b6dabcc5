import type { TimeoutOptions } from '../../config/schema.ts'
import type { Evidence } from '../../lib/exchange.ts'

/** A limit due within this time, in ms, is due: Node's timers may be a fraction early. */
export const earlyMs = 0.5

/** While nobody waits for the client its time does not run: it is looked at again after this share of the window, however little was left. */
const restShare = 0.1

/** Where there is no `bodyIdleMs` to be the mean of, in ms. */
const defaultWindowMs = 30_000

/**
 * How a client's body has to come where its route has limits of its own for that: whole by a time, and never slower than a rate.
 * Only time in which somebody waits for the client counts for the rate: an upstream that is slow to read is not its fault. The rate is that of each
 * window for itself, so that nobody earns the right to trickle by having been quick.
 */
export class Pace {
  /** Monotonic time by which all of it has to be there. */
  readonly #due: number
  readonly #windowMs: number
  /** Bytes that a window has to bring. */
  readonly #needed: number
  #bytes = 0
  #waitedMs = 0
  /** Monotonic time since which the client is waited for; -1: it is not. */
  #since = -1

  /** @param receivedAt monotonic time from which `requestMs` counts */
  constructor ({ requestMs = 0, bodyIdleMs, minUploadBytesPerSecond }: TimeoutOptions, receivedAt: number) {
    this.#due = requestMs === 0 ? Infinity : receivedAt + requestMs
    this.#windowMs = bodyIdleMs || defaultWindowMs
    this.#needed = Math.ceil(minUploadBytesPerSecond * this.#windowMs / 1000)
  }

  /** The shortest of its limits, in ms; Infinity: it has none. */
  static shortest ({ requestMs, bodyIdleMs, minUploadBytesPerSecond }: TimeoutOptions): number {
    if (requestMs === undefined) return Infinity
    return Math.min(requestMs || Infinity, minUploadBytesPerSecond === 0 ? Infinity : bodyIdleMs || defaultWindowMs)
  }

  waits (now: number): void {
    if (this.#since < 0) this.#since = now
  }

  /** Nobody waits for the client for now. */
  rests (now: number): void {
    if (this.#since < 0) return
    this.#waitedMs += now - this.#since
    this.#since = -1
  }

  came (bytes: number, now: number): void {
    this.rests(now)
    this.#bytes += bytes
  }

  /** Milliseconds until the client is late; Infinity: it will not be. */
  left (now: number): number {
    return Math.min(this.#due - now, this.#windowLeft(now))
  }

  /** The numbers behind being late. */
  evidence (now: number): Evidence {
    return this.#due <= now + 1 ? { limit: 'timeouts.requestMs' } : { limit: 'timeouts.minUploadBytesPerSecond', bytes: this.#bytes, needed: this.#needed, windowMs: this.#windowMs }
  }

  #windowLeft (now: number): number {
    if (this.#needed === 0) return Infinity
    const rests = this.#since < 0
    const left = this.#windowMs - this.#waitedMs - (rests ? 0 : now - this.#since)
    // What is nearly over is over: what is left of it would be taken for being late.
    if (left >= earlyMs || this.#bytes < this.#needed) return rests ? Math.max(1, left, restShare * this.#windowMs) : left
    this.#bytes = 0
    this.#waitedMs = 0
    if (!rests) this.#since = now
    return this.#windowMs
  }
}
