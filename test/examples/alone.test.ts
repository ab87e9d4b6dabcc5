/** Each plugin in an app with nothing of ours but what it needs. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { build as buildAccessLog } from '../../examples/alone/access-log.ts'
import { build as buildDiscovery } from '../../examples/alone/discovery.ts'
import { build as buildEdge } from '../../examples/alone/edge.ts'
import { build as buildFlightRecorder } from '../../examples/alone/flight-recorder.ts'
import { build as buildHealthPolling } from '../../examples/alone/health-polling.ts'
import { build as buildHistory } from '../../examples/alone/history.ts'
import { build as buildLifecycle } from '../../examples/alone/lifecycle.ts'
import { build as buildListener } from '../../examples/alone/listener.ts'
import { build as buildLoadShedding } from '../../examples/alone/load-shedding.ts'
import { build as buildObservation } from '../../examples/alone/observation.ts'
import { build as buildMetrics } from '../../examples/alone/metrics.ts'
import { build as buildProxy } from '../../examples/alone/proxy.ts'
import { build as buildRateLimits } from '../../examples/alone/rate-limits.ts'
import { build as buildReadiness } from '../../examples/alone/readiness.ts'
import { build as buildRouting } from '../../examples/alone/routing.ts'
import { build as buildPools } from '../../examples/alone/upstream-pools.ts'
import { certificate } from '../config/certificate.ts'
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

test('examples/alone/discovery: a pool follows its file, another one is told by its upstreams', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-example-'))
  t.after(() => { rmSync(folder, { recursive: true }) })
  const file = join(folder, 'upstreams.yaml')
  writeFileSync(file, '- url: http://10.0.0.1:80')
  const url = await listen(t, await buildDiscovery(file))
  const upstreams = async () => (await ask(`${url}/pools`)).json().map((pool: { upstreams: string[] }) => pool.upstreams.join())
  assert.deepEqual(await upstreams(), ['10.0.0.1:80', ''])
  writeFileSync(file, '- url: http://10.0.0.2:80')
  await until(async () => (await upstreams())[0] === '10.0.0.2:80', { what: 'the file followed' })
  const [, told] = (await post(`${url}/registrations`, { url: 'http://10.0.0.3:8080' })).json()
  assert.deepEqual([told.members, told.stale, (await upstreams())[1]], [['10.0.0.3:8080'], false, '10.0.0.3:8080'])
  await post(`${url}/registrations`, { url: 'no URL' })
  const [, refused] = (await ask(`${url}/discovery`)).json()
  assert.deepEqual([refused.stale, (await upstreams())[1]], [true, '10.0.0.3:8080'])
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

test('examples/alone/observation: told of each request once it has ended', async (t) => {
  const told: string[] = []
  const url = await listen(t, await buildObservation((text) => { told.push(text) }))
  await ask(`${url}/hello`)
  await ask(`${url}/nothing`)
  await until(() => told.length === 2, { what: 'two lines' })
  assert.deepEqual(told, ['GET 200 well', 'GET 404 well'])
})

test('examples/alone/history: failures and times are told once their step has ended', async (t) => {
  const one = await upstream(t, { failEvery: 2 })
  let now = 100
  const url = await listen(t, await buildHistory([one.url], () => now))
  for (let i = 0; i < 4; i++) await ask(`${url}/shop/`)
  assert.equal((await ask(`${url}/failures`)).json().failures, 0)
  now += 5000
  const { failures, p95 } = (await ask(`${url}/failures`)).json()
  assert.equal(failures, 2)
  assert.ok(p95 > 0)
})

test('examples/alone/metrics: requests are counted, and orders beside them; the scrape is not', async (t) => {
  const url = await listen(t, await buildMetrics())
  await ask(`${url}/metrics`)
  await post(`${url}/orders`, {})
  await ask(`${url}/nothing`)
  const { text, headers } = await ask(`${url}/metrics`)
  assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  const lines = text.split('\n').filter((line) => !line.startsWith('#') && !line.includes('duration') && !line.includes('build'))
  assert.deepEqual(lines.filter((line) => line !== ''), ['shop_orders_total 1', 'edge_requests_total{route="none",method="POST",code="200"} 1', 'edge_requests_total{route="none",method="GET",code="404"} 1', 'edge_retry_total{route="none"} 0'])
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

test('examples/alone/routing: a request has its route, why, its pool and the path that would be forwarded; the table is swapped', async (t) => {
  const app = await buildRouting()
  const url = await listen(t, app)
  const seen = async (path: string, headers: Record<string, string> = {}) => (await ask(`${url}${path}`, { headers })).json()
  assert.deepEqual(await seen('/users/a%2Fb'), { route: '/users/:id', by: 'method', pool: 'users', path: '/v2/people/a%2Fb' })
  assert.deepEqual(await seen('/users/7', { 'x-preview': '1' }), { route: '/users/:id', by: 'method', pool: 'preview', path: '/users/7' })
  const { pool, ...rest } = await seen('/any')
  assert.deepEqual(rest, { route: '/*', by: 'default', path: '/any' })
  assert.ok(['stable', 'canary'].includes(pool))
  assert.throws(() => app.routeTable.swap([{ path: 'users', pool: 'users' }]), /routes\[0\]\.path/)
  assert.equal((await seen('/any')).route, '/*')
  app.routeTable.swap([{ path: '/a/*', pool: 'a' }, { path: '/a', pool: 'a' }])
  assert.deepEqual(app.routeTable.routes.map(({ label }) => label), ['/a', '/a/*'])
  assert.deepEqual(await seen('/any'), { route: null })
})

test('examples/alone/rate-limits: who asks too often is refused, and nobody else', async (t) => {
  const url = await listen(t, await buildRateLimits(2))
  const order = (key: string) => ask(`${url}/orders`, { method: 'POST', headers: { 'x-api-key': key } })
  const statuses: number[] = []
  for (let i = 0; i < 3; i++) statuses.push((await ask(`${url}/search`)).status, (await order('a')).status)
  assert.deepEqual(statuses, [200, 200, 200, 200, 429, 429])
  assert.equal((await order('b')).status, 200)
  const refused = await order('a')
  assert.equal(refused.json().reason, 'rate_limited')
  assert.deepEqual([refused.headers['ratelimit-limit'], refused.headers['ratelimit-remaining']], ['2', '0'])
  assert.ok(Number(refused.headers['retry-after']) >= 1)
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
  const refused = await ask(`${url}/users/7`, { method: 'DELETE' })
  assert.deepEqual([refused.json().reason, refused.headers['allow']], ['method_not_allowed', 'GET, HEAD'])
  assert.equal((await ask(`${url}/nowhere`)).json().reason, 'no_route')
})

test('examples/alone/listener: TLS with a certificate from a file, and what is in use', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-listener-'))
  t.after(() => { rmSync(folder, { recursive: true }) })
  const { cert, key } = certificate({ name: 'shop.example', names: ['shop.example'] })
  const files = { cert: join(folder, 'shop.pem'), key: join(folder, 'shop.key') }
  writeFileSync(files.cert, cert)
  writeFileSync(files.key, key)
  const app = await buildListener(files)
  await listen(t, app)
  const { port } = app.server.address() as AddressInfo
  const [text] = await new Promise<string[]>((resolve, reject) => {
    get({ port, host: '127.0.0.1', path: '/certificates', servername: 'shop.example', ca: cert }, (response) => { resolve(response.setEncoding('utf8').toArray()) }).on('error', reject)
  })
  assert.deepEqual(JSON.parse(text as string).map(({ file, names }: { file: string, names: string[] }) => [file, names]), [[files.cert, ['shop.example']]])
})

test('examples/alone/flight-recorder: the id of an answer finds what became of it', async (t) => {
  const url = await listen(t, await buildFlightRecorder())
  const id = String((await ask(`${url}/hello`)).headers['x-request-id'])
  assert.match(await until(async () => {
    const { text } = await ask(`${url}/why/${id}`)
    return text.startsWith('no record') ? null : text
  }), new RegExp(`^${id}: GET /hello -> 200\\n`))
  assert.match((await ask(`${url}/why/other`)).text, /^no record: no request of this id has ended/)
})
