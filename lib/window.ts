/**
 * A rolling count of results by age: one bucket for each of the last `seconds` whole seconds, with running sums, so that a
 * result costs the same whatever the window's length. The window is the current, partial second and the `seconds - 1` before it:
 * a bucket counts iff `now - its second < seconds`. Nothing is allocated after construction.
 *
 * Time is monotonic milliseconds. A `now` that lies before the newest second counts in that second: a clock that steps back
 * loses nothing.
 *
 * Source: the partial aggregations of resilience4j's time-based window, with its two faults (expiry only on record, a clock that
 * goes back) removed.
 */
export class RollingWindow {
  /** Length, in seconds (>= 1). */
  readonly seconds: number
  /** Per bucket: total, failures. The newest bucket is at `#head`. */
  readonly #slots: Int32Array
  #head = 0
  #second: number
  /** When the newest second ends, in ms. Born as a fraction, because V8 then keeps the field a double. */
  #ends = 0.5
  #total = 0
  #failures = 0

  constructor (seconds: number, now: number) {
    this.seconds = seconds
    this.#slots = new Int32Array(2 * seconds)
    this.#second = Math.floor(now / 1000)
    this.#ends = 1000 * (this.#second + 1)
  }

  /** Counts one result that ended at `now`. */
  record (now: number, failed: boolean): void {
    if (now >= this.#ends) this.#rotate(Math.floor(now / 1000))
    const slot = 2 * this.#head
    this.#slots[slot]!++
    this.#total++
    if (failed) {
      this.#slots[slot + 1]!++
      this.#failures++
    }
  }

  /** Results in the window at `now`. */
  total (now: number): number {
    if (now >= this.#ends) this.#rotate(Math.floor(now / 1000))
    return this.#total
  }

  /** Failures in the window at `now`. */
  failures (now: number): number {
    if (now >= this.#ends) this.#rotate(Math.floor(now / 1000))
    return this.#failures
  }

  /** The buckets that are not empty, newest first: age in whole seconds, total, failures. */
  buckets (now: number): Array<[ageSeconds: number, total: number, failures: number]> {
    this.total(now)
    const filled: Array<[number, number, number]> = []
    for (let age = 0; age < this.seconds; age++) {
      const slot = 2 * ((this.#head - age + this.seconds) % this.seconds)
      const total = this.#slots[slot]!
      if (total > 0) filled.push([age, total, this.#slots[slot + 1]!])
    }
    return filled
  }

  /** Forgets everything. */
  clear (now: number): void {
    if (now >= this.#ends) this.#rotate(Math.floor(now / 1000))
    if (this.#total > 0) this.#slots.fill(0)
    this.#total = 0
    this.#failures = 0
  }

  /** A window of another length that holds what this one holds, as far as it reaches. */
  resized (seconds: number, now: number): RollingWindow {
    const next = new RollingWindow(seconds, now)
    const buckets = this.buckets(now)
    next.#second = this.#second
    next.#ends = this.#ends
    for (const [age, total, failures] of buckets) {
      if (age >= seconds) break
      // the new window's head is at 0, so a bucket of this age lies that far before its end
      const slot = 2 * ((seconds - age) % seconds)
      next.#slots[slot] = total
      next.#slots[slot + 1] = failures
      next.#total += total
      next.#failures += failures
    }
    return next
  }

  #rotate (second: number): void {
    const steps = second - this.#second
    this.#second = second
    this.#ends = 1000 * (second + 1)
    if (steps >= this.seconds) {
      this.#slots.fill(0)
      this.#total = 0
      this.#failures = 0
      return
    }
    for (let step = 0; step < steps; step++) {
      this.#head = this.#head + 1 === this.seconds ? 0 : this.#head + 1
      const slot = 2 * this.#head
      this.#total -= this.#slots[slot]!
      this.#failures -= this.#slots[slot + 1]!
      this.#slots[slot] = 0
      this.#slots[slot + 1] = 0
    }
  }
}
