import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { answer, reset, send } from '../support/faulty-upstream.ts'
import { rawRequest } from '../support/raw-client.ts'
import { until } from '../support/wait.ts'
import { head, startBoth } from '../e2e/edge/support.ts'
import history from '../../plugins/history.ts'
import Fastify from 'fastify'
import edge from '../../plugins/edge.ts'
import observation from '../../plugins/observation.ts'
import upstreamPools from '../../plugins/upstream-pools.ts'
import adminRoutes from '../../routes/admin/index.ts'

const get = (path: string): string => head(`GET ${path} HTTP/1.1`, 'Host: shop')

test('what requests do is in the history once their step has ended, and the admin routes serve it', async (t) => {
  const gateway = await startBoth(t, {}, (socket, { target }) => target === '/cut' ? reset(socket) : send(socket, answer({ body: 'x' })))
  const { app } = gateway
  const upstream = app.pools.get('shop')!.upstreams[0]!.id
  for (const path of ['/a', '/b', '/cut', '/livez']) await rawRequest(gateway.port, get(path))
  app.breakers.find('shop', upstream)?.force('open', 60000, 'test')
  await rawRequest(gateway.port, get('/a'))
  const sum = (figures: readonly number[] = []): number => figures.reduce((a, b) => a + b, 0)
  const view = await until(() => {
    const now = app.history.since(0)
    return sum(now.gate.requests) === 4 && now.pools['shop']?.upstreams[upstream]?.breaker.includes(3) === true ? now : null
  }, { timeoutMs: 30000, intervalMs: 50, what: 'the end of a step or two' })
  const { gate, all, pools: { shop } } = view
  assert.deepEqual([sum(all.requests), sum(all.failure), sum(shop?.requests), sum(shop?.upstreams[upstream]?.failure)], [3, 1, 3, 1])
  assert.deepEqual(Object.entries(gate.refused).map(([reason, figures]) => [reason, sum(figures)]), [['breaker_open', 1]])
  assert.ok(all.p50.some((ms) => ms !== null && ms > 0))
  assert.ok(Math.max(...gate.inFlight) >= 1)
  assert.equal(view.all.requests.length, view.last - view.first + 1)
  assert.ok(Math.abs(Date.parse(view.endedAt) - Date.now()) < 10000)
})

test('without pools and a gate it tells of requests', async (t) => {
  let now = 50000
  const app = Fastify()
  t.after(() => app.close())
  await app.register(edge)
  await app.register(observation)
  await app.register(history, { clock: () => now })
  app.get('/', async () => 'hello')
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as { port: number }
  await fetch(`http://127.0.0.1:${port}/`)
  now = 55001
  const { first, last, gate, pools } = app.history.since(0)
  assert.deepEqual([first, last, gate.requests, pools], [11, 11, [1], {}])
  assert.deepEqual([app.history.since(last).gate.requests, app.history.since(99).gate.requests], [[], [1]])
})

test('of 300 upstreams it is served small to who takes gzip, and the same to who does not', async (t) => {
  let now = 50000
  const app = Fastify()
  t.after(() => app.close())
  await app.register(edge)
  await app.register(observation)
  await app.register(upstreamPools, { pools: { shop: { upstreams: Array.from({ length: 300 }, (_each, i) => `http://127.0.0.1:${9000 + i}`) } } })
  await app.register(history, { clock: () => now })
  await app.register(adminRoutes, { prefix: '/admin', token: 'secret' })
  await app.ready()
  now += 1000000
  const ask = (encoding: string) => app.inject({ url: '/admin/history?since=0', headers: { authorization: 'Bearer secret', ...encoding !== '' && { 'accept-encoding': encoding } } })
  const [small, plain, refused] = [await ask('gzip, deflate, br'), await ask(''), await ask('br, gzip;q=0')]
  assert.deepEqual([small, plain, refused].map(({ statusCode, headers }) => [statusCode, headers['content-encoding'], headers['vary'], headers['content-type']]), ['gzip', undefined, undefined].map((encoding) => [200, encoding, 'accept-encoding', 'application/json; charset=utf-8']))
  assert.ok(plain.rawPayload.length > 1000000 && small.rawPayload.length < 100000, `${small.rawPayload.length} of ${plain.rawPayload.length} bytes`)
  const { endedAt: _endedAt, ...view } = app.history.since(0)
  for (const text of [gunzipSync(small.rawPayload), plain.rawPayload, refused.rawPayload]) {
    const { endedAt, ...told } = JSON.parse(String(text))
    assert.deepEqual([told, Number.isNaN(Date.parse(endedAt))], [JSON.parse(JSON.stringify(view)), false])
  }
})
