import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { answer, answering, partOfBody, send } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { accessLines, head, startBoth, type GatewayAndUpstream } from './support.ts'

const charge = head('POST /charge-card HTTP/1.1', 'Host: shop', 'Content-Length: 2') + 'hi'

/** A gateway whose connection to the upstream is there already, so that a request that is let through gets there at once. */
async function startWarm (t: TestContext, options: Parameters<typeof startBoth>[1] = {}): Promise<GatewayAndUpstream> {
  const gateway = await startBoth(t, options, async (socket, request) => {
    await request.body()
    await send(socket, answer({ body: 'done' }))
  })
  assert.equal((await rawRequest(gateway.port, head('GET /warm HTTP/1.1', 'Host: shop'))).status, 200)
  return gateway
}

/** The first request, and the status that it gets with a close. */
const closing: Record<string, [first: string, status: number]> = {
  'a body that is too large': [head('POST /big HTTP/1.1', 'Host: shop', 'Content-Length: 20') + 'x'.repeat(20), 413],
  'a bad path with a body': [head('POST /../1 HTTP/1.1', 'Host: shop', 'Content-Length: 5') + 'hello', 400],
  'a path with a bad escape and a body': [head('POST /%zz HTTP/1.1', 'Host: shop', 'Content-Length: 5') + 'hello', 400],
  'TRACE with a body': [head('TRACE /a HTTP/1.1', 'Host: shop', 'Content-Length: 5') + 'hello', 405],
  'two hosts and chunks': [head('POST /a HTTP/1.1', 'Host: a', 'Host: b', 'Transfer-Encoding: chunked') + '5\r\nhello\r\n0\r\n\r\n', 400],
  'a refused body that was asked for': [head('POST /big HTTP/1.1', 'Host: shop', 'Content-Length: 20', 'Expect: 100-continue') + 'x'.repeat(20), 413],
  'a client\'s own close': [head('GET /warm HTTP/1.1', 'Host: shop', 'Connection: close'), 200],
  'a client\'s own close behind a body': [head('POST /warm HTTP/1.1', 'Host: shop', 'Connection: close', 'Content-Length: 2') + 'hi', 200],
  'HTTP/1.0': [head('GET /warm HTTP/1.0'), 200]
}
for (const [name, [first, status]] of Object.entries(closing)) {
  for (const [what, behind] of [['a POST', charge], ['many POSTs', charge.repeat(50)], ['half a POST', charge.slice(0, 40)], ['a POST with a bad path', charge.replace('/charge', '/%zz')], ['garbage', '\0garbage\r\n\r\n']] as const) {
    test(`what follows a request whose answer closes the connection is not begun, forwarded or logged: ${what} behind ${name}`, async (t) => {
      const gateway = await startWarm(t, { server: { maxBodyBytes: 10 } })
      const response = await rawRequest(gateway.port, first + behind, { until: 'close' })
      assert.deepEqual([response.status, response.complete, response.header('connection'), response.ended], [status, true, 'close', 'fin'], response.raw.toString('latin1'))
      assert.equal(response.raw.toString('latin1').split('HTTP/1.1 ').length, 2, 'one answer')
      // Whatever began would have arrived before this one.
      assert.equal((await rawRequest(gateway.port, head('GET /after HTTP/1.1', 'Host: shop'))).status, 200)
      assert.deepEqual(gateway.behind.requests.map(({ target }) => target), ['/warm', ...status === 200 ? ['/warm'] : [], '/after'])
      const lines = await accessLines(gateway, 3)
      assert.deepEqual(lines.map((line) => line['status']), [200, status, 200], JSON.stringify(lines))
    })
  }
}

test('a request behind a close is not begun in a later packet either, while the answer still lingers', async (t) => {
  const gateway = await startWarm(t, { server: { maxBodyBytes: 10 } })
  const client = await rawConnect(gateway.port, { allowHalfOpen: true })
  t.after(() => client.destroy())
  await client.write(head('POST /big HTTP/1.1', 'Host: shop', 'Content-Length: 20') + 'x'.repeat(5))
  assert.equal((await client.readResponse('POST')).status, 413)
  await client.write('x'.repeat(15) + charge)
  await client.write(charge)
  client.end()
  assert.equal((await accessLines(gateway, 2)).length, 2)
  assert.deepEqual(gateway.behind.requests.map(({ target }) => target), ['/warm'])
})

test('a request behind a close is not begun, though a hook of the app holds the refusal back', async (t) => {
  const gateway = await startWarm(t, {
    server: { maxBodyBytes: 10 },
    before: (app) => {
      app.addHook('onSend', async () => { await new Promise((resolve) => { setImmediate(resolve) }) })
    }
  })
  const response = await rawRequest(gateway.port, (closing['a body that is too large'] as [string, number])[0] + charge, { until: 'close' })
  assert.deepEqual([response.status, response.ended], [413, 'fin'])
  assert.equal((await accessLines(gateway, 2)).length, 2)
  assert.deepEqual(gateway.behind.requests.map(({ target }) => target), ['/warm'])
})

test('a body that came without waiting for 100 keeps its connection, and what follows is answered', async (t) => {
  const gateway = await startWarm(t)
  const upload = head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 2', 'Expect: 100-continue') + 'hi'
  const response = await rawRequest(gateway.port, upload + charge, { methods: ['POST', 'POST'] })
  assert.deepEqual(response.responses.map(({ status }) => status), [200, 200], response.raw.toString('latin1'))
  assert.deepEqual(response.responses.map((each) => each.header('connection')), ['keep-alive', 'keep-alive'])
  assert.equal((await accessLines(gateway, 3)).length, 3)
})

test('an upstream that answers in the middle of an upload closes the connection, and nothing behind the upload is begun', async (t) => {
  const gateway = await startBoth(t, {}, answering({ status: 401, body: 'no' }))
  const client = await rawConnect(gateway.port, { allowHalfOpen: true })
  t.after(() => client.destroy())
  await client.write(head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 10') + 'hello')
  const response = await client.readResponse('POST')
  assert.deepEqual([response.status, response.header('connection')], [401, 'close'])
  await client.write('world' + charge + charge)
  client.end()
  assert.equal((await accessLines(gateway, 1)).length, 1)
  assert.deepEqual(gateway.behind.requests.map(({ target }) => target), ['/a'])
})

test('an answer that is cut while it waits for its turn breaks the connection, and the log says whose doing that was', async (t) => {
  const gateway = await startBoth(t, {}, async (socket, { target }) => {
    if (target === '/cut') return partOfBody(socket, { declared: 100000, sent: 70000, ending: 'reset' })
    if (target === '/1') await until(() => gateway.lines.find((line) => line['msg'] === 'upstream_error'))
    await send(socket, answer({ body: target }))
  })
  const get = (path: string): string => head(`GET ${path} HTTP/1.1`, 'Host: shop')
  const response = await rawRequest(gateway.port, get('/1') + get('/cut') + get('/3'), { methods: ['GET', 'GET', 'GET'], until: 'close' })
  assert.deepEqual(response.responses[0]?.text(), '/1')
  assert.equal(response.responses[2], undefined)
  const lines = await accessLines(gateway, 3)
  assert.deepEqual(lines.map(({ path, status, reason }) => `${path} ${status === 499 ? 'client' : ''}${reason}`).toSorted(), ['/1 null', '/3 body_truncated', '/cut body_truncated'])
  assert.equal(lines.find(({ path }) => path === '/3')?.['status'], 502)
})
