/**
 * The non-blocking concurrency gate: a place is taken or refused at once, nobody ever waits here.
 * Whoever took a place gives it back exactly once.
 */
export class Gate {
  #inFlight = 0
  #limit: number

  constructor (limit: number) {
    this.#limit = limit
  }

  get inFlight (): number { return this.#inFlight }
  get limit (): number { return this.#limit }

  /** Changes the limit for what comes; places already taken stay taken. */
  setLimit (limit: number): void {
    this.#limit = limit
  }

  tryAcquire (): boolean {
    if (this.#inFlight >= this.#limit) return false
    this.#inFlight++
    return true
  }

  release (): void {
    if (this.#inFlight === 0) throw new Error('the gate was released more often than acquired')
    this.#inFlight--
  }
}

/** How many places of a gate are given while the loop is too busy: an eighth, so that what is under way is worked off. */
export const busyPlaces = (limit: number): number => Math.max(1, Math.floor(limit / 8))
