import type { Clock } from '../../lib/clock.ts'
import { afterReading, stallMs } from '../exact-timer.ts'

/**
 * A time limit that runs only while our own event loop runs: it is counted in slices, and the time by which a slice ended late is not
 * charged. Before it expires, what has already arrived is read.
 * It never keeps the process alive.
 */
export class Deadline {
  readonly #clock: Clock
  readonly #onExpired: () => void
  readonly #slice: number
  #remaining: number
  #armedAt = 0
  #wait = 0
  #stalled = 0
  #timer: NodeJS.Timeout | undefined
  #done = false

  /** @param ms at least 1 */
  constructor (ms: number, clock: Clock, onExpired: () => void) {
    this.#clock = clock
    this.#onExpired = onExpired
    this.#slice = Math.min(Math.max(ms / 8, 5), 100)
    this.#remaining = ms
    this.#arm()
  }

  /** How long our event loop stood still since the start, in ms, as far as it has been noticed. */
  get stalledMs (): number {
    return this.#stalled + (this.#done ? 0 : this.#lateness())
  }

  cancel (): void {
    this.#stalled = this.stalledMs
    this.#done = true
    clearTimeout(this.#timer)
  }

  #lateness (): number {
    const late = this.#clock() - this.#armedAt - this.#wait
    return late > stallMs ? late : 0
  }

  #arm (): void {
    this.#armedAt = this.#clock()
    this.#wait = Math.min(this.#slice, this.#remaining)
    this.#timer = setTimeout(() => { this.#tick() }, Math.ceil(this.#wait))
    this.#timer.unref()
  }

  #tick (): void {
    const late = this.#lateness()
    this.#stalled += late
    this.#remaining -= late > 0 ? this.#wait : this.#clock() - this.#armedAt
    if (this.#remaining >= 1) {
      this.#arm()
      return
    }
    this.#armedAt = this.#clock()
    this.#wait = 0
    afterReading(() => {
      if (this.#done) return
      this.cancel()
      this.#onExpired()
    })
  }
}
