import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { answer, send, stall } from '../../support/faulty-upstream.ts'
import { startGateway, StalledError, unlessStalled } from '../../support/gateway.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, inFront, request } from './support.ts'

for (const [method, bytes] of Object.entries({ GET: get, POST: request('POST', '/', {}, 'hello') })) {
  test(`an upstream that does not answer within headersMs is answered 504, in time (${method})`, async (t) => {
    const { gateway, upstream } = await inFront(t, stall, { pool: { timeouts: { headersMs: 300 } } })
    await unlessStalled(async () => {
      const began = performance.now()
      const got = await rawRequest(gateway.port, bytes)
      const took = performance.now() - began
      assert.deepEqual([got.status, got.complete, got.ended], [504, true, 'open'])
      // Not before its time, and not with the half second of undici's timers.
      assert.ok(took >= 299, `too early: ${took}`)
      await gateway.left({ counted: 'failure', status: 504, reason: 'headers_timeout' })
      if (took >= 600) throw new StalledError(`too late, and each time: ${took}`)
    })
    await until(() => upstream.open.size === 0, { what: 'the upstream\'s connection closed' })
  })
}

test('headersMs runs from the end of the request, however long its body took', async (t) => {
  const { gateway } = await inFront(t, async (socket, { body }) => {
    await body()
    await send(socket, answer({ body: 'thanks' }))
  }, { pool: { timeouts: { headersMs: 400 } } })
  const got = await rawRequest(gateway.port, [request('POST', '/', { 'Content-Length': '5' }), 600, 'hello'])
  assert.deepEqual([got.status, got.text()], [200, 'thanks'])
  await gateway.left({ counted: 'success', status: 200, bytes: 6 })
})

test('an answer just within headersMs is not cut', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await delay(250)
    await send(socket, answer({ body: 'late' }))
  }, { pool: { timeouts: { headersMs: 1000 } } })
  assert.equal((await rawRequest(gateway.port, get)).text(), 'late')
  await gateway.left({ counted: 'success', status: 200, bytes: 4 })
})

test('informational answers do not stop the clock of headersMs', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    while (!socket.destroyed) {
      await send(socket, 'HTTP/1.1 102 Processing\r\n\r\n')
      await delay(50)
    }
  }, { pool: { timeouts: { headersMs: 300 } } })
  await unlessStalled(async () => {
    assert.equal((await rawRequest(gateway.port, get)).status, 504)
    await gateway.left({ counted: 'failure', status: 504, reason: 'headers_timeout' })
  })
})

test('totalMs ends an exchange that waits for its answer', async (t) => {
  const { gateway } = await inFront(t, stall, { pool: { timeouts: { totalMs: 200 } } })
  await unlessStalled(async () => {
    assert.equal((await rawRequest(gateway.port, get)).status, 504)
    await gateway.left({ counted: 'failure', status: 504, reason: 'deadline_exceeded' })
  })
})

test('totalMs cuts a body that never ends', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: [['Content-Length', '1000000']], framing: 'none' }))
    while (!socket.destroyed) {
      await send(socket, 'x')
      await delay(20)
    }
  }, { pool: { timeouts: { totalMs: 250, bodyIdleMs: 1000 } } })
  await unlessStalled(async () => {
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, got.complete, got.ended], [200, false, 'reset'])
    await gateway.left({ counted: 'failure', status: 200, reason: 'deadline_exceeded', bytes: bytes => bytes > 0 && bytes < 100 })
  })
})

test('totalMs ends the wait in the queue for a connection: our capacity, nobody\'s failure', async (t) => {
  const { gateway, upstream } = await inFront(t, stall, { pool: { connections: { max: 1 }, timeouts: { totalMs: 1500 } } })
  const first = await rawConnect(gateway.port)
  await first.write(get)
  await until(() => upstream.requests.length === 1)
  await delay(600)
  const second = rawRequest(gateway.port, get)
  await until(() => gateway.upstream().waiting === 1)
  const refused = await first.readResponse()
  assert.equal(refused.status, 504)
  first.destroy()
  // The connection came free before the second one's own time was over, so that it has used a part of it.
  assert.equal((await second).status, 504)
  await gateway.idle()
  assert.deepEqual(gateway.lines.all('access').map(line => line['reason']), ['deadline_exceeded', 'deadline_exceeded'])
})

test('a route\'s own time limits replace the pool\'s, and 0 switches one off', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await delay(500)
    await send(socket, answer({ body: 'late' }))
  }, {
    pool: { timeouts: { headersMs: 200 } },
    routes: [{ path: '/slow/*', pool: 'shop', timeouts: { headersMs: 0 } }, { path: '/*', pool: 'shop' }]
  })
  assert.equal((await rawRequest(gateway.port, request('GET', '/slow/x'))).text(), 'late')
  assert.equal((await rawRequest(gateway.port, get)).status, 504)
})

test('with every time limit off a slow answer arrives', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await delay(300)
    await send(socket, answer({ body: 'late' }))
  }, { pool: { timeouts: { connectMs: 0, headersMs: 0, bodyIdleMs: 0, totalMs: 0 } } })
  assert.equal((await rawRequest(gateway.port, get)).text(), 'late')
  await gateway.left({ counted: 'success', status: 200 })
})

/** An upstream in a thread of its own, which answers while our own event loop stands still. `asked[0]` counts its requests. */
async function threadedUpstream (t: TestContext, answerAfterMs: number): Promise<{ url: string, asked: Int32Array }> {
  const asked = new Int32Array(new SharedArrayBuffer(4))
  const script = `
    const { workerData, parentPort } = require('node:worker_threads')
    const server = require('node:http').createServer((request, response) => {
      request.resume()
      Atomics.add(workerData.asked, 0, 1)
      setTimeout(() => { response.end('quick') }, workerData.answerAfterMs)
    })
    server.listen(0, '127.0.0.1', () => { parentPort.postMessage(server.address().port) })`
  const worker = new Worker(script, { eval: true, workerData: { asked, answerAfterMs } })
  t.after(() => worker.terminate())
  const [port] = await once(worker, 'message') as [number]
  return { url: `http://127.0.0.1:${port}`, asked }
}

/** Stands still, as a long computation or a garbage collection would. */
function standStill (ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

test('an answer that came in time while our own event loop stood still is passed on, and the upstream not blamed', async (t) => {
  const { url, asked } = await threadedUpstream(t, 50)
  const gateway = await startGateway(t, { upstreams: [url], pool: { timeouts: { headersMs: 200, bodyIdleMs: 200, totalMs: 250 } } })
  for (let i = 1; i <= 3; i++) {
    const got = rawRequest(gateway.port, get)
    while (Atomics.load(asked, 0) < i) await delay(1)
    standStill(400)
    assert.deepEqual([(await got).status, (await got).text()], [200, 'quick'])
    await gateway.left({ counted: 'success', status: 200, bytes: 5 })
  }
})

test('an upstream that is late while our own event loop stood still is not blamed for it', async (t) => {
  const { url, asked } = await threadedUpstream(t, 5000)
  const gateway = await startGateway(t, { upstreams: [url], pool: { timeouts: { headersMs: 200 } } })
  const got = rawRequest(gateway.port, get)
  while (Atomics.load(asked, 0) < 1) await delay(1)
  standStill(400)
  assert.equal((await got).status, 504)
  await gateway.left({ counted: 'neutral', status: 504, reason: 'headers_timeout', error: 'headers_timeout' })
})
