/** GET /routes and /routes/match. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import rateLimits from '../../../plugins/rate-limits.ts'
import routing, { type RoutingOptions } from '../../../plugins/routing.ts'
import upstreamPools from '../../../plugins/upstream-pools.ts'
import edge from '../../../plugins/edge.ts'
import adminRoutes, { type AdminRoutesOptions } from '../../../routes/admin/index.ts'

const timeouts = { connectMs: 1000, headersMs: 2000, bodyIdleMs: 3000, totalMs: 9000, minUploadBytesPerSecond: 200 }
const upstreams = ['http://127.0.0.1:9']
const health = { enabled: false }

async function withRoutes (t: TestContext, routes: RoutingOptions['routes'], options: AdminRoutesOptions = {}): Promise<FastifyInstance> {
  const app = Fastify() as unknown as FastifyInstance
  t.after(() => app.close())
  await app.register(edge)
  await app.register(upstreamPools, { pools: { shop: { upstreams, health, timeouts, retry: { retries: 2 } }, canary: { upstreams, health }, shadow: { upstreams, health } } })
  await app.register(rateLimits)
  await app.register(routing, { routes })
  await app.register(adminRoutes, { loopbackOnly: true, ...options })
  return app
}

interface View {
  route: string
  index: number
  by: string
  matched: object
  passedOver: object[]
  action: string
  pool: string | null
  split: { by: string, pools: object } | null
  mirror: string | null
  forwardedPath: string | null
  limits: { priority: string, maxBodyBytes: number | null, rateLimit: object | null, timeouts: object | null, attempt: object | null, retry: { retries: number } | null }
  options: object
}

const encode = (query: Record<string, string | string[]>): string =>
  Object.entries(query).flatMap(([name, values]) => [values].flat().map((value) => `${name}=${encodeURIComponent(value)}`)).join('&')
const ask = (app: FastifyInstance, query: Record<string, string | string[]>) => app.inject(`/routes/match?${encode(query)}`)
async function match (app: FastifyInstance, query: Record<string, string | string[]>): Promise<View> {
  const response = await ask(app, query)
  assert.equal(response.statusCode, 200, response.body)
  return response.json()
}

const table: RoutingOptions['routes'] = [
  { path: '/*', pool: 'shop' },
  { path: '/api/*', pool: 'shop', stripPrefix: '/api' },
  { path: '/users/:id', pool: 'shop', methods: ['GET'], rewrite: '/v2/people/:id' },
  { path: '/api/*', pool: 'canary', headers: { 'X-Version': '2' }, query: { debug: '*' } },
  { path: '/*', pool: 'canary', host: '*.example' },
  { path: '/old', disabled: { status: 410 } }
]

test('routes are shown in matching order, each with its place in the configuration and what it does', async (t) => {
  const app = await withRoutes(t, [...table, { path: '/split', split: { pools: { shop: 9, canary: 1 } } }])
  const { routes } = (await app.inject('/routes')).json() as { routes: Array<Record<string, unknown>> }
  assert.deepEqual(routes.map(({ index, action, host = '', path }) => [index, action, host, path]), [
    [4, 'forward', '*.example', '/*'], [5, 'answer', '', '/old'], [6, 'split', '', '/split'], [2, 'forward', '', '/users/:id'], [3, 'forward', '', '/api/*'], [1, 'forward', '', '/api/*'], [0, 'forward', '', '/*']
  ])
  assert.deepEqual(routes[4], { index: 3, action: 'forward', path: '/api/*', pool: 'canary', headers: { 'X-Version': '2' }, query: { debug: '*' } })
  app.routeTable.swap([{ path: '/new', pool: 'shop' }])
  assert.deepEqual((await app.inject('/routes')).json(), { routes: [{ index: 0, action: 'forward', path: '/new', pool: 'shop' }] })
})

test('the route of a request is told without sending it: which, by which rule, what was passed over, and what is forwarded', async (t) => {
  const app = await withRoutes(t, table)
  const brief = async (query: Record<string, string | string[]>) => {
    const { index, by, pool, forwardedPath, passedOver } = await match(app, query)
    return [index, by, pool, forwardedPath, passedOver]
  }
  const version = { route: '/api/*', index: 3, why: 'header', name: 'x-version' }
  assert.deepEqual(await brief({ path: '/api/a%2Fb?q=1' }), [1, 'prefix', 'shop', '/a%2Fb?q=1', [version]])
  assert.deepEqual(await brief({ path: '/api/a?q=1', header: 'x-version: 2' }), [1, 'prefix', 'shop', '/a?q=1', [{ ...version, why: 'query', name: 'debug' }]])
  assert.deepEqual(await brief({ path: '/api/a?debug', header: ['accept:*/*', 'X-VERSION:2'] }), [3, 'prefix', 'canary', '/api/a?debug', []])
  assert.deepEqual(await brief({ path: '/users/7' }), [2, 'method', 'shop', '/v2/people/7', []])
  assert.deepEqual(await brief({ path: '/users/7', method: 'POST' }), [0, 'default', 'shop', '/users/7', [{ route: '/users/:id', index: 2, why: 'method', name: null }]])
  assert.deepEqual(await brief({ path: '/old' }), [5, 'exact', null, null, []])
  assert.deepEqual(await brief({ path: '/api/a', host: 'A.Example:8080' }), [4, 'default', 'canary', '/api/a', []])
  assert.deepEqual(await brief({ path: 'http://a.example/x', host: 'other' }), [4, 'default', 'canary', '/x', []])
  const { route, matched, action, options } = await match(app, { path: '/api/a?debug=1', header: 'x-version:2' })
  assert.deepEqual([route, matched, action], ['/api/*', { host: null, methods: null, headers: ['X-Version'], query: ['debug'] }, 'forward'])
  assert.deepEqual(options, table[3])
})

test('limits are those that hold: the route\'s over the pool\'s, and what an attempt gets of them', async (t) => {
  const app = await withRoutes(t, [
    { path: '/a', pool: 'shop', timeouts: { headersMs: 8000, totalMs: 6000, requestMs: 0 }, retry: { retries: 1 }, priority: 'high', maxBodyBytes: 1000, rateLimit: { max: 5 } },
    { path: '/b', pool: 'shop', retry: { retries: 0 } },
    { path: '/c', disabled: {} }
  ], { config: () => ({ server: { maxBodyBytes: 7 } }) })
  const limits = async (path: string) => (await match(app, { path })).limits
  const a = await limits('/a')
  assert.deepEqual({ ...a, retry: a.retry?.retries }, {
    priority: 'high',
    maxBodyBytes: 1000,
    rateLimit: { max: 5, windowMs: 60000, by: 'client-address', maxKeys: 10000 },
    timeouts: { ...timeouts, headersMs: 8000, totalMs: 6000, requestMs: 0 },
    // Two attempts share the six seconds.
    attempt: { headersMs: 3000, totalMs: 6000 },
    retry: 1
  })
  const b = await limits('/b')
  assert.deepEqual({ ...b, retry: b.retry?.retries }, { priority: 'normal', maxBodyBytes: 7, rateLimit: null, timeouts, attempt: { headersMs: 2000, totalMs: 9000 }, retry: 0 })
  assert.deepEqual(await limits('/c'), { priority: 'normal', maxBodyBytes: 7, rateLimit: null, timeouts: null, attempt: null, retry: null })
})

test('a split tells which pool has the request and what decided, where that is certain', async (t) => {
  const pools = { shop: 1, canary: 0 }
  const app = await withRoutes(t, [
    { path: '/address', split: { pools } },
    { path: '/cookie', split: { pools, by: 'cookie', name: 'id', overrideHeader: 'X-Pool' }, mirror: { pool: 'shadow' } },
    { path: '/request', split: { pools, by: 'request' } }
  ])
  const decided = async (path: string, more: Record<string, string | string[]> = {}) => {
    const { pool, split, mirror, action } = await match(app, { path, ...more })
    assert.deepEqual([split?.pools, action], [pools, 'split'])
    return [pool, split?.by, mirror]
  }
  assert.deepEqual(await decided('/address', { client: '10.0.0.1' }), ['shop', 'client-address', null])
  assert.deepEqual(await decided('/address'), [null, 'client-address', null])
  assert.deepEqual(await decided('/cookie', { header: ['cookie: a=b', 'Cookie: id=7'] }), ['shop', 'cookie', 'shadow'])
  assert.deepEqual(await decided('/cookie', { header: ['x-pool: canary'] }), ['canary', 'override', 'shadow'])
  assert.deepEqual(await decided('/request', { client: '10.0.0.1' }), [null, 'request', null])
})

test('others have their turn while a large table is written', async (t) => {
  const routes = Array.from({ length: 1000 }, (_, at) => ({ path: `/r${at}`, pool: 'shop' }))
  const app = await withRoutes(t, routes)
  await app.ready()
  let turns = 0
  let over = false
  const turn = (): void => { if (!over) setImmediate(() => { turns++; turn() }) }
  turn()
  const { statusCode, headers, body } = await app.inject('/routes')
  over = true
  assert.ok(turns >= 5, `${turns} turns`)
  assert.deepEqual([statusCode, headers['content-type']], [200, 'application/json; charset=utf-8'])
  assert.deepEqual((JSON.parse(body) as { routes: Array<{ path: string }> }).routes.map(({ path }) => path).toSorted(), routes.map(({ path }) => path).toSorted())
})

test('where no route takes it, that is answered as the client would be told, with what was tried', async (t) => {
  const app = await withRoutes(t, [{ path: '/a', pool: 'shop', methods: ['GET'] }, { path: '/a', pool: 'shop', methods: ['PUT'], headers: { 'x-v': '1' } }])
  const none = await ask(app, { path: '/b' })
  assert.deepEqual([none.statusCode, none.headers['content-type'], none.json().reason, none.headers['allow']], [404, 'application/problem+json', 'no_route', undefined])
  assert.equal(none.json().detail, 'no route takes it; tried: none, as none is for this host and path')
  const other = await ask(app, { path: '/a', method: 'PUT' })
  assert.deepEqual([other.statusCode, other.json().reason, other.headers['allow']], [405, 'method_not_allowed', 'GET, HEAD'])
  assert.equal(other.json().detail, 'no route takes it; tried: routes[1] /a (header x-v), routes[0] /a (method)')
})

test('what would be refused before any route is looked for, and what is no query, is 400', async (t) => {
  const app = await withRoutes(t, table)
  for (const query of ['path=/a/../b', 'path=nowhere', 'method=TRACE&path=/', 'method=SOURCE&path=/', '', 'method=get&path=/', 'path=/&hots=x', 'path=/&header=nothing', 'path=/&header=a:1&header=b', 'path=/&host=%0a', 'path=/&host=a/b', 'path=/&client=999']) {
    const { statusCode, body } = await app.inject(`/routes/match?${query}`)
    assert.equal(statusCode, 400, query)
    assert.match(body, /querystring/, query)
  }
})

test('secrets in routes are shown nowhere', async (t) => {
  const secret = 'a-secret-value'
  const app = await withRoutes(t, [
    { path: '/*', pool: 'shop', requestHeaders: { set: { authorization: secret, 'x-env': 'prod' } }, headers: { 'x-api-key': secret } }
  ])
  for (const url of ['/routes', `/routes/match?path=/a&header=x-api-key:${secret}`]) {
    const { statusCode, body } = await app.inject(url)
    assert.equal(statusCode, 200)
    assert.ok(!body.includes(secret), body)
    assert.ok(body.includes('prod') && body.includes('[redacted]'))
  }
  assert.ok(!(await app.inject('/routes/match?path=/a')).body.includes(secret))
})
