/**
 * Hands events to listeners in the order in which they were emitted: one that is emitted by a listener waits until all have had the
 * one before. A listener that throws, or whose promise is rejected, is reported and harms nobody.
 */
export class Emitter<T> {
  readonly #listeners = new Set<{ fn: (event: T) => unknown }>()
  readonly #queue: T[] = []
  readonly #onError: (error: unknown) => void
  #draining = false

  constructor (onError: (error: unknown) => void) {
    this.#onError = onError
  }

  /** Calls `fn` on every event until the returned function is called. */
  on (fn: (event: T) => unknown): () => void {
    const entry = { fn }
    this.#listeners.add(entry)
    return () => { this.#listeners.delete(entry) }
  }

  emit (event: T): void {
    this.#queue.push(event)
    if (this.#draining) return
    this.#draining = true
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      for (const { fn } of this.#listeners) this.#call(fn, next)
    }
    this.#draining = false
  }

  clear (): void {
    this.#listeners.clear()
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
