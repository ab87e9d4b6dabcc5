import type { Circuit } from './circuit.ts'
import { needed, type Evidence } from './evidence.ts'
import type { Opening, OpeningTrigger, StallEvidence, TransitionCause } from './types.ts'

/** What a circuit leaves closed by, with its limits of that moment: a reload may change them, and what was usual changes anyway. */
export function openingOf ({ options, usual, failure }: Circuit, cause: TransitionCause, { total, failures, consecutiveFailures, stall }: Evidence, now: number): Opening {
  const { window } = options
  const trigger: OpeningTrigger = cause === 'stall'
    ? { cause, limit: options.stall.outstanding, ...stall as StallEvidence }
    : cause === 'failure_ratio'
      ? { cause, limit: window.failureRatio, failures, total, seconds: window.seconds, needed: needed(options, usual, now) }
      : { cause: 'consecutive_failures', limit: options.consecutiveFailures, failures: consecutiveFailures }
  return Object.freeze({ ...trigger, failure: cause === 'stall' ? null : failure, again: null })
}

/** The same, where its probes have failed since. */
export const openedAgain = (opening: Opening, { total, failures }: Evidence, failure: string | null): Opening =>
  Object.freeze({ ...opening, again: Object.freeze({ total, failures, failure }) })
