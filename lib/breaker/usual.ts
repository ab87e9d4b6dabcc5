const past = 9
const minute = 60000

/**
 * What is usual for this upstream: results and peak concurrency by minute, over the last ten minutes that its circuit was closed.
 * The clock of these minutes stands still while it is not, so that an outage does not become the usual. Times are monotonic milliseconds.
 */
export class Usual {
  /** Complete minutes, as a ring of the newest nine: total, peak. Made in one piece, because an array that grows takes twice as much. */
  readonly #past = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  #minutes = 0
  #newest = past - 1
  #pastTotal = 0
  /** The current minute. */
  #total = 0
  #peak = 0
  /** When the current minute ends; while paused, how much of it is left. Born as a fraction, because V8 then keeps the field a double. */
  #ends = 0.5
  #paused = false

  constructor (now: number) {
    this.#ends = now + minute
  }

  /** So many attempts run at the same time now. */
  seen (concurrency: number): void {
    if (concurrency > this.#peak) this.#peak = concurrency
  }

  /** One result was counted at `now`. */
  count (now: number): void {
    if (now >= this.#ends) this.roll(now)
    this.#total++
  }

  /** Lets the minutes that have passed pass. */
  roll (now: number): void {
    if (this.#paused || now < this.#ends) return
    const minutes = Math.floor((now - this.#ends) / minute) + 1
    for (let step = Math.min(minutes, past + 1); step > 0; step--) this.#push()
    this.#ends += minute * minutes
  }

  /** Stops or resumes the clock of the minutes; calling it twice is harmless. */
  run (running: boolean, now: number): void {
    if (running !== this.#paused) return
    if (!running) this.roll(now)
    this.#paused = !running
    this.#ends = running ? now + this.#ends : Math.min(minute, this.#ends - now)
  }

  /**
   * The mean of results per window of this length. Before a whole window (or, for longer windows, ten minutes) has been seen,
   * the part that was seen counts as one: too little is known to extrapolate.
   * @param more results that are thought to come at `now`
   */
  volume (windowSeconds: number, now: number, more = 0): number {
    this.roll(now)
    const left = this.#paused ? this.#ends : Math.min(minute, this.#ends - now)
    const covered = minute * (this.#minutes + 1) - left
    const windowMs = 1000 * windowSeconds
    return (this.#pastTotal + this.#total + more) * windowMs / Math.max(covered, Math.min(windowMs, minute * (past + 1)))
  }

  /**
   * The usual peak concurrency, as the circuit opens at `now`. The two newest minutes do not count as soon as there is an older one,
   * and their peaks are forgotten: requests pile up at an upstream that fails, and that must not look usual.
   */
  takePeak (now: number): number {
    this.roll(now)
    if (this.#minutes === 0) return this.#peak
    this.#peak = 0
    if (this.#minutes > 1) this.#past[2 * this.#newest + 1] = 0
    return this.#past.reduce((highest, value, at) => at % 2 === 1 && value > highest ? value : highest, 0)
  }

  #push (): void {
    this.#newest = (this.#newest + 1) % past
    if (this.#minutes < past) this.#minutes++
    const at = 2 * this.#newest
    this.#pastTotal += this.#total - this.#past[at]!
    this.#past[at] = this.#total
    this.#past[at + 1] = this.#peak
    this.#total = 0
    this.#peak = 0
  }
}
