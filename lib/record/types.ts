import type { TimeoutOptions } from '../../config/schema.ts'
import type { BreakerState, Opening } from '../breaker/types.ts'
import type { Evidence } from '../exchange.ts'
import type { Outcome, Reason } from '../failure.ts'
import type { Ejection } from '../health/ejection.ts'
import type { NoRetry } from '../retry/policy.ts'

/** Why a request is recorded. */
export type Kept = 'refused' | 'failed' | 'retried' | 'slow' | 'sample'

/**
 * What became of a member when one was picked:
 * - `picked`: it got an attempt
 * - `not_picked`: it could have; another one's turn it was
 * - `not_needed`: tiers before its own carry all traffic
 * - `tried`: it had had an attempt of the same request
 * - `capacity`: it has as many exchanges as it may, or its connections are taken and the queue for them is full
 * - `breaker_open`, `breaker_half_open`: its breaker refuses, or all of its probes are out
 * - `unhealthy`, `unchecked`: its checks fail, or none has ended yet
 * - `ejected`: passive observation has taken it out
 * - `draining`, `weight_zero`: an operator, or the configuration
 */
export type Why = 'picked' | 'not_picked' | 'not_needed' | 'tried' | 'capacity' | 'breaker_open' | 'breaker_half_open' | 'unhealthy' | 'unchecked' | 'ejected' | 'draining' | 'weight_zero'

/** A member as it stood; what is nothing to tell of is left out. `Time` is epoch ms as it is stored, ISO 8601 as it is shown. */
export interface MemberNote<Time = number> {
  readonly upstream: string
  readonly why: Why
  /** Of its breaker; null: it has none. */
  readonly state: BreakerState | null
  readonly reopenAt: Time | null
  /** When its breaker opened, or was forced; left out while it is closed. */
  readonly openedAt?: Time
  /** Of its breaker, while that is not closed or has failures in a row. */
  readonly breaker?: { readonly consecutiveFailures: number, readonly total: number, readonly failures: number, readonly openCount: number, readonly opening?: Opening, readonly probes: { readonly batch: number, readonly inFlight: number, readonly settled: number, readonly failed: number }, readonly forced?: { readonly state: 'open' | 'closed', readonly reason: string | null } }
  /** Of its checks, while it is not healthy, or would not be if it were not held. */
  readonly health?: { readonly healthy: boolean, readonly held: boolean, readonly since: string, readonly streak: number, readonly lastCheck: { readonly at: string, readonly passed: boolean, readonly status: number | null, readonly cause: string, readonly ms: number } | null }
  readonly ejectedUntil?: Time
  /** What led to that. */
  readonly ejection?: Pick<Ejection, 'trigger' | 'failures' | 'total'>
  readonly drain?: { readonly since: string, readonly until: string | null, readonly reason: string | null }
  readonly weight?: number
  /** While it is less than its weight, by a slow start. */
  readonly weightNow?: number
  readonly tier?: number
}

/** What a pool was believed to be, shared by all records of that time. */
export interface PoolNote {
  /** Of the configuration; 0: not known. */
  readonly version: number
  readonly panic: boolean
  readonly members: readonly MemberNote[]
}

/** Why a member was passed over for what changes from request to request. */
export interface PassedOver {
  readonly index: number
  readonly why: Why
  /** Exchanges at it and its limit (0: none), requests that wait for a connection and how many may. */
  readonly inFlight: number
  readonly limit: number
  readonly waiting: number
  readonly maxWaiting: number
}

export interface RecordedAttempt {
  readonly upstream: string
  readonly kind: string
  readonly outcome: Outcome | null
  readonly reason: Reason | null
  /** 0: no head came. */
  readonly status: number
  /** From its begin to its outcome; null: it has none yet. */
  readonly ms: number | null
  /** When it began, ms after the request was received; the others likewise, null where it did not come to that. */
  readonly begunAt: number
  readonly connectedAt: number | null
  readonly sentAt: number | null
  readonly headAt: number | null
  readonly permit: 'closed' | 'probe' | 'none'
  readonly error: string | null
  /** Why no further one followed. */
  readonly noRetry: NoRetry | null
  /** How long the next one waited, in ms. */
  readonly retryInMs: number | null
}

/** Readings of the process. */
export interface Readings {
  readonly eventLoopDelayMs: number
  readonly eventLoopUtilization: number
  readonly heapUsedBytes: number
  readonly rssBytes: number
}

export interface PressureLimits {
  readonly maxEventLoopDelayMs: number
  readonly maxEventLoopUtilization: number
  readonly maxHeapUsedBytes: number
  readonly maxRssBytes: number
}

/** What is kept of an exchange, but for what its pool's note has. */
export interface ExchangeLine {
  readonly requestId: string
  readonly kept: Kept
  readonly method: string | null
  /** Without the query; cut at 2048 characters. */
  readonly path: string | null
  readonly route: string | null
  readonly pool: string | null
  readonly upstream: string | null
  readonly status: number
  readonly reason: Reason | null
  readonly ms: number
  readonly bytes: number
  readonly traceId: string | null
  /** ms after `received`; null where it did not come to that. Those from `picked` on are of the latest attempt that came so far. */
  readonly timeline: { readonly received: number, readonly admitted: number | null, readonly picked: number | null, readonly connect: number | null, readonly sent: number | null, readonly head: number | null, readonly end: number }
  /** When it failed, or else when it ended; null: there is no gate. */
  readonly gate: { readonly limit: number, readonly inFlight: number } | null
  readonly readings: Readings | null
  /** With shed_pressure only. */
  readonly limits?: PressureLimits
  /** Of the configuration; 0: not known. */
  readonly version: number
  /** How the route was found, or which ones it was not; null: it did not come to that. */
  readonly match: { readonly by: string | null, readonly passedOver: ReadonlyArray<{ readonly route: string, readonly why: string, readonly name: string | null }> } | null
  readonly deadline: (Pick<TimeoutOptions, 'connectMs' | 'headersMs' | 'bodyIdleMs' | 'totalMs'> & { /** Of totalMs, when it ended; null: it has no limit. */ readonly leftMs: number | null }) | null
  readonly evidence: Evidence | null
  readonly retry: { readonly allowed: number, readonly made: number, readonly noRetry: NoRetry | null, /** With `noRetry: budget`: as it was when the request ended. */ readonly budget?: { readonly requests: number, readonly taken: number, readonly allowed: number } } | null
  readonly attempts: readonly RecordedAttempt[]
}

/** A line as it is stored: who was used and passed over, by index in its note. */
export interface StoredLine extends ExchangeLine {
  readonly used: readonly number[]
  readonly passed: readonly PassedOver[]
  /** When the candidates were looked at, ms after it was received. */
  readonly lookedMs: number
}

export interface Candidate extends MemberNote<string> {
  /** It had an attempt. */
  readonly used: boolean
  readonly load?: Omit<PassedOver, 'index' | 'why'>
  /** The numbers behind `why`, in words. */
  readonly detail: string
}

/** A record as it is shown. */
export interface RequestRecord extends ExchangeLine {
  /** When its head had been read, ISO 8601. */
  readonly at: string
  /** Why it ended as it did, in words, with the numbers. */
  readonly explanation: string
  /** So few were left that all were used, healthy or not. */
  readonly panic: boolean
  /** Every member of the pool, as it stood at the latest pick; none where it did not come to that. */
  readonly candidates: readonly Candidate[]
}
