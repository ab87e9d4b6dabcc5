import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, answering, reset, send, stall } from '../../support/faulty-upstream.ts'
import { closedPort } from '../../support/ports.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { startGateway } from '../../support/gateway.ts'
import { until } from '../../support/wait.ts'
import { accessLines, head, startBoth } from './support.ts'

const upload = (...fields: string[]): string => head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 5', 'Expect: 100-continue', ...fields)

test('a client that asks before it sends is told to go on, once, when the upstream wants the body', async (t) => {
  const gateway = await startBoth(t, {}, async (socket, request) => {
    await request.body()
    await send(socket, answer({ body: 'thanks' }))
  })
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  for (let turn = 1; turn <= 2; turn++) {
    await client.write(upload('Connection: keep-alive'))
    const interim = await client.readHead()
    assert.equal(interim.status, 100)
    await client.write('hello')
    const response = await client.readResponse('POST')
    assert.deepEqual([response.status, response.text(), response.interim], [200, 'thanks', []])
    const seen = gateway.behind.requests[turn - 1]
    assert.deepEqual([seen?.header('expect'), (await seen?.body())?.body.toString()], [undefined, 'hello'])
  }
  await accessLines(gateway, 2)
})

test('a client that does not wait for the 100 is served as well', async (t) => {
  const gateway = await startBoth(t, {}, async (socket, request) => {
    await request.body()
    await send(socket, answer({ body: 'thanks' }))
  })
  const response = await rawRequest(gateway.port, upload() + 'hello')
  assert.deepEqual([response.status, response.text()], [200, 'thanks'])
})

test('the spelling of the expectation does not matter, and HTTP/1.0 clients get no 100', async (t) => {
  const gateway = await startBoth(t, {}, async (socket, request) => {
    await request.body()
    await send(socket, answer({ body: 'thanks' }))
  })
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  await client.write(head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 5', 'EXPECT: 100-Continue'))
  assert.equal((await client.readHead()).status, 100)
  await client.write('hello')
  assert.equal((await client.readResponse('POST')).status, 200)
  const old = await rawRequest(gateway.port, [head('POST /a HTTP/1.0', 'Content-Length: 5', 'Expect: 100-continue'), 'hello'])
  assert.deepEqual([old.status, old.interim], [200, []])
})

test('without a body there is nothing to go on with', async (t) => {
  const gateway = await startBoth(t)
  const response = await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', 'Expect: 100-continue'))
  assert.deepEqual([response.status, response.interim], [200, []])
})

const refusals: Array<[name: string, status: number, start: (t: Parameters<typeof startBoth>[0]) => Promise<number>, fields?: string[]]> = [
  ['without a route', 404, async (t) => (await startBoth(t, { routes: [{ path: '/b', pool: 'shop' }] })).port],
  ['with a body that is too large', 413, async (t) => (await startBoth(t, { server: { maxBodyBytes: 4 } })).port],
  ['to an upstream that refuses connections', 502, async (t) => (await startGateway(t, { upstreams: [`http://127.0.0.1:${await closedPort(t)}`] })).port],
  ['with two hosts', 400, async (t) => (await startBoth(t)).port, ['Host: b']],
  ['to a pool that is all unhealthy', 503, async (t) => (await startBoth(t, { pool: { health: { enabled: true, path: '/healthz', intervalMs: 60000 } } }, stall)).port],
  ['while the breaker is open', 503, async (t) => {
    const gateway = await startBoth(t, { pool: { breaker: { consecutiveFailures: 1, openMs: 60000 } } }, reset)
    assert.equal((await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop'))).status, 502)
    return gateway.port
  }],
  ['over the limit of the gate', 503, async (t) => {
    const gateway = await startBoth(t, { shedding: { maxInFlight: 1 } }, stall)
    const first = await rawConnect(gateway.port)
    t.after(() => first.destroy())
    await first.write(head('GET /held HTTP/1.1', 'Host: shop'))
    await until(() => gateway.app.shedding.view().inFlight === 1)
    return gateway.port
  }]
]
for (const [name, status, start, fields = []] of refusals) {
  test(`a request that is refused gets its answer at once and no 100: ${name}`, async (t) => {
    const port = await start(t)
    const response = await rawRequest(port, upload(...fields))
    assert.deepEqual([response.status, response.interim, response.complete], [status, [], true], response.raw.toString())
    // The client will not send the body now, so nothing else can be read from this connection.
    assert.deepEqual([response.header('connection'), response.ended], ['close', 'fin'])
  })
}

test('an upstream that answers in the middle of the body is believed, and the connection closed', async (t) => {
  const gateway = await startBoth(t, {}, answering({ status: 401, reason: 'Unauthorized', body: 'no' }))
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  await client.write(upload())
  assert.equal((await client.readHead()).status, 100)
  await client.write('he')
  const response = await client.readResponse('POST')
  assert.deepEqual([response.status, response.text(), response.header('connection')], [401, 'no', 'close'])
  assert.equal(await client.closed, 'fin')
  await accessLines(gateway, 1)
})
