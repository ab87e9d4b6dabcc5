import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { answer, send } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, inFront } from './support.ts'

const idleMs = 300

/** Ends a connection without a word where a request comes on it after it was idle for so long: as if it had just given it up. */
function forgetfulAfter (ms: number): RawHandler {
  const since = new WeakMap<object, number>()
  return async (socket) => {
    const before = since.get(socket)
    if (before !== undefined && performance.now() - before >= ms) {
      socket.end()
      return
    }
    await send(socket, answer({ body: 'ok' }))
    since.set(socket, performance.now())
  }
}

test('where an upstream gives idle connections up sooner than we do, that is learnt, and no request meets a dead one any more', async (t) => {
  const { gateway } = await inFront(t, forgetfulAfter(idleMs), { pool: { connections: { keepAliveMs: 4000 } } })
  const repeats = (): number => gateway.app.forwarding.view('shop').repeats
  for (let i = 0; i < 20 && gateway.upstream().transport.idleLimitMs === 0; i++) {
    assert.equal((await rawRequest(gateway.port, get)).text(), 'ok')
    await delay(idleMs + 20)
  }
  const limit = gateway.upstream().transport.idleLimitMs
  assert.ok(limit > 0 && limit <= idleMs * 1.5, String(limit))
  const before = repeats()
  assert.ok(before >= 3)
  for (let i = 0; i < 5; i++) {
    assert.equal((await rawRequest(gateway.port, get)).text(), 'ok')
    await delay(idleMs + 150)
  }
  assert.equal(repeats(), before)
})

test('it is learnt as well from connections that are ended while nobody uses them', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket) => {
    await send(socket, answer({ body: 'ok' }))
    setTimeout(() => { socket.end() }, idleMs)
  }, { pool: { connections: { keepAliveMs: 4000 } } })
  for (let i = 0; i < 3; i++) {
    assert.equal((await rawRequest(gateway.port, get)).text(), 'ok')
    await until(() => upstream.open.size === 0)
  }
  await until(() => gateway.upstream().transport.idleLimitMs > 0)
  assert.equal(gateway.app.forwarding.view('shop').repeats, 0)
})

test('connections that are used often are kept, whatever was learnt', async (t) => {
  const { gateway, upstream } = await inFront(t, forgetfulAfter(idleMs), { pool: { connections: { keepAliveMs: 4000 } } })
  for (let i = 0; i < 30; i++) {
    assert.equal((await rawRequest(gateway.port, get)).text(), 'ok')
    await delay(5)
  }
  assert.ok(upstream.connections <= 3, String(upstream.connections))
})

test('with learnKeepAlive: false nothing is learnt', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket) => {
    await send(socket, answer({ body: 'ok' }))
    setTimeout(() => { socket.end() }, 100)
  }, { pool: { connections: { keepAliveMs: 4000, learnKeepAlive: false } } })
  for (let i = 0; i < 4; i++) {
    assert.equal((await rawRequest(gateway.port, get)).text(), 'ok')
    await until(() => upstream.open.size === 0)
  }
  assert.equal(gateway.upstream().transport.idleLimitMs, 0)
})
