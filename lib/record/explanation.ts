import type { Reason } from '../failure.ts'
import type { NoRetry } from '../retry/policy.ts'
import type { Candidate, RecordedAttempt, RequestRecord, Why } from './types.ts'
import { busyPlaces } from '../shed/gate.ts'
import { bytes, milliseconds, plural } from '../words.ts'

type Facts = Omit<RequestRecord, 'explanation'>

/** Why an exchange ended as it did, with the numbers. */
export function explanationOf (record: Facts): string {
  const { reason } = record
  if (reason !== null) return [causes[reason](record), afterwards(record)].filter((text) => text !== '').join(' ')
  return `Answered with ${record.status} after ${milliseconds(record.ms)}.${wellButFor(record)}`
}

function wellButFor (record: Facts): string {
  const { attempts, kept } = record
  const failed = attempts.filter(({ outcome }) => outcome === 'failure')
  if (kept === 'slow') return ` That is slow: ${slowest(record)}.`
  // One that was left for another has no failure, and yet it says why there was another.
  const told = attempts.filter(({ outcome, error }) => outcome === 'failure' || error !== null)
  if (told.length === 0) return attempts.length > 1 ? ` It took ${plural(attempts.length, 'attempt')}.` : ''
  const last = failed.at(-1) as RecordedAttempt
  if (failed.length === attempts.length) return ` That is the upstream's own answer (${last.upstream}), and counts as a failure. ${afterwards(record) || unasked(record)}`.trimEnd()
  return ` It took ${plural(attempts.length, 'attempt')}: ${told.map(attemptText).join('; ')}.`
}

/** An answer is asked about only where its status is one that is retried. */
const unasked = ({ retry, status }: Facts): string => retry !== null && status >= 500 && retry.made < retry.allowed ? `No further attempt: ${status} is not one of retry.statuses.` : ''

/** Where most of the time went. */
function slowest ({ timeline, ms }: Facts): string {
  const { admitted, picked, connect, sent, head, end } = timeline
  const steps: Array<[string, number | null]> = [['until it was admitted', admitted], ['until an upstream was picked', picked], ['for a connection', connect], ['to send it', sent], ['for the head of the answer', head], ['for the body and its way to the client', end]]
  let before = 0
  let longest: [string, number] = ['in all', ms]
  let most = -1
  for (const [name, at] of steps) {
    if (at === null) continue
    if (at - before > most) {
      most = at - before
      longest = [name, most]
    }
    before = at
  }
  return `${milliseconds(longest[1])} of it ${longest[0]}`
}

const gate = ({ gate: found }: Facts): string => found === null ? 'the gate was full' : `${found.inFlight} of ${plural(found.limit, 'place')} of the gate taken`
const number = ({ evidence }: Facts, name: string): number | null => typeof evidence?.[name] === 'number' ? evidence[name] : null
const text = ({ evidence }: Facts, name: string): string => String(evidence?.[name] ?? '')

function pressure ({ readings, limits }: Facts): string {
  if (readings === null || limits === undefined) return ''
  const rows: Array<[string, number, number, (value: number) => string]> = [
    ['event-loop delay', readings.eventLoopDelayMs, limits.maxEventLoopDelayMs, milliseconds],
    ['event-loop utilization', readings.eventLoopUtilization, limits.maxEventLoopUtilization, (value) => String(Math.round(value * 1000) / 1000)],
    ['heap', readings.heapUsedBytes, limits.maxHeapUsedBytes, bytes],
    ['resident memory', readings.rssBytes, limits.maxRssBytes, bytes]
  ]
  return rows.filter(([, value, limit]) => limit > 0 && value > limit).map(([name, value, limit, write]) => `${name} ${write(value)}, limit ${write(limit)}`).join('; ')
}

/** A busy loop alone narrows the gate; what else is over its limit closes it. */
function narrowed ({ readings, limits, gate: found }: Facts): string {
  if (readings === null || limits === undefined || found === null) return ''
  const closed = ([[readings.eventLoopDelayMs, limits.maxEventLoopDelayMs], [readings.heapUsedBytes, limits.maxHeapUsedBytes], [readings.rssBytes, limits.maxRssBytes]] as const).some(([value, limit]) => limit > 0 && value > limit)
  return closed ? '' : `, and no more than ${busyPlaces(found.limit)} are given while the loop is so busy`
}

/** Those that were left out, the reason's own ones first. */
function members ({ candidates, pool }: Facts, first: readonly Why[]): string {
  if (candidates.length === 0) return `pool ${pool} has no members.`
  const own = (candidate: Candidate): number => first.includes(candidate.why) ? 0 : 1
  const told = candidates.toSorted((a, b) => own(a) - own(b)).slice(0, 8)
  const more = candidates.length - told.length
  return `${told.map(({ upstream, detail }) => `${upstream}: ${detail}`).join('; ')}${more > 0 ? `; and ${more} more` : ''}.`
}

const limit = (record: Facts, name: 'connectMs' | 'headersMs' | 'bodyIdleMs' | 'totalMs'): string =>
  record.deadline === null ? '' : ` (limit ${milliseconds(record.deadline[name])})`

/** By which limit a client was late with its body. */
function lateBy (record: Facts): string {
  if (record.evidence?.['limit'] === undefined) return limit(record, 'bodyIdleMs')
  const windowMs = number(record, 'windowMs')
  return windowMs === null
    ? ` (limit ${text(record, 'limit')})`
    : ` (${bytes(number(record, 'bytes') ?? 0)} in ${milliseconds(windowMs)}, and ${text(record, 'limit')} wants ${bytes(number(record, 'needed') ?? 0)})`
}

function attemptText ({ upstream, reason, status, ms, error, outcome }: RecordedAttempt): string {
  // One that was left for another has reached no limit.
  const what = outcome === 'cancelled' && reason === 'headers_timeout' ? 'no answer' : reason ?? (status > 0 ? `status ${status}` : outcome ?? 'under way')
  return `${upstream}: ${what}${ms === null ? '' : ` after ${milliseconds(ms)}`}${error === null ? '' : ` (${error})`}`
}

/** What happened at the upstreams. */
function upstreams ({ attempts }: Facts): string {
  return attempts.length === 0 ? '' : `${attempts.map(attemptText).join('; ')}.`
}

const atUpstream = (sentence: string, name?: 'connectMs' | 'headersMs' | 'bodyIdleMs' | 'totalMs') => (record: Facts): string =>
  `${sentence}${name === undefined ? '' : limit(record, name)}. ${upstreams(record)}`.trimEnd()

const causes: Record<Reason, (record: Facts) => string> = {
  shed_capacity: (record) => `The gate was full: ${gate(record)}. Nothing of it was read.`,
  shed_pressure: (record) => `The proxy itself was under pressure: ${pressure(record)}; ${gate(record)}${narrowed(record)}.`,
  shed_priority: (record) => `Requests of ${text(record, 'priority')} priority may fill ${plural(number(record, 'places') ?? 0, 'place')} of the gate: ${gate(record)}.`,
  draining: (record) => number(record, 'drainingForMs') === null
    ? 'The proxy was shutting down, and its time of grace was over.'
    : `The proxy was shutting down, for ${milliseconds(number(record, 'drainingForMs') ?? 0)} by then (grace ${milliseconds(number(record, 'graceMs') ?? 0)}).`,
  no_route: (record) => `None of the ${plural(number(record, 'routes') ?? 0, 'route')} takes its method, host and path.${passedOver(record)}`,
  route_disabled: (record) => `Route ${record.route} is switched off and answers ${number(record, 'answers') ?? record.status} itself.`,
  rate_limited: (record) => `Route ${record.route} takes ${plural(number(record, 'max') ?? 0, 'request')} in ${milliseconds(number(record, 'windowMs') ?? 0)} by ${text(record, 'by')}; there was room again in ${milliseconds(number(record, 'freeInMs') ?? 0)}.`,
  upstream_capacity: (record) => record.attempts.length > 0
    ? `It waited for a connection until its time was over${limit(record, 'totalMs')}. ${upstreams(record)}`
    : `Nobody of pool ${record.pool} had room: ${members(record, ['capacity'])}`,
  no_upstream_healthy: (record) => `Nobody of pool ${record.pool} was healthy: ${members(record, ['unhealthy', 'unchecked', 'ejected', 'draining', 'weight_zero'])}`,
  breaker_open: (record) => `The breakers of pool ${record.pool} let nobody through: ${members(record, ['breaker_open', 'breaker_half_open'])}`,
  connect_refused: atUpstream('The connection was refused'),
  connect_timeout: atUpstream('No connection was made in time', 'connectMs'),
  dns_failed: atUpstream('The name of the upstream could not be resolved'),
  tls_failed: atUpstream('There was no TLS that could be trusted'),
  protocol_mismatch: (record) => record.evidence === null ? atUpstream('The upstream does not speak what the request needs')(record) : `${text(record, 'request')} needs ${text(record, 'needs')}, and pool ${record.pool} has http2: ${text(record, 'http2')}.`,
  connection_reset: atUpstream('The upstream closed the connection before it answered'),
  headers_timeout: atUpstream('The upstream did not answer in time', 'headersMs'),
  deadline_exceeded: atUpstream('The time for the whole exchange was over', 'totalMs'),
  response_invalid: atUpstream('The upstream sent what is no answer'),
  body_truncated: atUpstream('The answer was cut off'),
  body_idle_timeout: atUpstream('Nothing more came, or nothing more was taken, for too long', 'bodyIdleMs'),
  tunnel_idle_timeout: (record) => `Nothing passed through the tunnel for too long${number(record, 'idleMs') === null ? '' : ` (limit ${milliseconds(number(record, 'idleMs') ?? 0)})`}.`,
  client_cancelled: (record) => `The client left after ${milliseconds(record.ms)}, ${stage(record)}. ${upstreams(record)}`.trimEnd(),
  request_timeout: (record) => record.attempts.length === 0
    ? 'The request did not come whole within the time for that (server.headersTimeoutMs, server.requestTimeoutMs).'
    : `The client did not send its body in time${lateBy(record)}. ${upstreams(record)}`,
  body_too_large: (record) => number(record, 'bytes') === null
    ? `The request's body grew larger than allowed. ${upstreams(record)}`.trimEnd()
    : `The request's body has ${bytes(number(record, 'bytes') ?? 0)}, and ${bytes(number(record, 'limit') ?? 0)} are allowed.`,
  headers_too_large: (record) => number(record, 'fields') === null
    ? `The request's head is larger than ${number(record, 'limit') === null ? 'allowed' : `the ${bytes(number(record, 'limit') ?? 0)} that are allowed`} (server.maxHeaderBytes), or has too many fields.`
    : `The request's head has more fields than are read: ${number(record, 'fields') ?? 0} were.`,
  bad_request: (record) => `The request is malformed${record.evidence === null ? '' : `: ${text(record, 'parser') || `its ${text(record, 'wrong')}`}`}.`,
  method_not_allowed: (record) => `The method ${record.method ?? ''} is not taken here${Array.isArray(record.evidence?.['allowed']) ? `, but ${record.evidence['allowed'].join(', ')}` : ''}.`,
  internal_error: (record) => `Something failed in the proxy itself: the log has "internal_error" with this request id. ${upstreams(record)}`.trimEnd()
}

function passedOver ({ match }: Facts): string {
  if (match === null || match.passedOver.length === 0) return ''
  return ` For its path there are: ${match.passedOver.map(({ route, why, name }) => `${route} (${why}${name === null ? '' : ` ${name}`} does not fit)`).join(', ')}.`
}

/** How far it had come. */
function stage ({ timeline: { admitted, picked, sent, head } }: Facts): string {
  if (head !== null) return 'while the answer was on its way'
  if (sent !== null) return 'while the upstream had not answered'
  if (picked !== null) return 'before the request had been sent to the upstream'
  return admitted === null ? 'before it was admitted' : 'before an upstream was picked'
}

const reluctances: Record<NoRetry, string> = {
  off: 'Retries are off.',
  limit: 'No further attempt: as many as are configured were made.',
  begun: 'No further attempt: a part of the answer was with the client.',
  client: 'No further attempt: the client had left.',
  failure: 'No further attempt: a failure of this kind is not retried.',
  method: 'No further attempt: the upstream may have seen it, and its method is not safe to repeat.',
  body: 'No further attempt: its body was not there any more.',
  retry_after: 'No further attempt: the upstream asked for more time than is waited.',
  deadline: 'No further attempt: too little time was left.',
  budget: 'No further attempt: the retry budget of the pool was spent.',
  no_upstream: 'No further attempt: no other upstream would have taken it.'
}

function afterwards ({ retry }: Facts): string {
  if (retry?.noRetry == null) return ''
  const { budget } = retry
  if (retry.noRetry !== 'budget' || budget === undefined) return reluctances[retry.noRetry]
  return `${reluctances.budget.slice(0, -1)} (${budget.taken} of ${budget.allowed} taken, by ${plural(budget.requests, 'request')} in 10 s).`
}
