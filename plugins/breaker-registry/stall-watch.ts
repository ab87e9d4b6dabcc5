import { tickMs } from '../../lib/breaker/silence.ts'
import { afterReading } from '../exact-timer.ts'
import type { BreakerRegistry } from './registry.ts'

const sweepTicks = 1000 / tickMs

/**
 * The timer that all breakers share. Each tick lets the silence of every upstream grow; once a second it sweeps as well.
 *
 * Our own event loop's stall is nobody's silence: while it stands still there are no ticks, and one that is late counts for no more than
 * one. After a stall Node runs timers before it reads what has arrived, so where a circuit is about to open, all that is read first.
 * Returns a function that stops it.
 */
export function watchStalls (registry: BreakerRegistry): () => void {
  let ticks = 0
  let stopped = false
  let judging = false
  const judge = (): void => {
    judging = false
    if (!stopped) registry.judgeStalls()
  }
  const timer = setInterval(() => {
    if (++ticks % sweepTicks === 0) registry.sweep()
    if (!registry.tick() || judging) return
    judging = true
    afterReading(judge)
  }, tickMs).unref()
  return () => {
    stopped = true
    clearInterval(timer)
  }
}
