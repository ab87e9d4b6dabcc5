import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, send } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { accessLines, head, startBoth } from './support.ts'

const limits = { headersTimeoutMs: 300, requestTimeoutMs: 600 }
const echo: Parameters<typeof startBoth>[2] = async (socket, request) => {
  const { body, complete } = await request.body()
  if (complete) await send(socket, answer({ body }))
}

/** That a limit is kept "near" its time: never early, and late by far less than Node's own half a minute. */
function assertNear (ms: number, limitMs: number): void {
  assert.ok(ms >= limitMs - 5 && ms < limitMs + 3000, `${ms} ms for a limit of ${limitMs} ms`)
}

test('a head that comes too slowly is answered with 408 near its time limit, and the connection closed', async (t) => {
  const gateway = await startBoth(t, { server: limits })
  for (const bytes of ['G', 'GET /a HTTP/1.1\r\n', 'GET /a HTTP/1.1\r\nHost: shop\r\nX-Slow: ']) {
    const start = performance.now()
    const response = await rawRequest(gateway.port, [bytes], { until: 'close' })
    assertNear(performance.now() - start, limits.headersTimeoutMs)
    assert.deepEqual([response.status, response.ended, (response.json() as { reason: string }).reason], [408, 'fin', 'request_timeout'])
    assert.equal(response.header('proxy-status'), 'breakwater; error=http_request_error; details="request_timeout"')
  }
  const lines = await accessLines(gateway, 3)
  assert.deepEqual(lines.map(({ method, path, status, reason }) => [method, path, status, reason]), Array.from({ length: 3 }, () => [null, null, 408, 'request_timeout']))
})

test('a head that trickles in is not given more time for its trickling', async (t) => {
  const gateway = await startBoth(t, { server: limits })
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  const start = performance.now()
  await client.write('GET /a HTTP/1.1\r\nX-Slow: ')
  await until(async () => {
    await client.write('x')
    return client.reader.end
  }, { intervalMs: 20 })
  assertNear(performance.now() - start, limits.headersTimeoutMs)
  await accessLines(gateway, 1)
})

test('a request that was refused for its slowness is not served when the rest of it comes', async (t) => {
  const gateway = await startBoth(t, { server: limits })
  const client = await rawConnect(gateway.port, { allowHalfOpen: true })
  t.after(() => client.destroy())
  await client.write('GET /a HTTP/1.1\r\nHost: sh')
  assert.equal((await client.readResponse()).status, 408)
  await client.write(`op\r\n\r\n${head('GET /b HTTP/1.1', 'Host: shop')}`)
  assert.equal((await client.readAll()).length, 0)
  assert.equal((await accessLines(gateway, 1)).length, 1)
  assert.equal(gateway.behind.requests.length, 0)
})

test('a body that comes too slowly is answered with 408, the upstream gets no whole request and no blame', async (t) => {
  const gateway = await startBoth(t, { server: limits }, echo)
  for (const fields of [['Content-Length: 10'], ['Transfer-Encoding: chunked']]) {
    const body = fields[0] === 'Content-Length: 10' ? 'hello' : '5\r\nhello\r\n'
    const start = performance.now()
    const response = await rawRequest(gateway.port, [head('POST /a HTTP/1.1', 'Host: shop', ...fields) + body], { until: 'close' })
    assertNear(performance.now() - start, limits.requestTimeoutMs)
    assert.deepEqual([response.status, response.ended, (response.json() as { reason: string }).reason], [408, 'fin', 'request_timeout'])
    await gateway.left({ counted: 'neutral', status: 408, reason: 'request_timeout', bytes: response.body.length })
  }
  for (const request of gateway.behind.requests) assert.equal((await request.body()).complete, false)
})

test('a body that was refused for its slowness is not forwarded when the rest of it comes', async (t) => {
  const gateway = await startBoth(t, { server: limits }, echo)
  const client = await rawConnect(gateway.port, { allowHalfOpen: true })
  t.after(() => client.destroy())
  await client.write(head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 10') + 'hello')
  assert.equal((await client.readResponse('POST')).status, 408)
  await client.write(`world${head('GET /b HTTP/1.1', 'Host: shop')}`)
  assert.equal((await client.readAll()).length, 0)
  assert.equal((await accessLines(gateway, 1)).length, 1)
  assert.deepEqual(gateway.behind.requests.map(({ target }) => target), ['/a'])
  assert.equal((await gateway.behind.requests[0]?.body())?.complete, false)
})

test('a slow second head on a kept connection is answered with 408 too', async (t) => {
  const gateway = await startBoth(t, { server: limits })
  const response = await rawRequest(gateway.port, [head('GET /a HTTP/1.1', 'Host: shop'), 50, 'GET /b HT'], { methods: ['GET', 'GET'], until: 'close' })
  assert.deepEqual(response.responses.map(({ status }) => status), [200, 408])
  const lines = await accessLines(gateway, 2)
  assert.deepEqual(lines.map(({ status }) => status), [200, 408])
})

test('a slow second head does not spoil the answer that the first one still waits for', async (t) => {
  let answerNow = (): void => {}
  const asked = new Promise<void>((resolve) => { answerNow = resolve })
  const gateway = await startBoth(t, { server: limits }, async (socket) => {
    await asked
    await send(socket, answer({ body: 'first' }))
  })
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  await client.write(`${head('GET /a HTTP/1.1', 'Host: shop')}GET /b HTTP/1.1\r\nHos`)
  await until(() => gateway.lines.find((line) => line['reason'] === 'request_timeout'))
  assert.equal(client.reader.received.length, 0)
  // Too late: it will not be served, but neither must it be mixed up.
  await client.write('t: shop\r\n\r\n')
  answerNow()
  const first = await client.readResponse()
  assert.deepEqual([first.status, first.text()], [200, 'first'])
  assert.equal((await client.readResponse()).status, 408)
  assert.equal(await client.closed, 'fin')
  assert.deepEqual(gateway.behind.requests.map(({ target }) => target), ['/a'])
  assert.equal((await accessLines(gateway, 2)).length, 2)
})

test('a connection on which nothing is sent is closed without a word and without a line', async (t) => {
  const gateway = await startBoth(t, { server: limits })
  const client = await rawConnect(gateway.port)
  const start = performance.now()
  assert.equal((await client.readAll()).length, 0)
  assertNear(performance.now() - start, limits.headersTimeoutMs)
  await client.closed
  assert.equal((await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop'))).status, 200)
  assert.equal((await accessLines(gateway, 1)).length, 1)
})

test('an idle kept connection is closed after its time, without a line', async (t) => {
  const gateway = await startBoth(t, { server: { keepAliveTimeoutMs: 200 } })
  const client = await rawConnect(gateway.port)
  await client.write(head('GET /a HTTP/1.1', 'Host: shop'))
  assert.equal((await client.readResponse()).status, 200)
  assert.equal(await client.closed, 'fin')
  assert.equal((await accessLines(gateway, 1)).length, 1)
})

test('without a limit for the request the head still has its own', async (t) => {
  const gateway = await startBoth(t, { server: { headersTimeoutMs: 200, requestTimeoutMs: 0 } })
  assert.equal((await rawRequest(gateway.port, 'GET /a', { until: 'close' })).status, 408)
  const slow = await rawRequest(gateway.port, [head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 5'), 'he', 600, 'llo'])
  assert.equal(slow.status, 200)
})

test('the smaller of the two limits holds for the head', async (t) => {
  const gateway = await startBoth(t, { server: { headersTimeoutMs: 60000, requestTimeoutMs: 200 } })
  assert.equal((await rawRequest(gateway.port, 'GET /a', { until: 'close' })).status, 408)
})
