/** After this time without an answer, in ms, an estimate counts for 1/e of what it was. */
const decayMs = 10000
/** What an upstream of which nothing is known is taken for while its first answer is awaited, in ms. */
const unknownMs = 1000
/** Faster than this is not told apart: in-flight exchanges decide there. In ms. */
const floorMs = 1
/** What a failed answer counts for at least, in ms. */
const penaltyMs = 5000
/** No estimate is higher, in ms: nothing is held against an upstream for ever. */
const maxMs = 300000

/**
 * The usual time to an upstream's answer, in ms: it rises to a slower answer at once and falls with time (an exponentially weighted
 * moving average, sensitive to peaks). It belongs to the upstream and outlives pools and reloads.
 *
 * Without answers it decays toward nothing, so that an upstream that was slow is tried again; and once one is on its way to it, it
 * counts in full again, so that it gets one request to show what it can do, and not a flood of them. The same holds for an upstream
 * of which nothing is known yet.
 *
 * The caller records the time to the head of every answer that counts as a success, and for exchanges that end without one (the
 * client left) the time until then. For failures (429, 5xx, no answer) it calls `penalise`: an error is fast, and must not look so.
 *
 * Times are monotonic milliseconds; a clock that goes back only stops the decay.
 *
 * Source: Finagle's and Linkerd's peak EWMA, with Linkerd's injection of latency for failures.
 */
export class PeakEwma {
  /** The estimate when it was last sampled, and when that was. Born as fractions, because V8 then keeps the fields doubles. */
  #estimate = 0.5
  #sampledAt = 0.5
  /** Since when it decays: its last sample or, if later, the last request to it; and that value before the last request. */
  #since = 0.5
  #sinceBefore = 0.5

  constructor () {
    this.#estimate = unknownMs
    this.#sampledAt = this.#since = this.#sinceBefore = -Infinity
  }

  /** An answer took so many milliseconds. What is no time is ignored. */
  record (ms: number, now: number): void {
    if (!(ms >= 0)) return
    if (ms > this.#estimate) {
      this.#estimate = Math.min(ms, maxMs)
    } else {
      const kept = decay(now - this.#sampledAt)
      this.#estimate = this.#estimate * kept + ms * (1 - kept)
    }
    if (now > this.#sampledAt) this.#sampledAt = now
    if (now > this.#since) this.#since = now
  }

  /**
   * An exchange failed: it counts as an answer of max(5000, min(ms, 300000)).
   * @param ms its Retry-After in milliseconds; 0: none
   */
  penalise (ms: number, now: number): void {
    this.record(ms > penaltyMs ? ms : penaltyMs, now)
  }

  /** What one more request to it costs: the estimate at `now`, times the exchanges at it with that one. */
  cost (inFlight: number, now: number): number {
    const ms = this.#estimate * decay(now - this.#since)
    return (ms > floorMs ? ms : floorMs) * (inFlight + 1)
  }

  /** A request goes to it. */
  asked (now: number): void {
    this.#sinceBefore = this.#since
    if (now > this.#since) this.#since = now
  }

  /** The latest request did not go to it after all. */
  notAsked (): void {
    this.#since = this.#sinceBefore
  }
}

/** e^(-elapsed / decayMs). Between the answers of a busy upstream little time goes by: there three terms of the series are exact to 2e-7. */
function decay (elapsedMs: number): number {
  if (!(elapsedMs > 0)) return 1
  const x = elapsedMs / decayMs
  return x < 0.01 ? 1 - x * (1 - x / 2) : Math.exp(-x)
}
