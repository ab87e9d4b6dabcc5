import { deepEqual, equal, ok } from 'node:assert/strict'
import { METHODS } from 'node:http'
import { test } from 'node:test'
import fc from 'fast-check'
import { completeRateLimit, completeRoutes } from '../../config/complete.ts'
import { parseConfig } from '../../config/parse.ts'
import { RequestHeadReader } from '../../lib/http/request-head.ts'
import { RouteTable } from '../../lib/route/table.ts'
import { linesOf, withShop } from './support.ts'

const bad = (input: unknown) => linesOf(() => parseConfig(input, 'test'))
const urls = (...texts: string[]) => ({ upstreams: texts.map(url => ({ url })) })
const pools = { shop: urls('http://a'), canary: urls('http://b'), users: urls('http://c') }
const routes = (...list: Record<string, unknown>[]) => ({ pools, routes: list.map(route => ({ pool: 'shop', ...route })) })
/** A route without the pool. */
const bare = (route: Record<string, unknown>) => ({ pools, routes: [{ path: '/*', ...route }] })

test('routes: one of pool, split and disabled', () => {
  deepEqual(bad({ pools }), ['routes: must say which request goes to which pool, as there are several ("shop", "canary", "users"); got none'])
  deepEqual(bad(bare({})), ['routes[0].pool: is required, unless there is split or disabled'])
  deepEqual(bad(bare({ pool: 'shop', split: { pools: { shop: 1 } } })), ['routes[0].split: must not stand beside pool, as it takes its place'])
  for (const route of [{ pool: 'shop' }, { split: { pools: { shop: 1 } } }, { disabled: {} }, { disabled: {}, pool: 'shop' }, { disabled: {}, split: { pools: { shop: 1 } } }]) deepEqual(bad(bare(route)), [], JSON.stringify(route))
})

test('routes: every pool that is named is there', () => {
  const known = '("shop", "canary", "users")'
  deepEqual(bad(bare({ pool: 'user' })), [`routes[0].pool: must name a pool ${known}, got "user"; did you mean "users"?`])
  deepEqual(bad(bare({ pool: 'toString' })), [`routes[0].pool: must name a pool ${known}, got "toString"`])
  deepEqual(bad(bare({ split: { pools: { shop: 95, canry: 5, 'my.pool': 0 } } })), [
    `routes[0].split.pools.canry: must name a pool ${known}, got "canry"; did you mean "canary"?`,
    `routes[0].split.pools["my.pool"]: must name a pool ${known}, got "my.pool"`
  ])
  deepEqual(bad(bare({ pool: 'shop', mirror: { pool: 'shadow' } })), [`routes[0].mirror.pool: must name a pool ${known}, got "shadow"`])
})

test('routes: a split has a share for somebody, and a name where it needs one', () => {
  const split = (options: Record<string, unknown>) => bad(bare({ split: { pools: { shop: 95, canary: 5 }, ...options } }))
  deepEqual(split({}), [])
  deepEqual(split({ pools: { shop: 0, canary: 0 } }), ['routes[0].split.pools: must have a pool with a share above 0, got only shares of 0'])
  for (const by of ['header', 'cookie']) {
    deepEqual(split({ by }), [`routes[0].split.name: is required with by: ${by}`])
    deepEqual(split({ by, name: 'x-user' }), [])
  }
  for (const by of ['client-address', 'request']) deepEqual(split({ by, name: 'x-user' }), [`routes[0].split.name: is only for a header or cookie, and this is by: ${by}`])
  deepEqual(split({ name: 'x-user' }), ['routes[0].split.name: is only for a header or cookie, and this is by: client-address'])
  deepEqual(split({ overrideHeader: 'Host' }), ['routes[0].split.overrideHeader: must not be Host; the option for that is host'])
})

test('routes: copies go to another pool', () => {
  deepEqual(bad(bare({ pool: 'shop', mirror: { pool: 'canary' } })), [])
  deepEqual(bad(bare({ pool: 'shop', mirror: { pool: 'shop' } })), ['routes[0].mirror.pool: must be another pool than the route\'s own, got "shop"'])
  deepEqual(bad(bare({ split: { pools: { shop: 1, canary: 1 } }, mirror: { pool: 'canary' } })), ['routes[0].mirror.pool: must be another pool than the route\'s own, got "canary"'])
})

test('routes: a disabled one says when to come back only with 503', () => {
  deepEqual(bad(bare({ disabled: { status: 503, retryAfterSeconds: 60 } })), [])
  deepEqual(bad(bare({ disabled: { status: 410 } })), [])
  deepEqual(bad(bare({ disabled: { status: 410, retryAfterSeconds: 60 } })), ['routes[0].disabled.retryAfterSeconds: must be 0 unless the status is 503, and that is 410'])
})

test('routes: a rate limit has a name where it needs one', () => {
  deepEqual(bad(routes({ path: '/*', rateLimit: {} })), [])
  deepEqual(bad(routes({ path: '/*', rateLimit: { by: 'header' } })), ['routes[0].rateLimit.name: is required with by: header'])
  deepEqual(bad(routes({ path: '/*', rateLimit: { name: 'x-key' } })), ['routes[0].rateLimit.name: is only for a header or cookie, and this is by: client-address'])
  deepEqual(bad(routes({ path: '/*', rateLimit: { by: 'header', name: 'X-Forwarded-For' } })).map(line => line.split(' must')[0]), ['routes[0].rateLimit.name:'])
})

test('routes: paths', () => {
  for (const path of ['/', '/*', '/status', '/users/:id', '/users/:id/orders/:order_id/*', '/a//b', '/a/', '/a;b=c,d', '/~x/v1.2', '/...', '/.well-known/*']) deepEqual(bad(routes({ path })), [], path)
  const plain = 'must be of letters, digits and -._~!$&\'+,;=@ between the slashes, without escapes'
  const dots = 'must not have "." or ".." segments'
  const table: [string, string][] = [
    ['/api*', 'must have "*" only as its last segment, like "/api/*"'],
    ['/*/x', 'must have "*" only as its last segment, like "/api/*"'],
    ['/users/:', 'must have parameters like ":id", of letters, digits and "_"'],
    ['/users/:id(\\d+)', 'must have parameters like ":id", of letters, digits and "_"'],
    ['/users/:a-:b', 'must have parameters like ":id", of letters, digits and "_"'],
    ['/users/u:id', 'must have a parameter as a whole segment, like "/users/:id"'],
    ['/:id/:id', 'must not have two parameters of one name'],
    ['/a/../b', dots], ['/./b', dots], ['/a/..;x/b', dots], ['/a/.;', dots],
    ['/a?b', plain], ['/a#b', plain], ['/a b', plain], ['/caf%C3%A9', plain], ['/café', plain], ['/a%2', plain], ['/a\\b', plain]
  ]
  for (const [path, problem] of table) deepEqual(bad(routes({ path })), [`routes[0].path: ${problem}, got ${JSON.stringify(path)}`])
})

test('routes: hosts and methods', () => {
  for (const host of ['Shop.example', '[::1]', '10.0.0.1', '*.example', '*.shop.example.com']) deepEqual(bad(routes({ path: '/*', host })), [], host)
  for (const host of ['shop.example:80', '*', '*.', '*example', 'a.*.example', '*.*.example', 'http://shop', '[::1', 'a b', 'a.', '*.a.']) {
    deepEqual(bad(routes({ path: '/*', host })).map(line => line.split(', got')[0]), ['routes[0].host: must be a host name without port, or "*." and a name for all hosts below it'], host)
  }
  deepEqual(bad(routes({ path: '/*', methods: ['GET', 'GTE', 'TRACE', 'CONNECT', 'SOURCE', 'GET'] })), [
    'routes[0].methods[1]: must be a method that Node.js can parse, got "GTE"; did you mean "GET"?',
    'routes[0].methods[2]: must be a method that is forwarded, which TRACE is not',
    'routes[0].methods[3]: must be a method that is forwarded, which CONNECT is not',
    'routes[0].methods[4]: must be a method that is forwarded, which SOURCE is not',
    'routes[0].methods[5]: is the same as routes[0].methods[0]: "GET"'
  ])
})

test('routes: header fields that a request must have', () => {
  const wanted = (headers: Record<string, unknown>, server = {}) => bad({ server, ...routes({ path: '/*', headers }) })
  deepEqual(wanted({ 'X-Canary': '1', 'accept-language': '*', cookie: 'a=b', 'content-type': 'text/plain' }), [])
  deepEqual(wanted({ 'X-A': '1', 'x-a': '2' }), ['routes[0].headers.x-a: is the same field as routes[0].headers.X-A'])
  deepEqual(wanted({ Host: 'a' }), ['routes[0].headers.Host: must not be Host; the option for that is host'])
  const ours = 'must not be a field that the proxy itself writes or that frames the message'
  for (const name of ['X-Forwarded-For', 'x_forwarded_proto', 'forwarded', 'via', 'x-real-ip', 'connection', 'content-length', 'te']) deepEqual(wanted({ [name]: '1' }), [`routes[0].headers.${name}: ${ours}, got ${JSON.stringify(name)}`])
  deepEqual(wanted({ 'X-User-Id': '*' }, { stripRequestHeaders: ['x-user-id'] }), ['routes[0].headers.X-User-Id: must not be one of server.stripRequestHeaders, which are never accepted from clients, got "X-User-Id"'])
  for (const value of [' a', 'a ', '€', 'a\nb']) {
    deepEqual(wanted({ 'x-a': value }), [`routes[0].headers.x-a: must be a value that a field can have: of characters up to U+00FF, without white space around it, got ${JSON.stringify(value)}`])
  }
  ok(!wanted({ 'x-api-token': 'secret ' }).join().includes('secret'))
})

test('routes: header fields that are changed', () => {
  const request = (requestHeaders: Record<string, unknown>, server = {}) => bad({ server, ...routes({ path: '/*', requestHeaders }) })
  deepEqual(request({ set: { 'x-env': 'prod', authorization: 'Bearer x', 'Content-Type': 'a/b' }, remove: ['cookie', 'x-debug'] }), [])
  deepEqual(request({ set: { 'X-A': '1', 'x-a': '2' } }), ['routes[0].requestHeaders.set.x-a: is the same field as routes[0].requestHeaders.set.X-A'])
  deepEqual(request({ set: { 'X-A': '1' }, remove: ['x-b', 'X-B', 'x-a'] }), [
    'routes[0].requestHeaders.remove[1]: is the same field as routes[0].requestHeaders.remove[0]: "X-B"',
    'routes[0].requestHeaders.remove[2]: is set already, which takes out what is there: routes[0].requestHeaders.set.X-A'
  ])
  deepEqual(request({ set: { host: 'a' } }), ['routes[0].requestHeaders.set.host: must not be Host; the option for that is hostHeader of the pool'])
  deepEqual(request({ set: { 'X-Trace': '1' } }, { requestIdHeader: 'x-trace' }).length, 1, 'the request id is ours')
  deepEqual(request({ set: { 'X-User-Id': 'me' } }, { stripRequestHeaders: ['x-user-id'] }), [], 'what is not accepted from clients may be set')
  const deadline = { pools: { ...pools, shop: { ...pools.shop, deadlineHeader: 'X-Budget' } }, routes: [{ path: '/*', pool: 'shop', requestHeaders: { set: { 'x-budget': '1' } } }] }
  deepEqual(bad(deadline), ['routes[0].requestHeaders.set.x-budget: must not be the field of pools.shop.deadlineHeader'])
  deepEqual(bad(routes({ path: '/*', responseHeaders: { set: { 'cache-control': 'no-store' }, remove: ['Set-Cookie', 'server'] } })), [])
})

test('routes: no field that the proxy reads, writes or drops itself is changed, in either direction', () => {
  const reader = new RequestHeadReader([], 'x-request-id')
  const own = ['connection', 'host', 'transfer-encoding', 'content-length', 'max-forwards', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate', 'te', 'trailer', 'upgrade',
    'expect', 'http2-settings', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-prefix', 'forwarded', 'via', 'x-request-id']
  for (const name of own) {
    // OPTIONS, as only there Max-Forwards is counted down.
    equal(reader.read([name, name === 'transfer-encoding' ? 'chunked' : '1'], 'OPTIONS')?.fields.join(), name === 'max-forwards' ? 'max-forwards,0' : '', name)
    for (const direction of ['requestHeaders', 'responseHeaders']) {
      for (const changes of [{ set: { [name]: '1' } }, { remove: [name.toUpperCase()] }]) equal(bad(routes({ path: '/*', [direction]: changes })).length, 1, `${direction} ${name}`)
    }
  }
})

test('routes: two for the same requests', () => {
  const same = ['routes[1]: matches the same requests as routes[0] (host, path, method, headers and query)']
  const conflicts: Record<string, unknown>[][] = [
    [{ path: '/a' }, { path: '/a' }],
    [{ path: '/users/:id' }, { path: '/users/:name' }],
    [{ path: '/a', host: 'x.example' }, { path: '/a', host: 'X.EXAMPLE' }],
    [{ path: '/a', host: '*.example' }, { path: '/a', host: '*.Example' }],
    [{ path: '/a', methods: ['GET', 'PUT'] }, { path: '/a', methods: ['POST', 'PUT'] }],
    [{ path: '/a', headers: { 'X-A': '1', b: '*' } }, { path: '/a', headers: { b: '*', 'x-a': '1' } }],
    [{ path: '/a', query: { v: '1', w: '2' }, disabled: {} }, { path: '/a', query: { w: '2', v: '1' } }]
  ]
  for (const pair of conflicts) deepEqual(bad(routes(...pair)), same, JSON.stringify(pair))
  const different: Record<string, unknown>[][] = [
    [{ path: '/a' }, { path: '/A' }], [{ path: '/a' }, { path: '/a/' }], [{ path: '/a' }, { path: '/a/*' }], [{ path: '/:id' }, { path: '/*' }],
    [{ path: '/a' }, { path: '/a', host: 'x.example' }], [{ path: '/a', host: 'x.example' }, { path: '/a', host: '*.example' }],
    [{ path: '/a', methods: ['GET'] }, { path: '/a', methods: ['POST'] }], [{ path: '/a', methods: ['GET'] }, { path: '/a' }], [{ path: '/a', methods: ['GET'] }, { path: '/a', methods: ['HEAD'] }],
    [{ path: '/a' }, { path: '/a', headers: { x: '1' } }], [{ path: '/a', headers: { x: '*' } }, { path: '/a', headers: { x: '1' } }],
    [{ path: '/a', headers: { v: '1' } }, { path: '/a', query: { v: '1' } }], [{ path: '/a', query: { V: '1' } }, { path: '/a', query: { v: '1' } }]
  ]
  for (const pair of different) deepEqual(bad(routes(...pair)), [], JSON.stringify(pair))
  const every = METHODS.filter(method => !['TRACE', 'CONNECT', 'SOURCE'].includes(method)).map(method => ({ path: '/a', methods: [method] }))
  deepEqual(bad(routes(...every, { path: '/a' })), [], 'routes for single methods may leave nothing to the one for all')
})

test('routes: those that the probes stand before', () => {
  deepEqual(bad(routes({ path: '/livez', methods: ['GET'] }, { path: '/readyz', methods: ['HEAD', 'GET'] })), [
    'routes[0]: is never reached: with server.probes the proxy itself answers "/livez"',
    'routes[1]: is never reached: with server.probes the proxy itself answers "/readyz"'
  ])
  deepEqual(bad({ server: { probes: false }, ...routes({ path: '/livez', methods: ['GET'] }) }), [])
  deepEqual(bad(routes({ path: '/livez', methods: ['POST'] }, { path: '/readyz' }, { path: '/livez/*', methods: ['GET'] })), [])
})

test('routes: prefixes', () => {
  for (const [path, stripPrefix] of [['/api/*', '/api'], ['/api/v1/*', '/api'], ['/users/:id', '/users'], ['/status', '/status']]) deepEqual(bad(routes({ path, stripPrefix, prefix: '/v%32/x' })), [])
  for (const [path, stripPrefix] of [['/api/*', '/api/v1'], ['/apiary/*', '/api'], ['/*', '/api'], ['/users/:id', '/users/7']]) {
    deepEqual(bad(routes({ path, stripPrefix })), [`routes[0].stripPrefix: must be whole segments that every path of "${path}" begins with, got "${stripPrefix}"`])
  }
  deepEqual(bad(routes({ path: '/api/*', stripPrefix: '/api/', prefix: '/v2?x' })), [
    'routes[0].stripPrefix: must not end with "/", got "/api/"',
    'routes[0].prefix: must be a plain path, without parameters and wildcard, other characters percent-encoded, got "/v2?x"'
  ])
  for (const prefix of ['/a/%2E%2e', '/..;x']) deepEqual(bad(routes({ path: '/*', prefix })), [`routes[0].prefix: must not have "." or ".." segments, got "${prefix}"`])
})

test('routes: rewrites', () => {
  for (const [path, rewrite] of [['/a', '/b'], ['/a/*', '/b'], ['/a/*', '/b/*'], ['/a/*', '/*'], ['/:x/:y/*', '/:y/%20/:x/:y/*'], ['/a', '/']]) deepEqual(bad(routes({ path, rewrite })), [], `${path} ${rewrite}`)
  const table: [string, string, string][] = [
    ['/a', '/b/*', 'must have "*" only where path ends with "/*"'],
    ['/a/*', '/b/*/c', 'must have "*" only as its last segment, like "/files/*"'],
    ['/a/*', '/b*', 'must have "*" only as its last segment, like "/files/*"'],
    ['/a/:id', '/b/:name', 'must have only parameters of path, which ":name" is not'],
    ['/a/:id', '/b/x:id', 'must have a parameter as a whole segment, like "/people/:id"'],
    ['/a/:id', '/b/../:id', 'must not have "." or ".." segments'],
    ['/a', '/b?c=d', 'must be a plain path besides its parameters, without a query, other characters percent-encoded'],
    ['/a', '/é', 'must be a plain path besides its parameters, without a query, other characters percent-encoded']
  ]
  for (const [path, rewrite, problem] of table) deepEqual(bad(routes({ path, rewrite })), [`routes[0].rewrite: ${problem}, got ${JSON.stringify(rewrite)}`])
  deepEqual(bad(routes({ path: '/a/*', rewrite: '/b/*', stripPrefix: '/a', prefix: '/c' })), [
    'routes[0].rewrite: must not stand beside stripPrefix, as it makes the whole path',
    'routes[0].rewrite: must not stand beside prefix, as it makes the whole path'
  ])
})

test('routes: any that are not in conflict have each a request of their own', () => {
  const segment = fc.constantFrom('a', 'b', ':x')
  const path = fc.oneof(fc.constantFrom('/', '/*'), fc.tuple(fc.uniqueArray(segment, { minLength: 1, maxLength: 2 }), fc.boolean()).map(([segments, prefix]) => `/${segments.join('/')}${prefix ? '/*' : ''}`))
  const conditions = fc.dictionary(fc.constantFrom('v', 'w'), fc.constantFrom('1', '2', '*'), { minKeys: 1, maxKeys: 2, noNullPrototype: true })
  const route = fc.record({
    path, pool: fc.constant('shop'), host: fc.constantFrom('x.example', '*.example'), methods: fc.uniqueArray(fc.constantFrom('GET', 'HEAD', 'POST'), { minLength: 1 }), headers: conditions, query: conditions
  }, { requiredKeys: ['path', 'pool'] })
  let judged = 0
  fc.assert(fc.property(fc.array(route, { maxLength: 8 }), list => {
    if (bad(withShop({}, { routes: list })).length > 0) return
    judged++
    const table = new RouteTable(list)
    for (const [index, { path: own, host, methods, headers = {}, query = {} }] of list.entries()) {
      const base = own.replace(/\/\*$/, '').replaceAll(/:\w+/g, 'z')
      const paths = own.endsWith('/*') ? [`${base}/z1/z2/z3/z4`, `${base}/z1`, `${base}/`, base] : [base]
      const filled = (wanted: Record<string, string>) => Object.entries(wanted).map(([name, value]): [string, string] => [name, value === '*' ? 'any' : value])
      const search = `?${filled(query).map(pair => pair.join('=')).join('&')}`
      const authority = host === undefined ? 'other' : host.replace('*', 'z')
      const reached = paths.filter(each => each !== '').some(each => (methods ?? ['PATCH']).some(method => table.match(method, authority, each, search, Object.fromEntries(filled(headers)))?.route.index === index))
      // What is left of a prefix may be its bare form alone, and that may have a route of its own.
      ok(reached || own.endsWith('/*'), JSON.stringify({ list, index }))
    }
  }), { numRuns: 1000, seed: 4 })
  ok(judged > 300, `only ${judged} were judged`)
})

test('routes alone: completed and judged by themselves, whatever pools there are', () => {
  deepEqual(completeRoutes([{ path: '/*', split: { pools: { anything: 1 } } }])[0]?.split, { pools: { anything: 1 }, by: 'client-address' })
  const message = (action: () => unknown): string => {
    try {
      action()
      return ''
    } catch (error) {
      equal((error as Error).constructor, TypeError)
      return (error as Error).message
    }
  }
  equal(message(() => completeRoutes([{ path: 'x' }, { path: '/b', pool: '', what: 1 }])).split('\n').length, 5)
  ok(message(() => completeRoutes([{ path: 'x', pool: 'a' }])).includes('routes[0].path: must be text that starts with "/", got "x"'))
  ok(message(() => completeRoutes([{ path: '/a' }])).includes('routes[0].pool: is required'))
  ok(message(() => completeRoutes(7)).includes('routes'))
  deepEqual(completeRateLimit({ max: 5 }), { max: 5, windowMs: 60000, by: 'client-address', maxKeys: 10000 })
  ok(message(() => completeRateLimit({ max: 0, by: 'header' })).includes('rateLimit.max: '))
  ok(message(() => completeRateLimit({ by: 'header' })).includes('rateLimit.name: is required with by: header'))
})
