import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { answer, answering, send, stall } from '../../support/faulty-upstream.ts'
import { unlessStalled } from '../../support/gateway.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, inFront, request } from './support.ts'

const framings: Record<string, Record<string, string>> = { 'a length': { 'Content-Length': '100000' }, 'chunks': { 'Transfer-Encoding': 'chunked' } }
const part = (framing: string, bytes: number): string => framing === 'chunks' ? `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n` : 'x'.repeat(bytes)

for (const framing of Object.keys(framings)) {
  for (const [limit, options] of Object.entries({
    bodyIdleMs: { pool: { timeouts: { bodyIdleMs: 200 } } },
    totalMs: { pool: { timeouts: { totalMs: 200 } } },
    requestTimeoutMs: { server: { requestTimeoutMs: 300, headersTimeoutMs: 200 } }
  })) {
    test(`a client that stalls its upload (${framing}) is answered 408 when ${limit} is over, and the upstream is not to blame`, async (t) => {
      let whole: boolean | undefined
      const { gateway, upstream } = await inFront(t, async (_socket, { body }) => { whole = (await body()).complete }, options)
      const got = await rawRequest(gateway.port, [request('POST', '/', framings[framing]), part(framing, 1000)])
      assert.deepEqual([got.status, got.complete, got.ended], [408, true, 'fin'])
      assert.equal((got.json() as { reason: string }).reason, 'request_timeout')
      await until(() => upstream.open.size === 0 && whole !== undefined, { what: 'the upstream\'s connection closed' })
      assert.equal(whole, false)
      const { request_id: id } = await gateway.left({ counted: 'neutral', status: 408, reason: 'request_timeout' })
      assert.match(gateway.app.recorder.find(id as string)?.explanation ?? '', limit === 'bodyIdleMs' ? /in time \(limit 200 ms\)/ : new RegExp(`limit \\w+\\.${limit}`))
    })
  }
}

test('a client that uploads slowly but steadily is not cut by bodyIdleMs', async (t) => {
  let body = ''
  const { gateway } = await inFront(t, async (socket, incoming) => {
    body = (await incoming.body()).body.toString()
    await send(socket, answer({ body: 'thanks' }))
  }, { pool: { timeouts: { bodyIdleMs: 600 } } })
  const got = await rawRequest(gateway.port, [request('POST', '/', { 'Content-Length': '10' }), ...Array.from({ length: 10 }, () => ['x', 80]).flat()])
  assert.deepEqual([got.status, got.text(), body], [200, 'thanks', 'xxxxxxxxxx'])
  await gateway.left({ counted: 'success', status: 200, bytes: 6 })
})

/** A gateway whose limit for a whole request is short, with a route of its own limits. */
const withOwnLimits = (t: TestContext, timeouts: Record<string, number>, pool: Record<string, unknown> = {}): ReturnType<typeof inFront> =>
  inFront(t, async (socket, incoming) => {
    const { body, complete } = await incoming.body()
    if (complete) await send(socket, answer({ body: String(body.length) }))
  }, {
    server: { requestTimeoutMs: 300, headersTimeoutMs: 200 },
    pool,
    routes: [{ path: '/up/*', pool: 'shop', timeouts }, { path: '/*', pool: 'shop' }]
  })

const steady = (framing: string): Array<string | number> => Array.from({ length: 16 }, () => [part(framing, 1000), 50]).flat()
const ending = (framing: string): string => framing === 'chunks' ? '0\r\n\r\n' : ''

for (const framing of Object.keys(framings)) {
  for (const retries of [0, 1]) {
    test(`a route with requestMs 0 takes a steady upload for as long as it lasts (${framing}, ${retries} retries), and the listener's limit holds for the next request of its connection`, async (t) => {
      const { gateway } = await withOwnLimits(t, { requestMs: 0 }, { retry: { retries } })
      const client = await rawConnect(gateway.port)
      t.after(() => { client.destroy() })
      await client.write(request('PUT', '/up/film', framing === 'chunks' ? framings['chunks'] : { 'Content-Length': '16000' }))
      for (const piece of steady(framing)) await (typeof piece === 'number' ? sleep(piece) : client.write(piece))
      await client.write(ending(framing))
      const got = await client.readResponse('PUT')
      assert.deepEqual([got.status, got.text()], [200, '16000'])
      await gateway.left({ counted: 'success', status: 200, bytes: 5 })
      await client.write(request('PUT', '/elsewhere', { 'Content-Length': '5' }))
      assert.equal((await client.readResponse('PUT')).status, 408)
    })
  }

  test(`a client that trickles into a route with requestMs 0 is answered 408 (${framing})`, async (t) => {
    const { gateway } = await withOwnLimits(t, { requestMs: 0, bodyIdleMs: 400, minUploadBytesPerSecond: 1000 })
    const got = await rawRequest(gateway.port, [request('PUT', '/up/film', framings[framing]), ...Array.from({ length: 200 }, () => [part(framing, 1), 40]).flat()])
    assert.deepEqual([got.status, (got.json() as { reason: string }).reason, got.ended], [408, 'request_timeout', 'fin'])
    const { request_id: id } = await gateway.left({ counted: 'neutral', status: 408, reason: 'request_timeout' })
    assert.match(gateway.app.recorder.find(id as string)?.explanation ?? '', /minUploadBytesPerSecond wants 400 bytes/)
  })
}

test('what is no byte of the body keeps nobody on a route with requestMs 0: extensions and trailers without end', async (t) => {
  const { gateway } = await withOwnLimits(t, { requestMs: 0, bodyIdleMs: 200, minUploadBytesPerSecond: 0 })
  for (const [begun, more] of [['2;', 'x'], ['2\r\nab\r\n0\r\n', 'X: 1\r\n']] as const) {
    const got = await rawRequest(gateway.port, [Buffer.concat([request('PUT', '/up/film', framings['chunks']), Buffer.from(begun)]), ...Array.from({ length: 200 }, () => [more, 40]).flat()])
    assert.deepEqual([got.status, got.ended], [408, 'fin'])
    await gateway.left({ counted: 'neutral', status: 408, reason: 'request_timeout' })
  }
})

test('a route\'s own requestMs is the time for the whole request, longer or shorter than the listener\'s', async (t) => {
  const { gateway } = await withOwnLimits(t, { requestMs: 150 })
  const start = performance.now()
  const got = await rawRequest(gateway.port, [request('PUT', '/up/film', framings['chunks']), ...steady('chunks')])
  assert.deepEqual([got.status, (got.json() as { reason: string }).reason], [408, 'request_timeout'])
  assert.ok(performance.now() - start >= 145)
  await gateway.left({ counted: 'neutral', status: 408, reason: 'request_timeout' })
  const longer = await withOwnLimits(t, { requestMs: 700 })
  const late = await rawRequest(longer.gateway.port, [request('PUT', '/up/film', framings['chunks']), ...steady('chunks'), ...steady('chunks')])
  assert.deepEqual([late.status, longer.upstream.requests.length], [408, 1])
  await longer.gateway.left({ counted: 'neutral', status: 408, reason: 'request_timeout' })
  assert.ok(Number(longer.gateway.lines.all('access')[0]?.['duration_ms']) >= 695)
})

test('an upstream that stops reading an upload is cut after bodyIdleMs and to blame', async (t) => {
  const { gateway } = await inFront(t, socket => {
    socket.pause()
    return stall(socket)
  }, { pool: { timeouts: { bodyIdleMs: 250 } } })
  await unlessStalled(async () => {
    const got = await rawRequest(gateway.port, [request('POST', '/', { 'Content-Length': '200000000' }), Buffer.alloc(50_000_000)])
    assert.equal(got.status, 504)
    await gateway.left({ counted: 'failure', status: 504, reason: 'body_idle_timeout' })
  })
})

test('a body over the limit, told by its length, is refused before the upstream is asked', async (t) => {
  const { gateway, upstream } = await inFront(t, answering(), { server: { maxBodyBytes: 1000 } })
  const got = await rawRequest(gateway.port, [request('POST', '/', { 'Content-Length': '1001' }), Buffer.alloc(1001)])
  assert.deepEqual([got.status, got.complete, (got.json() as { reason: string }).reason], [413, true, 'body_too_large'])
  assert.equal(upstream.connections, 0)
  await gateway.left({ counted: 'neutral', status: 413, reason: 'body_too_large', upstream: null })
  const fits = await rawRequest(gateway.port, request('POST', '/', {}, 'x'.repeat(1000)))
  assert.equal(fits.status, 200)
  await gateway.left({ counted: 'success', status: 200 })
})

test('a chunked body over the limit is refused while the client is still sending, and the upstream never takes it for whole', async (t) => {
  let whole: boolean | undefined
  const { gateway, upstream } = await inFront(t, async (_socket, { body }) => { whole = (await body()).complete }, { server: { maxBodyBytes: 100_000 } })
  const pieces = Array.from({ length: 100 }, () => [part('chunks', 10_000), 1]).flat()
  const got = await rawRequest(gateway.port, [request('POST', '/', framings['chunks']), ...pieces])
  assert.deepEqual([got.status, got.complete, (got.json() as { reason: string }).reason], [413, true, 'body_too_large'])
  await until(() => upstream.open.size === 0 && whole !== undefined)
  assert.equal(whole, false)
  await gateway.left({ counted: 'neutral', status: 413, reason: 'body_too_large' })
})

test('a route\'s own limit replaces the server\'s, and 0 switches it off', async (t) => {
  const { gateway, upstream } = await inFront(t, answering(), {
    server: { maxBodyBytes: 10 },
    routes: [{ path: '/large/*', pool: 'shop', maxBodyBytes: 0 }, { path: '/*', pool: 'shop' }]
  })
  assert.equal((await rawRequest(gateway.port, request('POST', '/large/x', {}, 'x'.repeat(5000)))).status, 200)
  assert.equal((await rawRequest(gateway.port, request('POST', '/x', {}, 'x'.repeat(5000)))).status, 413)
  assert.equal(upstream.requests.length, 1)
})

for (const [name, bytes] of Object.entries({ small: 'no', large: 'n'.repeat(300_000) })) {
  test(`an answer that comes before the upload is over (${name}) arrives whole, and the connection closes`, async (t) => {
    const { gateway, upstream } = await inFront(t, async (socket) => {
      await send(socket, answer({ status: 403, headers: [['X-Own', 'yes']], body: bytes }))
    })
    const pieces = Array.from({ length: 20 }, () => [Buffer.alloc(100_000), 2]).flat()
    const got = await rawRequest(gateway.port, [request('POST', '/', { 'Content-Length': '100000000' }), ...pieces])
    assert.deepEqual([got.status, got.text(), got.complete], [403, bytes, true])
    assert.match(got.header('connection') ?? '', /close/)
    assert.notEqual(got.ended, 'open')
    await gateway.left({ counted: 'success', status: 403, bytes: bytes.length })
    await until(() => upstream.open.size === 0, { what: 'a connection with half a request on it closed' })
    upstream.handle(answering({ body: 'next' }))
    assert.equal((await rawRequest(gateway.port, get)).text(), 'next')
    await gateway.left({ counted: 'success', status: 200, bytes: 4 })
  })
}

test('an early answer is not cut where the client goes on sending to the end', async (t) => {
  const { gateway } = await inFront(t, async (socket) => { await send(socket, answer({ status: 401, body: 'who?' })) })
  const client = await rawConnect(gateway.port)
  await client.write(request('POST', '/', { 'Content-Length': '3000000' }))
  for (let i = 0; i < 30; i++) await client.write(Buffer.alloc(100_000))
  const got = await client.readResponse('POST')
  assert.deepEqual([got.status, got.text()], [401, 'who?'])
  client.destroy()
  await gateway.left({ counted: 'success', status: 401, bytes: 4 })
})

test('a client that asks first (Expect: 100-continue) is told to go on, and the upstream gets the body without the question', async (t) => {
  let body = ''
  const { gateway, upstream } = await inFront(t, async (socket, incoming) => {
    body = (await incoming.body()).body.toString()
    await send(socket, answer({ body: 'thanks' }))
  })
  const client = await rawConnect(gateway.port)
  await client.write(request('POST', '/', { 'Content-Length': '5', 'Expect': '100-continue' }))
  assert.equal((await client.readHead()).status, 100)
  await client.write('hello')
  const got = await client.readResponse('POST')
  assert.deepEqual([got.status, got.text(), body], [200, 'thanks', 'hello'])
  assert.equal(upstream.requests[0]?.header('expect'), undefined)
  client.destroy()
  await gateway.left({ counted: 'success', status: 200, bytes: 6 })
})

test('a client that asks first is refused without sending where its body is too large', async (t) => {
  const { gateway } = await inFront(t, answering(), { server: { maxBodyBytes: 10 } })
  const got = await rawRequest(gateway.port, request('POST', '/', { 'Content-Length': '1000', 'Expect': '100-continue' }))
  assert.deepEqual([got.status, got.interim], [413, []])
  await gateway.left({ counted: 'neutral', status: 413, reason: 'body_too_large', upstream: null })
})
