import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, reset, send, stall } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, request } from '../forwarder/support.ts'
import { leftover, named, row, told } from './support.ts'

const slow = { baseMs: 20000, maxMs: 20000 }

for (const status of [502, 503, 504]) {
  test(`an answer with ${status} is dropped for another upstream's, and nothing of it is seen`, async (t) => {
    const bad: RawHandler = (socket) => send(socket, answer({ status, headers: [['Set-Cookie', 'a=b'], ['X-First', 'yes'], ['ETag', '"1"']], body: 'the first body' }))
    const { gateway, asked } = await row(t, [bad, named('second')])
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, got.text(), got.header('set-cookie'), got.header('x-first'), got.header('etag')], [200, 'second:', undefined, undefined, undefined])
    const left = await leftover(gateway)
    assert.deepEqual(told(gateway, left), [200, null, 2, 1])
    assert.deepEqual(left.errors.map(({ reason, error }) => [reason, error]), [[null, `answered ${status}`]])
    assert.deepEqual(left.counts, [[1, 1], [1, 0]])
    assert.deepEqual(asked(), [1, 1])
  })
}

for (const status of [500, 501, 404, 429, 304, 204]) {
  test(`an answer with ${status} is the answer`, async (t) => {
    const { gateway, asked } = await row(t, [named('first', status), named('second')])
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, got.header('x-upstream')], [status, 'first'])
    assert.deepEqual(told(gateway, await leftover(gateway)), [status, null, 1, 0])
    assert.deepEqual(asked(), [1, 0])
  })
}

test('which statuses are retried is the pool\'s to say; a 4xx counts for its upstream, not against it', async (t) => {
  const { gateway } = await row(t, [named('first', 429), named('second')], { retry: { statuses: [429] } })
  assert.equal((await rawRequest(gateway.port, get)).header('x-upstream'), 'second')
  const left = await leftover(gateway)
  assert.deepEqual(left.counts, [[1, 0], [1, 0]])
})

test('a route has its own retries', async (t) => {
  const routes = [{ path: '/never', pool: 'shop', retry: { retries: 0 } }, { path: '/odd', pool: 'shop', retry: { statuses: [418] } }, { path: '/*', pool: 'shop' }]
  const { gateway } = await row(t, [named('first', 503), named('second')], { routes })
  assert.equal((await rawRequest(gateway.port, request('GET', '/never'))).status, 503)
  assert.equal((await rawRequest(gateway.port, request('GET', '/odd'))).status, 503)
  assert.equal((await rawRequest(gateway.port, request('GET', '/any'))).status, 200)
})

test('the last answer passes untouched where nobody is left to ask', async (t) => {
  const bad = (name: string): RawHandler => (socket) => send(socket, answer({ status: 503, headers: [['X-Upstream', name], ['Retry-After', '0']], body: name }))
  const { gateway, asked } = await row(t, [bad('first'), bad('second')], { retry: { retries: 3 } })
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.text(), got.header('x-upstream')], [503, 'second', 'second'])
  assert.deepEqual(told(gateway, await leftover(gateway)), [503, null, 2, 1])
  assert.deepEqual(asked(), [1, 1])
})

test('with one upstream its answer passes untouched and at once', async (t) => {
  const { gateway } = await row(t, [named('first', 503)], { retry: { backoff: slow } })
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.text()], [503, 'first:'])
  assert.deepEqual(told(gateway, await leftover(gateway)), [503, null, 1, 0])
  assert.equal(gateway.app.forwarding.view('shop').notRetried.no_upstream, 1)
})

test('an answer that is held for a retry is given after all where the other upstream is gone by then', async (t) => {
  for (const size of [5, 60000, 300000]) {
    const body = 'x'.repeat(size)
    const { gateway, asked } = await row(t, [(socket) => send(socket, answer({ status: 503, headers: [['X-First', 'yes'], ['Retry-After', '1']], body })), named('second')])
    const pending = rawRequest(gateway.port, get)
    await until(() => asked()[0] === 1)
    gateway.app.pools.setDraining('shop', gateway.upstream(1).id, true)
    const got = await pending
    assert.deepEqual([got.status, got.header('x-first'), got.body.length, got.complete], [503, 'yes', size, true])
    assert.deepEqual(told(gateway, await leftover(gateway)), [503, null, 1, 0])
  }
})

test('an answer that is dropped leaves its connection to others where it is small, and closes it where it is large or slow', async (t) => {
  const sizes: Array<[RawHandler, boolean]> = [
    [(socket) => send(socket, answer({ status: 503, body: 'x'.repeat(30000) })), true],
    [(socket) => send(socket, answer({ status: 503, body: 'x'.repeat(1000000) })), false],
    [async (socket) => {
      await send(socket, answer({ status: 503, headers: [['Transfer-Encoding', 'chunked']], framing: 'none' }))
      for (let i = 0; i < 1000; i++) await send(socket, `2710\r\n${'x'.repeat(10000)}\r\n`)
    }, false],
    [async (socket) => {
      await send(socket, answer({ status: 503, headers: [['Content-Length', '10']], body: 'x', framing: 'none' }))
      await stall(socket)
    }, false]
  ]
  for (const [handler, kept] of sizes) {
    const { gateway, upstreams } = await row(t, [handler, named('second')])
    assert.equal((await rawRequest(gateway.port, get)).header('x-upstream'), 'second')
    await leftover(gateway)
    await until(() => upstreams[0]?.open.size === (kept ? 1 : 0))
  }
})

test('an answer that is cut while it is held cannot be given any more', async (t) => {
  const cut: RawHandler = async (socket) => {
    await send(socket, answer({ status: 503, headers: [['Content-Length', '10'], ['Retry-After', '1']], body: 'x', framing: 'none' }))
    reset(socket)
  }
  const { gateway, asked } = await row(t, [cut, named('second')])
  const pending = rawRequest(gateway.port, get)
  await gateway.lines.waitFor('upstream_error')
  gateway.app.pools.setDraining('shop', gateway.upstream(1).id, true)
  const got = await pending
  assert.deepEqual([got.status, (got.json() as { reason: string }).reason], [502, 'body_truncated'])
  assert.deepEqual(asked(), [1, 0])
  const left = await leftover(gateway)
  assert.deepEqual(left.counts, [[1, 1], [0, 0]])
})

test('Retry-After is waited for, up to maxRetryAfterMs; a longer one is passed on without a retry', async (t) => {
  const busy = (seconds: string): RawHandler => (socket) => send(socket, answer({ status: 503, headers: [['Retry-After', seconds]] }))
  const { gateway, upstreams } = await row(t, [busy('1'), named('second')], { retry: { maxRetryAfterMs: 1000 } })
  let at = 0
  upstreams[1]?.handle(async (socket) => {
    at = performance.now()
    await send(socket, answer({ body: 'second' }))
  })
  const before = performance.now()
  assert.equal((await rawRequest(gateway.port, get)).text(), 'second')
  assert.ok(at - before >= 995, 'not before the time is over')
  await gateway.skip()
  for (const value of ['2', '1000000', 'Fri, 31 Dec 2999 23:59:59 GMT']) {
    upstreams[0]?.handle(busy(value))
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, got.header('retry-after')], [503, value])
  }
  assert.equal(gateway.app.forwarding.view('shop').notRetried.retry_after, 3)
  for (const value of ['0', 'soon', 'Fri, 31 Dec 1999 23:59:59 GMT']) {
    upstreams[0]?.handle(busy(value))
    assert.equal((await rawRequest(gateway.port, get)).text(), 'second')
  }
})

test('where too little of the time is left for the wait, the answer is passed on', async (t) => {
  const { gateway, asked } = await row(t, [(socket) => send(socket, answer({ status: 503, headers: [['Retry-After', '1']], body: 'busy' })), named('second')], {
    pool: { timeouts: { totalMs: 900, headersMs: 500 } }
  })
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.text()], [503, 'busy'])
  assert.deepEqual(told(gateway, await leftover(gateway)), [503, null, 1, 0])
  assert.deepEqual(asked(), [1, 0])
})

test('a POST is not retried for a status: the upstream may have done it', async (t) => {
  const { gateway, asked } = await row(t, [named('first', 503), named('second')])
  const got = await rawRequest(gateway.port, request('POST', '/', {}, 'order'))
  assert.deepEqual([got.status, got.text()], [503, 'first:order'])
  assert.equal(gateway.app.forwarding.view('shop').notRetried.method, 1)
  await gateway.idle()
  assert.deepEqual(asked(), [1, 0])
})

test('a POST with an Idempotency-Key is retried where the pool says that its service honours it', async (t) => {
  for (const idempotencyKey of [true, false]) {
    const { gateway, asked } = await row(t, [named('first', 503), named('second')], { retry: { idempotencyKey } })
    const got = await rawRequest(gateway.port, request('POST', '/', { 'Idempotency-Key': 'k1' }, 'order'))
    assert.equal(got.text(), idempotencyKey ? 'second:order' : 'first:order')
    await gateway.idle()
    assert.deepEqual(asked(), [1, idempotencyKey ? 1 : 0])
  }
})
