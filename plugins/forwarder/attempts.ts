import { errorText } from '../../lib/classify.ts'
import type { Exchange } from '../../lib/exchange.ts'
import { failureOf, type Outcome, type Reason, type Retry } from '../../lib/failure.ts'
import { hedgeDelayMs } from '../../lib/retry/hedge.ts'
import type { NoRetry } from '../../lib/retry/policy.ts'
import type { AttemptKind } from '../observation.ts'
import type { Answer } from './answer.ts'
import type { Attempt } from './attempt.ts'
import type { AttemptOwner } from './owner.ts'
import { discard } from './discarded.ts'
import type { Forward } from './forward.ts'
import type { Outgoing } from './outgoing.ts'
import { earlyMs } from './pace.ts'
import { endByLimit, phaseLeft, type AttemptEnd } from './phases.ts'
import type { ClientBody } from './request-body.ts'
import type { Succession } from './succession.ts'
import type { Movable, Terms } from './terms.ts'

/**
 * The attempts of an exchange that may have more than one: one after another, and for a slow first one another beside it. It owns
 * them until one has the answer, which it hands to the forward. No answer is given up before the next upstream is secured: until
 * then it is held, and where there is no other upstream it is the answer after all. Where there is none to give, the first failure
 * tells why.
 */
export class Attempts implements AttemptOwner, Movable {
  readonly #forward: Forward
  readonly #succession: Succession
  readonly #outgoing: Outgoing
  readonly #body: ClientBody | null
  /** The attempt that is under way; null: between two. */
  #current: Attempt | null = null
  /** The second one beside the first. */
  #hedge: Attempt | null = null
  #hedged: Attempt | null = null
  /** An answer that failed, while something better may still come. */
  #held: Attempt | null = null
  /** Why the first attempt without an answer failed. */
  #first: Reason | null = null
  #timer: NodeJS.Timeout | null = null
  #done = false

  constructor (forward: Forward, succession: Succession, outgoing: Outgoing, body: ClientBody | null) {
    this.#forward = forward
    this.#succession = succession
    this.#outgoing = outgoing
    this.#body = body
  }

  get exchange (): Exchange { return this.#forward.exchange }
  get #terms (): Terms { return this.#succession.terms }

  /** Begins with the first attempt. */
  start (attempt: Attempt, now: number): void {
    this.#terms.lane.pool.budget.request(now)
    this.#armHedge()
    this.#begin(attempt, now)
  }

  /** Ends all that is under way: the client left, or somebody else has answered. */
  stop (outcome: Outcome): void {
    this.#finish()
    for (const attempt of [this.#held, this.#current, this.#hedge]) attempt?.cancel(outcome)
  }

  // ---- the attempts' side

  responseHead (attempt: Attempt): void {
    this.#unlist(attempt)
    const other = this.#beside(attempt)
    if (!this.#isRetried(attempt) && (other === null || !(attempt.answer as Answer).failed)) return this.#win(attempt)
    if (other !== null) {
      // The other one may have something better.
      this.#leaveTo(other)
      this.#hold(attempt)
      return
    }
    this.#current = null
    const why = this.#whyNotLater(attempt, 'replayable', attempt.retryAfterMs)
    this.#hold(attempt)
    if (why !== null) this.#win(this.#held as Attempt)
  }

  /** Hints of an attempt that may be followed by another, whose answer they would not fit, end here. */
  informational (): void {}

  bodyChunk (attempt: Attempt, chunk: Buffer): boolean {
    return (attempt.answer as Answer).keep(chunk)
  }

  /** A held answer is whole. */
  bodyEnd (): void {}

  attemptFailed (attempt: Attempt, reason: Reason, outcome: Outcome, error: Error): void {
    if (this.#done) return
    if (reason === 'internal_error') this.#forward.reply.log.error({ err: error }, 'internal_error')
    this.#failed({ attempt, reason, outcome, error: errorText(error) })
  }

  // ---- what follows a failure

  #failed (end: AttemptEnd): void {
    const { attempt, reason } = end
    this.#unlist(attempt)
    const other = this.#beside(attempt)
    if (attempt === this.#held) {
      // The rest of an answer that was held will not come: it cannot be given any more.
      this.#held = null
      this.#tell(end, null)
    } else if (other !== null) {
      this.#leaveTo(other)
      this.#tell(end, null)
    } else {
      this.#current = null
      const { side, retry } = failureOf(reason)
      const ours = side === 'client' || reason === 'internal_error'
      this.#tell(end, ours ? 'failure' : this.#whyNotLater(attempt, retry, null))
      if (ours) return this.#giveUp(reason)
    }
    this.#first ??= reason
    if (this.#current === null && this.#timer === null) this.#answerAsIs()
  }

  /** There is no further attempt: what was held is the answer, or else the first failure. */
  #answerAsIs (): void {
    if (this.#held !== null) this.#win(this.#held)
    else this.#giveUp(this.#first ?? 'internal_error')
  }

  /** The first answer that failed is kept; one that failed beside it is none the better. */
  #hold (attempt: Attempt): void {
    if (this.#held === null) this.#held = attempt
    else discard(attempt)
  }

  /** Schedules another attempt; or tells why there is none. */
  #whyNotLater (attempt: Attempt, retry: Retry, retryAfterMs: number | null): NoRetry | null {
    // Nobody is left for another one to go beside.
    this.#disarm()
    const waitMs = this.#succession.waitMs(retryAfterMs)
    // A hedge may have left an answer that is none to be retried.
    const why = this.#held !== null && !this.#isRetried(this.#held) ? 'failure' : this.#succession.whyNot(attempt, retry, waitMs, retryAfterMs, performance.now())
    attempt.noRetry = why
    if (why === null) attempt.retryInMs = Math.round(waitMs)
    if (why === null) this.#arm(onBackoff, waitMs)
    else if (why !== 'off') this.#terms.counts.notRetried[why]++
    return why
  }

  backoffOver (): void {
    this.#timer = null
    const now = performance.now()
    const attempt = this.#secure(now)
    if (attempt === null) return this.#answerAsIs()
    const held = this.#held
    if (held !== null) {
      this.#held = null
      this.#forward.host.answerDropped(this.#forward.exchange, held)
      discard(held)
    }
    this.#terms.counts.retries++
    this.#next(attempt, 'retry', now)
  }

  // ---- the next attempt

  /** An attempt with its place and its permit, which has not begun; null: there is none to be had. */
  #secure (now: number): Attempt | null {
    try {
      return this.#succession.next(this, now)
    } catch (error) {
      this.#forward.reply.log.error({ err: error }, 'internal_error')
      return null
    }
  }

  #next (attempt: Attempt, kind: AttemptKind, now: number): void {
    const { exchange } = this.#forward
    exchange.attempts++
    exchange.upstream = attempt.upstream.id
    attempt.count(kind)
    this.#begin(attempt, now)
  }

  #begin (attempt: Attempt, now: number): void {
    if (this.#current === null) this.#current = attempt
    else this.#hedge = this.#hedged = attempt
    if (this.#succession.begin(attempt, now)) attempt.terms.waiting[attempt.index]?.add(this)
    attempt.upstream.enter(attempt)
  }

  #unlist ({ terms, index }: Attempt): void {
    terms.waiting[index]?.delete(this)
  }

  // ---- a second attempt beside a slow first one

  #armHedge (): void {
    const { hedging, retry } = this.#terms
    const { method, body, upgrade } = this.#outgoing
    // A second connection would be handed over, too.
    if (hedging === null || upgrade || body !== null || (method !== 'GET' && method !== 'HEAD')) return
    const ms = hedgeDelayMs(hedging.value, retry.hedge)
    if (ms >= 0) this.#arm(onHedge, ms)
  }

  hedgeDue (): void {
    this.#timer = null
    const now = performance.now()
    if (this.#current === null || !this.#succession.mayGoBeside(now)) return
    const attempt = this.#secure(now)
    if (attempt === null) return
    this.#terms.counts.hedges++
    this.#next(attempt, 'hedge', now)
  }

  /** The one that is under way beside this one. */
  #beside (attempt: Attempt): Attempt | null {
    return attempt === this.#hedge ? this.#current : this.#hedge
  }

  #leaveTo (other: Attempt): void {
    this.#current = other
    this.#hedge = null
  }

  // ---- moving on

  stalled (breaker: object): void {
    for (const attempt of [this.#current, this.#hedge]) {
      if (attempt === null || attempt.answer !== null || attempt.terms.lane.breakers[attempt.index] !== breaker) continue
      this.#moveFrom({ attempt, reason: 'headers_timeout', outcome: 'cancelled', error: 'moved away: the upstream answers nobody any more' })
    }
  }

  /** Ends an attempt for which another one stands ready; false: there is none, and it goes on. */
  #moveFrom (end: AttemptEnd): boolean {
    const { attempt, reason, outcome } = end
    const now = performance.now()
    const other = this.#beside(attempt)
    let next: Attempt | null = null
    if (other === null) {
      if (this.#succession.whyNot(attempt, failureOf(reason).retry, 0, null, now) !== null) return false
      next = this.#secure(now)
      if (next === null) return false
    }
    this.#unlist(attempt)
    attempt.error ??= end.error
    attempt.cancel(outcome, reason)
    this.#tell({ ...end, moved: true }, null)
    this.#first ??= reason
    this.#disarm()
    if (next === null) {
      this.#leaveTo(other as Attempt)
    } else {
      this.#current = null
      this.#terms.counts.moves++
      this.#terms.counts.retries++
      this.#next(next, 'move', now)
    }
    return true
  }

  // ---- time limits

  phaseLeft (now: number): number {
    return Math.min(this.#phaseLeft(this.#current, now), this.#phaseLeft(this.#hedge, now))
  }

  #phaseLeft (attempt: Attempt | null, now: number): number {
    return attempt === null ? Infinity : phaseLeft(attempt, this.#body, 0, attempt.terms.limits.bodyIdleMs, now)
  }

  expired (total: boolean, stalled: boolean): void {
    if (total) return this.#spent(stalled)
    const now = performance.now()
    for (const attempt of [this.#current, this.#hedge]) {
      if (attempt !== null && !this.#done && this.#phaseLeft(attempt, now) < earlyMs) this.#limitReached(attempt, stalled, now)
    }
  }

  #limitReached (attempt: Attempt, stalled: boolean, now: number): void {
    const end = endByLimit(attempt, this.#body, false, stalled)
    if (attempt.hasShare) {
      // Where nobody can take the rest of the time, it has all of it.
      if (this.#moveFrom(end)) return
      attempt.takeAll()
      if (this.#phaseLeft(attempt, now) >= earlyMs) return
    }
    attempt.cancel(end.outcome, end.reason)
    this.#failed(end)
  }

  /** The time of the whole exchange is over. */
  #spent (stalled: boolean): void {
    let reason: Reason = this.#first ?? 'deadline_exceeded'
    for (const attempt of [this.#current, this.#hedge]) {
      if (attempt === null) continue
      const end = endByLimit(attempt, this.#body, true, stalled)
      reason = end.reason
      this.#unlist(attempt)
      attempt.cancel(end.outcome, end.reason)
      this.#tell(end, 'deadline')
    }
    this.#current = this.#hedge = null
    if (this.#held?.answer?.complete === true) this.#win(this.#held)
    else this.#giveUp(reason)
  }

  // ---- the end

  #win (winner: Attempt): void {
    this.#finish()
    if (winner === this.#hedged) this.#terms.counts.hedgesWon++
    for (const attempt of [this.#held, this.#current, this.#hedge]) {
      if (attempt === null || attempt === winner) continue
      if (attempt.answer === null) attempt.cancel('cancelled')
      else discard(attempt)
    }
    this.#forward.exchange.upstream = winner.upstream.id
    this.#forward.take(winner)
  }

  #giveUp (reason: Reason): void {
    this.#finish()
    for (const attempt of [this.#held, this.#current, this.#hedge]) attempt?.cancel('ignored')
    this.#forward.giveUp(reason)
  }

  #finish (): void {
    this.#done = true
    this.#disarm()
    for (const attempt of [this.#current, this.#hedge]) if (attempt !== null) this.#unlist(attempt)
  }

  #tell (end: AttemptEnd, noRetry: NoRetry | null): void {
    this.#forward.host.attemptEnded(this.#forward.exchange, end, noRetry)
  }

  #isRetried ({ answer }: Attempt): boolean {
    return this.#terms.retry.statuses.includes((answer as Answer).status)
  }

  #arm (then: (attempts: Attempts) => void, ms: number): void {
    this.#disarm()
    this.#timer = setTimeout(then, ms, this)
  }

  #disarm (): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}

function onBackoff (attempts: Attempts): void { attempts.backoffOver() }
function onHedge (attempts: Attempts): void { attempts.hedgeDue() }
