/**
 * When an upstream is checked. The first checks of a pool are made at once and in parallel; the second ones are spread over the
 * interval, and jitter keeps them apart after that, so that a pool's checks (and those of many proxies) do not run in step.
 * Times are milliseconds on the caller's monotonic clock.
 */
import type { HealthOptions } from '../../config/schema.ts'

/** The least time between the starts of two checks: the configuration's own lower bound, which jitter must not undercut. */
const minGapMs = 10
/** The longest delay of a timer; a longer one would fire at once. */
const maxDelayMs = 2147483647

export interface EndedCheck {
  startedAt: number
  endedAt: number
  /** The part of the interval to wait: 1, but `firstShare` after the first check. */
  share: number
  /** In [0, 1). */
  random: number
}

/** The part of an interval that member `index` of a pool of `count` waits after its first check, in (0, 1]. */
export const firstShare = (index: number, count: number): number => (index + 1) / count

/**
 * When the next check starts: intervalMs x (1 +/- jitter) after the last one's start, but never before that one has ended. A check
 * that took longer than the interval is followed at once; missed ones are not made up for.
 */
export function nextCheckAt (check: EndedCheck, options: Pick<HealthOptions, 'intervalMs' | 'jitter'>): number {
  const varied = options.intervalMs * check.share * (1 + options.jitter * (2 * check.random - 1))
  return Math.max(check.startedAt + Math.max(varied, minGapMs), check.endedAt)
}

/** When a check that said nothing about the upstream is repeated: soon, but at most once a second. */
export const repeatAt = (endedAt: number, options: Pick<HealthOptions, 'intervalMs'>): number =>
  endedAt + Math.min(options.intervalMs, 1000)

/** A timer's delay from `now` until `at`, in whole milliseconds within what timers can hold. */
export const delayUntil = (at: number, now: number): number =>
  Math.min(Math.max(Math.ceil(at - now), 0), maxDelayMs)
