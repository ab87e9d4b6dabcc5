import type { RetryOptions } from '../../config/schema.ts'
import type { Random } from '../random.ts'

/**
 * How long to wait before a further attempt, in ms: drawn evenly from 0 up to `min(maxMs, baseMs * 2^(attempt - 1))`. The full
 * jitter spreads those that failed at the same moment over the whole time; a fixed part would keep them together.
 * Source: the back-off of Envoy and of AWS's SDKs.
 * @param attempt attempts made so far, at least 1: 1 before the first retry
 */
export const backoffMs = (attempt: number, { baseMs, maxMs }: RetryOptions['backoff'], random: Random): number =>
  random() * Math.min(maxMs, baseMs * 2 ** (attempt - 1))
