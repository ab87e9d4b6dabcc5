import type { Random } from './random.ts'

const firstWaitMs = 1000
const longestWaitMs = 60000
/** Whoever asks for more time than this gets so much. */
const longestAskedMs = 300000

/**
 * What waits to be delivered elsewhere, bounded: the oldest makes room and is counted. One batch is out at a time; what comes back
 * undelivered goes before the rest.
 */
export class Outbox<T> {
  #maxQueued: number
  #waiting: T[] = []
  #out: T[] = []
  #failures = 0
  /** How long the other side asked us to wait, in ms. */
  #askedMs = 0
  /** How many were dropped, ever. */
  dropped = 0

  constructor (maxQueued: number) {
    this.#maxQueued = maxQueued
  }

  /** Those that wait and those that are out. */
  get size (): number { return this.#waiting.length + this.#out.length }

  push (item: T): void {
    this.#waiting.push(item)
    this.#makeRoom()
  }

  setMaxQueued (maxQueued: number): void {
    this.#maxQueued = maxQueued
    this.#makeRoom()
  }

  /** The next batch, the oldest first; it is out until it has been delivered or has come back. Empty: nothing waits, or one is out. */
  take (most: number): readonly T[] {
    if (this.#out.length === 0) this.#out = this.#waiting.splice(0, most)
    return this.#out
  }

  delivered (): void {
    this.#out = []
    this.forgive()
  }

  /** What failed before says nothing of the next delivery: it goes to somebody else. */
  forgive (): void {
    this.#failures = 0
    this.#askedMs = 0
  }

  /** Nobody will ever take it. */
  refused (): void {
    this.dropped += this.#out.length
    this.#out = []
    this.#failures++
    this.#askedMs = 0
  }

  /** It was not delivered, and is to be tried again. @param askedMs not before this time, in ms; 0: nobody said so */
  cameBack (askedMs = 0): void {
    this.#waiting = [...this.#out, ...this.#waiting]
    this.#out = []
    this.#failures++
    this.#askedMs = Math.min(askedMs, longestAskedMs)
    this.#makeRoom()
  }

  /** How long to wait before the next delivery, in ms: doubled with each failure up to a minute, of which half is drawn; or what was asked for, up to five minutes, where that is more. */
  waitMs (random: Random): number {
    if (this.#failures === 0) return 0
    return Math.max(this.#askedMs, Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(this.#failures - 1, 16)) * (0.5 + 0.5 * random()))
  }

  #makeRoom (): void {
    const excess = Math.min(this.#waiting.length, this.size - this.#maxQueued)
    if (excess <= 0) return
    this.#waiting.splice(0, excess)
    this.dropped += excess
  }
}
