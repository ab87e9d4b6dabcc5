/** How many request ids go with a transition. */
const most = 10

/** The ids of the requests whose failures count towards the next transition, the latest ones; bounded. */
export class Blamed {
  readonly #ids: string[] = []
  readonly #times: number[] = []

  /** @param at monotonic ms */
  add (requestId: string, at: number): void {
    if (this.#ids.length === most) {
      this.#ids.shift()
      this.#times.shift()
    }
    this.#ids.push(requestId)
    this.#times.push(at)
  }

  /** Those that it was for, the oldest first; nobody is blamed twice. @param since monotonic ms, @param count how many failures it was for */
  take (since: number, count: number): readonly string[] {
    const times = this.#times.splice(0)
    const ids = this.#ids.splice(0).filter((_, i) => (times[i] as number) >= since)
    return Object.freeze(count === 0 ? [] : ids.slice(-count))
  }
}
