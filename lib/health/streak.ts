/**
 * What is believed of one upstream, from the results of its health checks. The rise and fall of HAProxy, and Envoy's rule for the
 * start: the very first check counts alone, in both directions, so that nobody waits `rise` intervals for the first request.
 */
import type { HealthOptions } from '../../config/schema.ts'

export type StreakOptions = Pick<HealthOptions, 'enabled' | 'rise' | 'fall' | 'initial'>

export interface HealthState {
  readonly healthy: boolean
  /** Results in a row of the same kind: passes count up from 1, failures down from -1. 0: no check has ended yet. */
  readonly streak: number
  /** When the belief was last changed, on the caller's clock. */
  readonly since: number
  /** False until the first check has ended. */
  readonly checked: boolean
  /** It failed its checks, and its fall is held back (see removal.ts). */
  readonly held: boolean
}

/** The belief before any check. An upstream that is not polled counts as healthy. */
export function initialHealth (options: StreakOptions, at: number): HealthState {
  return { healthy: !options.enabled || options.initial === 'healthy', streak: 0, since: at, checked: false, held: false }
}

/**
 * The belief after a check that ended at `at`. Where checks are off, nothing changes it. One that is held falls with its next failed
 * check, and is held no more once a check passes.
 */
export function afterCheck (state: HealthState, passed: boolean, at: number, options: StreakOptions): HealthState {
  if (!options.enabled) return state
  const streak = passed ? Math.max(state.streak, 0) + 1 : Math.min(state.streak, 0) - 1
  const decided = !state.checked || (passed ? streak >= options.rise : state.held || -streak >= options.fall)
  const healthy = decided ? passed : state.healthy
  return { healthy, streak, since: healthy === state.healthy ? state.since : at, checked: true, held: false }
}

/** The belief where the fall from `before` to `fallen` is held back. */
export const heldBack = (before: HealthState, fallen: HealthState): HealthState =>
  ({ ...fallen, healthy: true, since: before.since, held: true })

/**
 * The belief under new options: it is kept, for a reload is no evidence. Only where checks are off now is the upstream healthy, and
 * the first check after they were on again counts alone.
 */
export function underOptions (state: HealthState, at: number, options: StreakOptions): HealthState {
  if (options.enabled) return state
  return { healthy: true, streak: 0, since: state.healthy ? state.since : at, checked: false, held: false }
}
