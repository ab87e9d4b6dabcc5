import type { RetryOptions } from '../../config/schema.ts'

/**
 * After how many ms of silence a second attempt is sent beside the first one; -1: none is. What is slow is judged by what is usual
 * alone: while that is not known there is no hedge, for a fixed delay would double the load of a pool that is just slow.
 * Source: the hedged requests of Dean and Barroso, "The Tail at Scale".
 * @param usualMs the configured percentile of the pool's usual time to a response's head; 0: not known yet
 */
export const hedgeDelayMs = (usualMs: number, { percentile, minMs }: RetryOptions['hedge']): number =>
  percentile > 0 && usualMs > 0 ? Math.max(minMs, usualMs) : -1
