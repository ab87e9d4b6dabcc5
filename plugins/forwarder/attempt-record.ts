import type { TimeoutOptions } from '../../config/schema.ts'
import type { Exchange } from '../../lib/exchange.ts'
import type { Outcome, Reason } from '../../lib/failure.ts'
import type { NoRetry } from '../../lib/retry/policy.ts'
import type { AttemptKind, ObservedAttempt, ReplacedFields } from '../observation.ts'
import type { Upstream } from '../upstream-pools/upstream.ts'
import type { Answer } from './answer.ts'
import type { Terms, UpstreamLane } from './terms.ts'

/**
 * What is known of an attempt, and what it holds from the pick on: the breaker's permit and the upstream's in-flight place, each of
 * which is given back exactly once.
 */
export abstract class AttemptRecord implements ObservedAttempt {
  readonly terms: Terms
  readonly index: number
  readonly upstream: Upstream
  readonly exchange: Exchange | null
  readonly begunAt: number
  kind: AttemptKind = 'first'
  copyOf: Exchange | null = null
  /** Monotonic time at which the request had been sent whole; 0: not yet. */
  sentAt = 0
  /** Monotonic time of the final head; 0: not yet. */
  headAt = 0
  answer: Answer | null = null
  outcome: Outcome | null = null
  reason: Reason | null = null
  error: string | null = null
  readonly permit: number
  connectMs = -1
  settledMs = -1
  noRetry: NoRetry | null = null
  retryInMs = -1
  before: ObservedAttempt | null = null
  note: object | null = null
  passed: object | null = null
  replaced: ReplacedFields | null = null
  abstract readonly method: string
  abstract readonly path: string
  #placeHeld = true
  #observed = false

  /** @param now when `terms.lane` picked `index` and gave this permit */
  constructor (exchange: Exchange | null, terms: Terms, index: number, permit: number, now: number) {
    this.exchange = exchange
    this.terms = terms
    this.index = index
    this.upstream = terms.lane.pool.upstreams[index] as Upstream
    this.begunAt = now
    this.permit = permit
  }

  get lane (): UpstreamLane { return this.terms.lane }
  get limits (): TimeoutOptions { return this.terms.limits }
  get retries (): number { return this.terms.retry.retries }
  get status (): number { return this.answer === null ? 0 : this.answer.status }

  /** True once no outcome can be reported any more. */
  get settled (): boolean { return this.outcome !== null }

  /** It is the exchange's now, and observers are told. One that is taken back before that has no end for them either. */
  count (kind: AttemptKind): void {
    this.kind = kind
    this.#observed = true
    this.terms.observers?.attemptBegun(this.exchange, this)
  }

  /** Reports the outcome to the breaker and to passive observation: the first call counts, the others are no-ops. */
  settle (outcome: Outcome, now: number): void {
    if (this.outcome !== null) return
    this.outcome = outcome
    this.settledMs = Math.round(now - this.begunAt)
    const { status, terms: { lane } } = this
    if (outcome === 'failure') {
      lane.breakers[this.index]?.failing(this.permit, whatFailed(this), now)
      if (this.#observed) this.terms.observers?.attemptFailed(this.exchange, this)
    }
    const gatewayFailure = outcome === 'failure' && (status === 0 || (status >= 502 && status <= 504))
    lane.settle(this.index, this.permit, outcome, gatewayFailure, now)
    // One that fails at once must not look like the quickest of all.
    if (outcome === 'failure' && status === 0) lane.answered(this.index, 0, true, 0, now)
  }

  /** Gives the in-flight place back: once, however often it is called. Settled it has to be by then. */
  protected givePlaceBack (): void {
    if (!this.#placeHeld) return
    this.#placeHeld = false
    this.terms.lane.release(this.index)
    if (this.#observed) this.terms.observers?.attemptEnded(this.exchange, this)
  }
}

/** As the causes of failed health checks are spelt. */
const whatFailed = ({ reason, status }: AttemptRecord): string | null => reason ?? (status === 0 ? null : `status_${status}`)
