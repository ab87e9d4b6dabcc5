import type { UsualLatency } from '../../lib/latency.ts'
import type { Answer } from './answer.ts'
import type { Attempt } from './attempt.ts'

/**
 * What the head of an answer teaches: how long this upstream and this route usually take.
 * @param counts false for a probe: it says nothing of what is usual
 * @param ms from the moment in which all was sent; -1: the answer came before
 */
export function learn (attempt: Attempt, counts: boolean, ms: number, now: number): void {
  const { terms: { lane, usual, hedging }, index } = attempt
  const { status } = attempt.answer as Answer
  if (status >= 500 || status === 429) lane.answered(index, 0, true, attempt.retryAfterMs ?? 0, now)
  else if (ms >= 0) lane.answered(index, ms, false, 0, now)
  if (ms < 0 || !counts) return
  if (usual !== null) (usual[index] as UsualLatency).record(ms)
  hedging?.record(ms)
}
