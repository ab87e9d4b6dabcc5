/**
 * Hands events to listeners, each once, in the order in which they were emitted: one that is emitted by a listener waits until all
 * have had the one before. A listener that throws, or whose promise is rejected, is reported and harms nobody. Who begins to listen
 * while an event is delivered hears the next one; who leaves hears no more.
 */
export class Emitter<T> {
  readonly #listeners = new Set<{ fn: (event: T) => unknown }>()
  readonly #waiting: T[] = []
  readonly #onError: (error: unknown) => void
  #delivering = false

  /** @param onError told what a listener threw, or why its promise was rejected */
  constructor (onError: (error: unknown) => void) {
    this.#onError = onError
  }

  /** Calls `fn` on every event until the returned function is called. */
  on (fn: (event: T) => unknown): () => void {
    const entry = { fn }
    this.#listeners.add(entry)
    return () => { this.#listeners.delete(entry) }
  }

  /** Takes a listener away, however often it listens. */
  off (fn: (event: T) => unknown): void {
    for (const entry of this.#listeners) if (entry.fn === fn) this.#listeners.delete(entry)
  }

  clear (): void {
    this.#listeners.clear()
  }

  emit (event: T): void {
    this.#waiting.push(event)
    if (this.#delivering) return
    this.#delivering = true
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) this.#deliver(next)
    } finally {
      this.#delivering = false
    }
  }

  #deliver (event: T): void {
    for (const entry of Array.from(this.#listeners)) if (this.#listeners.has(entry)) this.#call(entry.fn, event)
  }

  #call (fn: (event: T) => unknown, event: T): void {
    try {
      const result = fn(event)
      if (result instanceof Promise) result.catch(this.#onError)
    } catch (error) {
      this.#onError(error)
    }
  }
}
