/** What the admin routes show. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import type { FastifyInstance, RouteOptions } from 'fastify'
import adminRoutes from '../../../routes/admin/index.ts'
import { pools, post, source, withAdmin } from './fixtures.ts'

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
  upstream.transport.connects = 7
  app.pools.setDraining('shop', '127.0.0.1:9', true, { reason: 'disk is full' })
  app.breakers.get('shop', '127.0.0.1:9').force('open', 60000)
  const idle = { weight: 1, priority: 0, healthy: true, draining: false, ejectedUntil: null, breaker: 'closed', discovered: false, inFlight: 0, waiting: 0, busyConnections: 0, connects: 0 }
  const busy = { ...idle, draining: true, breaker: 'open', inFlight: 3, connects: 7 }
  const expected = { shop: [{ ...busy, upstream: '127.0.0.1:9' }, { ...idle, upstream: '[::1]:9', weight: 0 }], users: [{ ...idle, upstream: '/run/a%2Fb/users.sock' }] }
  const { pools: views } = await get(app, '/pools') as { pools: Array<{ pool: string, balancer: string, upstreams: Array<Record<string, unknown>> }> }
  assert.deepEqual(views.map(({ pool, balancer }) => [pool, balancer]), [['shop', 'round-robin'], ['users', 'round-robin']])
  for (const view of views) {
    for (const [at, known] of expected[view.pool as 'shop' | 'users'].entries()) {
      const shown = view.upstreams[at] as Record<string, unknown>
      for (const [name, value] of Object.entries({ ...known, pool: view.pool })) assert.deepEqual(shown[name], value, `${known.upstream} ${name}`)
      assert.equal((shown['drain'] as { reason: string } | null)?.reason ?? null, known.draining ? 'disk is full' : null)
    }
    assert.deepEqual(await get(app, `/pools/${view.pool}`), view)
  }
})

test('breakers, health, shedding and config are shown as they are', async (t) => {
  const app = await withAdmin(t)
  assert.deepEqual(await get(app, '/breakers'), { breakers: plain(app.breakers.snapshots()) })
  assert.deepEqual(await get(app, '/health'), { upstreams: plain(app.health.list()) })
  const { inFlight, maxInFlight, pressure } = await get(app, '/shedding') as { inFlight: number, maxInFlight: number, pressure: object }
  assert.deepEqual([inFlight, maxInFlight, Object.keys(pressure)], [0, 256, Object.keys(app.shedding.view().pressure)])
  assert.deepEqual(await get(app, '/config'), { admin: { token: '[redacted]' } })
})

test('an upstream is named by its URL-encoded id: an IPv6 address, the path of a socket', async (t) => {
  const app = await withAdmin(t)
  for (const [pool, id] of [['shop', '127.0.0.1:9'], ['shop', '[::1]:9'], ['users', '/run/a%2Fb/users.sock']] as const) {
    const view = await get(app, `/breakers/${pool}/${encodeURIComponent(id)}`) as { pool: string, upstream: string, state: string }
    assert.deepEqual([view.pool, view.upstream, view.state], [pool, id, 'closed'])
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
  await app.register(adminRoutes, { prefix: '/admin', loopbackOnly: true, config: {} })
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
    if (/\/(admin|stream|livez|readyz)$/.test(url)) continue
    if (method === 'POST') {
      check(key, await post(app, ids(url), bodies[url.split('/').at(-1) as string]))
      check(key, await post(app, ids(url), { what: 1 }))
      check(key, await post(app, url.replace(':pool', 'x').replace(':upstream', 'y'), bodies[url.split('/').at(-1) as string]))
    } else {
      check(key, await app.inject(url.endsWith('/match') ? `${url}?path=/status` : ids(url)))
    }
  }
  assert.deepEqual([...new Set(checked)].toSorted(), [
    'GET /admin/breakers', 'GET /admin/breakers/:pool/:upstream', 'GET /admin/config', 'GET /admin/events', 'GET /admin/health', 'GET /admin/openapi.json',
    'GET /admin/pools', 'GET /admin/pools/:pool', 'GET /admin/routes', 'GET /admin/routes/match', 'GET /admin/shedding', 'POST /admin/breakers/:pool/:upstream/force',
    'POST /admin/breakers/:pool/:upstream/reset', 'POST /admin/health/:pool/:upstream/check', 'POST /admin/pools/:pool/upstreams/:upstream/drain',
    'POST /admin/pools/:pool/upstreams/:upstream/ready'
  ])
})
