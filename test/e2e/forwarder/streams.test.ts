import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { answer, answering, reset, send, stall } from '../../support/faulty-upstream.ts'
import { chunk } from '../../support/http-bytes.ts'
import type { FieldList } from '../../support/http-bytes.ts'
import { unlessStalled } from '../../support/gateway.ts'
import { rawConnect } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, inFront, request } from './support.ts'

const events: FieldList = [['Content-Type', 'text/event-stream'], ['Transfer-Encoding', 'chunked']]

for (const type of ['text/event-stream', 'Text/Event-Stream; charset=utf-8']) {
  test(`the head of an event stream (${type}) arrives before any event, and settles the breaker`, async (t) => {
    const { gateway, upstream } = await inFront(t, async (socket) => {
      await send(socket, answer({ headers: [['Content-Type', type], ['Transfer-Encoding', 'chunked']], framing: 'none' }))
      await stall(socket)
    })
    const client = await rawConnect(gateway.port)
    await client.write(get)
    const head = await client.readHead()
    assert.equal(head.status, 200)
    await until(() => gateway.breaker().outstanding.count === 0)
    assert.deepEqual([gateway.breaker().window.total, gateway.breaker().window.failures], [1, 0])
    assert.deepEqual([gateway.upstream().inFlight, gateway.upstream().busyConnections], [1, 1], 'it holds its places while it lasts')
    client.destroy()
    await until(() => upstream.open.size === 0, { what: 'the upstream\'s connection closed' })
    await gateway.left({ counted: 'success', status: 499, reason: 'client_cancelled', bytes: 0, error: null })
  })
}

test('an event stream outlives totalMs, and each event arrives at once', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: events, framing: 'none' }))
    for (let i = 0; i < 6 && !socket.destroyed; i++) {
      await delay(100)
      await send(socket, chunk(`data: ${i}\n\n`))
    }
    await stall(socket)
  }, { pool: { timeouts: { totalMs: 250 } } })
  const client = await rawConnect(gateway.port)
  await client.write(get)
  await client.readHead()
  for (let i = 0; i < 6; i++) assert.match((await client.reader.until('\n\n')).toString(), new RegExp(`data: ${i}\n\n$`))
  client.destroy()
  await gateway.left({ counted: 'success', status: 499, reason: 'client_cancelled', error: null })
})

test('an event stream that falls silent is cut after bodyIdleMs, and its breaker was settled before', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: events, framing: 'none' }), chunk('data: 1\n\n'))
    await stall(socket)
  }, { pool: { timeouts: { bodyIdleMs: 200 } } })
  await unlessStalled(async () => {
    const client = await rawConnect(gateway.port)
    await client.write(get)
    await client.readHead()
    await client.reader.until('data: 1\n\n')
    assert.equal(await client.closed, 'reset')
    await gateway.left({ counted: 'success', status: 200, reason: 'body_idle_timeout', error: 'body_idle_timeout' })
  })
})

test('the head of any stream arrives before its body', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: [['Content-Length', '5']], framing: 'none' }))
    await stall(socket)
  })
  const client = await rawConnect(gateway.port)
  await client.write(get)
  assert.equal((await client.readHead()).status, 200)
  assert.equal(gateway.breaker().outstanding.count, 1, 'its breaker waits for the end')
  client.destroy()
  await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled', bytes: 0 })
})

test('a half-open probe whose client leaves hands its place back', async (t) => {
  const { gateway, upstream } = await inFront(t, socket => { reset(socket) }, {
    pool: { breaker: { consecutiveFailures: 1, openMs: 100, jitter: 0, halfOpen: { probes: 1 } } }
  })
  const send1 = async (): Promise<number> => {
    const client = await rawConnect(gateway.port)
    await client.write(get)
    const { status } = await client.readResponse()
    client.destroy()
    return status
  }
  assert.equal(await send1(), 502)
  assert.equal(gateway.breaker().state, 'open')
  upstream.handle(stall)
  const before = upstream.requests.length
  await until(async () => {
    const probe = await rawConnect(gateway.port)
    await probe.write(get)
    const asked = await Promise.race([until(() => upstream.requests.length > before).then(() => true), probe.readHead().then(() => false)])
    if (!asked) {
      probe.destroy()
      return false
    }
    assert.deepEqual([gateway.breaker().state, gateway.breaker().probes.inFlight], ['half-open', 1])
    assert.equal(await send1(), 503, 'the batch of one is taken')
    probe.reset()
    return true
  }, { intervalMs: 30 })
  await gateway.idle()
  assert.deepEqual([gateway.breaker().state, gateway.breaker().probes.inFlight, gateway.breaker().probes.settled], ['half-open', 0, 0])
  upstream.handle(answering())
  assert.equal(await send1(), 200)
  await gateway.idle()
  assert.equal(gateway.breaker().state, 'closed')
})

const huge = 200_000_000

test('a client that does not read makes the upstream wait: nothing piles up', async (t) => {
  let written = 0
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: [['Content-Length', String(huge)]], framing: 'none' }))
    const piece = Buffer.alloc(100_000)
    for (; written < huge && !socket.destroyed; written += piece.length) {
      if (!socket.write(piece)) await Promise.race([new Promise(resolve => { socket.once('drain', resolve) }), stall(socket)])
    }
  })
  const client = await rawConnect(gateway.port)
  client.socket.pause()
  await client.write(get)
  let last = -1
  await until(() => {
    const still = written > 0 && written === last
    last = written
    return still
  }, { intervalMs: 200, timeoutMs: 10_000, what: 'the upstream having to wait' })
  assert.ok(written < 40_000_000, `${written} bytes were taken for a client that reads nothing`)
  client.destroy()
  await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled' })
})

test('a client that reads slowly gets everything, and is not cut', async (t) => {
  const size = 12_000_000
  const { gateway } = await inFront(t, socket => send(socket, answer({ body: Buffer.alloc(size) })), { pool: { timeouts: { bodyIdleMs: 2500 } } })
  const client = await rawConnect(gateway.port, { timeoutMs: 20_000 })
  await client.write(get)
  await client.readHead()
  let got = 0
  // The system takes and gives back buffers by the megabyte: what is slow must be well above that within the limit.
  for (let i = 0; i < 25; i++) {
    got += (await client.readBytes(300_000)).length
    await delay(120)
  }
  while (got < size) got += (await client.readBytes(Math.min(1_000_000, size - got))).length
  client.destroy()
  await gateway.left({ counted: 'success', status: 200, bytes: size })
})

test('a client that reads nothing is cut after bodyIdleMs, and that is nobody\'s failure', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: [['Content-Length', String(huge)]], framing: 'none' }))
    const piece = Buffer.alloc(1_000_000)
    while (!socket.destroyed && !socket.writableEnded) {
      if (!socket.write(piece)) await Promise.race([new Promise(resolve => { socket.once('drain', resolve) }), stall(socket)])
    }
  }, { pool: { timeouts: { bodyIdleMs: 300 } } })
  const client = await rawConnect(gateway.port)
  client.socket.pause()
  await client.write(get)
  await until(() => gateway.lines.find('access'), { timeoutMs: 10_000 })
  await until(() => upstream.open.size === 0)
  await gateway.left({ counted: 'neutral', status: 200, reason: 'body_idle_timeout', error: null })
  client.destroy()
})

test('a client that does not take the last of a whole answer is cut after bodyIdleMs, and its place at the gate is free', async (t) => {
  const { gateway } = await inFront(t, answering({ body: Buffer.alloc(60_000) }), { pool: { timeouts: { bodyIdleMs: 300 } } })
  const client = await rawConnect(gateway.port)
  client.socket.pause()
  // Pipelined, so that the answers fill every buffer between us and the client.
  void client.write(Buffer.concat(Array.from({ length: 400 }, () => get)))
  await until(() => gateway.lines.find(line => line['reason'] === 'body_idle_timeout'), { timeoutMs: 10_000 })
  await gateway.idle()
  assert.equal(gateway.lines.find('upstream_error'), undefined)
  assert.equal(gateway.breaker().window.failures, 0)
  client.destroy()
})

test('an upstream that does not read makes the client wait: nothing piles up', async (t) => {
  const { gateway } = await inFront(t, (socket) => {
    socket.pause()
    return stall(socket)
  }, { pool: { timeouts: { bodyIdleMs: 2500 } } })
  const client = await rawConnect(gateway.port)
  await client.write(request('POST', '/', { 'Content-Length': String(huge) }))
  const piece = Buffer.alloc(100_000)
  let last = -1
  let written = 0
  const drained = (): void => {
    while (written < huge && !client.socket.destroyed) {
      written += piece.length
      if (!client.socket.write(piece)) {
        client.socket.once('drain', drained)
        return
      }
    }
  }
  drained()
  await until(() => {
    const still = written === last
    last = written
    return still
  }, { intervalMs: 200, timeoutMs: 10_000, what: 'the client having to wait' })
  assert.ok(written < 40_000_000, `${written} bytes were taken for an upstream that reads nothing`)
  // Where the upstream stops reading, so do we: then its silence ends the exchange, whether or not the client still waits.
  client.reset()
  await gateway.lines.waitFor('access', { timeoutMs: 15_000 })
  await gateway.idle()
})
