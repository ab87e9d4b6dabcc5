/** A timer that is later than this says that our own event loop stood still, not that the other side was slow. */
export const stallMs = 25

/**
 * Calls `expired` after `ms`, and tells whether our own loop stalled meanwhile. After a stall Node runs timers before it reads
 * what has arrived in time, so a late timer gives way to the poll phase first: two turns of `setImmediate`.
 * Returns a function that stops it.
 */
export function exactTimer (ms: number, expired: (stalled: boolean) => void): () => void {
  const due = performance.now() + ms
  let stopped = false
  const timer = setTimeout(() => {
    if (performance.now() - due < stallMs) return expired(false)
    afterReading(() => { if (!stopped) expired(true) })
  }, ms)
  timer.unref()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

/** Runs `next` once the loop has read what was waiting on its sockets. */
export function afterReading (next: () => void): void {
  setImmediate(() => { setImmediate(next) })
}
