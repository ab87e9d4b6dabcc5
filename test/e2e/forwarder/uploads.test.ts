import assert from 'node:assert/strict'
import { test } from 'node:test'
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
      await gateway.left({ counted: 'neutral', status: 408, reason: 'request_timeout' })
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
