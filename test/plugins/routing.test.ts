import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import edge from '../../plugins/edge.ts'
import rateLimits from '../../plugins/rate-limits.ts'
import routing, { type RoutingOptions } from '../../plugins/routing.ts'
import upstreamPools from '../../plugins/upstream-pools.ts'

/** An app that says which route a request has, once the route admits it. */
async function routed (t: TestContext, routes: RoutingOptions['routes']): Promise<FastifyInstance> {
  const app = Fastify() as unknown as FastifyInstance
  t.after(() => app.close())
  await app.register(edge)
  await app.register(rateLimits)
  await app.register(routing, { routes })
  app.all('/*', async (request, reply) => {
    const { target, match } = app.routeTable.of(request.raw)
    assert.equal(app.routeTable.of(request.raw), app.routeTable.of(request.raw), 'found once')
    if (match === null) return { route: null, malformed: target === null }
    if (!await app.routeTable.admit(reply, match.route)) return reply
    return { route: match.route.label, index: match.route.index }
  })
  return app
}

test('a request has its route, by its method, host, path, query and fields', async (t) => {
  const app = await routed(t, [
    { path: '/a', pool: 'x', methods: ['PUT'] }, { path: '/a', pool: 'x', query: { v: '2' } }, { path: '/a', pool: 'x', headers: { 'X-V': '2' } }, { path: '/a', pool: 'x', host: 'h.example' }
  ])
  const index = async (options: object) => (await app.inject({ url: '/a', ...options })).json().index ?? null
  assert.deepEqual(await Promise.all([{ method: 'PUT' }, { url: '/a?v=2' }, { headers: { 'x-v': '2' } }, { headers: { host: 'h.example:80' } }, {}].map(index)), [0, 1, 2, 3, null])
  assert.deepEqual((await app.inject('/a/..;/b')).json(), { route: null, malformed: true })
})

test('a disabled route answers itself: with its status and words, and says when to come back only where that helps', async (t) => {
  const app = await routed(t, [
    { path: '/plain', disabled: {} },
    { path: '/gone', disabled: { status: 410, detail: 'It is gone' }, rateLimit: { max: 1 } },
    { path: '/later', pool: 'x', disabled: { retryAfterSeconds: 120 } }
  ])
  const answers = await Promise.all(['/plain', '/gone', '/later'].map((url) => app.inject(url)))
  assert.deepEqual(answers.map(({ statusCode, headers, json }) => [statusCode, json().status, json().detail, json().reason, headers['retry-after'], headers['content-type']]), [
    [503, 503, 'This route is switched off', 'route_disabled', undefined, 'application/problem+json'],
    [410, 410, 'It is gone', 'route_disabled', undefined, 'application/problem+json'],
    [503, 503, 'This route is switched off', 'route_disabled', '120', 'application/problem+json']
  ])
  assert.equal((await app.inject('/gone')).statusCode, 410, 'it counts nobody')
})

test('a request keeps the route that it was given, whatever is swapped meanwhile', async (t) => {
  const app = Fastify() as unknown as FastifyInstance
  t.after(() => app.close())
  await app.register(edge)
  await app.register(rateLimits)
  await app.register(routing, { routes: [{ path: '/*', pool: 'x', rateLimit: { max: 10 } }] })
  app.get('/*', async (request, reply) => {
    const before = app.routeTable.of(request.raw)
    app.routeTable.swap([{ path: '/other', pool: 'y' }])
    const { match } = app.routeTable.of(request.raw)
    assert.equal(app.routeTable.of(request.raw), before)
    return { pool: match?.route.pool, admitted: await app.routeTable.admit(reply, match!.route) }
  })
  assert.deepEqual((await app.inject('/a')).json(), { pool: 'x', admitted: true })
  assert.deepEqual(app.routeTable.pools(), ['y'])
})

test('counts go on over a swap where the route and its limit stay as they are', async (t) => {
  const a = { path: '/a', pool: 'x', rateLimit: { max: 1 } }
  const app = await routed(t, [a, { ...a, path: '/b' }])
  const status = async (url: string) => (await app.inject(url)).statusCode
  assert.deepEqual([await status('/a'), await status('/b')], [200, 200])
  app.routeTable.swap([{ path: '/new', pool: 'y' }, { ...a, pool: 'y' }, { ...a, path: '/b', rateLimit: { max: 1, windowMs: 5000 } }])
  assert.deepEqual([await status('/a'), await status('/b'), await status('/b')], [429, 200, 429], '/b has another limit now')
  app.routeTable.swap([])
  app.routeTable.swap([a])
  assert.equal(await status('/a'), 200, 'it was away')
})

test('what is wrong changes nothing, and what is made ready waits until it is wanted', async (t) => {
  const app = await routed(t, [{ path: '/a', pool: 'x' }])
  const labels = () => app.routeTable.routes.map(({ label }) => label)
  assert.throws(() => app.routeTable.swap([{ path: '/a', pool: 'x' }, { path: 'b', pool: 'x' }]), (error: Error) => error instanceof TypeError && error.message.includes('routes[1].path'))
  assert.throws(() => app.routeTable.prepare([{ path: '/a', pool: 'x' }, { path: '/a', pool: 'y' }]), /routes\[1\]: matches the same requests/)
  assert.deepEqual(labels(), ['/a'])
  const swap = app.routeTable.prepare([{ path: '/b', split: { pools: { y: 1, z: 0 } } }, { path: '/*', disabled: {}, pool: 'w' }])
  assert.deepEqual(labels(), ['/a'])
  swap()
  assert.deepEqual([labels(), app.routeTable.pools()], [['/b', '/*'], ['y']])
})

test('a rate limit needs the plugin that counts', async () => {
  const app = Fastify()
  await assert.rejects(async () => { await app.register(routing, { routes: [{ path: '/*', pool: 'x', rateLimit: {} }] }) }, /routes\[0\]\.rateLimit needs breakwater-rate-limits/)
})

test('a pool that is not there stops the start, where the app has pools', async (t) => {
  for (const route of [{ pool: 'shpo' }, { split: { pools: { shop: 1, shpo: 0 } } }, { pool: 'shop', mirror: { pool: 'shpo' } }]) {
    const app = Fastify() as unknown as FastifyInstance
    t.after(() => app.close())
    await app.register(routing, { routes: [{ path: '/*', ...route }] })
    await app.register(upstreamPools, { pools: { shop: { upstreams: ['http://127.0.0.1:9'] } } })
    await assert.rejects(async () => { await app.ready() }, /routes\[0\] \(\/\*\): there is no pool named "shpo"/)
  }
})
