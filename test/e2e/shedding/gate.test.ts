import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, partOfBody, reset, send, stall } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import { closedPort } from '../../support/ports.ts'
import { rawConnect, rawRequest, type RawConnection } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { accessLines, head, startBoth, type GatewayAndUpstream } from '../edge/support.ts'

const get = (path: string): string => head(`GET ${path} HTTP/1.1`, 'Host: shop')

/** Requests that wait for their answer, one connection each. */
async function hold (gateway: GatewayAndUpstream, count: number): Promise<RawConnection[]> {
  const before = gateway.app.shedding.view().inFlight
  const held = await Promise.all(Array.from({ length: count }, () => rawConnect(gateway.port)))
  for (const client of held) await client.write(get('/hold'))
  await until(() => gateway.app.shedding.view().inFlight === before + count)
  return held
}

const holding: Parameters<typeof startBoth>[2] = (socket, { target }) => target === '/hold' ? stall(socket) : send(socket, answer({ body: 'hello' }))

test('the limit is exact: as many as it says are served, one more is refused, and a freed place is given again', async (t) => {
  const gateway = await startBoth(t, { shedding: { maxInFlight: 3 } }, holding)
  const held = await hold(gateway, 2)
  t.after(() => { for (const client of held) client.destroy() })
  assert.equal((await rawRequest(gateway.port, get('/a'))).status, 200)
  held.push(...await hold(gateway, 1))
  const refused = await rawRequest(gateway.port, get('/a'))
  assert.deepEqual([refused.status, refused.header('content-type'), refused.header('proxy-status')],
    [503, 'application/problem+json', 'breakwater; error=connection_limit_reached; details="shed_capacity"'])
  assert.equal((refused.json() as { reason: string }).reason, 'shed_capacity')
  held.pop()?.destroy()
  await until(() => gateway.app.shedding.view().inFlight === 2)
  assert.equal((await rawRequest(gateway.port, get('/a'))).status, 200)
  assert.deepEqual(gateway.app.shedding.view().shed, { shed_capacity: 1, shed_pressure: 0, shed_priority: 0 })
})

test('a crowd beyond the limit is refused to the last one, at once, and none of it reaches the upstream', async (t) => {
  const gateway = await startBoth(t, { shedding: { maxInFlight: 5 } }, holding)
  const held = await hold(gateway, 5)
  const answers = await Promise.all(Array.from({ length: 40 }, () => rawRequest(gateway.port, get('/crowd'))))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([503]))
  assert.equal(gateway.behind.requests.some(({ target }) => target === '/crowd'), false)
  assert.equal(gateway.app.shedding.view().inFlight, 5)
  for (const client of held) client.destroy()
  assert.equal((await accessLines(gateway, 45)).length, 45)
})

test('a refused request without a body keeps its connection', async (t) => {
  const gateway = await startBoth(t, { shedding: { maxInFlight: 1 } }, holding)
  const [held] = await hold(gateway, 1)
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  for (const method of ['GET', 'HEAD', 'DELETE', 'OPTIONS']) {
    await client.write(head(`${method} /a HTTP/1.1`, 'Host: shop'))
    const response = await client.readResponse(method)
    assert.deepEqual([response.status, response.header('connection')], [503, 'keep-alive'], method)
  }
  await client.write(head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 0'))
  assert.equal((await client.readResponse('POST')).header('connection'), 'keep-alive')
  held?.destroy()
  await until(() => gateway.app.shedding.view().inFlight === 0)
  await client.write(get('/a'))
  assert.equal((await client.readResponse()).status, 200)
})

test('the body of a refused request is not waited for, and its sender gets to read the answer', async (t) => {
  const gateway = await startBoth(t, { shedding: { maxInFlight: 1 } }, holding)
  const [held] = await hold(gateway, 1)
  t.after(() => held?.destroy())
  const nothingSent = await rawRequest(gateway.port, head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 1000000'))
  assert.deepEqual([nothingSent.status, nothingSent.header('connection'), nothingSent.ended], [503, 'close', 'fin'])
  const chunked = await rawRequest(gateway.port, head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked'))
  assert.deepEqual([chunked.status, chunked.header('connection'), chunked.ended], [503, 'close', 'fin'])
  const allSent = await rawRequest(gateway.port, [head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 1000000'), Buffer.alloc(1000000)])
  assert.deepEqual([allSent.status, allSent.complete], [503, true])
  assert.equal(gateway.app.shedding.view().inFlight, 1)
})

test('Retry-After is in whole seconds, from the configured ones to a fifth more, and not always the same', async (t) => {
  for (const [retryAfterSeconds, most] of [[10, 12], [1, 2]] as const) {
    const gateway = await startBoth(t, { shedding: { maxInFlight: 1, retryAfterSeconds } }, holding)
    const [held] = await hold(gateway, 1)
    const client = await rawConnect(gateway.port)
    const seen = new Set<string>()
    for (let i = 0; i < 200; i++) {
      await client.write(get('/a'))
      seen.add((await client.readResponse()).header('retry-after') ?? '')
    }
    client.destroy()
    held?.destroy()
    const expected = Array.from({ length: most - retryAfterSeconds + 1 }, (_, i) => String(retryAfterSeconds + i))
    assert.deepEqual([...seen].toSorted(), expected.toSorted())
  }
})

test('probes are answered at the limit, and take no place', async (t) => {
  const gateway = await startBoth(t, { shedding: { maxInFlight: 1 } }, holding)
  const [held] = await hold(gateway, 1)
  for (const path of ['/livez', '/readyz']) assert.equal((await rawRequest(gateway.port, get(path))).status, 204)
  assert.deepEqual([gateway.app.shedding.view().inFlight, gateway.app.shedding.view().shed.shed_capacity], [1, 0])
  held?.destroy()
})

interface Exit { name: string, run: (gateway: GatewayAndUpstream) => Promise<unknown>, options?: Parameters<typeof startBoth>[1], handler?: Parameters<typeof startBoth>[2] }

const post = head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 10')
const leaveWhen = (bytes: string, ending: 'destroy' | 'reset' | 'end', asked: boolean) => async (gateway: GatewayAndUpstream): Promise<void> => {
  const client = await rawConnect(gateway.port)
  await client.write(bytes)
  if (asked) await until(() => gateway.behind.requests.length > 0)
  else await until(() => gateway.app.shedding.view().inFlight > 0)
  client[ending]()
}
const exits: Exit[] = [
  { name: 'an answer', run: ({ port }) => rawRequest(port, get('/a')) },
  { name: 'an answer to HEAD', run: ({ port }) => rawRequest(port, head('HEAD /a HTTP/1.1', 'Host: shop')) },
  { name: 'no route', options: { routes: [{ path: '/b', pool: 'shop' }] }, run: ({ port }) => rawRequest(port, get('/a')) },
  { name: 'a bad target', run: ({ port }) => rawRequest(port, get('/../a')) },
  { name: 'a bad escape', run: ({ port }) => rawRequest(port, get('/%zz')) },
  { name: 'two hosts', run: ({ port }) => rawRequest(port, head('GET /a HTTP/1.1', 'Host: a', 'Host: b')) },
  { name: 'a body that is too large', options: { server: { maxBodyBytes: 5 } }, run: ({ port }) => rawRequest(port, [post, 'helloworld']) },
  { name: 'a chunked body that is too large', options: { server: { maxBodyBytes: 5 } }, run: ({ port }) => rawRequest(port, [head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked'), 'a\r\nhelloworld\r\n']) },
  { name: 'a malformed body after admission', run: ({ port }) => rawRequest(port, [head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked'), 30, 'zz\r\n']) },
  { name: 'a body that comes too slowly', options: { server: { headersTimeoutMs: 100, requestTimeoutMs: 100 } }, run: ({ port }) => rawRequest(port, post) },
  { name: 'an upstream that resets', handler: (socket) => reset(socket), run: ({ port }) => rawRequest(port, get('/a')) },
  { name: 'an upstream that cuts its answer', handler: (socket) => partOfBody(socket), run: ({ port }) => rawRequest(port, get('/a')) },
  { name: 'an upstream that does not answer', options: { pool: { timeouts: { headersMs: 100 } } }, handler: stall, run: ({ port }) => rawRequest(port, get('/a')) },
  { name: 'an upstream that stalls in its body', options: { pool: { timeouts: { bodyIdleMs: 100 } } }, handler: (socket) => partOfBody(socket, { ending: 'stall' }), run: ({ port }) => rawRequest(port, get('/a')) },
  { name: 'the whole time being spent', options: { pool: { timeouts: { totalMs: 100 } } }, handler: stall, run: ({ port }) => rawRequest(port, get('/a')) },
  { name: 'a client that leaves before the answer', handler: stall, run: leaveWhen(get('/a'), 'destroy', true) },
  { name: 'a client that resets before the answer', handler: stall, run: leaveWhen(get('/a'), 'reset', true) },
  { name: 'a client that leaves in the middle of the answer', handler: (socket) => partOfBody(socket, { ending: 'stall' }), run: leaveWhen(get('/a'), 'destroy', true) },
  { name: 'a client that leaves before its body', run: leaveWhen(post, 'destroy', false) },
  { name: 'a client that ends in the middle of its body', handler: stall, run: leaveWhen(`${post}hello`, 'end', true) },
  { name: 'a client that resets in the middle of its body', handler: stall, run: leaveWhen(`${post}hello`, 'reset', true) },
  { name: 'a client that asked for 100 and left', handler: stall, run: leaveWhen(head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 5', 'Expect: 100-continue'), 'destroy', false) },
  { name: 'pipelined requests whose client leaves', handler: stall, run: leaveWhen(get('/a') + get('/b') + get('/c'), 'destroy', true) }
]
for (const { name, run, options = {}, handler } of exits) {
  test(`a place is given back after ${name}`, async (t) => {
    const gateway = await startBoth(t, options, handler)
    await run(gateway)
    await gateway.idle()
    assert.equal(gateway.app.shedding.view().inFlight, 0)
    // Given back more often than taken it would throw, and the log would tell.
    assert.equal(gateway.lines.find(({ level }) => Number(level) >= 50), undefined)
  })
}

test('a place is given back when nobody listens at the upstream, or no upstream is healthy', async (t) => {
  const refused = await startGateway(t, { upstreams: [`http://127.0.0.1:${await closedPort(t)}`] })
  assert.equal((await rawRequest(refused.port, get('/a'))).status, 502)
  await refused.idle()
  const unhealthy = await startBoth(t, { pool: { health: { enabled: true, intervalMs: 60000 } } }, stall)
  assert.equal((await rawRequest(unhealthy.port, get('/a'))).status, 503)
  await unhealthy.idle()
})
