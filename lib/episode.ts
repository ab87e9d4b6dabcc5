/** What an episode was. Times are monotonic ms. */
export interface EpisodeView {
  readonly startedAt: number
  /** When it happened for the last time. */
  readonly lastAt: number
  readonly total: number
  /** How often it happened, by reason. */
  readonly reasons: Readonly<Record<string, number>>
  /** How often within one second of it, at most. */
  readonly peakPerSecond: number
}

/**
 * Makes one story of what happens many times: it begins with the first time, and has ended when nothing has happened for `quietMs`. A slow
 * drip is one episode, and two bursts with a quiet time between them are two.
 */
export class Episodes {
  readonly #quietMs: number
  #startedAt = 0
  #lastAt = 0
  #total = 0
  #reasons: Record<string, number> = {}
  #second = 0
  #inSecond = 0
  #peak = 0

  constructor (quietMs: number) {
    this.#quietMs = quietMs
  }

  /** The running one; null: there is none. */
  get current (): EpisodeView | null {
    if (this.#total === 0) return null
    return { startedAt: this.#startedAt, lastAt: this.#lastAt, total: this.#total, reasons: { ...this.#reasons }, peakPerSecond: this.#peak }
  }

  /** It happens, `count` times. True: an episode begins with it. */
  note (reason: string, now: number, count = 1): boolean {
    const begins = this.#total === 0
    const second = Math.floor(now / 1000)
    if (begins) {
      this.#startedAt = now
      this.#inSecond = 0
      this.#peak = 0
    }
    if (second !== this.#second) this.#inSecond = 0
    this.#second = second
    this.#inSecond += count
    this.#lastAt = now
    this.#total += count
    this.#reasons[reason] = (this.#reasons[reason] ?? 0) + count
    if (this.#inSecond > this.#peak) this.#peak = this.#inSecond
    return begins
  }

  /** The episode that has ended by now; null: none has. */
  ended (now: number): EpisodeView | null {
    return this.#total > 0 && now - this.#lastAt >= this.#quietMs ? this.end() : null
  }

  /** Ends the running one, whatever the time. */
  end (): EpisodeView | null {
    const { current } = this
    this.#total = 0
    this.#reasons = {}
    return current
  }
}
