/**
 * Every option once: its type, default, bounds, unit and description. The types, the validator and docs/options.md come from here.
 * Times are milliseconds in 1 .. 2^31-1 unless they say otherwise; 0 means "none" only where the description says so.
 */
import { Type, type Static, type TSchema } from 'typebox'

const maxTimer = 2147483647

const object = <T extends Record<string, TSchema>>(properties: T, options: { description?: string } = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })

/** A section that may be left out: its own defaults fill it. */
const section = <T extends Record<string, TSchema>>(description: string, properties: T) =>
  Type.Object(properties, { additionalProperties: false, default: {}, description })

const ms = (value: number, description: string) => Type.Integer({ minimum: 1, maximum: maxTimer, default: value, description })
const msOrNone = (value: number, description: string) => Type.Integer({ minimum: 0, maximum: maxTimer, default: value, description })
const count = (value: number, minimum: number, description: string) => Type.Integer({ minimum, maximum: maxTimer, default: value, description })
const flag = (value: boolean, description: string) => Type.Boolean({ default: value, description })
const ratio = (value: number, description: string) => Type.Number({ minimum: 0, maximum: 1, default: value, description })
const bytesOrNone = (description: string, value = 0) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: value, description })

const oneOf = <T extends string>(values: T[], value: NoInfer<T>, description: string) =>
  Type.Enum<T[]>(values, { default: value, description })

export const ServerOptions = section('The public listener. Its address and port are fastify-cli\'s: -a, -p, FASTIFY_ADDRESS, FASTIFY_PORT.', {
  headersTimeoutMs: ms(5000, 'Time to receive a request\'s head; the smaller of this and requestTimeoutMs holds. Exceeded: 408.'),
  requestTimeoutMs: msOrNone(30000, 'Time to receive the whole request. 0: none. Exceeded: 408.'),
  keepAliveTimeoutMs: ms(60000, 'How long an idle client connection is kept.'),
  maxHeaderBytes: Type.Integer({ minimum: 1024, maximum: 1048576, default: 65536, description: 'Size of a request\'s head, in bytes. Exceeded: 431.' }),
  maxBodyBytes: bytesOrNone('Size of a request body, in bytes. 0: unlimited (bodies stream). Exceeded: 413. A route may set its own.'),
  trustedProxies: Type.Array(Type.String(), { default: [], description: 'Addresses or CIDRs of proxies in front, whose X-Forwarded-*, Forwarded and request id are believed.' }),
  requestIdHeader: Type.String({ pattern: '^[A-Za-z0-9-]+$', minLength: 1, default: 'x-request-id', description: 'The header that carries the request id, in both directions.' }),
  stripRequestHeaders: Type.Array(Type.String({ pattern: '^[A-Za-z0-9_-]+$' }), { default: [], description: 'Headers never accepted from clients, such as x-user-id.' }),
  probes: flag(true, 'Serve GET /livez and /readyz on the public listener.'),
  shutdown: section('The way down after SIGTERM or SIGINT.', {
    delayMs: msOrNone(0, 'How long to keep serving with /readyz at 503 before the listener closes. 0: close at once.'),
    graceMs: msOrNone(10000, 'How long accepted requests may take to finish after the listener closed; then they are cut and the exit code is 1.')
  })
})

export const AdminOptions = section('The admin listener, separate from the public one.', {
  enabled: flag(true, 'Open the admin listener.'),
  host: Type.String({ minLength: 1, default: '127.0.0.1', description: 'Address to listen on. Anything but loopback needs a token.' }),
  port: Type.Integer({ minimum: 0, maximum: 65535, default: 9090, description: 'Port to listen on. 0: any free port, logged as "admin listening". BREAKWATER_ADMIN_PORT overrides it.' }),
  token: Type.String({ default: '', description: 'Bearer token that every admin route but /livez and /readyz wants. Empty: none, which only loopback may have. BREAKWATER_ADMIN_TOKEN overrides it.' })
})

export const SheddingOptions = section('Admission: requests over a limit are refused at once with 503, never queued.', {
  maxInFlight: count(256, 1, 'Requests admitted at the same time. BREAKWATER_MAX_IN_FLIGHT overrides it.'),
  retryAfterSeconds: count(1, 1, 'The least Retry-After of a shed request, in seconds; jitter is added.'),
  pressure: section('Limits of the process itself, sampled once a second. 0 switches each off.', {
    maxEventLoopDelayMs: msOrNone(1000, 'Mean event-loop delay of the last second.'),
    maxEventLoopUtilization: ratio(0.98, 'Share of the last second in which the event loop was busy.'),
    maxHeapUsedBytes: bytesOrNone('Heap in use, in bytes.'),
    maxRssBytes: bytesOrNone('Resident memory, in bytes.')
  })
})

export const UpstreamOptions = object({
  url: Type.String({ minLength: 1, description: 'http://host:port, https://host:port (a base path is prefixed to every request) or unix:/path/to.sock.' }),
  weight: Type.Integer({ minimum: 0, maximum: 1, default: 1, description: '1: takes part in the rotation. 0: takes no new exchanges.' })
})

export const HealthOptions = section('Active health checks.', {
  enabled: flag(true, 'Poll the upstreams. Off: all of them count as healthy.'),
  path: Type.String({ pattern: '^/', default: '/healthz', description: 'Path of the check, requested with GET.' }),
  intervalMs: Type.Integer({ minimum: 10, maximum: maxTimer, default: 5000, description: 'Time between the starts of two checks of one upstream.' }),
  timeoutMs: ms(1000, 'Time for a whole check, the bounded read of its body included.'),
  statuses: Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), { minItems: 2, maxItems: 2, default: [200, 299], description: 'Inclusive range of statuses that pass.' }),
  rise: count(1, 1, 'Passes in a row that make an unhealthy upstream healthy. The very first check counts alone.'),
  fall: count(1, 1, 'Failed checks in a row that make a healthy upstream unhealthy.'),
  jitter: ratio(0.1, 'Share by which each interval is varied, so that checks do not run in step.'),
  initial: oneOf(['healthy', 'unhealthy'], 'unhealthy', 'What an upstream counts as before its first check has ended.')
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
  totalMs: msOrNone(30000, 'Time for the whole exchange: waiting, connecting and the body. 0: none. Not for event streams.')
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
  keepAliveMs: ms(4000, 'How long an idle connection is kept; keep it below the upstream\'s own limit.')
})

export const PoolOptions = object({
  balancer: oneOf(['round-robin'], 'round-robin', 'How the next upstream is picked.'),
  upstreams: Type.Array(UpstreamOptions, { minItems: 1, description: 'The servers of the pool.' }),
  health: HealthOptions,
  breaker: BreakerOptions,
  timeouts: TimeoutOptions,
  hostHeader: oneOf(['upstream', 'preserve'], 'upstream', 'The Host sent to the upstream: its own, or the client\'s. X-Forwarded-Host always tells the original.'),
  connections: ConnectionOptions,
  tls: Type.Optional(TlsOptions),
  maxInFlightPerUpstream: count(0, 0, 'Exchanges at the same time at one upstream; more are refused as upstream_capacity. 0: no limit.')
})

/** No default: what a route leaves out, its pool decides. */
const msOrPool = (description: string) => Type.Optional(Type.Integer({ minimum: 0, maximum: maxTimer, description }))

export const RouteOptions = object({
  path: Type.String({ pattern: '^/', description: 'Exact "/status", with parameters "/users/:id", or a prefix "/api/*" (which matches "/api" too).' }),
  pool: Type.String({ minLength: 1, description: 'Name of the pool that serves it.' }),
  methods: Type.Optional(Type.Array(Type.String({ pattern: '^[A-Z][A-Z-]*$' }), { minItems: 1, description: 'Methods it is for. Left out: all.' })),
  host: Type.Optional(Type.String({ minLength: 1, description: 'Host it is for, without port. Ranks before the path. Left out: all.' })),
  stripPrefix: Type.Optional(Type.String({ pattern: '^/.', description: 'Prefix taken off the path, once, before it is forwarded.' })),
  prefix: Type.Optional(Type.String({ pattern: '^/.', description: 'Prefix put before the path, once, before it is forwarded.' })),
  timeouts: Type.Optional(object({
    headersMs: msOrPool('Replaces the pool\'s headersMs on this route. 0: none.'),
    bodyIdleMs: msOrPool('Replaces the pool\'s bodyIdleMs on this route. 0: none.'),
    totalMs: msOrPool('Replaces the pool\'s totalMs on this route. 0: none.')
  }, { description: 'Time limits that replace the pool\'s on this route.' })),
  maxBodyBytes: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Size of a request body on this route, in bytes. 0: unlimited.' }))
})

export const Config = object({
  server: ServerOptions,
  admin: AdminOptions,
  shedding: SheddingOptions,
  pools: Type.Record(Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$' }), PoolOptions, { additionalProperties: false, minProperties: 1, description: 'Named groups of upstreams.' }),
  routes: Type.Array(RouteOptions, { default: [], description: 'Which request goes to which pool. Left out with a single pool: everything goes there.' })
})

/** The whole configuration, defaults filled in, frozen. */
export type Config = Static<typeof Config>
export type ServerOptions = Static<typeof ServerOptions>
export type AdminOptions = Static<typeof AdminOptions>
export type SheddingOptions = Static<typeof SheddingOptions>
export type UpstreamOptions = Static<typeof UpstreamOptions>
export type HealthOptions = Static<typeof HealthOptions>
export type BreakerOptions = Static<typeof BreakerOptions>
export type TimeoutOptions = Static<typeof TimeoutOptions>
export type TlsOptions = Static<typeof TlsOptions>
export type PoolOptions = Static<typeof PoolOptions>
export type RouteOptions = Static<typeof RouteOptions>
