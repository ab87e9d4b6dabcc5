import * as fc from 'fast-check'
import { configSchema, type JsonSchema } from '../../config/describe.ts'

type Pools = Record<string, Record<string, unknown>>

/** Where the schema alone does not make a valid value. null: left out. */
const special: Record<string, fc.Arbitrary<unknown> | null> = {
  'server.trustedProxies': fc.subarray(['10.0.0.0/8', '192.0.2.1', '::1', 'fd00::/8']),
  'server.requestIdHeader': fc.constantFrom('x-request-id', 'Request-Id'),
  'server.stripRequestHeaders': fc.subarray(['x-user-id', 'X_Internal']),
  'admin.host': fc.constantFrom('127.0.0.1', '::1', 'localhost'),
  'admin.token': fc.stringMatching(/^[!-~]{0,20}$/),
  'pools.*.upstreams': fc.uniqueArray(fc.nat(999), { minLength: 1, maxLength: 4 }).map(ids => ids.map((id, index) => ({ url: `http://10.0.0.1:${9000 + id}`, weight: index === 0 ? 1 : id % 2 }))),
  'pools.*.health.path': fc.constantFrom('/', '/healthz', '/health?deep=1'),
  'pools.*.health.statuses': fc.tuple(fc.integer({ min: 100, max: 300 }), fc.integer({ min: 300, max: 599 })).map(range => [...range]),
  'pools.*.breaker.openMs': fc.integer({ min: 1, max: 120000 }),
  'pools.*.breaker.maxOpenMs': fc.integer({ min: 120000, max: 2147483647 }),
  'pools.*.tls': null
}

const number = ({ type, minimum = 0, maximum = 1 }: JsonSchema) => type === 'integer'
  ? fc.integer({ min: minimum, max: Math.min(maximum, 2147483647) })
  : fc.double({ min: minimum, max: maximum, noNaN: true }).map(value => value === 0 ? 0 : value)

const valueOf = (schema: JsonSchema, path: string): fc.Arbitrary<unknown> => {
  const known = special[path]
  if (known) return known
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(option => valueOf(option, path)))
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.properties !== undefined) return mapping(schema, path)
  if (schema.type === 'boolean') return fc.boolean()
  return number(schema)
}

const mapping = (schema: JsonSchema, path: string): fc.Arbitrary<Record<string, unknown>> => {
  const keys = Object.entries(schema.properties ?? {}).map(([key, value]) => ({ key, value, path: path === '' ? key : `${path}.${key}` }))
  const used = keys.filter(option => special[option.path] !== null)
  const needed = used.filter(option => option.value.default === undefined).map(({ key }) => key)
  return fc.record(Object.fromEntries(used.map(option => [option.key, valueOf(option.value, option.path)])), { requiredKeys: needed })
}

const poolSchema = Object.values(configSchema.properties?.['pools']?.patternProperties ?? {})[0] ?? {}
const pools = fc.dictionary(fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}$/).filter(name => name !== 'constructor' && name !== 'prototype'), mapping(poolSchema, 'pools.*'), { minKeys: 1, maxKeys: 3, noNullPrototype: true })

const places = ['/', '/*', '/status', '/users/:id', '/api/*', '/api/v1/:version/*']

const routesTo = (names: string[]) => fc.uniqueArray(fc.record({
  path: fc.constantFrom(...places),
  pool: fc.constantFrom(...names),
  methods: fc.uniqueArray(fc.constantFrom('GET', 'PUT', 'M-SEARCH'), { minLength: 1, maxLength: 2 }),
  host: fc.constantFrom('shop.example', '[::1]'),
  prefix: fc.constantFrom('/v2', '/a/%20b'),
  timeouts: fc.record({ headersMs: fc.nat(), totalMs: fc.nat() }, { requiredKeys: [] }),
  maxBodyBytes: fc.nat()
}, { requiredKeys: ['path', 'pool'] }), { minLength: 1, maxLength: 4, selector: ({ path }) => path })

/** Configurations that are valid, with any option left out that may be. */
export const validConfig: fc.Arbitrary<Record<string, unknown> & { pools: Pools }> = pools.chain(chosen => {
  const sections = ['server', 'admin', 'shedding'].map(key => [key, valueOf(configSchema.properties?.[key] ?? {}, key)] as const)
  return fc.record({ ...Object.fromEntries(sections), pools: fc.constant(chosen), routes: routesTo(Object.keys(chosen)) }, { requiredKeys: ['pools', 'routes'] })
}) as fc.Arbitrary<Record<string, unknown> & { pools: Pools }>

/** Keys and values that come near to a configuration. */
const junkKey = fc.oneof(fc.constantFrom('server', 'admin', 'shedding', 'pools', 'routes', 'shop', 'upstreams', 'url', 'weight', 'health', 'statuses', 'breaker', 'openMs', 'maxOpenMs', 'tls', 'ca', 'path', 'pool', 'methods', 'host', 'stripPrefix', 'token', 'trustedProxies', '__proto__', 'constructor'), fc.string())
const junkLeaf = fc.oneof(fc.constantFrom('http://a', 'http://[', 'unix:', '/*', '/:a', 'shop', '${X}', '${', '$${', '', '/', 'GET'), fc.string({ unit: 'binary', maxLength: 10 }), fc.double(), fc.boolean(), fc.constant(null), fc.constant(undefined), fc.bigInt(), fc.date())

/** Anything: most of it shaped a little like a configuration. */
export const junk: fc.Arbitrary<unknown> = fc.oneof(fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withObjectString: true, withSparseArray: true, withTypedArray: true }), fc.letrec(tie => ({
  tree: fc.oneof({ depthSize: 'medium', withCrossShrink: true }, junkLeaf, fc.array(tie('tree'), { maxLength: 3 }), fc.dictionary(junkKey, tie('tree'), { maxKeys: 5 }))
})).tree)
