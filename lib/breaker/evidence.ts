import type { BreakerOptions } from '../../config/schema.ts'
import type { RollingWindow } from '../window.ts'
import type { Usual } from './usual.ts'
import type { Transition } from './types.ts'

export type Evidence = Transition['evidence']

/** Frozen numbers behind a decision. */
export const evidenceOf = (total: number, failures: number, consecutiveFailures: number): Evidence =>
  Object.freeze({ total, failures, ratio: total === 0 ? 0 : failures / total, consecutiveFailures })

/**
 * How many results the window must hold before its ratio counts: the minimum, or the share of the usual volume if that is more.
 * @param more results that are thought to come at `now`
 */
export function needed (options: BreakerOptions, usual: Usual, now: number, more = 0): number {
  const { seconds, minimumRequests, minimumShare } = options.window
  if (minimumShare === 0) return minimumRequests
  // 0.07 * 100 is a little more than 7 in floating point, and must not ask for 8
  return Math.max(minimumRequests, Math.ceil(minimumShare * usual.volume(seconds, now, more) - 1e-9))
}

/**
 * Whether the window's ratio opens the circuit. The division form is exact at the boundary where `failures >= ratio * total`
 * is not (7 of 25 at 0.28).
 */
export function ratioReached (options: BreakerOptions, window: RollingWindow, usual: Usual, now: number): boolean {
  const { failureRatio } = options.window
  const failures = window.failures(now)
  if (failures === 0 || failureRatio === 0) return false
  const total = window.total(now)
  return failures / total >= failureRatio && total >= needed(options, usual, now)
}

/** The size of a half-open batch: as configured, or a tenth of the usual peak concurrency, 1 to 32. */
export const batchSize = (probes: BreakerOptions['halfOpen']['probes'], usualPeak: number): number =>
  probes === 'auto' ? Math.min(32, Math.max(1, Math.ceil(usualPeak / 10))) : probes
