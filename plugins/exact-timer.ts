/** A timer that is later than this, in ms, says that our own event loop stood still: what has come must be read before anybody is judged. */
export const stallMs = 25

/** A stall of this share of the time limit makes the limit meaningless; a shorter one only delays the verdict. */
const stallShare = 0.1

/** Whether a timer that came `late` ms after its limit of `ms` can blame anybody. */
export const wasStalled = (late: number, ms: number): boolean => late >= stallMs && late >= ms * stallShare

/**
 * Calls `expired` after `ms`, and tells whether our own loop stalled meanwhile. After a stall Node runs timers before it reads
 * what has arrived in time, so a late timer gives way to the poll phase first: two turns of `setImmediate`.
 * Returns a function that stops it.
 */
export function exactTimer (ms: number, expired: (stalled: boolean) => void): () => void {
  const due = performance.now() + ms
  let stopped = false
  const timer = setTimeout(() => {
    const late = performance.now() - due
    if (late < stallMs) return expired(false)
    afterReading(() => { if (!stopped) expired(wasStalled(late, ms)) })
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
