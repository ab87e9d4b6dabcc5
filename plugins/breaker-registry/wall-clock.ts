import type { Clock } from '../../lib/clock.ts'

/**
 * Monotonic milliseconds as ISO 8601. One offset is kept, so that the same instant always reads the same; only a step of the
 * wall clock of a second or more is followed.
 */
export function wallClock (clock: Clock): (at: number) => string {
  let offset = Date.now() - clock()
  return (at) => {
    const current = Date.now() - clock()
    if (Math.abs(current - offset) >= 1000) offset = current
    return new Date(at + offset).toISOString()
  }
}
