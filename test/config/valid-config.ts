import * as fc from 'fast-check'
import { configSchema, type JsonSchema } from '../../config/describe.ts'

type Pools = Record<string, Record<string, unknown>>

const port = fc.integer({ min: 1, max: 65535 })
const token = fc.constantFrom('x-user', 'X_Tenant', 'sid')
const partly = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }, requiredKeys: (keyof T)[] = []) => fc.record(model, { requiredKeys, noNullPrototype: true }) as fc.Arbitrary<Partial<T>>

const upstream = (id: number, first: boolean) => partly<Record<string, unknown>>({
  url: fc.constantFrom('http', 'https').map(scheme => `${scheme}://10.0.0.1:${9000 + id}`),
  weight: fc.integer({ min: first ? 1 : 0, max: 1000 }),
  priority: fc.nat(9),
  maxInFlight: fc.nat(),
  health: partly<Record<string, unknown>>({ path: fc.constantFrom('/', '/own'), port, intervalMs: fc.integer({ min: 10, max: 1000 }), timeoutMs: fc.integer({ min: 1, max: 1000 }), rise: fc.integer({ min: 1, max: 9 }), fall: fc.integer({ min: 1, max: 9 }) })
}, ['url'])

const dns = fc.oneof(
  partly<Record<string, unknown>>({ name: fc.constant('shop.internal'), type: fc.constant('address'), port, scheme: fc.constantFrom('http', 'https') }, ['name']),
  partly<Record<string, unknown>>({ name: fc.constant('_http._tcp.shop.internal'), type: fc.constant('srv'), family: fc.constantFrom('any', 'ipv4'), minTtlMs: fc.integer({ min: 1, max: 60000 }), servers: fc.subarray(['10.0.0.2', '10.0.0.2:5353', '[fd00::2]:53', '::1']) }, ['name', 'type'])
)

/** Where the schema alone does not make a valid value. null: left out. */
const special: Record<string, fc.Arbitrary<unknown> | null> = {
  'server.trustedProxies': fc.subarray(['10.0.0.0/8', '192.0.2.1', '::1', 'fd00::/8']),
  'server.requestIdHeader': fc.constantFrom('x-request-id', 'Request-Id'),
  'server.stripRequestHeaders': fc.subarray(['x-user-id', 'X_Internal']),
  'admin.host': fc.constantFrom('127.0.0.1', '::1', 'localhost'),
  'admin.token': fc.stringMatching(/^[!-~]{0,20}$/),
  'server.proxyProtocolFrom': fc.constantFrom([], ['10.0.0.0/8'], ['unix', 'fd00::/8']),
  'server.tls': null,
  'metrics.durationBuckets': fc.uniqueArray(fc.integer({ min: 1, max: 86400 }), { minLength: 1, maxLength: 9 }).map(bounds => bounds.toSorted((a, b) => a - b)),
  'shedding.priorities.normal': fc.double({ min: 0.5, max: 1, noNaN: true }),
  'shedding.priorities.low': fc.double({ min: 0.01, max: 0.5, noNaN: true }),
  'pools.*.upstreams': fc.uniqueArray(fc.nat(999), { minLength: 1, maxLength: 4 }).chain(ids => fc.tuple(...ids.map((id, index) => upstream(id, index === 0)))),
  'pools.*.hash': fc.oneof(
    partly<Record<string, unknown>>({ by: fc.constantFrom('client-address', 'path'), boundedLoad: fc.constantFrom(0, 1.25, 10) }),
    partly<Record<string, unknown>>({ by: fc.constantFrom('header', 'cookie'), name: token, boundedLoad: fc.constantFrom(0, 2) }, ['by', 'name'])
  ),
  'pools.*.sticky': partly<Record<string, unknown>>({ cookie: fc.constantFrom('a', '__Secure-b'), secret: fc.constant('0123456789abcdef'), secure: fc.constant(true), sameSite: fc.constantFrom('lax', 'strict', 'none'), path: fc.constantFrom('/', '/shop') }, ['cookie', 'secret', 'secure']),
  'pools.*.discovery': fc.oneof(dns.map(found => ({ dns: found })), fc.constant({ file: { path: 'upstreams.yaml' }, keep: false }), fc.constant({ source: 'mine' })),
  'pools.*.health.path': fc.constantFrom('/', '/healthz', '/health?deep=1'),
  'pools.*.health.statuses': fc.tuple(fc.integer({ min: 100, max: 300 }), fc.integer({ min: 300, max: 599 })).map(range => [...range]),
  'pools.*.health.json': fc.record({ pointer: fc.constantFrom('', '/status', '/a~1b/0'), equals: fc.constantFrom('ok', 1, true, null) }, { noNullPrototype: true }),
  'pools.*.breaker.openMs': fc.integer({ min: 1, max: 120000 }),
  'pools.*.breaker.maxOpenMs': fc.integer({ min: 120000, max: 2147483647 }),
  'pools.*.ejection.consecutiveFailures': fc.integer({ min: 1, max: 100 }),
  'pools.*.ejection.baseMs': fc.integer({ min: 1, max: 300000 }),
  'pools.*.ejection.maxMs': fc.integer({ min: 300000, max: 2147483647 }),
  'pools.*.panic.threshold': fc.double({ min: 0.01, max: 1, noNaN: true }),
  'pools.*.retry.statuses': fc.uniqueArray(fc.integer({ min: 400, max: 599 }), { maxLength: 4 }),
  'pools.*.retry.backoff.baseMs': fc.integer({ min: 1, max: 250 }),
  'pools.*.retry.backoff.maxMs': fc.integer({ min: 250, max: 2147483647 }),
  'pools.*.retry.hedge.percentile': fc.oneof(fc.constant(0), fc.double({ min: 0.5, max: 0.999, noNaN: true })),
  'pools.*.deadlineHeader': fc.constantFrom('x-deadline-ms', 'Grpc_Timeout'),
  'pools.*.tls': null
}

const number = ({ type, minimum = 0, exclusiveMinimum, maximum = 1 }: JsonSchema) => type === 'integer'
  ? fc.integer({ min: minimum, max: Math.min(maximum, 2147483647) })
  : fc.double({ min: exclusiveMinimum ?? minimum, minExcluded: exclusiveMinimum !== undefined, max: maximum, noNaN: true }).map(value => value === 0 ? 0 : value)

const valueOf = (schema: JsonSchema, path: string): fc.Arbitrary<unknown> => {
  const known = special[path]
  if (known) return known
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(option => valueOf(option, path)))
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.properties !== undefined) return mapping(schema, path)
  if (schema.type === 'boolean') return fc.boolean()
  if (schema.type !== 'integer' && schema.type !== 'number') throw new Error(`no value is known for ${path}`)
  return number(schema)
}

const mapping = (schema: JsonSchema, path: string): fc.Arbitrary<Record<string, unknown>> => {
  const keys = Object.entries(schema.properties ?? {}).map(([key, value]) => ({ key, value, path: path === '' ? key : `${path}.${key}` }))
  const used = keys.filter(option => special[option.path] !== null)
  const needed = used.filter(option => option.value.default === undefined && schema.required?.includes(option.key) === true).map(({ key }) => key)
  return fc.record(Object.fromEntries(used.map(option => [option.key, valueOf(option.value, option.path)])), { requiredKeys: needed, noNullPrototype: true })
}

interface Pool extends Record<string, unknown> {
  balancer?: string
  upstreams?: Record<string, unknown>[]
  discovery?: unknown
  health?: Record<string, unknown>
  hash?: unknown
  http2?: unknown
  sticky?: Record<string, unknown>
}

/** Takes out what contradicts another option. */
const coherent = ({ hash, http2, ...pool }: Pool, index: number): Pool => {
  const { balancer = 'round-robin', upstreams = [], health = {}, sticky } = pool
  const schemes = new Set(upstreams.map(({ url }) => String(url).split(':')[0]))
  const equal = balancer === 'round-robin'
  const tcp = health['type'] === 'tcp'
  const { json: _json, ...checks } = health
  const members = upstreams.map(({ health: own, ...rest }) => {
    const { path: _path, ...others } = (own ?? {}) as Record<string, unknown>
    return {
      ...rest,
      ...equal && typeof rest['weight'] === 'number' ? { weight: Math.min(1, rest['weight']) } : {},
      ...own === undefined ? {} : { health: tcp ? others : own }
    }
  })
  return {
    ...pool,
    ...upstreams.length === 0 && pool.discovery === undefined ? { upstreams: [{ url: 'unix:/run/shop.sock' }] } : upstreams.length === 0 ? {} : { upstreams: members },
    ...tcp ? { health: checks } : {},
    ...(http2 === 'alpn' && !schemes.has('https')) || (http2 === 'prior-knowledge' && schemes.has('https')) || http2 === undefined ? {} : { http2 },
    ...balancer === 'hash' && hash !== undefined ? { hash } : {},
    // Pools of one cookie would take each other's place in it.
    ...sticky === undefined ? {} : { sticky: { ...sticky, cookie: `${String(sticky['cookie'])}-${index}` } }
  }
}

const poolSchema = Object.values(configSchema.properties?.['pools']?.patternProperties ?? {})[0] ?? {}
const pools = fc.dictionary(fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}$/).filter(name => name !== 'constructor' && name !== 'prototype'), mapping(poolSchema, 'pools.*'), { minKeys: 1, maxKeys: 3, noNullPrototype: true })
  .map(found => Object.fromEntries(Object.entries(found).map(([name, pool], index) => [name, coherent(pool, index)])))

const places = ['/', '/*', '/status', '/users/:id', '/api/*', '/api/v1/:version/*']

const fields = fc.dictionary(fc.constantFrom('x-version', 'X-Api-Key', 'accept'), fc.constantFrom('*', '2', 'a b'), { minKeys: 1, maxKeys: 2, noNullPrototype: true })
const changes = partly<Record<string, unknown>>({ set: fc.constant({ 'x-set': 'set' }), remove: fc.constant(['x-removed']) })

/** Where a route leads: a pool, or several where there are. */
const destination = (names: string[]): fc.Arbitrary<Record<string, unknown>> => {
  const pool = fc.constantFrom(...names).map((name): Record<string, unknown> => ({ pool: name }))
  if (names.length < 2) return pool
  const by = fc.oneof(fc.constantFrom('client-address', 'request').map(source => ({ by: source })), fc.constantFrom('header', 'cookie').map(source => ({ by: source, name: 'x-user' })))
  return fc.oneof(pool, by.map(source => ({ split: { pools: Object.fromEntries(names.map((name, index) => [name, 1 + index * 9])), ...source } })))
}

const routesTo = (names: string[]) => fc.uniqueArray(fc.tuple(destination(names), partly<Record<string, unknown>>({
  path: fc.constantFrom(...places),
  methods: fc.uniqueArray(fc.constantFrom('GET', 'PUT', 'M-SEARCH'), { minLength: 1, maxLength: 2 }),
  host: fc.constantFrom('shop.example', '[::1]'),
  headers: fields,
  query: fields,
  prefix: fc.constantFrom('/v2', '/a/%20b'),
  timeouts: partly<Record<string, unknown>>({ headersMs: fc.nat(), totalMs: fc.nat() }),
  retry: partly<Record<string, unknown>>({ retries: fc.nat(5), idempotencyKey: fc.boolean() }),
  priority: fc.constantFrom('high', 'normal', 'low'),
  rateLimit: partly<Record<string, unknown>>({ max: fc.integer({ min: 1, max: 9 }), windowMs: fc.integer({ min: 100, max: 9999 }) }),
  disabled: partly<Record<string, unknown>>({ detail: fc.constantFrom('', 'Gone') }),
  requestHeaders: changes,
  responseHeaders: changes,
  maxBodyBytes: fc.nat()
}, ['path'])).map(([to, route]) => ({ ...to, ...route })), { minLength: 1, maxLength: 4, selector: ({ path }) => path })

/** Configurations that are valid, with any option left out that may be. */
export const validConfig: fc.Arbitrary<Record<string, unknown> & { pools: Pools }> = pools.chain(chosen => {
  const sections = ['server', 'admin', 'reload', 'shedding'].map(key => [key, valueOf(configSchema.properties?.[key] ?? {}, key)] as const)
  return fc.record({ ...Object.fromEntries(sections), pools: fc.constant(chosen), routes: routesTo(Object.keys(chosen)) }, { requiredKeys: ['pools', 'routes'] })
}) as fc.Arbitrary<Record<string, unknown> & { pools: Pools }>

/** Keys and values that come near to a configuration. */
const junkKey = fc.oneof(fc.constantFrom('server', 'admin', 'shedding', 'priorities', 'reload', 'pools', 'routes', 'shop', 'upstreams', 'url', 'weight', 'balancer', 'hash', 'by', 'sticky', 'secret', 'discovery', 'dns', 'name', 'servers', 'health', 'json', 'pointer', 'statuses', 'breaker', 'openMs', 'maxOpenMs', 'ejection', 'retry', 'hedge', 'deadlineHeader', 'tls', 'ca', 'split', 'mirror', 'disabled', 'rateLimit', 'headers', 'query', 'requestHeaders', 'set', 'path', 'pool', 'methods', 'host', 'stripPrefix', 'token', 'trustedProxies', '__proto__', 'constructor'), fc.string())
const junkLeaf = fc.oneof(fc.constantFrom('http://a', 'http://[', 'unix:', '/*', '/:a', 'shop', '${X}', '${', '$${', '', '/', 'GET'), fc.string({ unit: 'binary', maxLength: 10 }), fc.double(), fc.boolean(), fc.constant(null), fc.constant(undefined), fc.bigInt(), fc.date())

/** Anything: most of it shaped a little like a configuration. */
export const junk: fc.Arbitrary<unknown> = fc.oneof(fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withObjectString: true, withSparseArray: true, withTypedArray: true }), fc.letrec(tie => ({
  tree: fc.oneof({ depthSize: 'medium', withCrossShrink: true }, junkLeaf, fc.array(tie('tree'), { maxLength: 3 }), fc.dictionary(junkKey, tie('tree'), { maxKeys: 5 }))
})).tree)
