/** What an operator may do, and how a wrong request is refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import cors from '@fastify/cors'
import adminRoutes from '../../../routes/admin/index.ts'
import { post, source, withAdmin } from './fixtures.ts'

const writesOf = (app: FastifyInstance) =>
  app.events.since(0).events.filter(({ type }) => type === 'admin_write').map(({ seq: _seq, at: _at, type: _type, ...rest }) => rest)

const target = { pool: 'shop', upstream: '127.0.0.1:9', target: 'shop/127.0.0.1:9', client_ip: '127.0.0.1' }

test('a breaker is forced, and reset', async (t) => {
  const app = await withAdmin(t)
  const breaker = app.breakers.get('shop', '127.0.0.1:9')
  const forced = await post(app, '/admin/breakers/shop/127.0.0.1:9/force', { state: 'open', ttlMs: 60000, reason: 'a drill' })
  assert.equal(forced.statusCode, 200)
  // The rest of it goes on with the time.
  const settled = ({ openFor: _openFor, explanation: _explanation, ...rest }: Record<string, unknown>): object => rest
  assert.deepEqual(settled(forced.json()), settled(JSON.parse(JSON.stringify(breaker.snapshot()))))
  assert.deepEqual([forced.json().state, forced.json().force.reason, forced.json().lastTransition.cause], ['open', 'a drill', 'forced'])
  assert.equal(breaker.acquire(), null)

  const reset = await post(app, '/admin/breakers/shop/127.0.0.1%3A9/reset', { reason: 'the drill is over' })
  assert.deepEqual([reset.statusCode, reset.json().state, reset.json().force], [200, 'closed', null])

  await post(app, '/admin/breakers/shop/127.0.0.1:9/force', { state: 'closed', ttlMs: 60000 })
  const ended = await post(app, '/admin/breakers/shop/127.0.0.1:9/force', { state: 'auto' })
  assert.deepEqual([ended.statusCode, ended.json().force], [200, null])

  assert.deepEqual(writesOf(app), [
    { action: 'breaker_force', ...target, reason: 'a drill', state: 'open', ttlMs: 60000 },
    { action: 'breaker_reset', ...target, reason: 'the drill is over' },
    { action: 'breaker_force', ...target, reason: null, state: 'closed', ttlMs: 60000 },
    { action: 'breaker_force', ...target, reason: null, state: 'auto' }
  ])
  assert.deepEqual(app.events.since(0).events.map(({ type }) => type).slice(0, 2), ['breaker_transition', 'admin_write'])
})

test('a breaker that is off has nothing to force', async (t) => {
  const app = await withAdmin(t)
  app.breakers.get('shop', '127.0.0.1:9', { mode: 'off' })
  const response = await post(app, '/admin/breakers/shop/127.0.0.1:9/force', { state: 'open', ttlMs: 60000 })
  assert.equal(response.statusCode, 409)
  assert.deepEqual(writesOf(app), [])
})

test('an upstream is drained and taken back', async (t) => {
  const app = await withAdmin(t)
  const upstream = app.pools.find('users', '/run/a%2Fb/users.sock')!
  const path = `/admin/pools/users/upstreams/${encodeURIComponent(upstream.id)}`
  const drained = await post(app, `${path}/drain`, { reason: 'disk is full' })
  assert.deepEqual([drained.statusCode, drained.json().upstream, drained.json().draining, upstream.draining], [200, upstream.id, true, true])
  const back = await post(app, `${path}/ready`)
  assert.deepEqual([back.statusCode, back.json().draining, upstream.draining], [200, false, false])
  const named = { pool: 'users', upstream: upstream.id, target: `users/${upstream.id}`, client_ip: '127.0.0.1' }
  assert.deepEqual(writesOf(app), [
    { action: 'upstream_drain', ...named, reason: 'disk is full' },
    { action: 'upstream_ready', ...named, reason: null }
  ])
})

test('an upstream is checked at once', async (t) => {
  const backend = Fastify()
  t.after(() => backend.close())
  backend.get('/healthz', async () => 'ok')
  await backend.listen({ port: 0, host: '127.0.0.1' })
  const { port } = backend.server.address() as { port: number }
  const app = await source(t, { shop: { upstreams: [`http://127.0.0.1:${port}`], health: { initial: 'unhealthy', intervalMs: 60000 } } })
  await app.register(adminRoutes, { prefix: '/admin', loopbackOnly: true })
  const response = await post(app, `/admin/health/shop/127.0.0.1:${port}/check`)
  assert.equal(response.statusCode, 200)
  const { check, ...view } = response.json()
  assert.deepEqual([check.passed, check.status, view.healthy, view.lastCheck.passed], [true, 200, true, true])
  assert.deepEqual(view, app.health.get('shop', `127.0.0.1:${port}`))
  assert.deepEqual(writesOf(app).map(({ action }) => action), ['health_check'])
})

test('wrong requests are refused with a problem that names what is wrong', async (t) => {
  const app = await withAdmin(t)
  const json = { 'content-type': 'application/json' }
  const breaker = '/admin/breakers/shop/127.0.0.1:9'
  type Case = [method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS', url: string, headers: Record<string, string>, body: string | undefined, status: number, detail: RegExp]
  const cases: Case[] = [
    ['POST', `${breaker}/force`, json, '{"state":"open"}', 400, /^body\.ttlMs is missing$/],
    ['POST', `${breaker}/force`, json, '{"state":"ajar","ttlMs":1}', 400, /^body\.state must be one of open, closed, auto$/],
    ['POST', `${breaker}/force`, json, '{"state":"open","ttlMs":0}', 400, /^body\.ttlMs must be >= 1$/],
    ['POST', `${breaker}/force`, json, '{"state":"open","ttlMs":"5"}', 400, /^body\.ttlMs must be integer$/],
    ['POST', `${breaker}/force`, json, '{"state":"open","ttlMs":3e9,"tll":1}', 400, /body\.tll is not known.*body\.ttlMs must be <= 2147483647|body\.ttlMs must be <= 2147483647.*body\.tll is not known/],
    ['POST', `${breaker}/force`, json, '', 400, /^body\.state is missing$/],
    ['POST', `${breaker}/reset`, json, '{"reason":""}', 400, /^body\.reason/],
    ['POST', `${breaker}/reset`, json, '[]', 400, /^body must be object$/],
    ['POST', `${breaker}/reset`, json, '{', 400, /JSON/],
    ['POST', `${breaker}/reset`, json, JSON.stringify({ reason: 'x'.repeat(70000) }), 413, /too large/],
    ['POST', `${breaker}/reset`, {}, undefined, 415, /application\/json/],
    ['POST', `${breaker}/reset`, { 'content-type': 'text/plain' }, '{}', 415, /application\/json/],
    ['POST', `${breaker}/reset`, { 'content-type': 'application/x-www-form-urlencoded' }, 'reason=x', 415, /application\/json/],
    ['POST', `${breaker}/reset`, { 'content-type': 'application/jsonp' }, '{}', 415, /application\/json/],
    ['POST', '/admin/breakers/shop/nobody:1/reset', json, '{}', 404, /nobody:1/],
    ['POST', '/admin/pools/nowhere/upstreams/127.0.0.1:9/drain', json, '{}', 404, /there is no pool "nowhere"/],
    ['POST', '/admin/health/shop/nobody:1/check', json, '{}', 404, /nobody:1/],
    ['POST', '/admin/health/nowhere/nobody:1/check', json, '{}', 404, /^no upstream of a pool "nowhere" is checked$/],
    ['GET', '/admin/pools/nowhere', {}, undefined, 404, /nowhere/],
    ['GET', '/admin/breakers/nowhere/127.0.0.1:9', {}, undefined, 404, /nowhere/],
    ['GET', '/admin/events?since=-1', {}, undefined, 400, /^querystring\.since must be >= 0$/],
    ['GET', '/admin/events?limit=1001', {}, undefined, 400, /^querystring\.limit/],
    ...['1e400', 'Infinity', '0x10', '%20', '1e2', 'true', '99999999999999999999', '1&since=2'].map((value) =>
      ['GET', `/admin/events?since=${value}`, {}, undefined, 400, /^querystring\.since must be integer$/] as Case),
    ['GET', '/admin/events?limit=1e400', {}, undefined, 400, /^querystring\.limit must be integer$/],
    ['GET', '/admin/events/stream?since=1e400', {}, undefined, 400, /^querystring\.since must be integer$/],
    ['GET', '/admin/events?since=x', {}, undefined, 400, /^querystring\.since must be integer$/],
    ['GET', '/admin/nowhere', {}, undefined, 404, /nothing here/],
    ['GET', '/admin/pools/', {}, undefined, 404, /nothing here/],
    ['GET', '/admin/breakers/', {}, undefined, 404, /nothing here/],
    ['GET', '/admin/breakers/shop/', {}, undefined, 404, /nothing here/],
    ['GET', '/admin/requests/', {}, undefined, 404, /nothing here/],
    ['POST', '/admin/pools/', json, '{}', 404, /nothing here/],
    ['POST', '/admin/breakers/shop//force', json, '{"state":"auto"}', 404, /nothing here/],
    ['POST', '/admin/nowhere', { 'content-type': 'text/xml' }, '<x/>', 404, /nothing here/],
    ['POST', '/admin/pools', { 'content-type': 'text/xml' }, '<x/>', 405, /GET, HEAD/],
    ['GET', `${breaker}/force`, {}, undefined, 405, /POST/],
    ['OPTIONS', '/admin/pools', {}, undefined, 405, /GET, HEAD/],
    ['DELETE', '/admin/livez', {}, undefined, 405, /GET, HEAD/]
  ]
  for (const [method, url, headers, payload, status, detail] of cases) {
    const response = await app.inject({ method, url, headers, ...(payload !== undefined && { payload }) })
    const what = `${method} ${url} ${payload?.slice(0, 50)}: ${response.body}`
    assert.equal(response.statusCode, status, what)
    assert.equal(response.headers['content-type'], 'application/problem+json', what)
    assert.equal(response.headers['cache-control'], 'no-store', what)
    const problem = response.json()
    assert.match(problem.detail, detail, what)
    assert.deepEqual([problem.status, typeof problem.title, typeof problem.type, typeof problem.requestId], [status, 'string', 'string', 'string'], what)
    assert.equal(response.headers['allow'], status === 405 ? (url.endsWith('force') ? 'POST' : 'GET, HEAD') : undefined, what)
  }
  assert.deepEqual(writesOf(app), [])
})

test('an error of ours is a 500 that tells nothing but where to look', async (t) => {
  const app = await withAdmin(t)
  app.breakers.snapshots = () => { throw new Error('the secret of it') }
  const response = await app.inject('/admin/breakers')
  assert.deepEqual([response.statusCode, response.headers['content-type']], [500, 'application/problem+json'])
  assert.doesNotMatch(response.body, /secret/)
})

test('the routes own their prefix in an app with a catch-all, and send no CORS fields', async (t) => {
  const app = await source(t)
  await app.register(cors, { origin: '*' })
  await app.register(adminRoutes, { prefix: '/admin', token: 's3cret', source: app })
  app.route({ method: ['GET', 'POST', 'PUT'], url: '*', handler: async () => 'proxied' })
  await app.ready()
  const authorization = 'Bearer s3cret'
  assert.equal((await app.inject('/elsewhere')).body, 'proxied')
  for (const [method, url, status] of [['GET', '/admin/pools', 200], ['PUT', '/admin/pools', 405], ['GET', '/admin/nowhere', 404], ['POST', '/admin/nowhere', 404]] as const) {
    const response = await app.inject({ method, url, headers: { authorization } })
    assert.equal(response.statusCode, status, url)
    assert.deepEqual(Object.keys(response.headers).filter((name) => name.startsWith('access-control')), [], url)
  }
})
