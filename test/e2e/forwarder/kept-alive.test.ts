import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Socket } from 'node:net'
import { answer, answering, reset, send, stall } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, inFront, request } from './support.ts'

/** Answers the first request of each connection, and ends the connection at the second without a byte, as if it had just given it up. */
function forgetful (end: (socket: Socket) => unknown): RawHandler {
  return (socket, { index }) => index === 1 ? send(socket, answer({ body: 'fresh' })) : end(socket)
}

const ends = { FIN: (socket: Socket) => { socket.end() }, reset: (socket: Socket) => { reset(socket) } }

for (const [name, end] of Object.entries(ends)) {
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']) {
    test(`a kept connection that the upstream ends (${name}) as we use it again is not noticed by the client (${method})`, async (t) => {
      const { gateway, upstream } = await inFront(t, forgetful(end))
      assert.equal((await rawRequest(gateway.port, get)).text(), 'fresh')
      await gateway.left({ counted: 'success', status: 200 })
      const got = await rawRequest(gateway.port, request(method))
      assert.equal(got.status, 200)
      await gateway.left({ counted: 'success', status: 200, attempts: 1 })
      assert.deepEqual(upstream.requests.map(({ connection, index }) => [connection, index]), [[1, 1], [1, 2], [2, 1]])
    })
  }

  for (const [what, bytes] of Object.entries({ 'POST': request('POST', '/', {}, 'hello'), 'POST without a body': request('POST'), 'PUT with a body': request('PUT', '/', {}, 'hello') })) {
    test(`what may have been done is not done twice: ${what} on a kept connection that the upstream ends (${name}) is answered 502`, async (t) => {
      const { gateway, upstream } = await inFront(t, forgetful(end))
      assert.equal((await rawRequest(gateway.port, get)).text(), 'fresh')
      await gateway.left({ counted: 'success', status: 200 })
      assert.equal((await rawRequest(gateway.port, bytes)).status, 502)
      await gateway.left({ counted: 'failure', status: 502, reason: 'connection_reset' })
      assert.equal(upstream.requests.length, 2)
    })
  }
}

test('a request is repeated once and no more', async (t) => {
  const { gateway, upstream } = await inFront(t, (socket, { total }) => total === 1 ? send(socket, answer()) : reset(socket))
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  await gateway.left({ counted: 'success', status: 200 })
  assert.equal((await rawRequest(gateway.port, get)).status, 502)
  await gateway.left({ counted: 'failure', status: 502, reason: 'connection_reset' })
  assert.equal(upstream.requests.length, 3)
})

test('a request is not repeated once a byte of an answer has come', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket, { index }) => {
    if (index === 1) return send(socket, answer())
    await send(socket, 'HTTP/1.1 20')
    return reset(socket)
  })
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  await gateway.left({ counted: 'success', status: 200 })
  assert.equal((await rawRequest(gateway.port, get)).status, 502)
  await gateway.left({ counted: 'failure', status: 502, reason: 'connection_reset' })
  assert.equal(upstream.requests.length, 2)
})

test('the time of the repeated request counts, too', async (t) => {
  const { gateway, upstream } = await inFront(t, (socket, { total }) => total === 1 ? send(socket, answer()) : total === 2 ? reset(socket) : stall(socket), {
    pool: { timeouts: { headersMs: 300 } }
  })
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  await gateway.skip()
  assert.equal((await rawRequest(gateway.port, get)).status, 504)
  await until(() => upstream.open.size === 0, { what: 'both connections closed' })
  await gateway.idle()
})

test('an idle connection that the upstream has closed is not used', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket) => {
    await send(socket, answer({ body: 'fresh' }))
    socket.end()
  })
  for (let i = 0; i < 5; i++) {
    assert.equal((await rawRequest(gateway.port, request('POST', '/', {}, 'hello'))).text(), 'fresh')
    await gateway.left({ counted: 'success', status: 200 })
    await until(() => upstream.open.size === 0)
  }
})

test('connections are used again, and many clients share them', async (t) => {
  const { gateway, upstream } = await inFront(t, answering({ body: 'hello' }))
  for (let i = 0; i < 20; i++) assert.equal((await rawRequest(gateway.port, get)).text(), 'hello')
  await gateway.idle()
  assert.equal(upstream.connections, 1)
})

test('an idle connection is given up after keepAliveMs', async (t) => {
  const { gateway, upstream } = await inFront(t, answering(), { pool: { connections: { keepAliveMs: 100 } } })
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  await until(() => upstream.open.size === 0)
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  assert.equal(upstream.connections, 2)
})

test('OPTIONS * stays what it is, also where it had to wait for a connection', async (t) => {
  const { gateway, upstream } = await inFront(t, answering({ body: 'ok' }), { pool: { connections: { max: 1 } } })
  upstream.handle(async (socket, { total }) => {
    if (total === 1) await until(() => gateway.upstream().waiting === 1)
    await send(socket, answer({ body: 'ok' }))
  })
  const first = rawRequest(gateway.port, get)
  await until(() => upstream.requests.length === 1)
  const got = await rawRequest(gateway.port, request('OPTIONS', '*'))
  assert.deepEqual([got.status, got.text(), (await first).status], [200, 'ok', 200])
  assert.deepEqual(upstream.requests.map(({ method, target }) => `${method} ${target}`), ['GET /', 'OPTIONS *'])
  await gateway.idle()
  await until(() => upstream.open.size <= 1, { what: 'the connection of its own closed' })
})
