import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { isOwnField } from '../../config/own-fields.ts'
import { parseConfig } from '../../config/parse.ts'
import { RequestHeadReader } from '../../lib/http/request-head.ts'
import { linesOf, withShop } from './support.ts'

const bad = (input: unknown) => linesOf(() => parseConfig(input, 'test'))
const shop = (pool: Record<string, unknown>) => bad(withShop(pool))
const url = 'http://127.0.0.1:9001'
const secret = '0123456789abcdef0123456789abcdef'

test('upstreams: a pool has one, or has discovery', () => {
  deepEqual(shop({ upstreams: [] }), ['pools.shop.upstreams: must be a list of at least 1, as there is no discovery, got none'])
  deepEqual(shop({ upstreams: [], discovery: { source: 'mine' } }), [])
  deepEqual(shop({ upstreams: [{ url, weight: 0 }], discovery: { source: 'mine' } }), [], 'those that are found have weights of their own')
  deepEqual(shop({ upstreams: [{ url, weight: 0 }] }), ['pools.shop.upstreams: must have an upstream with a weight above 0, got only weights of 0'])
})

test('upstreams: round-robin takes no weights but 0 and 1, all others do', () => {
  const upstreams = [{ url, weight: 5 }, { url: 'http://127.0.0.1:9002', weight: 0 }]
  deepEqual(shop({ upstreams }), ['pools.shop.upstreams[0].weight: must be 0 or 1 with balancer: round-robin, which gives all the same, got 5; balancer: weighted goes by it'])
  for (const balancer of ['weighted', 'random', 'least-requests', 'p2c', 'peak-ewma', 'hash']) deepEqual(shop({ upstreams, balancer }), [], balancer)
})

test('upstreams: tiers, limits and checks of their own', () => {
  deepEqual(shop({ upstreams: [{ url, priority: 3, maxInFlight: 0, health: { path: '/own?x=1', port: 9100, intervalMs: 10 } }] }), [])
  deepEqual(shop({ health: { type: 'tcp' }, upstreams: [{ url, health: { path: '/own', port: 9100 } }] }), ['pools.shop.upstreams[0].health.path: is not used by health checks of type tcp'])
  deepEqual(shop({ upstreams: [{ url: 'unix:/run/a.sock', health: { port: 9100, path: '/ä' } }] }), [
    'pools.shop.upstreams[0].health.path: must be of visible ASCII characters without "#", others percent-encoded, got "/ä"',
    'pools.shop.upstreams[0].health.port: is not for the upstream of a unix socket'
  ])
  deepEqual(shop({ upstreams: [{ url, health: { enabled: false } }] }).map(line => line.split(';')[0]), ['pools.shop.upstreams[0].health.enabled: is not a known option'])
})

test('hash: what it picks by', () => {
  const hash = (options: Record<string, unknown>, balancer = 'hash') => shop({ balancer, hash: options })
  for (const options of [{}, { by: 'path' }, { by: 'header', name: 'x-user' }, { by: 'cookie', name: 'sid', boundedLoad: 1.25 }]) deepEqual(hash(options), [], JSON.stringify(options))
  deepEqual(hash({ by: 'header' }), ['pools.shop.hash.name: is required with by: header'])
  deepEqual(hash({ by: 'cookie', name: 'a;b' }).map(line => line.split(',')[0]), ['pools.shop.hash.name: must be text that a header or cookie may be called'])
  deepEqual(hash({ name: 'x-user' }), ['pools.shop.hash.name: is only for by: header and by: cookie, and this is by: client-address'])
  for (const boundedLoad of [0.5, 1]) deepEqual(hash({ boundedLoad }), [`pools.shop.hash.boundedLoad: must be 0 or above 1, got ${boundedLoad}`])
  for (const options of [{ by: 'path' }, { by: 'header', name: 'x-user' }, { boundedLoad: 2 }]) {
    deepEqual(hash(options, 'p2c'), ['pools.shop.hash: is only for balancer: hash, and this one is "p2c"'], JSON.stringify(options))
  }
  deepEqual(hash({ by: 'client-address', boundedLoad: 0 }, 'p2c'), [], 'a default, written or not')
  deepEqual(bad(withShop({ balancer: 'hash', hash: { by: 'header', name: 'X-User' } }, { server: { stripRequestHeaders: ['x-user'] } })), ['pools.shop.hash.name: must not be one of server.stripRequestHeaders, which are never accepted from clients, got "X-User"'])
  deepEqual(hash({ by: 'header', name: 'Host' }), [])
  deepEqual(hash({ by: 'header', name: 'x-forwarded-for' }), ['pools.shop.hash.name: must not be a field that the proxy itself writes or that frames the message, got "x-forwarded-for"'])
})

test('sticky: cookies that browsers take, and secrets that are some', () => {
  const sticky = (options: Record<string, unknown>) => shop({ sticky: { secret, ...options } })
  for (const options of [{}, { sameSite: 'none', secure: true }, { cookie: '__Host-place', secure: true }, { cookie: '__Secure-place', secure: true, path: '/shop' }]) deepEqual(sticky(options), [], JSON.stringify(options))
  for (const balancer of ['round-robin', 'weighted', 'hash', 'peak-ewma']) deepEqual(shop({ balancer, sticky: { secret } }), [])
  deepEqual(sticky({ sameSite: 'none' }), ['pools.shop.sticky.secure: must be true with sameSite: none, or browsers refuse the cookie'])
  deepEqual(sticky({ cookie: '__Secure-a' }), ['pools.shop.sticky.secure: must be true for a cookie named "__Secure-a"'])
  deepEqual(sticky({ cookie: '__Host-a', secure: true, path: '/a' }), ['pools.shop.sticky.path: must be "/" for a cookie named "__Host-a", got "/a"'])
  deepEqual(sticky({ path: '/a; Domain=example.com' }), ['pools.shop.sticky.path: must be of visible ASCII characters without ";", got "/a; Domain=example.com"'])
  for (const weak of ['change-me-change-me', 'Please CHANGE THIS!', 'a-placeholder-secret', 'your-secret-of-16', 'xxxxxxxxxxxxxxxxxxxx', '1234512345123451234']) {
    deepEqual(sticky({ secret: weak }), ['pools.shop.sticky.secret: must be random, like the output of "openssl rand -hex 32" (the value is not shown)'], weak)
  }
})

test('sticky: two pools of one host need two cookies', () => {
  const pools = (cookies: [string, string?][]) => Object.fromEntries(cookies.map(([cookie, path = '/'], index) => [`p${index}`, { upstreams: [{ url }], sticky: { secret, cookie, path } }]))
  const to = (path: string, pool: string, host?: string) => ({ path, pool, ...host === undefined ? {} : { host } })
  const clash = ['pools.p1.sticky.cookie: must be another than that of pools.p0, which has the same host and path, got "a"']
  const routes = [to('/x', 'p0'), to('/*', 'p1')]
  deepEqual(bad({ pools: pools([['a'], ['a']]), routes }), clash)
  deepEqual(bad({ pools: pools([['a', '/x'], ['a', '/']]), routes }), clash)
  deepEqual(bad({ pools: pools([['a', '/x'], ['a', '/y']]), routes }), [])
  deepEqual(bad({ pools: pools([['a'], ['b']]), routes }), [])
  deepEqual(bad({ pools: pools([['a'], ['a']]), routes: [to('/*', 'p0', 'one.example'), to('/*', 'p1', 'Two.example')] }), [])
  deepEqual(bad({ pools: pools([['a'], ['a']]), routes: [to('/*', 'p0', 'one.example'), to('/x', 'p1', 'One.Example')] }), clash)
  deepEqual(bad({ pools: pools([['a'], ['a']]), routes: [to('/*', 'p0', '*.example'), to('/x', 'p1', 'one.example')] }), clash)
  deepEqual(bad({ pools: pools([['a'], ['a']]), routes: [to('/*', 'p0', '*.example'), to('/x', 'p1', 'example')] }), [])
  deepEqual(bad({ pools: pools([['a'], ['a']]), routes: [{ path: '/*', split: { pools: { p0: 9, p1: 1 } } }] }), clash)
  deepEqual(bad({ pools: pools([['a'], ['a']]), routes: [to('/*', 'p0')] }), [], 'a pool that no route needs sets no cookie')
})

test('health: what a check wants to see', () => {
  const health = (options: Record<string, unknown>) => shop({ health: options })
  for (const equals of ['ok', 1, false, null]) deepEqual(health({ json: { pointer: '/a~1b/~0/0', equals } }), [], String(equals))
  deepEqual(health({ type: 'tcp', path: '/unused', statuses: [200, 204] }), [], 'what a default may be is not judged')
  deepEqual(health({ type: 'tcp', json: { pointer: '', equals: 1 } }), ['pools.shop.health.json: is only for type: http, which gets an answer'])
  deepEqual(health({ json: { pointer: '/a~2', equals: 1 } }), ['pools.shop.health.json.pointer: must be a JSON pointer, in which "~" is written "~0", got "/a~2"'])
})

test('caps are not below what they cap', () => {
  const table: [Record<string, unknown>, string][] = [
    [{ breaker: { openMs: 2, maxOpenMs: 1 } }, 'breaker.maxOpenMs: must be at least pools.shop.breaker.openMs (2), got 1'],
    [{ ejection: { baseMs: 2, maxMs: 1 } }, 'ejection.maxMs: must be at least pools.shop.ejection.baseMs (2), got 1'],
    [{ retry: { backoff: { baseMs: 2, maxMs: 1 } } }, 'retry.backoff.maxMs: must be at least pools.shop.retry.backoff.baseMs (2), got 1'],
    [{ discovery: { dns: { name: 'a', minTtlMs: 2, maxTtlMs: 1 } } }, 'discovery.dns.maxTtlMs: must be at least pools.shop.discovery.dns.minTtlMs (2), got 1']
  ]
  for (const [pool, line] of table) deepEqual(shop(pool), [`pools.shop.${line}`])
  deepEqual(shop({ ejection: { baseMs: 400000 } }), ['pools.shop.ejection.maxMs: must be at least pools.shop.ejection.baseMs (400000), got 300000'], 'the default counts too')
})

test('ejection: one that looks has a trigger', () => {
  deepEqual(shop({ ejection: { mode: 'observe', consecutiveFailures: 0 } }), ['pools.shop.ejection: must have consecutiveFailures or window.failureRatio above 0 with mode: observe, got 0 for both'])
  deepEqual(shop({ ejection: { mode: 'enforce', consecutiveFailures: 0, window: { failureRatio: 0.5 } } }), [])
  deepEqual(shop({ ejection: { consecutiveFailures: 0 } }), [])
})

test('panic: never is never', () => {
  deepEqual(shop({ panic: { threshold: 0, whenNone: true } }), ['pools.shop.panic.whenNone: must be false with threshold: 0, which is never; the least panic is a threshold above 0, like 0.01'])
  deepEqual(shop({ panic: { threshold: 0 } }), [])
  deepEqual(shop({ panic: { threshold: 0.01, whenNone: true } }), [])
})

test('retries: statuses once, hedges late', () => {
  deepEqual(shop({ retry: { statuses: [502, 503, 502] } }), ['pools.shop.retry.statuses[2]: is the same as pools.shop.retry.statuses[0]: 502'])
  for (const percentile of [0.1, 0.49]) deepEqual(shop({ retry: { hedge: { percentile } } }), [`pools.shop.retry.hedge.percentile: must be 0 or at least 0.5, or most requests would be sent twice, got ${percentile}`])
  for (const percentile of [0, 0.5, 0.999]) deepEqual(shop({ retry: { hedge: { percentile } } }), [])
})

test('the deadline travels in a header of its own', () => {
  for (const deadlineHeader of ['x-deadline-ms', 'grpc-timeout']) deepEqual(shop({ deadlineHeader }), [])
  for (const deadlineHeader of ['Host', 'connection', 'X-Forwarded-For', 'x_forwarded_for', 'via', 'authorization', 'x-request-id']) {
    deepEqual(shop({ deadlineHeader }), [`pools.shop.deadlineHeader: must be a header of its own, got "${deadlineHeader}", which has a meaning already`])
  }
  deepEqual(bad(withShop({ deadlineHeader: 'x-trace' }, { server: { requestIdHeader: 'X-Trace' } })), ['pools.shop.deadlineHeader: must be a header of its own, got "x-trace", which has a meaning already'])
})

test('every field that is not forwarded as it came is known as ours', () => {
  const reader = new RequestHeadReader([], 'x-request-id')
  const names = ['connection', 'host', 'content-length', 'max-forwards', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate', 'te', 'trailer', 'upgrade', 'expect', 'http2-settings', 'x-real-ip',
    'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-prefix', 'forwarded', 'via']
  for (const name of names) {
    equal(reader.read([name, '1'], 'OPTIONS')?.fields.includes('1') ?? false, false, name)
    ok(isOwnField(name), name)
    ok(isOwnField(name.toUpperCase().replaceAll('-', '_')), name)
  }
  deepEqual(reader.read(['x-mine', '1'], 'GET')?.fields, ['x-mine', '1'])
  ok(!isOwnField('x-mine'))
})

test('discovery: exactly one source', () => {
  const path = 'pools.shop.discovery: must have exactly one of dns, file and source, got'
  deepEqual(shop({ discovery: {} }), [`${path} none`])
  deepEqual(shop({ discovery: { keep: false } }), [`${path} none`])
  deepEqual(shop({ discovery: { dns: { name: 'shop' }, source: 'x' } }), [`${path} dns and source`])
  for (const discovery of [{ dns: { name: 'shop' } }, { file: { path: 'upstreams.yaml' } }, { source: 'x' }]) deepEqual(shop({ discovery }), [])
})

test('discovery: names, ports and resolvers', () => {
  const dns = (options: Record<string, unknown>) => shop({ discovery: { dns: { name: 'shop.internal', ...options } } })
  for (const options of [{}, { port: 8080, scheme: 'https', family: 'ipv6' }, { type: 'srv', name: '_http._tcp.shop.internal' }, { name: 'localhost' }]) deepEqual(dns(options), [], JSON.stringify(options))
  deepEqual(dns({ type: 'srv', port: 80 }), ['pools.shop.discovery.dns.port: is not for type: srv, whose records bring their own'])
  for (const name of ['10.0.0.1', '::1']) deepEqual(dns({ name }), [`pools.shop.discovery.dns.name: must be a name, got "${name}"; an address is written as one of the upstreams`])
  for (const name of ['http://shop', 'shop:80', 'a..b', '-a', 'a.', 'a b', 'a'.repeat(64)]) deepEqual(dns({ name }).map(line => line.split(', got')[0]), ['pools.shop.discovery.dns.name: must be a host name'], name)
  deepEqual(dns({ servers: ['10.0.0.2', '10.0.0.2:53', '::1', '[::1]', '[fd00::2]:5353'] }), [])
  for (const server of ['dns.internal', '10.0.0.2:0', '10.0.0.2:65536', '10.0.0.2:', '[10.0.0.2]:53', '::1:53:x', '10.0.0']) {
    deepEqual(dns({ servers: [server] }), [`pools.shop.discovery.dns.servers[0]: must be an IP address, with or without a port, got "${server}"`])
  }
  deepEqual(dns({ servers: ['::1', '::1'] }), ['pools.shop.discovery.dns.servers[1]: is the same as pools.shop.discovery.dns.servers[0]: "::1"'])
})

test('tls: also for upstreams that discovery brings', () => {
  const none = ['pools.shop.tls: is only for pools with an https upstream, and this one has none']
  const tls = (pool: Record<string, unknown>) => shop({ tls: {}, ...pool })
  deepEqual(tls({ upstreams: [], discovery: { dns: { name: 'shop', scheme: 'https' } } }), [])
  deepEqual(tls({ upstreams: [], discovery: { dns: { name: 'shop' } } }), none)
  deepEqual(tls({ discovery: { dns: { name: 'shop' } } }), none)
  deepEqual(tls({ upstreams: [{ url: 'https://a' }], discovery: { dns: { name: 'shop' } } }), [])
  deepEqual(tls({ discovery: { file: { path: 'x.yaml' } } }), [], 'what a file brings is not known')
})

test('shedding: no priority is served before a higher one', () => {
  const priorities = (options: Record<string, unknown>) => bad(withShop({}, { shedding: { priorities: options } }))
  deepEqual(priorities({ normal: 0.4 }), ['shedding.priorities.low: must be at most shedding.priorities.normal (0.4), got 0.5'])
  deepEqual(priorities({ normal: 0.4, low: 0.4 }), [])
})

test('all that is wrong with a pool is told at once', () => {
  const lines = shop({
    balancer: 'round-robin', hash: { by: 'header', boundedLoad: 1 }, sticky: { secret: 'short', sameSite: 'none' }, upstreams: [{ url: 'ftp://a', weight: 9 }],
    discovery: {}, health: { type: 'tcp', json: { pointer: '/~', equals: 1 } }, breaker: { maxOpenMs: 1 }, ejection: { mode: 'enforce', consecutiveFailures: 0, maxMs: 1 },
    retry: { statuses: [502, 502], hedge: { percentile: 0.2 } }, deadlineHeader: 'te'
  })
  deepEqual(lines.map(line => line.split(': ')[0]?.replace('pools.shop.', '')).toSorted(), [
    'breaker.maxOpenMs', 'deadlineHeader', 'discovery', 'ejection', 'ejection.maxMs', 'hash', 'hash.boundedLoad', 'hash.name', 'health.json', 'health.json.pointer',
    'retry.hedge.percentile', 'retry.statuses[1]', 'sticky.secret', 'sticky.secure', 'upstreams[0].url', 'upstreams[0].weight'
  ])
})

test('http2: alpn is for https upstreams, prior-knowledge for the others', () => {
  const secure = 'https://127.0.0.1:9443'
  deepEqual(shop({ upstreams: [{ url }], http2: 'alpn' }), ['pools.shop.http2: alpn is only for pools with an https upstream, and this one has none'])
  deepEqual(shop({ upstreams: [{ url }, { url: secure }], http2: 'alpn' }), [])
  deepEqual(shop({ upstreams: [], discovery: { source: 'mine' }, http2: 'alpn' }), [])
  deepEqual(shop({ upstreams: [{ url }, { url: secure }], http2: 'prior-knowledge' }), ['pools.shop.http2: prior-knowledge is for upstreams without TLS, and upstreams[1] (127.0.0.1:9443) is https; alpn is for those'])
  deepEqual(shop({ upstreams: [{ url }, { url: 'unix:/run/shop.sock' }], http2: 'prior-knowledge' }), [])
})
