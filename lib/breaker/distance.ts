import type { BreakerOptions } from '../../config/schema.ts'
import type { RollingWindow } from '../window.ts'
import type { Circuit } from './circuit.ts'
import { needed } from './evidence.ts'
import { stallAfter } from './stall.ts'
import type { BreakerDistance } from './types.ts'
import type { Usual } from './usual.ts'

/** More failures at one moment than anybody will see. */
const most = 2 ** 31

/** The least k of 1 .. most for which `holds`, which stays true once it is; null: for none. */
function least (holds: (k: number) => boolean): number | null {
  if (!holds(most)) return null
  let low = 1
  let high = most
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/**
 * How many failures, one after the other and all at `now`, bring the window to the ratio at which the circuit opens; null: no number of
 * them does, because the trigger is off, because a ratio of 1 leaves no room for the successes that the window holds, or because they would make the
 * usual volume grow faster than the window.
 */
export function failuresToRatio (options: BreakerOptions, window: RollingWindow, usual: Usual, now: number): number | null {
  const { failureRatio, seconds, minimumShare } = options.window
  if (failureRatio === 0) return null
  const failures = window.failures(now)
  const total = window.total(now)
  // The same division as where it is judged, which is monotonic in k as that of the reals is.
  const byRatio = least((k) => (failures + k) / (total + k) >= failureRatio)
  if (byRatio === null) return null
  const isEnough = (k: number): boolean => total + k >= needed(options, usual, now, k)
  // Each failure counts for the usual volume, too. Where it adds more to what is needed than to the window, the first moment is the only one.
  if (minimumShare * (usual.volume(seconds, now, 1) - usual.volume(seconds, now)) > 1) return isEnough(byRatio) ? byRatio : null
  const byVolume = least(isEnough)
  return byVolume === null ? null : Math.max(byRatio, byVolume)
}

/** How long the window holds all that it holds at `now`, in ms; null: it is empty. */
function holdsFor (window: RollingWindow, now: number): number | null {
  const oldest = window.buckets(now).at(-1)
  if (oldest === undefined) return null
  return Math.max(0, Math.ceil(1000 * (Math.floor(now / 1000) - oldest[0] + window.seconds) - now))
}

/** What is missing for the circuit to open while it is closed; frozen. null: nothing that happens opens it now. */
export function distanceOf ({ counted, options, consecutive, window, usual, stall }: Circuit, now: number): BreakerDistance | null {
  if (counted === 0) return null
  const inARow = options.consecutiveFailures === 0 ? null : Math.max(1, options.consecutiveFailures - consecutive)
  const toRatio = failuresToRatio(options, window, usual, now)
  const silence = stall === null || options.stall.outstanding === 0 || stall.usualMs === 0 ? null : Object.freeze({
    needed: options.stall.outstanding,
    waiting: stall.waiting,
    overdue: stall.overdue,
    inMs: stall.waiting < options.stall.outstanding ? null : Math.max(0, Math.round(stallAfter(stall.usualMs, options.stall)) - (stall.oldestMs ?? 0))
  })
  const failures = Math.min(inARow ?? Infinity, toRatio ?? Infinity)
  return Object.freeze({
    failures: failures === Infinity ? null : failures,
    inARow,
    toRatio,
    holdsForMs: toRatio === null ? null : holdsFor(window, now),
    stall: silence
  })
}
