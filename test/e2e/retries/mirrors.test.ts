import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { answer, rawUpstream, reset, send, stall } from '../../support/faulty-upstream.ts'
import type { RawHandler, RawUpstream } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Gateway } from '../../support/gateway.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, request } from '../forwarder/support.ts'
import { named } from './support.ts'

interface Mirrored {
  gateway: Gateway
  real: RawUpstream
  shadow: RawUpstream
}

async function mirrored (t: TestContext, mirror: Record<string, unknown> = {}, handlers: { real?: RawHandler, shadow?: RawHandler } = {}, shadowPool: Record<string, unknown> = {}): Promise<Mirrored> {
  const real = await rawUpstream(handlers.real ?? named('real'))
  const shadow = await rawUpstream(handlers.shadow ?? named('shadow'))
  t.after(() => Promise.all([real.close(), shadow.close()]))
  const health = { enabled: false }
  const pools = { shop: { health, upstreams: [{ url: real.url }] }, shadow: { health, ...shadowPool, upstreams: [{ url: `${shadow.url}/copies` }] } }
  const gateway = await startGateway(t, { pools, routes: [{ path: '/*', pool: 'shop', mirror: { pool: 'shadow', ...mirror } }] })
  return { gateway, real, shadow }
}

const counts = ({ app }: Gateway): object => app.forwarding.view('shadow').mirrors

test('a request is copied to the other pool, with a field that says so, and its answer is dropped', async (t) => {
  const { gateway, real, shadow } = await mirrored(t)
  const got = await rawRequest(gateway.port, request('GET', '/a?b=1', { Authorization: 'x', 'X-Forwarded-For': '9.9.9.9' }))
  assert.deepEqual([got.status, got.text()], [200, 'real:'])
  await until(() => shadow.requests.length === 1)
  const [original, copy] = [real.requests[0], shadow.requests[0]]
  assert.equal(copy?.target, '/copies/a?b=1')
  assert.deepEqual([copy?.header('x-breakwater-mirror'), original?.header('x-breakwater-mirror')], ['1', undefined])
  for (const name of ['authorization', 'x-forwarded-for', 'x-request-id', 'via']) assert.equal(copy?.header(name), original?.header(name))
  assert.equal(copy?.header('host'), shadow.url.slice('http://'.length))
  await gateway.idle()
  assert.deepEqual(counts(gateway), { sent: 1, failed: 0, dropped: 0 })
  const lines = gateway.lines.all('access')
  assert.deepEqual(lines.map(({ pool, attempts }) => [pool, attempts]), [['shop', 1]])
})

test('a body is copied whole where it is small and its length is told', async (t) => {
  const { gateway, shadow, real } = await mirrored(t, { maxBodyBytes: 100 })
  const bodies: string[] = []
  shadow.handle(async (socket, { body }) => {
    bodies.push((await body()).body.toString())
    await send(socket, answer())
  })
  for (const size of [1, 100, 101, 5000]) assert.equal((await rawRequest(gateway.port, request('POST', '/', {}, 'x'.repeat(size)))).text(), `real:${'x'.repeat(size)}`)
  const chunks = Buffer.concat([request('POST', '/', { 'Transfer-Encoding': 'chunked' }), Buffer.from('2\r\nhi\r\n0\r\n\r\n')])
  assert.equal((await rawRequest(gateway.port, chunks)).text(), 'real:hi')
  await gateway.idle()
  assert.deepEqual(bodies.map(({ length }) => length), [1, 100])
  assert.equal(real.requests.length, 5)
})

for (const [what, handler] of Object.entries<RawHandler>({
  'resets': (socket) => { reset(socket) },
  'answers 500': named('shadow', 500),
  'never answers': stall,
  'cuts its answer': async (socket) => {
    await send(socket, answer({ headers: [['Content-Length', '10']], body: 'x', framing: 'none' }))
    reset(socket)
  }
})) {
  test(`a copy whose upstream ${what} changes nothing, and counts for that upstream`, async (t) => {
    const { gateway } = await mirrored(t, {}, { shadow: handler }, { timeouts: { headersMs: 200, totalMs: 400 } })
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, got.text()], [200, 'real:'])
    await gateway.idle()
    const window = gateway.breaker(0, 'shadow').window
    if (what !== 'never answers') assert.deepEqual([window.total, window.failures], [1, 1])
    assert.deepEqual(counts(gateway), { sent: 1, failed: what === 'answers 500' ? 0 : 1, dropped: 0 })
    assert.deepEqual(gateway.lines.all('access').map(({ status, reason }) => [status, reason]), [[200, null]])
  })
}

test('a copy does not hold the exchange back, and lives on when the client leaves', async (t) => {
  const { gateway, shadow } = await mirrored(t, {}, { real: stall, shadow: stall })
  const client = await rawConnect(gateway.port)
  await client.write(get)
  await until(() => shadow.requests.length === 1)
  client.reset()
  await gateway.lines.waitFor('access')
  assert.equal(shadow.open.size, 1)
  assert.equal(gateway.upstream(0, 'shadow').inFlight, 1)
})

test('only so many copies are under way at a time; the rest is not made', async (t) => {
  const { gateway, shadow } = await mirrored(t, { maxInFlight: 2 }, { shadow: stall })
  for (let i = 0; i < 5; i++) assert.equal((await rawRequest(gateway.port, get)).text(), 'real:')
  await until(() => shadow.requests.length === 2)
  assert.deepEqual(counts(gateway), { sent: 2, failed: 0, dropped: 3 })
})

test('a pool that takes no copies is left alone', async (t) => {
  const { gateway, shadow } = await mirrored(t)
  gateway.app.breakers.get('shadow', gateway.upstream(0, 'shadow').id).force('open', 60000)
  assert.equal((await rawRequest(gateway.port, get)).text(), 'real:')
  assert.deepEqual([counts(gateway), shadow.requests.length], [{ sent: 0, failed: 0, dropped: 1 }, 0])
})

test('a share of the requests is copied', async (t) => {
  const { gateway, shadow } = await mirrored(t, { share: 0.5 })
  for (let i = 0; i < 100; i++) await rawRequest(gateway.port, get)
  await gateway.idle()
  assert.ok(shadow.requests.length > 15 && shadow.requests.length < 85, String(shadow.requests.length))
})

test('a copy is not copied again', async (t) => {
  const { gateway, shadow, real } = await mirrored(t)
  assert.equal((await rawRequest(gateway.port, request('GET', '/', { 'X-Breakwater-Mirror': '1' }))).text(), 'real:')
  await gateway.idle()
  assert.deepEqual([real.requests.length, shadow.requests.length], [1, 0])
})
