/** Clients and upstreams that take bytes slowly, or not at all, and who is to blame. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { answer, answering, send, stall, type RawHandler } from '../../support/faulty-upstream.ts'
import { chunk } from '../../support/http-bytes.ts'
import { unlessStalled } from '../../support/gateway.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, inFront, request } from './support.ts'

const size = 20_000_000

/** Reads a piece, rests, and so on, for `ms`; then all that comes. */
const slowReader = (ms: number): RawHandler => async (socket, { body }) => {
  for (const end = performance.now() + ms; performance.now() < end;) {
    socket.resume()
    await once(socket, 'data')
    socket.pause()
    await delay(100)
  }
  await body()
  await send(socket, answer({ body: 'thanks' }))
}

test('an upstream that reads an upload slowly but steadily is not cut', async (t) => {
  const { gateway } = await inFront(t, slowReader(4000), { pool: { timeouts: { bodyIdleMs: 2500, totalMs: 0 } } })
  const got = await rawRequest(gateway.port, request('POST', '/', {}, Buffer.alloc(2 * size)), { timeoutMs: 30_000 })
  assert.deepEqual([got.status, got.text()], [200, 'thanks'])
  await gateway.left({ counted: 'success', status: 200 })
})

test('with retries an upload may be slow, too', async (t) => {
  const { gateway } = await inFront(t, slowReader(4000), { pool: { timeouts: { bodyIdleMs: 2500, totalMs: 0 }, retry: { retries: 1 } } })
  const got = await rawRequest(gateway.port, request('PUT', '/', {}, Buffer.alloc(2 * size)), { timeoutMs: 30_000 })
  assert.deepEqual([got.status, got.text()], [200, 'thanks'])
  await gateway.left({ counted: 'success', status: 200 })
})

test('a client that stops reading an event stream is cut after bodyIdleMs, though events go on', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: [['Content-Type', 'text/event-stream'], ['Transfer-Encoding', 'chunked']], framing: 'none' }))
    const event = chunk(`data: ${'x'.repeat(50_000)}\n\n`)
    while (!socket.destroyed) {
      if (!socket.write(event)) await Promise.race([new Promise(resolve => { socket.once('drain', resolve) }), stall(socket)])
      await delay(5)
    }
  }, { pool: { timeouts: { bodyIdleMs: 300 } } })
  const client = await rawConnect(gateway.port)
  t.after(() => { client.destroy() })
  client.socket.pause()
  await client.write(get)
  await until(() => gateway.lines.find('access'), { timeoutMs: 20_000 })
  await until(() => upstream.open.size === 0, { what: 'the upstream\'s connection freed' })
  await gateway.left({ counted: 'success', status: 200, reason: 'body_idle_timeout', error: null })
})

test('a client that reads nothing of a body that came in time does not make its upstream look slow', async (t) => {
  const { gateway, upstream } = await inFront(t, answering({ body: Buffer.alloc(size) }), { pool: { timeouts: { bodyIdleMs: 400 } } })
  const client = await rawConnect(gateway.port)
  t.after(() => { client.destroy() })
  client.socket.pause()
  await client.write(get)
  await until(() => gateway.lines.find('access'), { timeoutMs: 20_000 })
  await gateway.left({ counted: 'neutral', status: 200, reason: 'body_idle_timeout', error: null })
  await until(() => upstream.open.size === 0)
})

test('an upstream that falls silent while its client has taken all is to blame', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: [['Content-Length', '1000000']], framing: 'none', body: Buffer.alloc(200_000) }))
    await stall(socket)
  }, { pool: { timeouts: { bodyIdleMs: 300 } } })
  await unlessStalled(async () => {
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, got.complete], [200, false])
    await gateway.left({ counted: 'failure', status: 200, reason: 'body_idle_timeout' })
  })
})
