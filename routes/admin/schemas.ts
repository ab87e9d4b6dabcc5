/** What the admin routes take and answer, in one place: requests are judged by these, and answers described. */
import { Type, type TProperties, type TSchema } from 'typebox'
import { RouteOptions, SheddingOptions } from '../../config/schema.ts'

const object = <T extends TProperties>(properties: T, options: object = {}) => Type.Object(properties, { additionalProperties: false, ...options })
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
const count = (description: string) => Type.Integer({ minimum: 0, description })
const time = (description: string) => Type.String({ format: 'date-time', description })
const state = Type.Enum(['closed', 'open', 'half-open'])

const pool = Type.String({ minLength: 1, description: 'Name of the pool.' })
const upstream = Type.String({ minLength: 1, description: 'Id of the upstream: host:port, or the path of its socket; URL-encoded in a path.' })
const names = { pool: Type.String(), upstream: Type.String() }

export const Problem = object({
  type: Type.String(),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String(),
  reason: Type.Optional(Type.String({ description: 'The reason code, where there is one.' })),
  requestId: Type.String()
}, { description: 'A problem document (RFC 9457).' })

export const PoolParams = object({ pool })
export const UpstreamParams = object({ pool, upstream })

const reason = Type.String({ minLength: 1, maxLength: 256, description: 'Why; for the journal.' })
export const ReasonBody = object({ reason: Type.Optional(reason) })

export const ForceBody = object({
  state: Type.Enum(['open', 'closed', 'auto'], { description: 'What to impose; auto ends it.' }),
  ttlMs: Type.Optional(Type.Integer({ minimum: 1, maximum: 2147483647, description: 'For how long, in ms; needed for open and closed.' })),
  reason: Type.Optional(reason)
}, {
  if: { type: 'object', required: ['state'], properties: { state: { enum: ['open', 'closed'] } } },
  // The keyword `required` of JSON Schema, and not a promise.
  // oxlint-disable-next-line unicorn/no-thenable
  then: { type: 'object', required: ['ttlMs'] }
})

export const UpstreamView = object({
  ...names,
  weight: count('Share of the traffic; 0 takes no new exchanges.'),
  healthy: Type.Boolean({ description: 'What the health checks believe.' }),
  draining: Type.Boolean({ description: 'Taken out of rotation by an operator.' }),
  breaker: nullable(state),
  inFlight: count('Exchanges at it now.'),
  waiting: count('Of these, how many wait for a connection.'),
  busyConnections: count('Connections that serve an exchange now.'),
  connects: count('Connections made so far.')
})

export const PoolView = object({ pool: Type.String(), balancer: Type.String(), upstreams: Type.Array(UpstreamView) })
export const PoolList = object({ pools: Type.Array(PoolView) })

export const BreakerView = object({
  ...names,
  state,
  generation: Type.Integer(),
  mode: Type.Enum(['enforce', 'observe', 'off']),
  consecutiveFailures: count('Failures in a row.'),
  outstanding: Type.Object({ count: count('Attempts that have not ended.') }),
  window: object({
    seconds: Type.Integer(),
    total: count('Results in the window.'),
    failures: count('Failures among them.'),
    ratio: Type.Number({ minimum: 0, maximum: 1 }),
    needed: Type.Number({ description: 'How many results the window must hold before its ratio counts.' }),
    buckets: Type.Array(Type.Array(Type.Integer(), { minItems: 3, maxItems: 3 }), { description: '[age in seconds, total, failures], newest first, empty ones left out.' })
  }),
  openedAt: nullable(time('When the circuit opened.')),
  reopenAt: nullable(time('When it admits again.')),
  openCount: count('How often it opened since it was made or reset.'),
  probes: object({
    batch: count('Results that the half-open batch wants.'),
    granted: count('Probes admitted.'),
    inFlight: count('Probes that have not ended.'),
    settled: count('Results so far.'),
    failed: count('Failures among them.'),
    expired: count('Probes given up.')
  }),
  wouldRefuse: count('Admissions that observe mode let pass and enforce mode would have refused.'),
  force: nullable(object({ state: Type.Enum(['open', 'closed']), until: time('Its end.'), reason: nullable(Type.String()) })),
  lastTransition: nullable(object({ from: state, to: state, cause: Type.String(), at: time('When.') }))
}, { additionalProperties: true })

export const BreakerList = object({ breakers: Type.Array(BreakerView) })

const checkResult = {
  at: time('When it ended.'),
  status: nullable(Type.Integer({ description: 'Status of the answer.' })),
  cause: Type.String(),
  ms: Type.Number({ description: 'How long it took.' })
}

const health = {
  ...names,
  healthy: Type.Boolean(),
  since: time('Since when.'),
  lastCheck: nullable(object({ ...checkResult, passed: Type.Boolean() })),
  streak: count('How many checks in a row ended like the last one.')
}

export const HealthList = object({ upstreams: Type.Array(object(health)) })
export const CheckView = object({
  ...health,
  check: object({ ...names, ...checkResult, passed: nullable(Type.Boolean({ description: 'null: it says nothing about the upstream.' })) })
})

export const SheddingView = object({
  inFlight: count('Requests admitted and not answered.'),
  maxInFlight: count('Their limit.'),
  pressure: object({
    under: Type.Boolean(),
    eventLoopDelayMs: Type.Number(),
    eventLoopUtilization: Type.Number(),
    heapUsedBytes: Type.Number(),
    rssBytes: Type.Number(),
    limits: SheddingOptions.properties.pressure
  }),
  shed: Type.Record(Type.String(), Type.Integer(), { description: 'Refusals so far, by reason.' })
})

export const RouteList = object({ routes: Type.Array(RouteOptions) })

export const MatchQuery = object({
  method: Type.String({ pattern: '^[A-Z][A-Z-]{0,31}$', default: 'GET', description: 'Method of the request.' }),
  host: Type.String({ maxLength: 512, default: '', description: 'Its Host, with or without a port.' }),
  path: Type.String({ minLength: 1, maxLength: 8192, description: 'Its target; a query is passed over.' })
})

export const MatchView = object({
  route: Type.String({ description: 'The configured path of the route.' }),
  pool: Type.String(),
  by: Type.Enum(['exact', 'parameters', 'prefix']),
  forwardedPath: Type.String({ description: 'What the upstream is asked for, without its own base path.' }),
  options: RouteOptions
})

export const ConfigView = Type.Object({}, { additionalProperties: true, description: 'The configuration in force; secrets redacted.' })

export const EventView = Type.Object({ seq: Type.Integer({ minimum: 1 }), at: time('When it happened.'), type: Type.String() }, { additionalProperties: true })

const since = count('Number of the last event that is known; what came after it is wanted.')

export const EventsQuery = object({
  since: Type.Integer({ ...since, default: 0 }),
  limit: Type.Integer({ minimum: 1, maximum: 1000, default: 1000, description: 'How many events at most, the oldest first.' })
})

export const EventList = object({
  events: Type.Array(EventView),
  firstSeq: Type.Integer({ description: 'Number of the oldest event that is kept; earlier ones are lost.' }),
  lastSeq: count('Number of the newest event.')
})

export const StreamQuery = object({ since: Type.Optional(since) })
export const StreamHeaders = Type.Object({
  'last-event-id': Type.Optional(Type.String({ pattern: '^[0-9]{1,15}$', description: 'Goes before `since`.' }))
})
