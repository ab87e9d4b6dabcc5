/** For each kind at most one line in so many ms. */
const everyMs = 10_000

/**
 * Tells of what strangers can make happen as often as they like, which would fill the log otherwise: of each kind the first one at once,
 * and then, at most every ten seconds, how many more there were.
 */
export class Repeats<Kind, First> {
  readonly #tell: (kind: Kind, count: number, first: First | null) => void
  /** How many of a kind have not been told, while their time runs. */
  readonly #untold = new Map<Kind, number>()
  readonly #timers = new Set<NodeJS.Timeout>()

  /** @param tell `first`: what is known of one that is told at once; null: these are several */
  constructor (tell: (kind: Kind, count: number, first: First | null) => void) {
    this.#tell = tell
  }

  add (kind: Kind, first: First): void {
    const untold = this.#untold.get(kind)
    if (untold === undefined) this.#tellNow(kind, 1, first)
    else this.#untold.set(kind, untold + 1)
  }

  #tellNow (kind: Kind, count: number, first: First | null): void {
    this.#untold.set(kind, 0)
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      const untold = this.#untold.get(kind) ?? 0
      this.#untold.delete(kind)
      if (untold > 0) this.#tellNow(kind, untold, null)
    }, everyMs).unref()
    this.#timers.add(timer)
    this.#tell(kind, count, first)
  }

  close (): void {
    for (const timer of this.#timers) clearTimeout(timer)
  }
}
