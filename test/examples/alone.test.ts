/** Each plugin in an app with nothing of ours but what it needs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { build as buildAccessLog } from '../../examples/alone/access-log.ts'
import { build as buildEdge } from '../../examples/alone/edge.ts'
import { build as buildHealthPolling } from '../../examples/alone/health-polling.ts'
import { build as buildLifecycle } from '../../examples/alone/lifecycle.ts'
import { build as buildLoadShedding } from '../../examples/alone/load-shedding.ts'
import { build as buildProxy } from '../../examples/alone/proxy.ts'
import { build as buildReadiness } from '../../examples/alone/readiness.ts'
import { build as buildPools } from '../../examples/alone/upstream-pools.ts'
import { until, within } from '../support/wait.ts'
import { ask, listen, post, upstream } from './support.ts'

test('examples/alone/edge: an id and an address for each request; only a trusted peer is believed', async (t) => {
  const said = { 'x-request-id': 'given-1', 'x-forwarded-for': '203.0.113.9' }
  const distrusting = await ask(`${await listen(t, await buildEdge())}/`, { headers: said })
  assert.equal(distrusting.json().clientIp, '127.0.0.1')
  assert.notEqual(distrusting.json().requestId, 'given-1')
  assert.equal(distrusting.headers['x-request-id'], distrusting.json().requestId)
  const trusting = await ask(`${await listen(t, await buildEdge(['127.0.0.1']))}/`, { headers: said })
  assert.deepEqual(trusting.json(), { requestId: 'given-1', clientIp: '203.0.113.9' })
})

test('examples/alone/upstream-pools: the pool is listed, its upstreams can be asked and drained', async (t) => {
  const one = await upstream(t, { name: 'a' })
  const url = await listen(t, await buildPools([one.url]))
  const id = `127.0.0.1:${one.port}`
  assert.deepEqual((await ask(`${url}/pools`)).json(), [{ pool: 'shop', upstreams: [{ id, draining: false, inFlight: 0 }] }])
  assert.equal((await ask(`${url}/ask/${id}`)).json().upstream, 'a')
  assert.deepEqual((await post(`${url}/drain/${id}`, {})).json(), { known: true })
  assert.equal((await ask(`${url}/pools`)).json()[0].upstreams[0].draining, true)
  assert.equal((await ask(`${url}/ask/127.0.0.1:1`)).status, 404)
})

test('examples/alone/health-polling: a change is told once, after the second failed check', async (t) => {
  const one = await upstream(t)
  const app = await buildHealthPolling([one.url], 20)
  const url = await listen(t, app)
  const id = `127.0.0.1:${one.port}`
  await until(() => app.health.get('shop', id)?.healthy, { what: 'healthy' })
  one.set({ refuseHealth: true })
  await until(() => app.health.get('shop', id)?.healthy === false, { what: 'unhealthy' })
  assert.deepEqual((await ask(`${url}/told`)).json(), [`${id} is healthy: check_passed`, `${id} is unhealthy: status_503`])
  assert.equal((await ask(`${url}/health`)).json().upstreams[0].upstream, id)
})

/** Work that begins when it is asked for and ends when the test says so. */
function heldWork () {
  const held: Array<(value: string) => void> = []
  return {
    work: () => new Promise<string>((resolve) => { held.push(resolve) }),
    begun: () => held.length,
    finish: (value: string) => { for (const resolve of held.splice(0)) resolve(value) }
  }
}

test('examples/alone/load-shedding: the third request at the same time is refused at once, an exempt route never', async (t) => {
  const { work, begun, finish } = heldWork()
  const url = await listen(t, await buildLoadShedding(work))
  const admitted = [ask(`${url}/page`), ask(`${url}/page`)]
  await until(() => begun() === 2, { what: 'two pages under way' })
  const refused = await ask(`${url}/page`)
  assert.equal(refused.status, 503)
  assert.equal(refused.json().reason, 'shed_capacity')
  assert.ok(Number(refused.headers['retry-after']) >= 3)
  const { inFlight, shed } = (await ask(`${url}/shedding`)).json()
  assert.deepEqual([inFlight, shed.shed_capacity], [2, 1])
  finish('rendered')
  assert.deepEqual((await Promise.all(admitted)).map(({ text }) => text), ['rendered', 'rendered'])
  await until(async () => (await ask(`${url}/shedding`)).json().inFlight === 0, { what: 'places given back' })
})

test('examples/alone/access-log: one line for each request, an unparsable one included, none for the route that says so', async (t) => {
  const lines: Array<Record<string, unknown>> = []
  const url = await listen(t, await buildAccessLog((line) => { lines.push(line as Record<string, unknown>) }))
  await ask(`${url}/ping`)
  await ask(`${url}/hello?secret=1`)
  await until(() => lines.length === 1, { what: 'the line' })
  assert.deepEqual([lines[0]?.['path'], lines[0]?.['status'], lines[0]?.['bytes'], lines[0]?.['reason']], ['/hello', 200, 5, null])
  await assert.rejects(ask(`${url}/hello`, { headers: { 'content-length': 'many' } }).then(({ status }) => { throw new Error(String(status)) }), { message: '400' })
  await until(() => lines.length === 2, { what: 'the second line' })
  assert.deepEqual([lines[1]?.['path'], lines[1]?.['status'], lines[1]?.['reason']], [null, 400, 'bad_request'])
})

test('examples/alone/lifecycle: closing waits for the request that is under way', async (t) => {
  const { work, begun, finish } = heldWork()
  const app = await buildLifecycle(work)
  const url = await listen(t, app)
  assert.equal((await ask(`${url}/phase`)).text, 'serving')
  const answer = ask(`${url}/work`)
  await until(() => begun() === 1, { what: 'the request under way' })
  const closed = app.close()
  await until(() => app.lifecycle.phase === 'draining', { what: 'the listener closed' })
  await assert.rejects(ask(`${url}/phase`), { code: 'ECONNREFUSED' })
  finish('done')
  assert.equal((await answer).text, 'done')
  await within(closed, { what: 'the way down' })
})

test('examples/alone/lifecycle: what outlives the grace is cut, and closing says so', async (t) => {
  const { work, begun } = heldWork()
  const app = await buildLifecycle(work, 50)
  const url = await listen(t, app)
  const cut = assert.rejects(ask(`${url}/work`), { code: 'ECONNRESET' })
  await until(() => begun() === 1, { what: 'the request under way' })
  await assert.rejects(app.close(), { code: 'BREAKWATER_SHUTDOWN_INCOMPLETE' })
  await cut
})

test('examples/alone/readiness: 204 while an upstream is healthy and its breaker admits, else 503 with the reason', async (t) => {
  const one = await upstream(t)
  const app = await buildReadiness([one.url], 20)
  const url = await listen(t, app)
  await until(async () => (await ask(`${url}/readyz`)).status === 204, { what: 'ready' })
  one.set({ refuseHealth: true })
  const refused = await until(async () => {
    const answer = await ask(`${url}/readyz`)
    return answer.status === 503 ? answer : null
  }, { what: 'not ready' })
  assert.equal(refused.json().reason, 'no_upstream_healthy')
  one.set({ refuseHealth: false })
  await until(async () => (await ask(`${url}/readyz`)).status === 204, { what: 'ready again' })
  app.breakers.get('shop', `127.0.0.1:${one.port}`).force('open', 60_000)
  assert.equal((await ask(`${url}/readyz`)).json().reason, 'breaker_open')
  assert.equal((await ask(`${url}/livez`)).status, 204)
})

test('examples/alone/proxy: the table decides; own routes are served beside it; the rest is refused', async (t) => {
  const [shop, users] = [await upstream(t, { name: 'shop' }), await upstream(t, { name: 'users' })]
  const url = await listen(t, await buildProxy([shop.url], [users.url]))
  assert.deepEqual((await ask(`${url}/about`)).json(), { about: 'served here' })
  const seen = async (path: string) => {
    const { upstream: name, url: forwarded } = (await ask(`${url}${path}`)).json()
    return [name, forwarded]
  }
  assert.deepEqual(await seen('/users/7'), ['users', '/users/7'])
  assert.deepEqual(await seen('/shop/a?b=c'), ['shop', '/a?b=c'])
  assert.equal((await ask(`${url}/users/7`, { method: 'DELETE' })).json().reason, 'no_route')
})
