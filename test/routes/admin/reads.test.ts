/** What the admin routes show. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import type { FastifyInstance, RouteOptions } from 'fastify'
import adminRoutes from '../../../routes/admin/index.ts'
import { pools, post, routes, source, withAdmin } from './fixtures.ts'

/** As JSON says it. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const get = async (app: FastifyInstance, path: string): Promise<unknown> => {
  const response = await app.inject(`/admin${path}`)
  assert.equal(response.statusCode, 200, `${path}: ${response.body}`)
  assert.match(String(response.headers['content-type']), /^application\/json/)
  assert.equal(response.headers['cache-control'], 'no-store')
  return response.json()
}

test('pools show what is going on at their upstreams', async (t) => {
  const app = await withAdmin(t)
  const upstream = app.pools.find('shop', '127.0.0.1:9')!
  upstream.inFlight = 3
  upstream.connects = 7
  upstream.healthy = false
  app.breakers.get('shop', '127.0.0.1:9').force('open', 60000)
  const idle = { weight: 1, healthy: true, draining: false, breaker: 'closed', inFlight: 0, waiting: 0, busyConnections: 0, connects: 0 }
  const shop = {
    pool: 'shop',
    balancer: 'round-robin',
    upstreams: [
      { ...idle, pool: 'shop', upstream: '127.0.0.1:9', healthy: false, breaker: 'open', inFlight: 3, connects: 7 },
      { ...idle, pool: 'shop', upstream: '[::1]:9', weight: 0 }
    ]
  }
  const users = { pool: 'users', balancer: 'round-robin', upstreams: [{ ...idle, pool: 'users', upstream: '/run/a%2Fb/users.sock' }] }
  assert.deepEqual(await get(app, '/pools'), { pools: [shop, users] })
  assert.deepEqual(await get(app, '/pools/shop'), shop)
})

test('breakers, health, shedding, config and routes are shown as they are', async (t) => {
  const app = await withAdmin(t)
  assert.deepEqual(await get(app, '/breakers'), { breakers: plain(app.breakers.snapshots()) })
  assert.deepEqual(await get(app, '/health'), { upstreams: plain(app.health.list()) })
  const { inFlight, maxInFlight, pressure } = await get(app, '/shedding') as { inFlight: number, maxInFlight: number, pressure: object }
  assert.deepEqual([inFlight, maxInFlight, Object.keys(pressure)], [0, 256, Object.keys(app.shedding.view().pressure)])
  assert.deepEqual(await get(app, '/config'), { admin: { token: '[redacted]' } })
  assert.deepEqual(await get(app, '/routes'), { routes })
})

test('an upstream is named by its URL-encoded id: an IPv6 address, the path of a socket', async (t) => {
  const app = await withAdmin(t)
  for (const [pool, id] of [['shop', '127.0.0.1:9'], ['shop', '[::1]:9'], ['users', '/run/a%2Fb/users.sock']] as const) {
    const view = await get(app, `/breakers/${pool}/${encodeURIComponent(id)}`) as { pool: string, upstream: string, state: string }
    assert.deepEqual([view.pool, view.upstream, view.state], [pool, id, 'closed'])
  }
})

test('the route of a request is told without sending it', async (t) => {
  const app = await withAdmin(t)
  const match = async (query: string): Promise<unknown[]> => {
    const { route, pool, by, forwardedPath, options } = await get(app, `/routes/match?${query}`) as Record<string, unknown>
    assert.ok(routes.some((each) => JSON.stringify(each) === JSON.stringify(options)))
    return [route, pool, by, forwardedPath]
  }
  assert.deepEqual(await match('path=/status'), ['/status', 'shop', 'exact', '/status'])
  assert.deepEqual(await match(`method=POST&host=any.example:80&path=${encodeURIComponent('/api/a%2Fb?q=1')}`), ['/api/*', 'shop', 'prefix', '/a%2Fb?q=1'])
  assert.deepEqual(await match('method=GET&path=/users/7'), ['/users/:id', 'users', 'parameters', '/users/7'])
  assert.deepEqual(await match('host=USERS.example:8080&path=/any'), ['/*', 'users', 'prefix', '/any'])

  const none = await app.inject('/admin/routes/match?method=POST&path=/users/7')
  assert.deepEqual([none.statusCode, none.headers['content-type'], none.json().reason], [404, 'application/problem+json', 'no_route'])
  for (const query of ['path=/a/../b', 'path=nowhere', 'method=TRACE&path=/', '', 'method=get&path=/', 'path=/&hots=x']) {
    const { statusCode, body } = await app.inject(`/admin/routes/match?${query}`)
    assert.equal(statusCode, 400, query)
    assert.match(body, /querystring/, query)
  }
})

test('the probes answer without a body, and say why not', async (t) => {
  const app = await withAdmin(t)
  assert.equal((await app.inject('/admin/livez')).statusCode, 204)
  assert.equal((await app.inject('/admin/readyz')).statusCode, 204)
  app.pools.setDraining('users', '/run/a%2Fb/users.sock', true)
  const response = await app.inject('/admin/readyz')
  assert.deepEqual([response.statusCode, response.json().reason], [503, 'no_upstream_healthy'])
})

test('HEAD answers like GET, without the body', async (t) => {
  const app = await withAdmin(t)
  for (const path of ['/pools', '/pools/shop', '/breakers', '/events', '/events/stream']) {
    const response = await app.inject({ method: 'HEAD', url: `/admin${path}` })
    assert.deepEqual([response.statusCode, response.body], [200, ''], path)
    assert.match(String(response.headers['content-type']), path.endsWith('stream') ? /^text\/event-stream/ : /^application\/json/)
  }
})

test('admin calls take no place of the gate and are not logged', async (t) => {
  const lines: string[] = []
  const app = await source(t, pools, { logger: { stream: { write: (line: string) => { lines.push(line) } } } })
  await app.register(adminRoutes, { prefix: '/admin', loopbackOnly: true })
  await app.ready()
  lines.length = 0
  for (const path of ['/pools', '/nowhere', '/livez']) await app.inject(`/admin${path}`)
  assert.equal(app.shedding.view().inFlight, 0)
  assert.deepEqual(lines, [])
})

test('what the app does not have has no routes', async (t) => {
  const { default: Fastify } = await import('fastify')
  const app = Fastify()
  t.after(() => app.close())
  await app.register(adminRoutes, { prefix: '/admin', loopbackOnly: true })
  for (const path of ['/pools', '/breakers', '/health', '/shedding', '/routes', '/config', '/events', '/readyz']) {
    assert.equal((await app.inject(`/admin${path}`)).statusCode, 404, path)
  }
})

/** A path with the names of an upstream that there is. */
const ids = (url: string): string => url.replace(':pool', 'shop').replace(':upstream', encodeURIComponent('127.0.0.1:9'))

test('every answer is what its schema says, and every route has one', async (t) => {
  const app = await source(t)
  const schemas = new Map<string, RouteOptions>()
  app.addHook('onRoute', (route) => {
    const hidden = (route.schema as { hide?: boolean } | undefined)?.hide === true
    if (!hidden && route.method !== 'HEAD') schemas.set(`${String(route.method)} ${route.url}`, route)
  })
  await app.register(adminRoutes, { prefix: '/admin', loopbackOnly: true, config: {}, routes })
  await app.ready()

  const ajv = new Ajv({ allErrors: true, strictTypes: false, formats: { 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/ } })
  const checked: string[] = []
  const check = (key: string, response: { statusCode: number, json: () => unknown }): void => {
    const replies = schemas.get(key)?.schema?.response as Record<string, object> | undefined
    const schema = replies?.[response.statusCode] ?? replies?.[`${Math.floor(response.statusCode / 100)}xx`]
    assert.ok(schema, `${key} has no schema for ${response.statusCode}`)
    const validate = ajv.compile(schema)
    assert.ok(validate(response.json()), `${key}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(response.json())}`)
    checked.push(key)
  }
  const bodies: Record<string, object> = { force: { state: 'open', ttlMs: 60000, reason: 'a drill' } }
  // Writes first, so that the reads have something to show.
  for (const key of [...schemas.keys()].toSorted().toReversed()) {
    const [method, url = ''] = key.split(' ')
    if (/\/(stream|livez|readyz)$/.test(url)) continue
    if (method === 'POST') {
      check(key, await post(app, ids(url), bodies[url.split('/').at(-1) as string]))
      check(key, await post(app, ids(url), { what: 1 }))
      check(key, await post(app, url.replace(':pool', 'x').replace(':upstream', 'y'), bodies[url.split('/').at(-1) as string]))
    } else {
      check(key, await app.inject(url.endsWith('/match') ? `${url}?path=/status` : ids(url)))
    }
  }
  assert.deepEqual([...new Set(checked)].toSorted(), [
    'GET /admin/breakers', 'GET /admin/breakers/:pool/:upstream', 'GET /admin/config', 'GET /admin/events', 'GET /admin/health', 'GET /admin/pools',
    'GET /admin/pools/:pool', 'GET /admin/routes', 'GET /admin/routes/match', 'GET /admin/shedding', 'POST /admin/breakers/:pool/:upstream/force',
    'POST /admin/breakers/:pool/:upstream/reset', 'POST /admin/health/:pool/:upstream/check', 'POST /admin/pools/:pool/upstreams/:upstream/drain',
    'POST /admin/pools/:pool/upstreams/:upstream/ready'
  ])
})
