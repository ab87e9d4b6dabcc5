import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import type { TimeoutOptions } from '../../config/schema.ts'
import type { Evidence, Exchange, FailureWatch } from '../../lib/exchange.ts'
import type { Outcome, Reason } from '../../lib/failure.ts'
import type { NoRetry } from '../../lib/retry/policy.ts'
import type { UpstreamLane } from '../forwarder/terms.ts'

/** An exchange as it ended. */
export interface ExchangeEnd {
  /** The status that was sent to the client; 0: nothing was. */
  readonly status: number
  /** Body bytes of an answer that was not the forwarder's; that one's are in the exchange. */
  readonly bytes: number
  /** Monotonic milliseconds. */
  readonly at: number
}

/** What never became a request. */
export interface UnparsedRequest {
  readonly reason: Reason
  readonly method: string | null
  readonly requestId: string
  /** Body bytes of our answer. */
  readonly bytes: number
  readonly clientIp: string
  /** What the parser says is wrong; null or left out: nothing. */
  readonly fault?: string | null
}

/**
 * first · retry: after one that failed · move: away from an upstream that answers nobody or took more than its share of the time ·
 * hedge: beside a slow one · copy: of a mirrored request
 */
export type AttemptKind = 'first' | 'retry' | 'move' | 'hedge' | 'copy'

/** Fields of a request that are written anew. */
export interface ReplacedFields {
  /** Lower-case; all that the client sent of these is left out. */
  readonly names: readonly string[]
  /** name, value, name, value, ... */
  readonly fields: readonly string[]
}

/** One try at one upstream. Times are monotonic milliseconds, 0 where it has not come to that. */
export interface ObservedAttempt {
  readonly upstream: { readonly pool: string, readonly id: string, readonly inFlight: number }
  /** Its index in the pool's snapshot that it was picked from. */
  readonly index: number
  readonly lane: UpstreamLane
  readonly kind: AttemptKind
  /** Of a copy: the exchange that it is a copy of, to which nothing of it counts; else null. */
  readonly copyOf: Exchange | null
  readonly method: string
  /** What the upstream is asked for: path and query. */
  readonly path: string
  readonly begunAt: number
  /** The request had been sent whole. */
  readonly sentAt: number
  /** The final head was there. */
  readonly headAt: number
  /** Of the final head; 0: there was none. */
  readonly status: number
  /** null while it is under way. */
  readonly outcome: Outcome | null
  /** What went wrong, where it has a name; a client that left has none here. */
  readonly reason: Reason | null
  /** What the error said; for logs, never for clients. */
  readonly error: string | null
  /** The breaker's: of a closed circuit (> 0), a probe's (< 0), or none (0). */
  readonly permit: number
  /** What holds for the exchange, in ms; 0: none. */
  readonly limits: TimeoutOptions
  /** How many further attempts the exchange may have. */
  readonly retries: number
  /** Whole ms after `begunAt`: a new connection was there; -1: it used one that was kept, or none. */
  readonly connectMs: number
  /** Whole ms after `begunAt`: it had its outcome; -1: it has not. */
  readonly settledMs: number
  /** Why no further attempt follows it; null: one does, or nobody has asked. */
  readonly noRetry: NoRetry | null
  /** How long the next one waits, in whole ms; -1: there is none to wait for. */
  readonly retryInMs: number
  /** Kept by a recorder: the attempt before it, what was believed of the pool when it was picked, and who was passed over then. */
  before: ObservedAttempt | null
  note: object | null
  passed: object | null
  /** What an observer wants sent with this attempt in the place of what the client sent; to be set when it begins. */
  replaced: ReplacedFields | null
}

/**
 * Each method is called in the way of a request and must be quick; one that throws is logged and harms nobody. `exchangeBegun` and
 * `exchangeEnded` come once for each request that is access-logged (probes and admin routes are not), `attemptBegun` and
 * `attemptEnded` once for each attempt. An attempt may end after its exchange.
 */
export interface Observer {
  exchangeBegun? (request: FastifyRequest, reply: FastifyReply): void
  /** The response has closed. */
  exchangeEnded? (request: FastifyRequest, reply: FastifyReply, end: ExchangeEnd): void
  unparsed? (request: UnparsedRequest): void
  /** It is refused or fails, for the first reason that was found; now is when the numbers behind that are to be seen. */
  exchangeFailed? (exchange: Exchange, reason: Reason, evidence: Evidence | null): void
  /** Nobody could be picked; `exchangeFailed` follows. */
  pickRefused? (exchange: Exchange, lane: UpstreamLane, reason: Reason, now: number): void
  /** @param exchange null: it is a copy */
  attemptBegun? (exchange: Exchange | null, attempt: ObservedAttempt): void
  /** Its outcome is a failure, which the breaker is told next: what comes of that can name it. */
  attemptFailed? (exchange: Exchange | null, attempt: ObservedAttempt): void
  /** It has an outcome, and its place is free again. */
  attemptEnded? (exchange: Exchange | null, attempt: ObservedAttempt): void
}

type Told = { [Name in keyof Observer]-?: Array<Observer & Required<Pick<Observer, Name>>> }

export class Observers implements Required<Observer>, FailureWatch {
  readonly #log: FastifyBaseLogger
  readonly #all = new Set<Observer>()
  #told: Told = toldOf([])

  constructor (log: FastifyBaseLogger) {
    this.#log = log
  }

  /** Tells `observer` from now on, in the order of the calls, until the returned function is called. */
  add (observer: Observer): () => void {
    this.#all.add(observer)
    this.#told = toldOf(this.#all)
    return () => {
      this.#all.delete(observer)
      this.#told = toldOf(this.#all)
    }
  }

  /**
   * Tells of the beginning of a request, and of its end when its response closes, which is the only event that always comes, and
   * comes once. For Fastify's `frameworkErrors`, where no hook has run; else a hook does it.
   */
  follow (request: FastifyRequest, reply: FastifyReply): void {
    const { exchange } = request
    const response = reply.raw
    exchange.watch = this
    this.exchangeBegun(request, reply)
    response.on('close', () => {
      if (!response.writableFinished) exchange.fail('client_cancelled')
      // A head that still waits behind another answer has not been sent, whatever Node says.
      const waited = response.socket === null && !response.writableFinished
      this.exchangeEnded(request, reply, { status: response.headersSent && !waited ? response.statusCode : 0, bytes: sentBytes(reply), at: performance.now() })
    })
  }

  exchangeBegun (request: FastifyRequest, reply: FastifyReply): void {
    for (const each of this.#told.exchangeBegun) try { each.exchangeBegun(request, reply) } catch (error) { this.#failed(error) }
  }

  exchangeEnded (request: FastifyRequest, reply: FastifyReply, end: ExchangeEnd): void {
    for (const each of this.#told.exchangeEnded) try { each.exchangeEnded(request, reply, end) } catch (error) { this.#failed(error) }
  }

  unparsed (request: UnparsedRequest): void {
    for (const each of this.#told.unparsed) try { each.unparsed(request) } catch (error) { this.#failed(error) }
  }

  exchangeFailed (exchange: Exchange, reason: Reason, evidence: Evidence | null): void {
    for (const each of this.#told.exchangeFailed) try { each.exchangeFailed(exchange, reason, evidence) } catch (error) { this.#failed(error) }
  }

  pickRefused (exchange: Exchange, lane: UpstreamLane, reason: Reason, now: number): void {
    for (const each of this.#told.pickRefused) try { each.pickRefused(exchange, lane, reason, now) } catch (error) { this.#failed(error) }
  }

  attemptBegun (exchange: Exchange | null, attempt: ObservedAttempt): void {
    for (const each of this.#told.attemptBegun) try { each.attemptBegun(exchange, attempt) } catch (error) { this.#failed(error) }
  }

  attemptFailed (exchange: Exchange | null, attempt: ObservedAttempt): void {
    for (const each of this.#told.attemptFailed) try { each.attemptFailed(exchange, attempt) } catch (error) { this.#failed(error) }
  }

  attemptEnded (exchange: Exchange | null, attempt: ObservedAttempt): void {
    for (const each of this.#told.attemptEnded) try { each.attemptEnded(exchange, attempt) } catch (error) { this.#failed(error) }
  }

  #failed (err: unknown): void {
    this.#log.error({ err, source: 'observer' }, 'listener_failed')
  }
}

function toldOf (observers: Iterable<Observer>): Told {
  const told: Told = { exchangeBegun: [], exchangeEnded: [], unparsed: [], exchangeFailed: [], pickRefused: [], attemptBegun: [], attemptFailed: [], attemptEnded: [] }
  for (const observer of observers) {
    for (const [name, list] of Object.entries(told)) if (observer[name as keyof Observer] !== undefined) (list as Observer[]).push(observer)
  }
  return told
}

/** Body bytes of an answer that did not come through the forwarder. */
function sentBytes (reply: FastifyReply): number {
  if (reply.request.method === 'HEAD' || !reply.raw.headersSent) return 0
  return Number(reply.getHeader('content-length') ?? 0)
}
