import type { TimeoutOptions } from '../../config/schema.ts'

/**
 * The time limit of one attempt, in ms: `headersMs`, but no more than its even share of what is left, so that an upstream that
 * hangs does not use up the time of those that could be asked in its place (caddy#4245). It serves for connecting likewise: give
 * connectMs for headersMs. Without a retry left the exchange's own deadline does that, and under its own name.
 * @param headersMs as configured; 0: none
 * @param msLeft what is left of the exchange; Infinity: no limit
 * @param retriesLeft attempts that may still follow this one. 0 for a request that could not be repeated once it was sent: a
 *   share that nobody could use would only cut it short
 * @returns at least 1; 0: none
 */
export function attemptHeadersMs (headersMs: number, msLeft: number, retriesLeft: number): number {
  if (retriesLeft <= 0 || msLeft === Number.POSITIVE_INFINITY) return headersMs
  const share = Math.max(1, msLeft / (retriesLeft + 1))
  return headersMs > 0 ? Math.min(headersMs, share) : share
}

/** The limits of the first attempt of an exchange that has just begun and may be retried, in ms; 0: none. */
export function attemptLimits ({ headersMs, totalMs }: Pick<TimeoutOptions, 'headersMs' | 'totalMs'>, retries: number): { headersMs: number, totalMs: number } {
  return { headersMs: attemptHeadersMs(headersMs, totalMs > 0 ? totalMs : Number.POSITIVE_INFINITY, retries), totalMs }
}
