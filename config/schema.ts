/**
 * Every option once: its type, default, bounds, unit and description. The types, the validator and docs/options.md come from here.
 * Times are milliseconds in 1 .. 2^31-1 unless they say otherwise; 0 means "none" only where the description says so.
 */
import { Type, type Static } from 'typebox'
import { EventsOptions } from './schema-events.ts'
import { bytesOrNone, count, flag, maxTimer, ms, msOrNone, object, oneOf, poolName, ratio, section, share, tokenPattern } from './schema-kit.ts'
import { MetricsOptions } from './schema-metrics.ts'
import { RecorderOptions } from './schema-recorder.ts'
import { AdminOptions, ServerOptions } from './schema-server.ts'
import { TracingOptions } from './schema-tracing.ts'

export const SheddingOptions = section('Admission: requests over a limit are refused at once with 503, never queued.', {
  maxInFlight: count(256, 1, 'Requests admitted at the same time. BREAKWATER_MAX_IN_FLIGHT overrides it.'),
  retryAfterSeconds: count(1, 1, 'The least Retry-After of a shed request, in seconds; jitter is added.'),
  priorities: section('How far each priority of routes may fill maxInFlight; over it a request is refused as shed_priority. High may fill all of it.', {
    normal: share(1, 'Share of maxInFlight up to which requests of normal priority are admitted.'),
    low: share(0.5, 'Share of maxInFlight up to which requests of low priority are admitted.')
  }),
  pressure: section('Limits of the process itself, sampled once a second. 0 switches each off.', {
    maxEventLoopDelayMs: msOrNone(1000, 'Mean event-loop delay of the last second.'),
    maxEventLoopUtilization: ratio(0.98, 'Share of the last second in which the event loop was busy.'),
    maxHeapUsedBytes: bytesOrNone('Heap in use, in bytes.'),
    maxRssBytes: bytesOrNone('Resident memory, in bytes.')
  })
})

const headerName = (description: string) => Type.String({ pattern: tokenPattern, description })

/** What a pool says for all of its upstreams and one of them may say for itself. */
const UpstreamHealth = object({
  path: Type.Optional(Type.String({ pattern: '^/', description: 'Replaces the pool\'s path of the check.' })),
  port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65535, description: 'Port that is checked. Left out: the upstream\'s own.' })),
  intervalMs: Type.Optional(Type.Integer({ minimum: 10, maximum: maxTimer, description: 'Replaces the pool\'s intervalMs.' })),
  timeoutMs: Type.Optional(Type.Integer({ minimum: 1, maximum: maxTimer, description: 'Replaces the pool\'s timeoutMs.' })),
  rise: Type.Optional(Type.Integer({ minimum: 1, maximum: maxTimer, description: 'Replaces the pool\'s rise.' })),
  fall: Type.Optional(Type.Integer({ minimum: 1, maximum: maxTimer, description: 'Replaces the pool\'s fall.' }))
}, { description: 'Checks of this upstream, where they differ from the pool\'s.' })

export const UpstreamOptions = object({
  url: Type.String({ minLength: 1, description: 'http://host:port, https://host:port (a base path is prefixed to every request) or unix:/path/to.sock.' }),
  weight: Type.Integer({ minimum: 0, maximum: 1000, default: 1, description: 'Its share of the traffic, relative to the others. round-robin knows only 0 and 1. 0: takes no new exchanges.' }),
  priority: Type.Integer({ minimum: 0, maximum: 9, default: 0, description: 'Tier: 0 is asked first; the next one takes what the tiers before it cannot carry.' }),
  maxInFlight: Type.Optional(Type.Integer({ minimum: 0, maximum: maxTimer, description: 'Replaces the pool\'s maxInFlightPerUpstream. 0: no limit.' })),
  health: Type.Optional(UpstreamHealth)
})

export const HealthOptions = section('Active health checks.', {
  enabled: flag(true, 'Poll the upstreams. Off: all of them count as healthy.'),
  type: oneOf(['http', 'tcp'], 'http', 'http: a request whose answer is judged. tcp: a connection is made, and with TLS the handshake; nothing is sent.'),
  path: Type.String({ pattern: '^/', default: '/healthz', description: 'Path of the check, requested with GET.' }),
  intervalMs: Type.Integer({ minimum: 10, maximum: maxTimer, default: 5000, description: 'Time between the starts of two checks of one upstream.' }),
  timeoutMs: ms(1000, 'Time for a whole check, the bounded read of its body included.'),
  statuses: Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), { minItems: 2, maxItems: 2, default: [200, 299], description: 'Inclusive range of statuses that pass.' }),
  json: Type.Optional(object({
    pointer: Type.String({ pattern: '^(/.*)?$', description: 'JSON pointer (RFC 6901) into the body of the check, like "/status".' }),
    equals: Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()], { description: 'The value that must stand there.' })
  }, { description: 'A field that the body of the check must have for it to pass.' })),
  rise: count(1, 1, 'Passes in a row that make an unhealthy upstream healthy. The very first check counts alone.'),
  fall: count(1, 1, 'Failed checks in a row that make a healthy upstream unhealthy.'),
  jitter: ratio(0.1, 'Share by which each interval is varied, so that checks do not run in step.'),
  initial: oneOf(['healthy', 'unhealthy'], 'unhealthy', 'What an upstream counts as before its first check has ended.'),
  removal: section('How fast checks may take members away: a bad roll-out of the check itself must not remove the whole pool at once. Upstreams that accept no connection are not held back.', {
    share: ratio(0.5, 'Share of the pool that may turn unhealthy within the time, at least one member. 1: no limit.'),
    seconds: Type.Integer({ minimum: 1, maximum: 3600, default: 10, description: 'The time, in seconds.' })
  })
})

export const BreakerOptions = section('The circuit breaker of each upstream.', {
  mode: oneOf(['enforce', 'observe', 'off'], 'enforce', 'enforce: refuse while open. observe: show what would be, refuse nothing. off: none.'),
  consecutiveFailures: count(5, 0, 'Failures in a row that open the circuit. 0: this trigger is off.'),
  window: section('The rolling window of one-second buckets and its trigger.', {
    seconds: Type.Integer({ minimum: 1, maximum: 3600, default: 60, description: 'Length of the window, in seconds.' }),
    minimumRequests: count(10, 1, 'Results that the window must hold before its ratio counts.'),
    minimumShare: ratio(0.1, 'Share of the usual volume that the window must hold as well. 0: that part is off.'),
    failureRatio: ratio(0.5, 'The circuit opens when failures / total reaches this. 0: this trigger is off.')
  }),
  stall: section('Silence as evidence: an upstream that was quick and answers nobody any more opens its circuit before its time limits count.', {
    outstanding: count(8, 0, 'So many attempts that wait longer than usual, and none answered meanwhile, open the circuit. 0: this trigger is off.'),
    factor: Type.Number({ minimum: 1, maximum: 1000, default: 8, description: 'Longer than usual: this many times the usual 95th percentile of the time to a response\'s head.' }),
    minMs: ms(500, 'Never judged before this time.')
  }),
  openMs: ms(15000, 'How long an opened circuit refuses before it admits probes.'),
  maxOpenMs: ms(120000, 'Cap of the open time, which doubles on each re-open and decays while closed.'),
  jitter: Type.Number({ minimum: 0, maximum: 0.2, default: 0.1, description: 'Share by which the open time is lengthened at random.' }),
  halfOpen: section('Real requests that try the upstream after the open time.', {
    probes: Type.Union([Type.Literal('auto'), Type.Integer({ minimum: 1, maximum: 32 })], { default: 'auto', description: 'Size of the batch. auto: 10 % of the usual peak concurrency, 1 to 32.' }),
    probeTimeoutMs: ms(10000, 'After this time an unsettled probe is given up and its place is free again.')
  })
})

export const TimeoutOptions = section('Time limits of an exchange.', {
  connectMs: msOrNone(2000, 'Time to make a connection, TLS included. 0: none.'),
  headersMs: msOrNone(5000, 'Time from the end of the sent request to the response\'s head. 0: none.'),
  bodyIdleMs: msOrNone(30000, 'Longest wait for the next bytes of a body. 0: none.'),
  totalMs: msOrNone(30000, 'Time for the whole exchange: waiting, connecting and the body. 0: none. Not for event streams.'),
  requestMs: Type.Optional(Type.Integer({ minimum: 0, maximum: maxTimer, description: 'Time to receive the whole request, in the place of server.requestTimeoutMs, once it is forwarded. 0: none, so that an upload may last as long as its bytes come. Left out: the server\'s. Exceeded: 408. Not for gRPC.' })),
  minUploadBytesPerSecond: count(500, 0, 'With requestMs: what has to come of a request\'s body on the mean of each bodyIdleMs (30 s where that is 0) that it is waited for. 0: anything counts. Less: 408. Not for gRPC.')
})

export const TlsOptions = object({
  ca: Type.Optional(Type.String({ description: 'File with the CA certificates to trust (PEM) instead of the system\'s. Relative paths start at the working directory.' })),
  cert: Type.Optional(Type.String({ description: 'File with the client certificate (PEM).' })),
  key: Type.Optional(Type.String({ description: 'File with the client key (PEM).' })),
  servername: Type.Optional(Type.String({ description: 'Name to ask for (SNI) and to check the certificate against.' })),
  insecureSkipVerify: flag(false, 'Do not check the certificate. Logged loudly at start.')
}, { description: 'TLS to https upstreams; certificates are verified unless told otherwise.' })

export const ConnectionOptions = section('Connections to each upstream.', {
  max: count(128, 1, 'Connections at the same time. As many exchanges again may wait for one; more are refused as upstream_capacity.'),
  keepAliveMs: ms(4000, 'How long an idle connection is kept; keep it below the upstream\'s own limit.'),
  maxStreams: count(100, 1, 'Exchanges at the same time on one HTTP/2 connection; the upstream may allow fewer.'),
  learnKeepAlive: flag(true, 'Keep idle connections for less long where an upstream was seen to close them sooner.')
})

export const RetryOptions = section('Trying a failed request on another upstream. Only where nothing has reached the client, the request is safe to repeat, and budget and time allow.', {
  retries: Type.Integer({ minimum: 0, maximum: 5, default: 0, description: 'How many further attempts an exchange may make. 0: none.' }),
  statuses: Type.Array(Type.Integer({ minimum: 400, maximum: 599 }), { default: [502, 503, 504], description: 'Answers that are retried like failures.' }),
  idempotencyKey: flag(false, 'Also retry requests with an Idempotency-Key, whatever their method: the service promises to do the work once.'),
  maxBufferedBodyBytes: Type.Integer({ minimum: 0, maximum: 16777216, default: 65536, description: 'Request bodies up to this size, in bytes, are kept for a retry; larger ones stream and are not retried once a byte was sent.' }),
  maxRetryAfterMs: msOrNone(1000, 'An answer\'s Retry-After up to this time is waited for; a longer one is passed on without a retry.'),
  backoff: section('The wait before a further attempt, drawn at random between 0 and its limit.', {
    baseMs: ms(25, 'Limit of the first wait; it doubles with each attempt.'),
    maxMs: ms(250, 'Cap of the limit.')
  }),
  budget: section('What retries and hedges may add to the load of the pool, counted over 10 seconds.', {
    ratio: ratio(0.2, 'Further attempts for each request.'),
    minPerSecond: Type.Number({ minimum: 0, maximum: 1000, default: 1, description: 'Further attempts a second that are always allowed.' })
  }),
  hedge: section('A second attempt beside a slow first one, for GET and HEAD without a body: the first good answer wins. Paid from the budget.', {
    percentile: Type.Number({ minimum: 0, maximum: 0.999, default: 0, description: 'Sent when the first attempt has waited longer than this percentile of the pool\'s usual time to a response\'s head: 0.5 or more. 0: off.' }),
    minMs: ms(10, 'Never sent before this time.')
  })
})

export const BalancerName = oneOf(['round-robin', 'weighted', 'random', 'least-requests', 'p2c', 'peak-ewma', 'hash'], 'round-robin', 'How the next upstream is picked.')

const KeySource = oneOf(['client-address', 'path', 'header', 'cookie'], 'client-address', 'What the key is taken from. A request without it is spread at random.')
const keyName = Type.Optional(Type.String({ pattern: tokenPattern, description: 'Name of the header or cookie.' }))

export const HashOptions = section('What the balancer hash picks by; for no other balancer.', {
  by: KeySource,
  name: keyName,
  boundedLoad: Type.Number({ minimum: 0, maximum: 10, default: 0, description: 'No upstream takes more than this many times its fair share of what is in flight; the key moves on to the next one. Above 1, like 1.25. 0: off.' })
})

export const StickyOptions = object({
  cookie: Type.String({ pattern: tokenPattern, default: 'breakwater', description: 'Name of the cookie.' }),
  secret: Type.String({ minLength: 16, description: 'Secret of which the values are made: nobody can read an address in them or make one up. The same one on every instance.' }),
  maxAgeSeconds: count(0, 0, 'How long a browser keeps it. 0: until it is closed.'),
  path: Type.String({ pattern: '^/', default: '/', description: 'Path that it is sent for.' }),
  secure: flag(false, 'Sent over TLS only.'),
  sameSite: oneOf(['lax', 'strict', 'none'], 'lax', 'Sent along from other sites. none needs secure.')
}, { description: 'A cookie keeps a client at its upstream for as long as that takes exchanges.' })

export const SlowStartOptions = section('An upstream that joins or comes back takes its full share only after a while. Not at the start of the process.', {
  ms: msOrNone(0, 'How long it takes. 0: off.'),
  minimumShare: share(0.1, 'The share it begins with, of its weight and of its in-flight limit.'),
  aggression: Type.Number({ minimum: 0.1, maximum: 10, default: 1, description: 'Shape of the curve: 1 is a straight line, more is faster at first.' })
})

export const EjectionOptions = section('Passive observation beside the breaker: an upstream whose answers fail is taken out for a while, never more than a share of the pool.', {
  mode: oneOf(['enforce', 'observe', 'off'], 'off', 'enforce: eject. observe: log and count what would be ejected. off: do not look.'),
  consecutiveFailures: count(5, 0, 'Gateway failures in a row (no connection, no answer in time, 502, 503, 504) that eject. 0: this trigger is off.'),
  window: section('Failures within a time.', {
    seconds: Type.Integer({ minimum: 1, maximum: 3600, default: 10, description: 'Length of the window, in seconds.' }),
    minimumRequests: count(20, 1, 'Results that the window must hold before its ratio counts.'),
    failureRatio: ratio(0, 'Ejected when failures / total reaches this. 0: this trigger is off.')
  }),
  baseMs: ms(30000, 'How long the first ejection lasts; each further one lasts that much longer, and the time shrinks again while all is well.'),
  maxMs: ms(300000, 'Cap of the time.'),
  maxShare: ratio(0.5, 'No more than this share of the pool is ejected at a time, and one member is always kept.')
})

export const PanicOptions = section('When so few upstreams are left that these would be crushed, all are used, healthy or not. Logged and counted.', {
  threshold: ratio(0.5, 'Panic below this usable share of a pool (or of a tier, while the tiers together cannot carry the traffic). 0: never.'),
  whenNone: flag(false, 'Also when none is left; otherwise requests are refused at once then.')
})

export const DiscoveryOptions = object({
  dns: Type.Optional(object({
    name: Type.String({ minLength: 1, description: 'Name that is resolved; the Host and the TLS name of its upstreams too.' }),
    type: oneOf(['address', 'srv'], 'address', 'address: all A and AAAA records. srv: SRV records with their targets, ports, weights and priorities.'),
    port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65535, description: 'Port of the upstreams. Left out: 80, or 443 for https. SRV records bring their own.' })),
    scheme: oneOf(['http', 'https'], 'http', 'How the upstreams are spoken to.'),
    family: oneOf(['any', 'ipv4', 'ipv6'], 'any', 'Which addresses are used.'),
    minTtlMs: ms(1000, 'Records are resolved again when their TTL ends, but not before this time.'),
    maxTtlMs: ms(60000, 'And no later than after this time; also how long a failed answer waits at most.'),
    timeoutMs: ms(5000, 'Time for one answer of a resolver.'),
    servers: Type.Array(Type.String({ minLength: 1 }), { default: [], description: 'Resolvers to ask, as address or address:port. None: the system\'s.' })
  }, { description: 'Upstreams by a DNS name.' })),
  file: Type.Optional(object({
    path: Type.String({ minLength: 1, description: 'YAML or JSON file with a list of upstreams, written like those of a pool. Watched.' }),
    pollMs: Type.Integer({ minimum: 100, maximum: maxTimer, default: 5000, description: 'How often the file is looked at where watching it tells nothing.' })
  }, { description: 'Upstreams from a file.' })),
  source: Type.Optional(Type.String({ minLength: 1, description: 'Name of a source that a plugin of yours provides with app.discovery.provide().' })),
  keep: flag(true, 'Keep the last good list when the source fails or gives nothing.')
}, { description: 'Where upstreams come from besides those that are written here: exactly one of dns, file and source.' })

export const PoolOptions = object({
  balancer: BalancerName,
  hash: HashOptions,
  sticky: Type.Optional(StickyOptions),
  slowStart: SlowStartOptions,
  upstreams: Type.Array(UpstreamOptions, { default: [], description: 'The servers of the pool; at least one, unless discovery brings them.' }),
  discovery: Type.Optional(DiscoveryOptions),
  health: HealthOptions,
  breaker: BreakerOptions,
  ejection: EjectionOptions,
  panic: PanicOptions,
  spillOver: Type.Number({ minimum: 1, maximum: 10, default: 1.4, description: 'A tier carries all traffic while this many times its usable share reaches 1; what it cannot carry goes to the next one.' }),
  timeouts: TimeoutOptions,
  deadlineHeader: Type.Optional(headerName('Header in which the upstream is told how many milliseconds are left for the exchange. Left out: none.')),
  retry: RetryOptions,
  hostHeader: oneOf(['upstream', 'preserve'], 'upstream', 'The Host sent to the upstream: its own, or the client\'s. X-Forwarded-Host always tells the original.'),
  connections: ConnectionOptions,
  http2: oneOf(['off', 'alpn', 'prior-knowledge'], 'off', 'HTTP/2 to the upstreams. alpn: to https upstreams that agree to it, else HTTP/1.1. prior-knowledge: without TLS, to http upstreams that speak nothing else.'),
  tls: Type.Optional(TlsOptions),
  maxInFlightPerUpstream: count(0, 0, 'Exchanges at the same time at one upstream; more are refused as upstream_capacity. 0: no limit.')
})

/** No default: what a route leaves out, its pool decides. */
const msOrPool = (description: string) => Type.Optional(Type.Integer({ minimum: 0, maximum: maxTimer, description }))

const HeaderChanges = (description: string) => Type.Optional(object({
  set: Type.Record(Type.String({ pattern: tokenPattern }), Type.String({ maxLength: 8192, pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$' }), { default: {}, additionalProperties: false, description: 'Fields that get this value, in place of what is there.' }),
  remove: Type.Array(Type.String({ pattern: tokenPattern }), { default: [], description: 'Fields that are taken out.' })
}, { description }))

export const SplitOptions = object({
  pools: Type.Record(Type.String({ pattern: poolName }), Type.Integer({ minimum: 0, maximum: 10000 }), { additionalProperties: false, minProperties: 1, description: 'Pools and their shares of the route\'s requests, relative to each other.' }),
  by: Type.Enum(['client-address', 'header', 'cookie', 'request'], { default: 'client-address', description: 'What decides, so that a client stays with its pool. request: each request for itself. One without the header or cookie is drawn by its address.' }),
  name: keyName,
  overrideHeader: Type.Optional(headerName('Header in which a client may name one of these pools.'))
}, { description: 'Splits the route over several pools, in the place of pool: a canary.' })

export const MirrorOptions = object({
  pool: Type.String({ minLength: 1, description: 'Pool that gets copies. Its answers are dropped, and nothing that fails there is seen by clients.' }),
  share: share(1, 'Share of the requests that are copied.'),
  maxBodyBytes: Type.Integer({ minimum: 0, maximum: 16777216, default: 65536, description: 'Requests with a larger body, or one of unknown length, are not copied. In bytes.' }),
  maxInFlight: count(32, 1, 'Copies at the same time; more are not made.')
}, { description: 'Sends copies of this route\'s requests to another pool.' })

export const RateLimitOptions = object({
  max: count(100, 1, 'Requests of one key within the time. Exceeded: 429.'),
  windowMs: Type.Integer({ minimum: 100, maximum: maxTimer, default: 60000, description: 'The time.' }),
  by: Type.Enum(['client-address', 'header'], { default: 'client-address', description: 'What the key is. Requests without the header share one.' }),
  name: keyName,
  maxKeys: Type.Integer({ minimum: 1, maximum: 1000000, default: 10000, description: 'Keys that are remembered; the longest unused is forgotten.' })
}, { description: 'Limits how often this route may be asked.' })

export const RouteOptions = object({
  path: Type.String({ pattern: '^/', description: 'Exact "/status", with parameters "/users/:id", or a prefix "/api/*" (which matches "/api" too).' }),
  pool: Type.Optional(Type.String({ minLength: 1, description: 'Name of the pool that serves it; or else split.' })),
  split: Type.Optional(SplitOptions),
  mirror: Type.Optional(MirrorOptions),
  methods: Type.Optional(Type.Array(Type.String({ pattern: '^[A-Z][A-Z-]*$' }), { minItems: 1, description: 'Methods it is for; with GET also HEAD. Left out: all.' })),
  host: Type.Optional(Type.String({ minLength: 1, description: 'Host it is for, without port; "*.example.com" for all below it. Ranks before the path. Left out: all.' })),
  headers: Type.Optional(Type.Record(Type.String({ pattern: tokenPattern }), Type.String({ minLength: 1 }), { additionalProperties: false, minProperties: 1, description: 'Header fields that a request must have, with this value; "*" for any.' })),
  query: Type.Optional(Type.Record(Type.String({ pattern: '^.+$' }), Type.String({ minLength: 1 }), { additionalProperties: false, minProperties: 1, description: 'Query parameters that a request must have, with this value; "*" for any.' })),
  disabled: Type.Optional(object({
    status: Type.Integer({ minimum: 400, maximum: 599, default: 503, description: 'Status of the answer.' }),
    detail: Type.String({ maxLength: 512, default: 'This route is switched off', description: 'What clients are told.' }),
    retryAfterSeconds: count(0, 0, 'Retry-After, with 503. 0: none.')
  }, { description: 'Answers every request of the route itself, with a problem document; nothing is forwarded.' })),
  priority: Type.Optional(Type.Enum(['high', 'normal', 'low'], { description: 'Who is refused first when places are scarce. Left out: normal.' })),
  rateLimit: Type.Optional(RateLimitOptions),
  requestHeaders: HeaderChanges('Fields of the request that are changed on the way to the upstream.'),
  responseHeaders: HeaderChanges('Fields of the response that are changed on the way to the client.'),
  rewrite: Type.Optional(Type.String({ pattern: '^/', description: 'Path that is forwarded in place of the request\'s, with the parameters of path, like "/v2/people/:id" or "/files/*". Not with stripPrefix or prefix.' })),
  stripPrefix: Type.Optional(Type.String({ pattern: '^/.', description: 'Prefix taken off the path, once, before it is forwarded.' })),
  prefix: Type.Optional(Type.String({ pattern: '^/.', description: 'Prefix put before the path, once, before it is forwarded.' })),
  timeouts: Type.Optional(object({
    headersMs: msOrPool('Replaces the pool\'s headersMs on this route. 0: none.'),
    bodyIdleMs: msOrPool('Replaces the pool\'s bodyIdleMs on this route. 0: none.'),
    totalMs: msOrPool('Replaces the pool\'s totalMs on this route. 0: none.'),
    requestMs: msOrPool('Replaces the pool\'s requestMs on this route, and the server\'s requestTimeoutMs. 0: none, so that an upload may last as long as its bytes come.'),
    minUploadBytesPerSecond: Type.Optional(Type.Integer({ minimum: 0, maximum: maxTimer, description: 'Replaces the pool\'s minUploadBytesPerSecond on this route. 0: anything counts.' }))
  }, { description: 'Time limits that replace the pool\'s on this route.' })),
  retry: Type.Optional(object({
    retries: Type.Optional(Type.Integer({ minimum: 0, maximum: 5, description: 'Replaces the pool\'s retries on this route.' })),
    statuses: Type.Optional(Type.Array(Type.Integer({ minimum: 400, maximum: 599 }), { description: 'Replaces the pool\'s statuses on this route.' })),
    idempotencyKey: Type.Optional(Type.Boolean({ description: 'Replaces the pool\'s idempotencyKey on this route.' })),
    maxBufferedBodyBytes: Type.Optional(Type.Integer({ minimum: 0, maximum: 16777216, description: 'Replaces the pool\'s maxBufferedBodyBytes on this route.' }))
  }, { description: 'Retries of this route, where they differ from the pool\'s. The budget is the pool\'s.' })),
  maxBodyBytes: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Size of a request body on this route, in bytes. 0: unlimited.' })),
  upgradeIdleMs: Type.Optional(Type.Integer({ minimum: 0, maximum: maxTimer, description: 'How long a WebSocket on this route may be silent in both directions before it is closed. 0, or left out: no limit. The other time limits end with the handshake.' }))
})

export const ReloadOptions = section('Changing the configuration while running: by SIGHUP, POST /config/reload, or when the file changes.', {
  watch: flag(false, 'Reload when the file changes; a file that is wrong changes nothing.'),
  pollMs: Type.Integer({ minimum: 100, maximum: maxTimer, default: 5000, description: 'How often the file is looked at where watching it tells nothing, as on network file systems.' })
})

export const Config = object({
  server: ServerOptions,
  admin: AdminOptions,
  reload: ReloadOptions,
  metrics: MetricsOptions,
  tracing: TracingOptions,
  shedding: SheddingOptions,
  recorder: RecorderOptions,
  events: EventsOptions,
  pools: Type.Record(Type.String({ pattern: poolName }), PoolOptions, { additionalProperties: false, minProperties: 1, description: 'Named groups of upstreams.' }),
  routes: Type.Array(RouteOptions, { default: [], description: 'Which request goes to which pool. Left out with a single pool: everything goes there.' })
})

/** The whole configuration, defaults filled in, frozen. */
export type Config = Static<typeof Config>
export type SheddingOptions = Static<typeof SheddingOptions>
export type UpstreamOptions = Static<typeof UpstreamOptions>
export type HealthOptions = Static<typeof HealthOptions>
export type BreakerOptions = Static<typeof BreakerOptions>
export type TimeoutOptions = Static<typeof TimeoutOptions>
export type TlsOptions = Static<typeof TlsOptions>
export type PoolOptions = Static<typeof PoolOptions>
export type RouteOptions = Static<typeof RouteOptions>
export type RetryOptions = Static<typeof RetryOptions>
export type HashOptions = Static<typeof HashOptions>
export type StickyOptions = Static<typeof StickyOptions>
export type SlowStartOptions = Static<typeof SlowStartOptions>
export type EjectionOptions = Static<typeof EjectionOptions>
export type PanicOptions = Static<typeof PanicOptions>
export type DiscoveryOptions = Static<typeof DiscoveryOptions>
export type SplitOptions = Static<typeof SplitOptions>
export type MirrorOptions = Static<typeof MirrorOptions>
export type RateLimitOptions = Static<typeof RateLimitOptions>
export type ReloadOptions = Static<typeof ReloadOptions>
export type BalancerName = Static<typeof BalancerName>
