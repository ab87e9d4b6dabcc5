import type { RecordedAttempt, StoredLine } from './types.ts'

/**
 * A line as text and back. Names are left out: half of a record would be these, and half of the time that it takes to write one. What
 * the timeline has but `admitted` and `end` is that of the latest attempt.
 */
export function pack (line: StoredLine): string {
  const { gate, readings, limits, match, deadline, retry, attempts, used, passed } = line
  return JSON.stringify([
    line.requestId, line.kept, line.method, line.path, line.route, line.pool, line.upstream, line.status, line.reason, line.ms, line.bytes, line.traceId,
    line.timeline.admitted, line.version, line.evidence ?? 0, line.lookedMs,
    gate === null ? 0 : [gate.limit, gate.inFlight],
    readings === null ? 0 : [readings.eventLoopDelayMs, readings.eventLoopUtilization, readings.heapUsedBytes, readings.rssBytes],
    limits === undefined ? 0 : [limits.maxEventLoopDelayMs, limits.maxEventLoopUtilization, limits.maxHeapUsedBytes, limits.maxRssBytes],
    match === null ? 0 : [match.by, match.passedOver],
    deadline === null ? 0 : [deadline.connectMs, deadline.headersMs, deadline.bodyIdleMs, deadline.totalMs, deadline.leftMs],
    retry === null ? 0 : [retry.allowed, retry.made, retry.noRetry, ...retry.budget === undefined ? [] : [retry.budget.requests, retry.budget.taken, retry.budget.allowed]],
    attempts.map(packAttempt), used, passed.map(({ index, why, inFlight, limit, waiting, maxWaiting }) => [index, why, inFlight, limit, waiting, maxWaiting])
  ])
}

function packAttempt (a: RecordedAttempt): unknown[] {
  return [a.upstream, a.kind, a.outcome, a.reason, a.status, a.ms, a.begunAt, a.connectedAt, a.sentAt, a.headAt, a.permit, a.error, a.noRetry, a.retryInMs]
}

type Numbers = readonly number[]

/** The inverse of `pack`, for what that has written. */
export function unpack (text: string): StoredLine {
  const [
    requestId, kept, method, path, route, pool, upstream, status, reason, ms, bytes, traceId, admitted, version, evidence, lookedMs, gate, readings, limits, match, deadline, retry, packed, used, passed
  ] = JSON.parse(text) as any[]
  const attempts = (packed as unknown[][]).map(unpackAttempt)
  const last = attempts.at(-1)
  return {
    requestId,
    kept,
    method,
    path,
    route,
    pool,
    upstream,
    status,
    reason,
    ms,
    bytes,
    traceId,
    timeline: { received: 0, admitted, picked: last?.begunAt ?? null, connect: last?.connectedAt ?? null, sent: last?.sentAt ?? null, head: last?.headAt ?? null, end: ms },
    gate: gate === 0 ? null : { limit: gate[0], inFlight: gate[1] },
    readings: readings === 0 ? null : readingsOf(readings),
    ...limits !== 0 && { limits: { maxEventLoopDelayMs: limits[0], maxEventLoopUtilization: limits[1], maxHeapUsedBytes: limits[2], maxRssBytes: limits[3] } },
    version,
    match: match === 0 ? null : { by: match[0], passedOver: match[1] },
    deadline: deadline === 0 ? null : { connectMs: deadline[0], headersMs: deadline[1], bodyIdleMs: deadline[2], totalMs: deadline[3], leftMs: deadline[4] },
    evidence: evidence === 0 ? null : evidence,
    retry: retry === 0 ? null : { allowed: retry[0], made: retry[1], noRetry: retry[2], ...retry.length > 3 && { budget: { requests: retry[3], taken: retry[4], allowed: retry[5] } } },
    attempts,
    used,
    passed: (passed as any[][]).map(([index, why, inFlight, limit, waiting, maxWaiting]) => ({ index, why, inFlight, limit, waiting, maxWaiting })),
    lookedMs
  }
}

const readingsOf = ([eventLoopDelayMs = 0, eventLoopUtilization = 0, heapUsedBytes = 0, rssBytes = 0]: Numbers): NonNullable<StoredLine['readings']> =>
  ({ eventLoopDelayMs, eventLoopUtilization, heapUsedBytes, rssBytes })

function unpackAttempt ([upstream, kind, outcome, reason, status, ms, begunAt, connectedAt, sentAt, headAt, permit, error, noRetry, retryInMs]: any[]): RecordedAttempt {
  return { upstream, kind, outcome, reason, status, ms, begunAt, connectedAt, sentAt, headAt, permit, error, noRetry, retryInMs }
}
