import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError, formatConfigError } from '../../config/error.ts'
import { parseConfig } from '../../config/parse.ts'
import { linesOf, withShop } from './support.ts'

const bad = (input: unknown) => linesOf(() => parseConfig(input, 'test'))

test('one pool is enough: the rest are defaults, and everything goes there', () => {
  const config = parseConfig(withShop(), 'test')
  equal(config.server.headersTimeoutMs, 5000)
  deepEqual(config.server.shutdown, { delayMs: 0, graceMs: 10000 })
  deepEqual(config.pools['shop']?.upstreams, [{ url: 'http://127.0.0.1:9001', weight: 1, priority: 0 }])
  deepEqual(config.pools['shop']?.breaker.window, { seconds: 60, minimumRequests: 10, minimumShare: 0.1, failureRatio: 0.5 })
  equal(config.pools['shop']?.breaker.halfOpen.probes, 'auto')
  deepEqual(config.routes, [{ path: '/*', pool: 'shop' }])
})

test('0 stays 0', () => {
  const config = parseConfig(withShop({ timeouts: { totalMs: 0 }, breaker: { consecutiveFailures: 0 } }, { admin: { port: 0 } }), 'test')
  equal(config.pools['shop']?.timeouts.totalMs, 0)
  equal(config.pools['shop']?.breaker.consecutiveFailures, 0)
  equal(config.admin.port, 0)
})

test('the result is frozen to the last list, and the input is left alone', () => {
  const input = withShop({ health: { statuses: [200, 204] } })
  const before = structuredClone(input)
  const config = parseConfig(input, 'test')
  deepEqual(input, before)
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    ok(Object.isFrozen(value))
    Object.values(value).forEach(visit)
  }
  visit(config)
  ok(!Object.isFrozen(input.pools.shop))
})

test('defaults are not shared between pools', () => {
  const config = parseConfig({ pools: { a: withShop().pools.shop, b: withShop().pools.shop }, routes: [{ path: '/*', pool: 'a' }] }, 'test')
  ok(config.pools['a']?.health.statuses !== config.pools['b']?.health.statuses)
})

test('a section left empty is one left out', () => {
  const config = parseConfig({ ...withShop({ health: null, tls: null }), server: null, admin: undefined, routes: null }, 'test')
  equal(config.server.probes, true)
  equal(config.pools['shop']?.tls, undefined)
  equal(config.routes.length, 1)
})

test('a section that counts by being there cannot be left empty, but it can be {}', () => {
  for (const [key, fails] of [['disabled', true], ['rateLimit', true], ['timeouts', false], ['retry', false], ['requestHeaders', false]] as const) {
    const input = (value: unknown) => withShop({}, { routes: [{ path: '/*', pool: 'shop', [key]: value }] })
    deepEqual(bad(input(null)), fails ? [`routes[0].${key}: must be a mapping, got nothing`] : [], key)
    deepEqual(bad(input({})), [], key)
  }
  deepEqual(bad(withShop({ sticky: null })), ['pools.shop.sticky: must be a mapping, got nothing'])
  deepEqual(bad(withShop({ discovery: null })), ['pools.shop.discovery: must be a mapping, got nothing'])
})

test('what has the wrong type, bound or name is refused with its path, what was given and what is allowed', () => {
  const table: [unknown, string][] = [
    [undefined, 'must be a mapping, got nothing'],
    [null, 'must be a mapping, got nothing'],
    ['text', 'must be a mapping, got a string'],
    [[], 'must be a mapping, got a list'],
    [{}, 'pools: is required: a mapping with at least 1 entry'],
    [{ pools: {} }, 'pools: must be a mapping with at least 1 entry, got an empty mapping'],
    [{ pools: { shop: null } }, 'pools.shop: must be a mapping, got nothing'],
    [{ pools: { shop: {} } }, 'pools.shop.upstreams: must be a list of at least 1, as there is no discovery, got none'],
    [withShop({ upstreams: null }), 'pools.shop.upstreams: must be a list of at least 1, as there is no discovery, got none'],
    [withShop({ upstreams: {} }), 'pools.shop.upstreams: must be a list, each a mapping, got an empty mapping'],
    [withShop({ upstreams: [{}] }), 'pools.shop.upstreams[0].url: is required: text that is not empty'],
    [withShop({ upstreams: ['http://a'] }), 'pools.shop.upstreams[0]: must be a mapping with "url", got "http://a"'],
    [withShop({ upstreams: [{ url: 'http://a', weight: 1001 }] }), 'pools.shop.upstreams[0].weight: must be a whole number from 0 to 1000, got 1001'],
    [{ pools: { 'a b': withShop().pools.shop } }, 'pools["a b"]: must have a name of 1 to 63 letters, digits, ".", "_" and "-" that starts with a letter or digit'],
    [withShop({ breaker: { openMs: 0 } }), 'pools.shop.breaker.openMs: must be a whole number from 1 to 2147483647, got 0'],
    [withShop({ breaker: { openMs: 1.5 } }), 'pools.shop.breaker.openMs: must be a whole number from 1 to 2147483647, got 1.5'],
    [withShop({ breaker: { maxOpenMs: 2147483648 } }), 'pools.shop.breaker.maxOpenMs: must be a whole number from 1 to 2147483647, got 2147483648'],
    [withShop({ breaker: { window: { failureRatio: Number.NaN } } }), 'pools.shop.breaker.window.failureRatio: must be a number from 0 to 1, got NaN'],
    [withShop({ breaker: { mode: false } }), 'pools.shop.breaker.mode: must be one of "enforce", "observe", "off", got false'],
    [withShop({ breaker: { halfOpen: { probes: 33 } } }), 'pools.shop.breaker.halfOpen.probes: must be "auto" or a whole number from 1 to 32, got 33'],
    [withShop({ balancer: 'fair' }), 'pools.shop.balancer: must be one of "round-robin", "weighted", "random", "least-requests", "p2c", "peak-ewma", "hash", got "fair"'],
    [withShop({ slowStart: { minimumShare: 0 } }), 'pools.shop.slowStart.minimumShare: must be a number above 0 and at most 1, got 0'],
    [withShop({ sticky: {} }), 'pools.shop.sticky.secret: is required: text of at least 16 characters'],
    [withShop({ sticky: { secret: 's3cret', cookie: 'a b' } }), 'pools.shop.sticky.secret: must be text of at least 16 characters, got a string (not shown)'],
    [withShop({ sticky: { cookie: 'a b' } }), 'pools.shop.sticky.cookie: must be text that a header or cookie may be called, like "x-user-id", got "a b"'],
    [withShop({ health: { json: { pointer: 'status', equals: 'ok' } } }), 'pools.shop.health.json.pointer: must be text that is empty or starts with "/", got "status"'],
    [withShop({ health: { json: { pointer: '', equals: [] } } }), 'pools.shop.health.json.equals: must be text, a number, true or false or null, got a list of 0'],
    [withShop({ health: { json: { pointer: '' } } }), 'pools.shop.health.json.equals: is required: text, a number, true or false or null'],
    [withShop({ discovery: { dns: {} } }), 'pools.shop.discovery.dns.name: is required: text that is not empty'],
    [withShop({ deadlineHeader: 'x y' }), 'pools.shop.deadlineHeader: must be text that a header or cookie may be called, like "x-user-id", got "x y"'],
    [withShop({ health: { intervalMs: 9 } }), 'pools.shop.health.intervalMs: must be a whole number from 10 to 2147483647, got 9'],
    [withShop({ health: { path: 'healthz' } }), 'pools.shop.health.path: must be text that starts with "/", got "healthz"'],
    [withShop({ health: { statuses: [200] } }), 'pools.shop.health.statuses: must be a list of 2, each a whole number from 100 to 599, got a list of 1'],
    [withShop({}, { shedding: { maxInFlight: 0 } }), 'shedding.maxInFlight: must be a whole number from 1 to 2147483647, got 0'],
    [withShop({}, { server: { maxBodyBytes: -1 } }), 'server.maxBodyBytes: must be a whole number of at least 0, got -1'],
    [withShop({}, { server: { probes: 'yes' } }), 'server.probes: must be true or false, got "yes"'],
    [withShop({}, { server: [] }), 'server: must be a mapping, got a list of 0'],
    [withShop({}, { routes: {} }), 'routes: must be a list, each a mapping, got an empty mapping'],
    [withShop({}, { routes: [{ path: '/*', pool: 'shop', headers: {} }] }), 'routes[0].headers: must be a mapping with at least 1 entry, each text that is not empty, got an empty mapping'],
    [withShop({}, { routes: [{ path: '/*', pool: 'shop', headers: { 'x-version': 2 } }] }), 'routes[0].headers.x-version: must be text that is not empty, got 2'],
    [withShop({}, { routes: [{ path: '/*', pool: 'shop', headers: { 'x y': '2' } }] }), 'routes[0].headers["x y"]: must have a name that a header or cookie may be called, like "x-user-id"'],
    [withShop({}, { routes: [{ path: '/*', pool: 'shop', query: { '': '2' } }] }), 'routes[0].query[""]: must have a name that is not empty'],
    [withShop({}, { routes: [{ path: '/*', split: { pools: {} } }] }), 'routes[0].split.pools: must be a mapping with at least 1 entry, each a whole number from 0 to 10000, got an empty mapping'],
    [withShop({}, { routes: [{ path: '/*', split: { pools: { shop: -1 } } }] }), 'routes[0].split.pools.shop: must be a whole number from 0 to 10000, got -1'],
    [withShop({}, { routes: [{ path: '/*', pool: 'shop', requestHeaders: { set: { 'x-a': 'a\nb' } } }] }), 'routes[0].requestHeaders.set.x-a: must be text that a header field may hold, of at most 8192 characters, got "a\\nb"'],
    [withShop({}, { routes: [{ path: '/*', pool: 'shop', requestHeaders: { set: { Authorization: 7 } } }] }), 'routes[0].requestHeaders.set.Authorization: must be text that a header field may hold, of at most 8192 characters, got a number (not shown)'],
    [withShop({}, { routes: [{ path: '/*', pool: 'shop', disabled: { detail: 'x'.repeat(513) } }] }), `routes[0].disabled.detail: must be text of at most 512 characters, got "${'x'.repeat(80)}..."`],
    [withShop({}, { routes: [{ path: '/*', pool: 'shop', disabled: null }] }), 'routes[0].disabled: must be a mapping, got nothing'],
    [withShop({ upstreams: ['http://a:1'] }), 'pools.shop.upstreams[0]: must be a mapping with "url", got "http://a:1"'],
    [withShop({}, { admin: { port: 65536 } }), 'admin.port: must be a whole number from 0 to 65535, got 65536'],
    [withShop({}, { admin: { token: 12345 } }), 'admin.token: must be text, got a number (not shown)'],
    [withShop({}, { admin: { token: null } }), 'admin.token: must be text, got nothing'],
    [withShop({}, { admin: { host: 'x'.repeat(100), port: 'y'.repeat(100) } }), `admin.port: must be a whole number from 0 to 65535, got "${'y'.repeat(80)}..."`]
  ]
  for (const [input, line] of table) ok(bad(input).includes(line), `${line}\n--- got\n${bad(input).join('\n')}`)
})

test('an unknown option is an error that names the option that was meant', () => {
  const table: [unknown, string][] = [
    [withShop({ breakr: {} }), 'pools.shop.breakr: is not a known option; did you mean "breaker"?'],
    [withShop({ timeouts: { total: 1 } }), 'pools.shop.timeouts.total: is not a known option; did you mean "totalMs"?'],
    [withShop({}, { shedding: { max_in_flight: 1 } }), 'shedding.max_in_flight: is not a known option; did you mean "maxInFlight"?'],
    [withShop({}, { sheding: {} }), 'sheding: is not a known option; did you mean "shedding"?'],
    [withShop({}, { zzz: {} }), 'zzz: is not a known option; known here: "server", "admin", "reload", "metrics", "tracing", "shedding", "recorder", "events", "pools", "routes"'],
    [withShop({ retry_: { retries: 1 } }), 'pools.shop.retry_: is not a known option; did you mean "retry"?'],
    [withShop({}, { 'a.b': 1 }), '["a.b"]: is not a known option; known here:']
  ]
  for (const [input, start] of table) {
    const lines = bad(input)
    equal(lines.length, 1)
    ok(lines[0]?.startsWith(start), lines[0])
  }
})

test('all errors come at once, those of structure and those of meaning', () => {
  const lines = bad({
    server: { trustedProxies: ['nowhere'], probes: 1 },
    admin: { host: '0.0.0.0' },
    pools: {
      shop: { upstreams: [{ url: 'http://a' }, { url: 'http://A:80/' }, { url: 'ftp://b', weigth: 2 }], breaker: { openMs: 200000, jitter: 5 } }
    },
    routes: [{ path: '/*', pool: 'shp' }, { path: '/x*', pool: 'shop', extra: 1 }]
  })
  deepEqual(lines.map(line => line.split(': ')[0]).toSorted(), [
    'admin.token', 'pools.shop.breaker.jitter', 'pools.shop.breaker.maxOpenMs', 'pools.shop.upstreams[1].url', 'pools.shop.upstreams[2].url',
    'pools.shop.upstreams[2].weigth', 'routes[0].pool', 'routes[1].extra', 'routes[1].path', 'server.probes', 'server.trustedProxies[0]'
  ])
})

test('names that reach into prototypes are refused, and reach nothing', () => {
  const input: unknown = JSON.parse('{"__proto__": {"admin": {"port": 1}}, "pools": {"constructor": {}, "shop": {"upstreams": [{"url": "http://a", "__proto__": {"weight": 9}}]}}, "server": {"prototype": {}}}')
  deepEqual(bad(input), ['__proto__', 'pools.constructor', 'pools.shop.upstreams[0].__proto__', 'server.prototype'].map(path => `${path}: is a name that is never allowed`))
  equal(({} as Record<string, unknown>)['admin'], undefined)
})

test('what is inherited counts for nothing', () => {
  deepEqual(bad(Object.create(withShop())), ['must be plain data, got an instance of a class'])
  equal(parseConfig(Object.assign(Object.create(null), withShop()), 'test').routes.length, 1)
})

test('what is not plain data is refused', () => {
  const table: [unknown, string][] = [
    [withShop({}, { server: new Map() }), 'server: must be plain data, got an instance of a class'],
    [withShop({}, { admin: { port: 9090n } }), 'admin.port: must be plain data, got a bigint'],
    [withShop({}, { admin: { port: () => 9090 } }), 'admin.port: must be plain data, got a function'],
    [withShop({}, { routes: [undefined] }), 'routes[0]: must be plain data, got nothing'],
    [{ get pools () { throw new Error('secret') } }, 'cannot be read as plain data (Error)']
  ]
  for (const [input, line] of table) deepEqual(bad(input), [line])
})

test('a cycle or a crowd of values ends in an error, not in a hang', () => {
  const cycle: Record<string, unknown> = {}
  for (const key of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) cycle[key] = cycle
  ok(bad(cycle).some(line => line.endsWith('must be nested at most 32 deep, got more')))
  ok(bad({ routes: Array.from({ length: 200000 }, () => 1) }).includes('must hold at most 100000 values, got more'))
})

test('without an environment texts are taken as they are', () => {
  equal(parseConfig(withShop({}, { admin: { token: '${HOME}' } }), 'test').admin.token, '${HOME}')
})

test('a ConfigError names its source and lists what is wrong', () => {
  throws(() => parseConfig(withShop({}, { admin: { port: -1 } }), 'somewhere.yaml'), (error: unknown) => {
    ok(error instanceof ConfigError)
    equal(error.name, 'ConfigError')
    equal(error.source, 'somewhere.yaml')
    deepEqual(error.errors, [{ path: 'admin.port', message: 'must be a whole number from 0 to 65535, got -1' }])
    equal(error.message, 'invalid configuration in somewhere.yaml\n  - admin.port: must be a whole number from 0 to 65535, got -1')
    equal(formatConfigError(error), '1 error in somewhere.yaml\n  - admin.port: must be a whole number from 0 to 65535, got -1')
    return true
  })
})

test('of more errors than anybody reads the first hundred are told, and that there are more', () => {
  const error = new ConfigError('x', Array.from({ length: 250 }, (_, index) => ({ path: `p${index}`, message: 'm' })))
  equal(error.errors.length, 101)
  deepEqual(error.errors.at(-1), { path: '', message: 'and more' })
  ok(formatConfigError(error).startsWith('more than 100 errors in x\n  - p0: m\n'))
  ok(formatConfigError(error).endsWith('  - p99: m\n  - and more'))
  equal(new ConfigError('x', error.errors).errors.length, 101)
  equal(new ConfigError('x', error.errors.slice(0, 100)).errors.length, 100)
})

test('a hundred problems are the most, whichever check finds them', () => {
  const many = (make: (index: number) => unknown) => Array.from({ length: 20000 }, (_, index) => make(index))
  const keys = Object.fromEntries(many(index => [`k${index}`, 1]) as [string, number][])
  const pools = Object.fromEntries(many(index => [`p${index}`, { upstreams: [] }]) as [string, unknown][])
  for (const input of [keys, withShop(keys), { pools }, { ...withShop(), routes: many(index => ({ path: `/${index}`, pool: `sho${index}` })) },
    { ...withShop(), routes: many(() => '${}') }, withShop({ upstreams: many(() => ({ url: 'http://a' })) })]) {
    const lines = linesOf(() => parseConfig(input, 'x', { env: {} }))
    equal(lines.length, 101)
    equal(lines.at(-1), 'and more')
  }
  const lines = linesOf(() => parseConfig({ pools, routes: [{ path: '/', pool: 'p' }] }, 'x'))
  ok(lines.every(line => line.length < 2000))
})
