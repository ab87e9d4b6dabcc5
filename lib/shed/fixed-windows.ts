interface Window {
  current: number
  startedAt: number
  /** Milliseconds until it ends, when it was last counted in. */
  ttl: number
}

/**
 * Counts events by key in fixed windows: a key's window begins with its first event and ends `windowMs` later, however many come. So
 * there are never more than twice as many as one window may have within any time of its length. At most `maxKeys` are remembered;
 * the one that was not counted for the longest time is forgotten.
 */
export class FixedWindows {
  readonly #windowMs: number
  readonly #maxKeys: number
  /** In the order of their latest events. */
  readonly #windows = new Map<string, Window>()

  /** @param maxKeys at least 1 */
  constructor (windowMs: number, maxKeys: number) {
    this.#windowMs = windowMs
    this.#maxKeys = maxKeys
  }

  get size (): number { return this.#windows.size }

  /** Counts an event in. The window that is returned is the key's own: it is to be read at once. @param now monotonic milliseconds */
  count (key: string, now: number): Readonly<Window> {
    let window = this.#windows.get(key)
    if (window === undefined) {
      window = { current: 0, startedAt: now, ttl: this.#windowMs }
      if (this.#windows.size >= this.#maxKeys) this.#windows.delete(this.#windows.keys().next().value as string)
    } else {
      this.#windows.delete(key)
      if (now - window.startedAt >= this.#windowMs) {
        window.current = 0
        window.startedAt = now
      }
    }
    window.current++
    window.ttl = window.startedAt + this.#windowMs - now
    this.#windows.set(key, window)
    return window
  }
}
