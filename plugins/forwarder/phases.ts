import type { Outcome, Reason } from '../../lib/failure.ts'
import type { Attempt } from './attempt.ts'
import { earlyMs } from './pace.ts'
import type { ClientBody } from './request-body.ts'
import { Uptake } from './uptake.ts'

/**
 * Milliseconds until the limit of an attempt's present phase is due; Infinity: it has none.
 * @param lastByteAt monotonic time at which the answer was handed up, or its last byte passed; 0: it is not on its way to the client
 * @param bodyIdleMs 0: none
 */
export function phaseLeft (attempt: Attempt, body: ClientBody | null, lastByteAt: number, bodyIdleMs: number, now: number): number {
  switch (attempt.stage) {
    case 'waiting':
    case 'connect': return attempt.startMs > 0 ? attempt.begunAt + attempt.startMs - now : Infinity
    case 'headers': return attempt.headersMs > 0 ? attempt.sentAt + attempt.headersMs - now : Infinity
    case 'send': return body === null ? Infinity : Math.min(bodyIdleMs > 0 ? sendLeft(attempt, body, bodyIdleMs, now) : Infinity, paceLeft(body, now))
    case 'body': return bodyIdleMs > 0 && lastByteAt > 0 ? lastByteAt + bodyIdleMs - now : Infinity
    case 'tunnel':
    case 'done': return Infinity
  }
}

/** Each byte of the client's counts, and each that the upstream takes. */
function sendLeft (attempt: Attempt, { waitingForClient, lastActivity }: ClientBody, bodyIdleMs: number, now: number): number {
  if (waitingForClient) return lastActivity + bodyIdleMs - now
  attempt.uptake ??= new Uptake()
  return attempt.uptake.left(attempt.carrier?.socket ?? null, bodyIdleMs, lastActivity, now)
}

/** Milliseconds until the client is late by the limits that its route has of its own. */
function paceLeft ({ pace, received }: ClientBody, now: number): number {
  return pace === null || received ? Infinity : pace.left(now)
}

/** How an attempt ended that has no whole answer. */
export interface AttemptEnd {
  readonly attempt: Attempt
  readonly reason: Reason
  readonly outcome: Outcome
  readonly error: string
  /** It was left for another one. */
  readonly moved?: boolean
}

/**
 * How an attempt ends that has reached a limit.
 * @param total it is the time of the whole exchange that is spent
 * @param stalled our own loop stood still meanwhile
 */
export function endByLimit (attempt: Attempt, body: ClientBody | null, total: boolean, stalled: boolean): AttemptEnd {
  return { attempt, reason: reasonOf(attempt, body, total), outcome: outcomeOf(attempt, body, stalled), error: `time limit reached while the attempt was at: ${attempt.stage}` }
}

function reasonOf (attempt: Attempt, body: ClientBody | null, total: boolean): Reason {
  const { stage } = attempt
  // Waiting for a connection until the time was spent: our capacity; for the client's body: its slowness. Not the upstream's.
  if (stage === 'waiting') return 'upstream_capacity'
  if (waitsForClient(attempt, body)) return 'request_timeout'
  if (total) return 'deadline_exceeded'
  if (stage === 'connect') return 'connect_timeout'
  return stage === 'headers' ? 'headers_timeout' : 'body_idle_timeout'
}

function outcomeOf (attempt: Attempt, body: ClientBody | null, stalled: boolean): Outcome {
  if (attempt.stage === 'waiting') return 'ignored'
  if (waitsForClient(attempt, body)) return 'cancelled'
  return stalled ? 'ignored' : 'failure'
}

/** True where it is the client that is late: it is waited for, or the time that its request may take is over. */
function waitsForClient ({ stage }: Attempt, body: ClientBody | null): boolean {
  return stage === 'send' && body !== null && (body.waitingForClient || paceLeft(body, performance.now()) < earlyMs)
}
