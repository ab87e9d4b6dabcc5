/**
 * Passive ejection: an upstream whose answers fail is taken out of its pool for a while. It stands beside the breaker (which
 * judges one upstream alone, and tries it again by probes) and the health checks: neither ends an ejection, and an ejection
 * changes neither. It ends by time alone. Times are monotonic milliseconds.
 *
 * Source: Envoy's outlier detection by consecutive gateway failures and by failure percentage, with its faults removed: the cap
 * is counted after the ejection (envoy#26877, #27066), one member is always kept (envoy#17504), every ejection takes the same
 * number of failures (envoy#40697), and a passing check does not bring a member back early (envoy#31069).
 */
import type { EjectionOptions } from '../../config/schema.ts'
import { RollingWindow } from '../window.ts'

/** What is known of one upstream. It belongs to the upstream, not to a snapshot of its pool, so that it survives a reload. */
export class EjectionState {
  /** Failures in a row. */
  consecutive = 0
  /** Results by age; null until the first one that the ratio's trigger wants. */
  window: RollingWindow | null = null
  /** How many times the base time the latest ejection was meant to last. */
  level = 0
  /** When the latest ejection ends or ended; 0: it was never ejected. Born as a fraction, because V8 then keeps the field a double. */
  until = 0.5
  /** What led to the latest ejection; null: it was never ejected. */
  latest: Ejection | null = null
  /** Until then a member that is held is not reported again. */
  quietUntil = 0.5

  constructor () {
    this.until = 0
    this.quietUntil = 0
  }

  /** Forgets everything, an ejection included. */
  clear (): void {
    this.consecutive = 0
    this.window = null
    this.level = 0
    this.until = 0
    this.latest = null
    this.quietUntil = 0
  }
}

/** The pool as the caps see it. Asked only when a member is about to be ejected, so that it may be counted then. */
export interface EjectionPool {
  /** Members that may take traffic at all: not draining, weight above 0; healthy or not. */
  members (): number
  /** How many of those are ejected at `now`, by `isEjected`. */
  ejected (now: number): number
  /** How many of those could be picked at `now`: healthy by their checks, and not ejected. So at most members - ejected. */
  usable (now: number): number
}

/** What came of a trigger, with the numbers behind it. */
export interface Ejection {
  /** Why it is not ejected: `share`: more than maxShare of the pool would be out. `last`: none would be left. Null: it is ejected. */
  readonly held: 'share' | 'last' | null
  /** False in mode observe: it is told what would be, and nobody is taken out. */
  readonly enforced: boolean
  readonly trigger: 'consecutive' | 'ratio'
  /** Failures in a row, or in the window; and the results that the window held, null for the other trigger. */
  readonly failures: number
  readonly total: number | null
  /** How long it is out, and when it returns, in ms; 0 where it is held. */
  readonly ms: number
  readonly until: number
  /** Members of the pool, and how many of them are ejected now, this one included if it is. */
  readonly members: number
  readonly ejected: number
}

/**
 * Whether an ejection runs at `now`. In mode observe too, where it says what would be: only with `mode: enforce` is the member to
 * be taken out.
 */
export const isEjected = (state: EjectionState, now: number): boolean => now < state.until

/**
 * Ends the ejections that are too many for a pool that has become smaller or got a lower maxShare, those first that would end
 * first.
 * @param states those of the members that may take traffic at all
 * @returns how many were ended
 */
export function releaseExcess (states: readonly EjectionState[], { maxShare }: Pick<EjectionOptions, 'maxShare'>, now: number): number {
  const members = states.length
  const running = states.filter((state) => isEjected(state, now)).toSorted((a, b) => a.until - b.until)
  let released = 0
  for (const state of running) {
    const ejected = running.length - released
    if (ejected < members && ejected / members <= maxShare) break
    state.until = now
    released++
  }
  return released
}

/**
 * Counts the result of one attempt that ended at `now`, and ejects the upstream if it was one failure too many. Neutral results
 * (a client that left, our own faults) are not to be told. What ends during an ejection was begun before it, or in a panic: it
 * counts for nothing, so that it neither prolongs the ejection nor speaks against the member once it is back.
 *
 * A trigger uses up its evidence, whether it ejects or is held: each judgement takes as many failures as the first one, and a
 * member that is held is judged again and ejected as soon as the caps allow it; that it is held is told once in each base time.
 * Where maxShare allows less than one member (0.1 of a pool of 3) nothing is ever ejected.
 * @returns null where there is nothing to tell: nothing is allocated then
 */
export function observe (state: EjectionState, failed: boolean, pool: EjectionPool, options: EjectionOptions, now: number): Ejection | null {
  if (options.mode === 'off') {
    // evidence from before is no evidence when it is switched on again
    if (state.until > 0 || state.consecutive > 0 || state.window !== null) state.clear()
    return null
  }
  if (now < state.until) return null
  const { consecutiveFailures } = options
  state.consecutive = failed ? state.consecutive + 1 : 0
  const ratioReached = recordAndJudge(state, failed, options, now)
  if (consecutiveFailures > 0 && state.consecutive >= consecutiveFailures) return judge(state, 'consecutive', pool, options, now)
  return ratioReached ? judge(state, 'ratio', pool, options, now) : null
}

function recordAndJudge (state: EjectionState, failed: boolean, options: EjectionOptions, now: number): boolean {
  const { seconds, minimumRequests, failureRatio } = options.window
  if (failureRatio === 0) {
    state.window = null
    return false
  }
  if (state.window === null) state.window = new RollingWindow(seconds, now)
  else if (state.window.seconds !== seconds) state.window = state.window.resized(seconds, now)
  const { window } = state
  window.record(now, failed)
  const total = window.total(now)
  // as exact at its boundary as in `whyHeld`
  return total >= minimumRequests && window.failures(now) / total >= failureRatio
}

function judge (state: EjectionState, trigger: Ejection['trigger'], pool: EjectionPool, options: EjectionOptions, now: number): Ejection | null {
  const byRatio = trigger === 'ratio'
  const failures = byRatio ? state.window!.failures(now) : state.consecutive
  const total = byRatio ? state.window!.total(now) : null
  state.consecutive = 0
  state.window?.clear(now)
  const members = pool.members()
  const ejected = pool.ejected(now)
  const held = whyHeld(members, ejected, pool.usable(now), options.maxShare)
  const enforced = options.mode === 'enforce'
  if (held !== null) {
    if (now < state.quietUntil) return null
    state.quietUntil = now + options.baseMs
    return { held, enforced, trigger, failures, total, ms: 0, until: 0, members, ejected }
  }
  const ms = nextMs(state, options, now)
  state.until = now + ms
  return state.latest = { held: null, enforced, trigger, failures, total, ms, until: state.until, members, ejected: ejected + 1 }
}

/**
 * What forbids one more ejection. A quotient of whole numbers is rounded to the same double as the decimal that equals it, so
 * that the comparison with the share is exact at its boundary (1 of 2 at 0.5, 3 of 10 at 0.3).
 */
function whyHeld (members: number, ejected: number, usable: number, maxShare: number): Ejection['held'] {
  if (usable <= 1) return 'last'
  return (ejected + 1) / members <= maxShare ? null : 'share'
}

/** The time grows by the base time with each ejection up to the cap, and shrinks by it for each whole base time in service. */
function nextMs (state: EjectionState, { baseMs, maxMs }: EjectionOptions, now: number): number {
  const served = Math.floor(Math.max(0, now - state.until) / baseMs)
  // growing on beyond the cap would only make the way back longer
  const highest = Math.max(1, Math.ceil(maxMs / baseMs))
  state.level = Math.min(Math.max(0, state.level - served) + 1, highest)
  return Math.min(state.level * baseMs, maxMs)
}
