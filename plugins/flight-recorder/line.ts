import type { FastifyInstance, FastifyRequest } from 'fastify'
import { loggedPath, toldStatus } from '../../lib/access-line.ts'
import type { Evidence, Exchange } from '../../lib/exchange.ts'
import { failureOf } from '../../lib/failure.ts'
import type { Note } from '../../lib/record/ring.ts'
import type { Kept, PassedOver, PressureLimits, Readings, RecordedAttempt, StoredLine } from '../../lib/record/types.ts'
import type { ExchangeEnd, ObservedAttempt } from '../observation.ts'
import type {} from '../load-shedding.ts'
import type {} from '../routing.ts'

/** What there was to see when an exchange failed, or ended. */
export interface Moment {
  gate: StoredLine['gate']
  readings: Readings | null
  limits: PressureLimits | null
  version: number
  evidence: Evidence | null
  /** What was believed of the pool, and who was passed over, where nobody could be picked. */
  note: Note | null
  passed: readonly PassedOver[] | null
}

const maxErrorLength = 200

const tenths = (ms: number): number => Math.round(ms * 10) / 10

/** The attempts of an exchange, in the order in which they began. */
export function attemptsOf ({ latest }: Exchange): ObservedAttempt[] {
  const attempts: ObservedAttempt[] = []
  for (let attempt = latest as ObservedAttempt | null; attempt !== null; attempt = attempt.before) attempts.unshift(attempt)
  return attempts
}

/** Why it is worth a record although it is no sample; null: it is not. */
export function keptFor ({ reason, latest, receivedAt }: Exchange, { at, status }: ExchangeEnd, slowMs: number): Exclude<Kept, 'sample'> | null {
  const attempt = latest as ObservedAttempt | null
  if (reason !== null) return attempt === null && reason !== 'client_cancelled' ? 'refused' : 'failed'
  if (attempt !== null && (attempt.outcome === 'failure' || attempt.before !== null)) return attempt.outcome === 'failure' ? 'failed' : 'retried'
  if (slowMs === 0) return null
  // A tunnel is open for as long as it is wanted.
  const ms = status === 101 && attempt !== null ? attempt.headAt - receivedAt : at - receivedAt
  return ms >= slowMs ? 'slow' : null
}

/** What is stored of an exchange. @param attempts its attempts, of one pool */
export function lineOf (app: FastifyInstance, { raw, exchange }: FastifyRequest, kept: Kept, attempts: readonly ObservedAttempt[], moment: Moment, end: ExchangeEnd): StoredLine {
  const { receivedAt, admittedMs } = exchange
  const last = attempts.at(-1) ?? null
  const recorded = attempts.map((attempt) => attemptOf(attempt, receivedAt))
  const made = recorded.at(-1)
  const ms = tenths(end.at - receivedAt)
  return {
    requestId: exchange.requestId,
    kept,
    method: raw.method ?? null,
    path: loggedPath(raw.url ?? ''),
    route: exchange.route,
    pool: exchange.pool,
    upstream: exchange.upstream,
    status: toldStatus(exchange.reason, end.status),
    reason: exchange.reason,
    ms,
    bytes: exchange.bytes === -1 ? end.bytes : exchange.bytes,
    traceId: exchange.traceId,
    timeline: {
      received: 0,
      admitted: admittedMs === -1 ? null : admittedMs,
      picked: made?.begunAt ?? null,
      connect: made?.connectedAt ?? null,
      sent: made?.sentAt ?? null,
      head: made?.headAt ?? null,
      end: ms
    },
    gate: moment.gate,
    readings: moment.readings,
    ...exchange.reason === 'shed_pressure' && moment.limits !== null && { limits: moment.limits },
    version: moment.version,
    match: matchOf(app, raw, exchange),
    deadline: last === null ? null : deadlineOf(last.limits, ms),
    evidence: moment.evidence,
    retry: last === null ? null : { allowed: last.retries, made: attempts.length - 1, noRetry: noRetryOf(last), ...noRetryOf(last) === 'budget' && { budget: budgetOf(last) } },
    attempts: recorded,
    used: attempts.filter(({ lane }) => lane === last?.lane).map(({ index }) => index),
    passed: moment.passed ?? last?.passed as readonly PassedOver[] | null ?? [],
    lookedMs: last === null ? ms : tenths(last.begunAt - receivedAt)
  }
}

function budgetOf ({ lane }: ObservedAttempt): NonNullable<NonNullable<StoredLine['retry']>['budget']> {
  const { requests, taken, allowed } = lane.pool.budget.snapshot(performance.now())
  return { requests, taken, allowed }
}

/** Where retries are off nobody asks. */
function noRetryOf ({ outcome, retries, noRetry }: ObservedAttempt): RecordedAttempt['noRetry'] {
  return outcome === 'failure' && retries === 0 ? 'off' : noRetry
}

function attemptOf (attempt: ObservedAttempt, receivedAt: number): RecordedAttempt {
  const { upstream, kind, outcome, reason, status, settledMs, begunAt, connectMs, sentAt, headAt, permit, error, noRetry, retryInMs } = attempt
  const since = (at: number): number | null => at === 0 ? null : tenths(at - receivedAt)
  return {
    upstream: upstream.id,
    kind,
    outcome,
    reason,
    status,
    ms: settledMs === -1 ? null : settledMs,
    begunAt: tenths(begunAt - receivedAt),
    connectedAt: connectMs === -1 ? null : tenths(begunAt + connectMs - receivedAt),
    sentAt: since(sentAt),
    headAt: since(headAt),
    permit: permit > 0 ? 'closed' : permit < 0 ? 'probe' : 'none',
    error: error === null ? null : error.slice(0, maxErrorLength),
    noRetry,
    retryInMs: retryInMs === -1 ? null : retryInMs
  }
}

function deadlineOf ({ connectMs, headersMs, bodyIdleMs, totalMs }: ObservedAttempt['limits'], ms: number): StoredLine['deadline'] {
  return { connectMs, headersMs, bodyIdleMs, totalMs, leftMs: totalMs === 0 ? null : Math.max(0, tenths(totalMs - ms)) }
}

/** Of what was refused before a route was asked for, none is looked for. */
function matchOf (app: FastifyInstance, raw: FastifyRequest['raw'], { reason, route }: Exchange): StoredLine['match'] {
  if (!app.hasDecorator('routeTable') || (reason !== null && failureOf(reason).stage === 'admission' && route === null)) return null
  const { target, match } = app.routeTable.of(raw)
  if (target === null) return null
  if (match !== null) return { by: match.by, passedOver: [] }
  const { method = '', headers } = raw
  const { passedOver } = app.routeTable.explain({ method, authority: target.authority ?? headers.host ?? '', path: target.path, search: target.search, headers })
  return { by: null, passedOver: passedOver.slice(0, 8).map(({ route: { label }, why, name }) => ({ route: label, why, name })) }
}
