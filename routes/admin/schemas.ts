/** What the admin routes take and answer, in one place: requests are judged by these, and answers described. */
import { Type, type TProperties, type TSchema } from 'typebox'
import { RateLimitOptions, RetryOptions, RouteOptions, SheddingOptions } from '../../config/schema.ts'

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

export const DrainBody = object({
  ttlMs: Type.Optional(Type.Integer({ minimum: 1, maximum: 2147483647, description: 'For how long, in ms. Left out: until it is taken back.' })),
  reason: Type.Optional(reason)
})

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
  weightNow: Type.Number({ description: 'By which it is picked now: 0 while it is out, less than its weight in a slow start.' }),
  priority: count('Its tier; 0 is asked first.'),
  healthy: Type.Boolean({ description: 'What the health checks believe.' }),
  checked: Type.Boolean({ description: 'A first health check has ended.' }),
  draining: Type.Boolean({ description: 'Taken out of rotation by an operator.' }),
  drain: nullable(object({ since: time('Since when.'), until: nullable(time('Its end, where it ends by itself.')), reason: nullable(Type.String()) })),
  ejectedUntil: nullable(time('End of its ejection by passive observation.')),
  ejection: nullable(object({
    since: time('Since when.'), trigger: Type.Enum(['consecutive', 'ratio']), failures: count('In a row, or in the window.'), total: nullable(count('Results that the window held.'))
  }, { description: 'What it was ejected for; null: it is not ejected.' })),
  breaker: nullable(state),
  discovered: Type.Boolean({ description: 'Found by discovery, not configured.' }),
  leaving: Type.Boolean({ description: 'Not wanted any more; it serves until those that are have been looked at.' }),
  inFlight: count('Exchanges at it now.'),
  maxInFlight: count('Their limit; 0: none.'),
  waiting: count('Of these, how many wait for a connection.'),
  maxConnections: count('Limit of its connections.'),
  busyConnections: count('Connections that serve an exchange now.'),
  connects: count('Connections made so far.')
})

export const PoolView = object({
  pool: Type.String(),
  balancer: Type.String(),
  panic: Type.Boolean({ description: 'So few upstreams are left that all are used, healthy or not.' }),
  panicPicks: count('Requests that were sent so.'),
  tiers: Type.Array(object({
    priority: count('Of its upstreams.'),
    usable: count('How many of them may be picked now.'),
    load: Type.Number({ minimum: 0, maximum: 1, description: 'Its share of the traffic.' }),
    panic: Type.Boolean()
  })),
  retryBudget: object({
    requests: count('Requests of the last 10 seconds.'),
    taken: count('Further attempts among them.'),
    allowed: count('How many these requests allow.'),
    remaining: count('How many more would be granted now.')
  }),
  upstreams: Type.Array(UpstreamView)
})
export const PoolList = object({ pools: Type.Array(PoolView) })

export const BreakerView = object({
  ...names,
  state,
  generation: Type.Integer(),
  mode: Type.Enum(['enforce', 'observe', 'off']),
  consecutiveFailures: count('Failures in a row.'),
  outstanding: object({
    count: count('Attempts that have not ended.'),
    oldestMs: nullable(count('How long the oldest attempt on a quick route has waited since the upstream was last heard, in steps of 100 ms.')),
    usualMs: nullable(Type.Number({ minimum: 0, description: 'The usual 95th percentile of the time to a response\'s head; null while it is not known.' })),
    stallAfterMs: nullable(count('How long a silence must last to open the circuit; null where the trigger is off or nothing usual is known.'))
  }),
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
  opening: nullable(Type.Object({
    cause: Type.Enum(['consecutive_failures', 'failure_ratio', 'stall']),
    limit: Type.Number({ description: 'That of the option that it reached.' }),
    failure: nullable(Type.String({ description: 'What the last failure was: a reason, or status_ and a status; null where that is not known.' })),
    again: nullable(object({
      total: count('Results of the batch.'),
      failures: count('Failures among them.'),
      failure: nullable(Type.String({ description: 'What the last of them was.' }))
    }, { description: 'The probes that opened it again last.' }))
  }, { additionalProperties: true, description: 'Why it is not closed, or would not be but for a force: the trigger, with its numbers of that moment (failures, total, seconds, needed; outstanding, oldestMs, stallAfterMs); else null.' })),
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
  lastTransition: nullable(object({ from: state, to: state, cause: Type.String(), at: time('When.') })),
  distance: nullable(object({
    failures: nullable(count('The fewest further failures at once that open it; null: no number of them does.')),
    inARow: nullable(count('Those by consecutiveFailures; null: that trigger is off.')),
    toRatio: nullable(count('Those by the ratio, with what the window holds; null: off, or out of reach.')),
    holdsForMs: nullable(Type.Number({ minimum: 0, description: 'How long the window holds what it does.' })),
    stall: nullable(object({
      needed: count('So many attempts that wait for too long open it.'),
      waiting: count('Attempts that wait in silence.'),
      overdue: count('Those of them that wait for too long.'),
      inMs: nullable(count('It opens after this time at the earliest, if nothing is heard; null: too few wait.'))
    }))
  }, { description: 'What is missing for it to open; null unless it is closed.' })),
  probesToGo: nullable(object({
    successes: nullable(count('So many more close it; null: so many are not to come.')),
    failures: nullable(count('So many more open it again; null: so many are not to come.'))
  }, { description: 'null unless it is half-open.' })),
  next: nullable(object({
    to: state,
    cause: Type.String(),
    at: nullable(time('When, at the earliest; null: it hangs on results.')),
    after: nullable(count('After so many further failures (to open) or successes (to closed); null: it hangs on time.'))
  }, { description: 'The transition that is next as far as can be seen.' })),
  openFor: nullable(object({
    ms: Type.Number({ minimum: 0, description: 'Since it left closed.' }),
    configuredMs: count('The configured open time; of a force its whole time.'),
    reopened: count('How often its probes failed since then.'),
    overdue: Type.Boolean({ description: 'More than twice as long as configured.' })
  }, { description: 'For how long it has not been closed; null while it is.' })),
  explanation: Type.String({ description: 'What these numbers say.' })
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
  held: Type.Boolean({ description: 'It failed its checks, but is not removed yet: too many of the pool were lately.' }),
  since: time('Since when.'),
  lastCheck: nullable(object({ ...checkResult, passed: Type.Boolean() })),
  streak: count('How many checks in a row ended like the last one.'),
  polling: nullable(object({
    type: Type.Enum(['http', 'tcp']),
    path: nullable(Type.String({ description: 'Path that is asked for.' })),
    port: nullable(Type.Integer({ description: 'Port that is checked, where it is not the upstream\'s own.' })),
    intervalMs: count('Time between the starts of two checks.')
  }, { description: 'How it is checked; null: it is not.' }))
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
  shed: Type.Record(Type.String(), Type.Integer(), { description: 'Refusals so far, by reason.' }),
  episode: nullable(object({
    since: time('Its first refusal.'),
    total: count('Refusals.'),
    reasons: Type.Record(Type.String(), Type.Integer(), { description: 'Those by reason.' }),
    peakPerSecond: count('The most within a second.')
  }, { description: 'The time of shedding that is on: it ends when nothing has been shed for five seconds.' }))
})

const routeIndex = Type.Integer({ minimum: 0, description: 'Its place in the configuration.' })
const routeLabel = Type.String({ description: 'The configured path of the route.' })
const action = Type.Enum(['forward', 'split', 'answer'], { description: 'forward: to its pool. split: to one of several. answer: it is disabled.' })

export const RouteList = object({
  routes: Type.Array(object({ index: routeIndex, action, ...RouteOptions.properties }), { description: 'In matching order: of those that fit a request, the first one takes it.' })
})

const field = Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+:", maxLength: 8192, description: 'A header field, as name:value.' })

export const MatchQuery = object({
  method: Type.String({ pattern: '^[A-Z][A-Z-]{0,31}$', default: 'GET', description: 'Method of the request.' }),
  host: Type.String({ maxLength: 512, default: '', description: 'Its Host, with or without a port.' }),
  path: Type.String({ minLength: 1, maxLength: 8192, description: 'Its target, with its query.' }),
  header: Type.Optional(Type.Union([field, Type.Array(field, { maxItems: 100 })], { description: 'Its header fields; once for each.' })),
  client: Type.String({ maxLength: 64, default: '', description: 'Address of the client, for splits.' })
})

const ms = (description: string) => Type.Number({ minimum: 0, description: `${description} 0: none.` })

export const MatchView = object({
  route: routeLabel,
  index: routeIndex,
  by: Type.Enum(['exact', 'method', 'parameters', 'prefix', 'default'], { description: 'The rule that decided.' }),
  matched: object({
    host: nullable(Type.String({ description: 'As configured; null: the route is for all.' })),
    methods: nullable(Type.Array(Type.String())),
    headers: Type.Array(Type.String()),
    query: Type.Array(Type.String())
  }, { description: 'What the route asks for beside its path, and the request has.' }),
  passedOver: Type.Array(object({
    route: routeLabel,
    index: routeIndex,
    why: Type.Enum(['method', 'header', 'query'], { description: 'What did not fit.' }),
    name: nullable(Type.String({ description: 'Of the field or parameter.' }))
  }), { description: 'Routes for this path that were tried before it, in their order.' }),
  action,
  pool: nullable(Type.String({ description: 'null: it is disabled, or each request is drawn for itself, or it hangs on an address that was not given.' })),
  split: nullable(object({
    by: Type.Enum(['override', 'header', 'cookie', 'client-address', 'request'], { description: 'What decides for this request.' }),
    pools: Type.Record(Type.String(), Type.Integer(), { description: 'The pools and their shares.' })
  })),
  mirror: nullable(Type.String({ description: 'Pool that gets copies.' })),
  forwardedPath: nullable(Type.String({ description: 'What the upstream is asked for, without its own base path.' })),
  limits: object({
    priority: Type.Enum(['high', 'normal', 'low']),
    maxBodyBytes: nullable(Type.Integer({ minimum: 0, description: '0: unlimited. null: not known here.' })),
    rateLimit: nullable(RateLimitOptions),
    timeouts: nullable(object({ connectMs: ms('For a connection.'), headersMs: ms('For a head.'), bodyIdleMs: ms('Between bytes.'), totalMs: ms('For all.'), requestMs: Type.Optional(ms('To receive the request. Left out: server.requestTimeoutMs.')), minUploadBytesPerSecond: ms('Of an upload, with requestMs.') }, { description: 'The pool\'s with the route\'s over them.' })),
    attempt: nullable(object({ headersMs: ms('For a head.'), totalMs: ms('For all.') }, { description: 'What the first attempt gets of them, where retries want a share.' })),
    retry: nullable(RetryOptions)
  }, { description: 'What holds for the request. null where the pool is.' }),
  options: RouteOptions
})

export const DiscoveryView = object({
  pool: Type.String(),
  kind: Type.Enum(['dns', 'file', 'source']),
  from: Type.String({ description: 'The DNS name, the path of the file, or the name of the source.' }),
  members: Type.Array(Type.String(), { description: 'Ids of the upstreams that were found.' }),
  lastSuccess: nullable(time('When the source last gave a whole list.')),
  ageMs: nullable(Type.Number({ description: 'How long ago that was.' })),
  lastError: nullable(object({ at: time('When.'), message: Type.String() })),
  nextAt: nullable(time('When it looks next, where that is known.')),
  stale: Type.Boolean({ description: 'The members are those of an earlier list, or none have ever come.' })
})

export const DiscoveryList = object({ pools: Type.Array(DiscoveryView) })

const configErrors = Type.Array(object({ path: Type.String({ description: 'Where; empty for the whole.' }), message: Type.String() }))

export const ConfigView = Type.Object({
  status: Type.Optional(object({
    version: count('How many configurations have been in force, this one included.'),
    loadedAt: time('Since when.'),
    file: nullable(Type.String({ description: 'Where it came from.' })),
    watched: Type.Boolean({ description: 'A change of the file is taken by itself.' }),
    rejected: nullable(object({ at: time('When.'), cause: Type.String(), reason: nullable(Type.String({ description: 'What an operator gave for it.' })), errors: configErrors }, { description: 'The latest one that was refused, until one is taken.' })),
    certificates: Type.Array(object({
      file: Type.String({ description: 'File that it was read from.' }),
      names: Type.Array(Type.String(), { description: 'Names that it is chosen by; the first certificate also where no name fits.' }),
      subject: Type.String(),
      issuer: Type.String(),
      notBefore: time('Since when it is valid.'),
      notAfter: time('Until when it is valid.'),
      fingerprint: Type.String({ description: 'Its SHA-256.' })
    }), { description: 'Those of the public listener that are in use.' })
  }))
}, { additionalProperties: true, description: 'The configuration in force; secrets redacted.' })

export const ConfigBody = Type.Object({}, { additionalProperties: true, description: 'A configuration. Left out: what the file says now.' })
export const ConfigValid = object({ valid: Type.Literal(true), diff: Type.Object({}, { additionalProperties: true, description: 'What would change, and the exchanges that it touches.' }) })
export const ConfigInvalid = object({ valid: Type.Literal(false), errors: configErrors })

export const EventView = Type.Object({ seq: Type.Integer({ minimum: 1 }), at: time('When it happened.'), type: Type.String() }, { additionalProperties: true })

const since = count('Number of the last event that is known; what came after it is wanted.')

export const EventsQuery = object({
  since: Type.Integer({ ...since, default: 0 }),
  limit: Type.Integer({ minimum: 1, maximum: 1000, default: 1000, description: 'How many events at most, the oldest first.' })
})

const WebhookView = object({
  enabled: Type.Boolean({ description: 'An address is configured.' }),
  queued: count('Events that wait for their delivery.'),
  delivered: count('Events that were taken.'),
  dropped: count('Events that were dropped, for want of room or because they were refused for good.'),
  failing: nullable(object({ since: time('Since when deliveries fail.'), error: Type.String() }))
})

export const EventList = object({
  webhook: Type.Optional(WebhookView),
  run: time('When this journal began: another one after a restart, whose numbers begin anew.'),
  events: Type.Array(EventView),
  firstSeq: Type.Integer({ description: 'Number of the oldest event that is kept; earlier ones are lost.' }),
  lastSeq: count('Number of the newest event.')
})

export const StreamQuery = object({ since: Type.Optional(since) })
export const StreamHeaders = Type.Object({
  'last-event-id': Type.Optional(Type.String({ pattern: '^[0-9]{1,15}$', description: 'Goes before `since`.' }))
})

export const HistoryQuery = object({
  since: Type.Integer({ minimum: 0, default: 0, description: 'Number of the last step that is known; those after it are wanted. 0: all that are kept.' })
})

const figures = (description: string) => Type.Array(Type.Number({ minimum: 0 }), { description })
const headTimes = (share: string) => Type.Array(nullable(Type.Number({ minimum: 0 })), { description: `Time to the head in ms that ${share} do not exceed; null where there was none.` })

const attemptFigures = {
  requests: figures('Attempts that ended.'),
  failure: figures('Of these, failures.'),
  cancelled: figures('Of these, left by the client.'),
  ignored: figures('Of these, nobody\'s fault at the upstream.'),
  p50: headTimes('50 %'),
  p95: headTimes('95 %'),
  p99: headTimes('99 %'),
  inFlight: figures('The most at the same time.')
}

export const HistoryView = object({
  run: Type.String({ description: 'Another run of the process numbers its steps anew.' }),
  stepMs: count('Length of a step.'),
  first: count('Number of the first step here.'),
  last: Type.Integer({ minimum: 0, description: 'Number of the newest step that has ended; every array has a figure for each step from the first to it.' }),
  endedAt: time('When that one ended.'),
  gate: object({
    requests: figures('Requests whose head was read.'),
    refused: Type.Record(Type.String(), figures('Refused before an upstream was asked.'), { description: 'By reason; those that did not occur are left out.' }),
    inFlight: figures('The most that were admitted and not answered at the same time.'),
    loopDelayMs: figures('The most that the event loop was late.')
  }),
  all: object(attemptFigures, { description: 'Attempts at all upstreams.' }),
  pools: Type.Record(Type.String(), object({
    ...attemptFigures,
    usable: Type.Array(nullable(Type.Integer({ minimum: 0 })), { description: 'The fewest upstreams that would have been sent requests; null where nobody looked.' }),
    upstreams: Type.Record(Type.String(), object({
      ...attemptFigures,
      breaker: figures('The worst that was seen: 0 none, 1 closed, 2 half-open, 3 open.'),
      out: figures('What was true at any time, as a sum: 1 unhealthy, 2 draining, 4 ejected.')
    }))
  }))
})

export const OpenApi = Type.Object({ openapi: Type.String(), paths: Type.Object({}, { additionalProperties: true }) }, { additionalProperties: true, description: 'This document.' })
