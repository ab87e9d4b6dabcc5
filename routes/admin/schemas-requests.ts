/** What the routes of the flight recorder take and answer. */
import { Type, type TProperties, type TSchema } from 'typebox'
import { failures, type Reason } from '../../lib/failure.ts'
import type { Kept } from '../../lib/record/types.ts'

const object = <T extends TProperties>(properties: T, options: object = {}) => Type.Object(properties, { additionalProperties: false, ...options })
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
const time = (description: string) => Type.String({ format: 'date-time', description })
const count = (description: string) => Type.Integer({ minimum: 0, description })
const ms = (description: string) => Type.Number({ description: `${description} In ms.` })
const open = <T extends TProperties>(properties: T, description: string) => Type.Object(properties, { additionalProperties: true, description })

const reason = Type.Enum(Object.keys(failures) as Reason[])

export const RequestParams = object({ requestId: Type.String({ minLength: 1, maxLength: 128, description: 'Id of the request: in its answer\'s field and in its problem document.' }) })

const keptFor: Kept[] = ['refused', 'failed', 'retried', 'slow', 'sample']

export const RequestsQuery = object({
  kept: Type.Optional(Type.Array(Type.Enum(keptFor), { minItems: 1, maxItems: 5, description: 'Kept for this; may stand more than once.' })),
  reason: Type.Optional(reason),
  pool: Type.Optional(Type.String({ minLength: 1, description: 'Name of the pool.' })),
  upstream: Type.Optional(Type.String({ minLength: 1, description: 'Id of an upstream: of an attempt, or, where nobody could be picked, of one of those.' })),
  since: Type.Optional(Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?(Z|[+-]\\d\\d:\\d\\d)$', description: 'Received at this time (ISO 8601) or later.' })),
  distinct: Type.Boolean({ default: false, description: 'Of those that are alike (kept for the same, of one pool, one reason and one status) the newest alone, with `alike`.' }),
  limit: Type.Integer({ minimum: 1, maximum: 1000, default: 50, description: 'How many at most.' })
})

const at = nullable(Type.Number({ description: 'ms after it was received; null: it did not come to that.' }))

const Attempt = object({
  upstream: Type.String(),
  kind: Type.Enum(['first', 'retry', 'move', 'hedge', 'copy']),
  outcome: nullable(Type.Enum(['success', 'failure', 'cancelled', 'ignored'])),
  reason: nullable(reason),
  status: count('Of its answer; 0: there was none.'),
  ms: nullable(ms('From its begin to its outcome; null: it has none yet.')),
  begunAt: Type.Number({ description: 'ms after the request was received.' }),
  connectedAt: at,
  sentAt: at,
  headAt: at,
  permit: Type.Enum(['closed', 'probe', 'none'], { description: 'What the breaker gave.' }),
  error: nullable(Type.String({ description: 'What the error said.' })),
  noRetry: nullable(Type.String({ description: 'Why no further one followed.' })),
  retryInMs: nullable(ms('How long the next one waited.'))
})

const Candidate = open({
  upstream: Type.String(),
  used: Type.Boolean({ description: 'It had an attempt.' }),
  why: Type.Enum(['picked', 'not_picked', 'not_needed', 'tried', 'capacity', 'breaker_open', 'breaker_half_open', 'unhealthy', 'unchecked', 'ejected', 'draining', 'weight_zero']),
  state: nullable(Type.Enum(['closed', 'open', 'half-open'], { description: 'Of its breaker; null: it has none.' })),
  reopenAt: nullable(time('When its breaker admits again.')),
  detail: Type.String({ description: 'The numbers behind why, in words.' })
}, 'A member of the pool as it stood; with load, openedAt, breaker, health, ejectedUntil, ejection, drain, weight, weightNow and tier where these have something to tell.')

const fields = {
  requestId: Type.String(),
  at: time('When its head had been read.'),
  kept: Type.Enum(keptFor, { description: 'Why it is recorded.' }),
  method: nullable(Type.String()),
  path: nullable(Type.String({ description: 'Without the query.' })),
  route: nullable(Type.String()),
  pool: nullable(Type.String()),
  upstream: nullable(Type.String({ description: 'Of the latest attempt.' })),
  status: count('Of the answer, as in the access log.'),
  reason: nullable(reason),
  ms: ms('From its head to its end.'),
  explanation: Type.String({ description: 'Why it ended as it did, with the numbers.' })
}

export const RequestView = open({
  ...fields,
  bytes: count('Body bytes of the answer.'),
  traceId: nullable(Type.String()),
  timeline: object({ received: at, admitted: at, picked: at, connect: at, sent: at, head: at, end: at }),
  gate: nullable(object({ limit: count('Places.'), inFlight: count('Places taken.') })),
  readings: nullable(object({ eventLoopDelayMs: Type.Number(), eventLoopUtilization: Type.Number(), heapUsedBytes: Type.Number(), rssBytes: Type.Number() })),
  version: count('Of the configuration; 0: not known.'),
  match: nullable(open({ by: nullable(Type.String()), passedOver: Type.Array(Type.Unknown()) }, 'How its route was found, or which routes for its path did not fit.')),
  deadline: nullable(open({ leftMs: nullable(ms('Of totalMs at its end; null: no limit.')) }, 'The time limits.')),
  evidence: nullable(Type.Record(Type.String(), Type.Unknown(), { description: 'Numbers behind the reason.' })),
  retry: nullable(object({ allowed: count('Further attempts.'), made: count('Further attempts that were made.'), noRetry: nullable(Type.String()),
    budget: Type.Optional(object({ requests: count('In its 10 s.'), taken: count('Further attempts.'), allowed: count('Further attempts.') }, { description: 'With noRetry budget.' }))
  })),
  attempts: Type.Array(Attempt),
  panic: Type.Boolean(),
  candidates: Type.Array(Candidate, { description: 'Every member of the pool, as it stood at the latest pick.' })
}, 'Why a request ended as it did.')

export const RequestList = object({
  requests: Type.Array(object({
    ...fields,
    attempts: count('Attempts that it had.'),
    alike: Type.Optional(object({ count: count('Records that are alike, this one too.'), requestIds: Type.Array(Type.String(), { description: 'The newest of them, this one first; ten at most.' }) }, { description: 'With `distinct`.' }))
  }), { description: 'The newest first.' }),
  recorder: object({
    enabled: Type.Boolean(),
    records: count('Records that are kept.'),
    bytes: count('What they take.'),
    maxBytes: count('What they may take.'),
    oldestAt: nullable(time('When the oldest one was received.')),
    slowMs: count('From this time on a request is slow. 0: none is.'),
    sampleRatio: Type.Number({ minimum: 0, maximum: 1 })
  })
})
