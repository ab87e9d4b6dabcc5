import type { Retry } from '../../lib/failure.ts'
import type { Random } from '../../lib/random.ts'
import { backoffMs } from '../../lib/retry/backoff.ts'
import { attemptHeadersMs } from '../../lib/retry/limits.ts'
import { leastUsefulMs, whyNoRetry, type NoRetry, type RetryFacts } from '../../lib/retry/policy.ts'
import { Attempt } from './attempt.ts'
import type { AttemptOwner } from './owner.ts'
import type { Forward } from './forward.ts'
import type { Outgoing } from './outgoing.ts'
import type { AnyRoute } from './route.ts'
import type { Terms } from './terms.ts'

/** What the attempts of an exchange need beside their forward. */
export interface AttemptsContext {
  readonly random: Random
  /** The terms as they are now: the pool may have changed while an exchange waited. Null: there is no such pool any more. */
  current (terms: Terms, route: AnyRoute): Terms | null
}

/** Written anew for each question. */
const facts: RetryFacts = {
  retries: 0,
  attempts: 0,
  answerBegun: false,
  clientGone: false,
  retry: 'never',
  written: true,
  repeatable: false,
  bodyState: 'touched',
  msLeft: 0,
  waitMs: 0,
  retryAfterMs: null,
  maxRetryAfterMs: 0
}

/** Who is asked after whom: whether another attempt may follow, which upstream gets it, and how much of the time. */
export class Succession {
  readonly #forward: Forward
  readonly #context: AttemptsContext
  readonly #outgoing: Outgoing
  readonly #repeatable: boolean
  readonly #key: number
  #terms: Terms
  /** Members of the lane that were asked. */
  #tried: number[] = []

  /**
   * @param repeatable the request may be sent again although an upstream may have seen it
   * @param key by which upstreams are picked, or -1
   */
  constructor (forward: Forward, context: AttemptsContext, terms: Terms, outgoing: Outgoing, repeatable: boolean, key: number) {
    this.#forward = forward
    this.#context = context
    this.#terms = terms
    this.#outgoing = outgoing
    this.#repeatable = repeatable
    this.#key = key
  }

  get terms (): Terms { return this.#terms }

  get #made (): number { return this.#forward.exchange.attempts }

  /**
   * An attempt begins. While another one may follow it, it has only its share of the time, and stands in the list of those who are
   * moved where its upstream falls silent.
   */
  begin (attempt: Attempt, now: number): boolean {
    const { terms, index } = attempt
    this.#tried.push(index)
    const retriesLeft = terms.retry.retries + 1 - this.#made
    if (retriesLeft <= 0 || this.#tried.length >= terms.lane.pool.upstreams.length) return false
    const { deadline } = this.#forward
    const left = deadline.left(now)
    attempt.startMs = attemptHeadersMs(0, left, retriesLeft)
    if (this.#repeatable) attempt.headersMs = attemptHeadersMs(terms.limits.headersMs, left, retriesLeft)
    deadline.within(now, attempt.startMs)
    deadline.within(now, attempt.headersMs)
    return true
  }

  /** How long to wait before the next attempt, in ms. @param retryAfterMs what an answer asks for */
  waitMs (retryAfterMs: number | null): number {
    // The back-off comes on top of what an answer asks for: those that it has told the same must not all come back at once.
    return backoffMs(this.#made, this.#terms.retry.backoff, this.#context.random) + (retryAfterMs ?? 0)
  }

  /**
   * Why no attempt may follow this one; null: one may, and the budget has paid for it.
   * @param retry when a failure of this kind may be retried
   */
  whyNot (attempt: Attempt, retry: Retry, waitMs: number, retryAfterMs: number | null, now: number): NoRetry | null {
    const { retries, maxRetryAfterMs } = this.#terms.retry
    facts.retries = retries
    facts.attempts = this.#made
    facts.clientGone = this.#forward.reply.request.raw.aborted
    facts.retry = retry
    facts.written = attempt.written
    facts.repeatable = this.#repeatable
    facts.bodyState = attempt.bodyState
    facts.msLeft = this.#forward.deadline.left(now)
    facts.waitMs = waitMs
    facts.retryAfterMs = retryAfterMs
    facts.maxRetryAfterMs = maxRetryAfterMs
    const why = whyNoRetry(facts)
    if (why !== null) return why
    if (!this.#isAnybodyLeft(now)) return 'no_upstream'
    return this.#terms.lane.pool.budget.tryTake(now) ? null : 'budget'
  }

  /** Whether a second attempt may go beside the first; if so, the budget has paid for it. */
  mayGoBeside (now: number): boolean {
    return !this.#forward.reply.request.raw.aborted && this.#forward.deadline.left(now) >= leastUsefulMs && this.#isAnybodyLeft(now) &&
      this.#terms.lane.pool.budget.tryTake(now)
  }

  /** A look that costs no permit, and promises none. */
  #isAnybodyLeft (now: number): boolean {
    const { lane } = this.#terms
    return lane.pool.upstreams.some(({ hasRoom }, index) =>
      hasRoom && lane.weightOf(index) > 0 && !this.#tried.includes(index) && lane.breakers[index]?.wouldAdmit(now) !== false)
  }

  /**
   * The next attempt, at an upstream that has not been asked yet: its place and its permit are taken. Null: there is none, or no
   * time for it.
   * @throws what keeps an attempt from being made; it has given back what it had taken
   */
  next (owner: AttemptOwner, now: number): Attempt | null {
    if (this.#forward.deadline.left(now) < leastUsefulMs || !this.#renew()) return null
    const { lane } = this.#terms
    if (lane.select(now, this.#key, -1, this.#tried) !== null) return null
    const { index, permit } = lane
    try {
      return new Attempt(owner, this.#terms, index, permit, this.#outgoing, now)
    } catch (error) {
      lane.release(index)
      lane.settle(index, permit, 'ignored', false, now)
      throw error
    }
  }

  /** The pool may have changed meanwhile; false: it is gone. */
  #renew (): boolean {
    const before = this.#terms
    const now = this.#context.current(before, this.#outgoing.route)
    if (now === null) return false
    this.#terms = now
    if (now.lane !== before.lane) {
      const ids = this.#tried.map((index) => before.lane.pool.upstreams[index]?.id)
      this.#tried = now.lane.pool.upstreams.flatMap(({ id }, index) => ids.includes(id) ? [index] : [])
    }
    return true
  }
}
