import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, rawUpstream, reset, send } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { head, startBoth } from '../edge/support.ts'

/** '204', or '503 reason'. */
async function ready (gateway: Gateway): Promise<string> {
  const response = await rawRequest(gateway.port, head('GET /readyz HTTP/1.1', 'Host: shop'))
  if (response.status === 204) return '204'
  assert.match(response.header('retry-after') ?? '', /^[1-9][0-9]*$/)
  return `${response.status} ${(response.json() as { reason: string }).reason}`
}

const alive = async (gateway: Gateway): Promise<number> => (await rawRequest(gateway.port, head('GET /livez HTTP/1.1', 'Host: shop'))).status
const ask = (gateway: Gateway): Promise<unknown> => rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop'))

test('readiness follows the health of the upstreams; life does not', async (t) => {
  const health = { enabled: true, intervalMs: 20, timeoutMs: 1000, initial: 'unhealthy' }
  let healthy = false
  const gateway = await startBoth(t, { pool: { health } }, (socket) => send(socket, answer({ status: healthy ? 200 : 500 })))
  assert.equal(await ready(gateway), '503 no_upstream_healthy')
  assert.equal(await alive(gateway), 204)
  healthy = true
  await until(async () => await ready(gateway) === '204')
  healthy = false
  await until(async () => await ready(gateway) === '503 no_upstream_healthy')
  assert.equal(await alive(gateway), 204)
  // What is ready is what is served.
  assert.equal(((await ask(gateway)) as { status: number }).status, 503)
})

test('one upstream of a pool is enough', async (t) => {
  const behind = await Promise.all([0, 1].map(() => rawUpstream((socket) => reset(socket))))
  for (const each of behind) t.after(() => each.close())
  const gateway = await startGateway(t, { upstreams: behind.map(({ url }) => url), pool: { breaker: { consecutiveFailures: 1, openMs: 60000 } } })
  await ask(gateway)
  assert.equal(await ready(gateway), '204')
  await ask(gateway)
  assert.equal(await ready(gateway), '503 breaker_open')
  assert.equal(await alive(gateway), 204)
})

test('a breaker that would admit a probe counts as ready, one that only observes always does', async (t) => {
  const observing = await startBoth(t, { pool: { breaker: { mode: 'observe', consecutiveFailures: 1, openMs: 60000 } } }, (socket) => reset(socket))
  await ask(observing)
  assert.equal(await ready(observing), '204')
  const gateway = await startBoth(t, { pool: { breaker: { consecutiveFailures: 1, openMs: 100 } } }, (socket) => reset(socket))
  await ask(gateway)
  await until(async () => await ready(gateway) === '204')
})

test('every pool that a route needs must be ready, and no other', async (t) => {
  const good = await rawUpstream((socket) => send(socket, answer()))
  const bad = await rawUpstream((socket) => send(socket, answer({ status: 500 })))
  for (const each of [good, bad]) t.after(() => each.close())
  const health = { enabled: true, intervalMs: 20, timeoutMs: 1000 }
  const pools = { good: { health, upstreams: [{ url: good.url }] }, bad: { health, upstreams: [{ url: bad.url }] } }
  const needsBoth = await startGateway(t, { pools, routes: [{ path: '/a/*', pool: 'good' }, { path: '/b/*', pool: 'bad' }] })
  const needsOne = await startGateway(t, { pools, routes: [{ path: '/a/*', pool: 'good' }] })
  await until(async () => await ready(needsOne) === '204')
  await until(() => needsBoth.lines.find((line) => line['msg'] === 'health_changed' && line['pool'] === 'good'))
  assert.equal(await ready(needsBoth), '503 no_upstream_healthy')
})

test('each pool that cannot serve is named, and of many the first eight', async (t) => {
  const detail = async (gateway: Gateway): Promise<string> => ((await rawRequest(gateway.port, head('GET /readyz HTTP/1.1', 'Host: shop'))).json() as { detail: string }).detail
  const names = Array.from({ length: 11 }, (_, index) => `p${index}`)
  const upstreams = [{ url: 'http://127.0.0.1:9' }]
  const gateway = await startGateway(t, { pools: Object.fromEntries(names.map((name) => [name, { health: { enabled: false }, upstreams }])), routes: names.map((pool) => ({ path: `/${pool}/*`, pool })) })
  const drain = (pool: string): unknown => gateway.app.pools.setDraining(pool, '127.0.0.1:9', true)
  gateway.app.breakers.get('p1', '127.0.0.1:9').force('open', 60000)
  assert.equal(await detail(gateway), 'pool "p1": breaker_open')
  drain('p3')
  assert.equal(await detail(gateway), 'pool "p1": breaker_open; pool "p3": no_upstream_healthy')
  names.forEach(drain)
  assert.equal(await detail(gateway), `${names.slice(0, 8).map((pool) => `pool "${pool}": no_upstream_healthy`).join('; ')}; and 3 more pools`)
})

test('an upstream that an operator drains does not count', async (t) => {
  const gateway = await startBoth(t)
  assert.equal(await ready(gateway), '204')
  const { id } = gateway.upstream()
  gateway.app.pools.setDraining('shop', id, true)
  assert.equal(await ready(gateway), '503 no_upstream_healthy')
  gateway.app.pools.setDraining('shop', id, false)
  assert.equal(await ready(gateway), '204')
})

test('an upstream of weight 0 does not count', async (t) => {
  const behind = await Promise.all([0, 1].map(() => rawUpstream((socket) => reset(socket))))
  for (const each of behind) t.after(() => each.close())
  const [spare, used] = behind
  const gateway = await startGateway(t, { pools: { shop: { health: { enabled: false }, breaker: { consecutiveFailures: 1, openMs: 60000 }, upstreams: [{ url: spare?.url, weight: 0 }, { url: used?.url }] } } })
  assert.equal(await ready(gateway), '204')
  await ask(gateway)
  assert.equal(await ready(gateway), '503 breaker_open')
})

test('probes can be left out; then their paths are forwarded like any', async (t) => {
  const gateway = await startBoth(t, { server: { probes: false } }, (socket, { target }) => send(socket, answer({ body: target })))
  assert.equal((await rawRequest(gateway.port, head('GET /livez HTTP/1.1', 'Host: shop'))).text(), '/livez')
})

test('probes tell nothing of the upstreams\' addresses and are not to be kept', async (t) => {
  const gateway = await startBoth(t, { pool: { health: { enabled: true, intervalMs: 60000 } } }, (socket) => send(socket, answer({ status: 500 })))
  const response = await rawRequest(gateway.port, head('GET /readyz HTTP/1.1', 'Host: shop'))
  assert.equal(response.raw.includes(String(gateway.behind.port)), false)
  assert.equal(response.header('cache-control'), 'no-store')
})
