import type { Retry } from '../failure.ts'

/**
 * Methods whose repetition does no more than a single request does: all that the IANA registry calls idempotent and Node parses,
 * but TRACE, which is refused. A method that is not registered is none of them, and neither are LOCK, PATCH and POST.
 */
const idempotent = new Set([
  'ACL', 'BIND', 'CHECKOUT', 'COPY', 'DELETE', 'GET', 'HEAD', 'LINK', 'MERGE', 'MKACTIVITY', 'MKCALENDAR', 'MKCOL', 'MOVE', 'OPTIONS', 'PROPFIND', 'PROPPATCH',
  'PUT', 'QUERY', 'REBIND', 'REPORT', 'SEARCH', 'UNBIND', 'UNLINK', 'UNLOCK'
])

/**
 * Whether a request may be sent again after an upstream may have seen it: by its method (RFC 9110, 9.2.2), or because its client
 * gave it an Idempotency-Key and the configuration says that the service honours that.
 */
export const mayRepeat = (method: string, hasIdempotencyKey: boolean, optedIn: boolean): boolean =>
  idempotent.has(method) || (hasIdempotencyKey && optedIn)

/**
 * What of the request's body there is for another attempt. `none`: it has none. `whole`: all of it is kept. `untouched`: it
 * streams and not a byte was taken from it. `touched`: some of it is gone.
 */
export type BodyState = 'none' | 'whole' | 'untouched' | 'touched'

/**
 * Why an attempt that failed is not followed by another one:
 * - `off`: no retries are configured
 * - `limit`: as many attempts as are configured were made
 * - `begun`: something of an answer has reached the client
 * - `client`: the client has left
 * - `failure`: a failure of this kind is not retried
 * - `method`: the upstream may have seen the request, and it is not safe to repeat
 * - `body`: the body is not there any more
 * - `retry_after`: the upstream asks for more time than we wait
 * - `deadline`: too little time is left
 * - `budget`: retries are too great a part of the pool's load already
 * - `no_upstream`: no other upstream takes it
 */
export type NoRetry = 'off' | 'limit' | 'begun' | 'client' | 'failure' | 'method' | 'body' | 'deadline' | 'budget' | 'retry_after' | 'no_upstream'

/** What is known after an attempt has failed. Mutable: whoever asks often keeps one. */
export interface RetryFacts {
  /** Further attempts that the configuration allows. */
  retries: number
  /** Attempts made so far, the failed one included. */
  attempts: number
  /** Something of an answer has reached the client. */
  answerBegun: boolean
  clientGone: boolean
  /** When this kind of failure may be retried: by its reason's row; `replayable` for an answer whose status is retried. */
  retry: Retry
  /** A byte of the request may have been written to the upstream. */
  written: boolean
  /** By `mayRepeat`. */
  repeatable: boolean
  bodyState: BodyState
  /** What is left of the exchange's time, in ms. Infinity: no limit. */
  msLeft: number
  /** How long the next attempt would wait, in ms: its back-off, or the answer's Retry-After if that is longer. */
  waitMs: number
  /** The answer's Retry-After, in ms; null: it has none. */
  retryAfterMs: number | null
  /** The longest Retry-After that is waited for, in ms. */
  maxRetryAfterMs: number
}

/**
 * The least time that must be left after the wait, in ms. The timers of the wait and of the attempt may each be late by more than
 * one, and a connection and an answer take another one or two even nearby. An attempt with less than that would only add load, and
 * give the client `deadline_exceeded` in place of the failure that is known.
 */
export const leastUsefulMs = 5

/**
 * Why there is no further attempt; null: there may be one. The first that applies is told, from what lies in the request itself to
 * what another moment would have allowed. Two questions remain that cost something to ask, and so are the caller's: the budget
 * (`budget`), and another upstream (`no_upstream`).
 *
 * As long as not a byte was written, every method may be tried elsewhere; afterwards only what is safe to repeat, and only with a
 * body that is kept whole.
 */
export function whyNoRetry (facts: RetryFacts): NoRetry | null {
  if (facts.retries === 0) return 'off'
  if (facts.answerBegun) return 'begun'
  if (facts.clientGone) return 'client'
  if (facts.retry === 'never' || (facts.retry === 'unsent' && facts.written)) return 'failure'
  if (facts.written && !facts.repeatable) return 'method'
  if (facts.bodyState === 'touched' || (facts.written && facts.bodyState === 'untouched')) return 'body'
  if (facts.attempts > facts.retries) return 'limit'
  if (facts.retryAfterMs !== null && facts.retryAfterMs > facts.maxRetryAfterMs) return 'retry_after'
  if (!(facts.waitMs + leastUsefulMs < facts.msLeft)) return 'deadline'
  return null
}
