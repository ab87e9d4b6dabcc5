import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Socket } from 'node:net'
import { answer, partOfBody, reset, send, stall } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { unlessStalled } from '../../support/gateway.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { get, request } from '../forwarder/support.ts'
import { leftover, named, refuses, row, told } from './support.ts'

/** How an upstream fails before there is an answer, and the reason for it. */
const failures: Record<string, [handler: RawHandler | typeof refuses, reason: string]> = {
  'refuses the connection': [refuses, 'connect_refused'],
  'closes without a byte': [(socket: Socket) => { socket.end() }, 'connection_reset'],
  'resets without a byte': [(socket: Socket) => { reset(socket) }, 'connection_reset'],
  'resets in the middle of its head': [async (socket: Socket) => { await send(socket, 'HTTP/1.1 200 OK\r\nX-Ha'); reset(socket) }, 'connection_reset'],
  'answers what is no HTTP': [(socket: Socket) => send(socket, 'nonsense\r\n\r\n'), 'response_invalid'],
  'answers a status that is none': [(socket: Socket) => send(socket, answer({ status: 999 })), 'response_invalid']
}

for (const [how, [handler, reason]] of Object.entries(failures)) {
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'QUERY']) {
    test(`where an upstream ${how}, another one answers the ${method}, and the client sees nothing of it`, async (t) => {
      const { gateway, asked } = await row(t, [handler, named('second')])
      const got = await rawRequest(gateway.port, request(method))
      assert.deepEqual([got.status, got.header('x-upstream')], [200, 'second'])
      const left = await leftover(gateway)
      assert.deepEqual(told(gateway, left), [200, null, 2, 1])
      assert.deepEqual(left.errors.map((line) => [line['reason'], line['no_retry']]), [[reason, undefined]])
      assert.deepEqual(left.counts, [[1, 1], [1, 0]])
      assert.deepEqual(asked(), [handler === refuses ? 0 : 1, 1])
    })
  }

  test(`with no other upstream, one that ${how} is the answer: the failure with its own reason, at once`, async (t) => {
    const { gateway } = await row(t, [handler], { retry: { backoff: { baseMs: 20000, maxMs: 20000 } } })
    const got = await rawRequest(gateway.port, get)
    assert.equal(got.status, 502)
    assert.equal((got.json() as { reason: string }).reason, reason)
    const left = await leftover(gateway)
    assert.deepEqual(told(gateway, left), [502, reason, 1, 0])
    assert.deepEqual(left.errors.map((line) => line['no_retry']), ['no_upstream'])
  })

  test(`without retries, an upstream that ${how} is the answer, though another one is there`, async (t) => {
    const { gateway, asked } = await row(t, [handler, named('second')], { retry: { retries: 0 } })
    assert.equal((await rawRequest(gateway.port, get)).status, 502)
    const left = await leftover(gateway)
    assert.deepEqual(told(gateway, left), [502, reason, 1, 0])
    assert.equal(asked()[1], 0)
  })
}

test('an upstream that does not answer within headersMs is replaced by another one, and blamed', async (t) => {
  await unlessStalled(async () => {
    const { gateway, upstreams } = await row(t, [stall, named('second')], { pool: { timeouts: { headersMs: 150, totalMs: 0 } } })
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, got.header('x-upstream')], [200, 'second'])
    const left = await leftover(gateway)
    assert.deepEqual(told(gateway, left), [200, null, 2, 1])
    assert.deepEqual(left.errors.map((line) => line['reason']), ['headers_timeout'])
    assert.equal(upstreams[0]?.open.size, 0, 'the request that was given up is cancelled')
  })
})

test('a body that is cut after its head is not retried: the client has a part of it', async (t) => {
  const { gateway, asked } = await row(t, [(socket) => partOfBody(socket, { declared: 200000, sent: 100000, ending: 'reset' }), named('second')])
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.complete], [200, false])
  assert.deepEqual(told(gateway, await leftover(gateway)), [200, 'body_truncated', 1, 0])
  assert.deepEqual(asked(), [1, 0])
})

test('where all fail, each is asked once, as many as the retries allow, and the first failure tells why', async (t) => {
  const resets: RawHandler = (socket) => { reset(socket) }
  const { gateway, asked } = await row(t, [refuses, resets, resets, named('fourth')], { retry: { retries: 2 } })
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, (got.json() as { reason: string }).reason], [502, 'connect_refused'])
  const left = await leftover(gateway)
  assert.deepEqual(told(gateway, left), [502, 'connect_refused', 3, 2])
  assert.deepEqual(left.errors.map((line) => [line['reason'], line['no_retry']]), [['connect_refused', undefined], ['connection_reset', undefined], ['connection_reset', 'limit']])
  assert.deepEqual(asked(), [0, 1, 1, 0])
  assert.deepEqual(left.counts, [[1, 1], [1, 1], [1, 1], [0, 0]])
})

test('no upstream is asked twice, however many retries there may be', async (t) => {
  const resets: RawHandler = (socket) => { reset(socket) }
  const { gateway, asked } = await row(t, [resets, resets], { retry: { retries: 5 } })
  assert.equal((await rawRequest(gateway.port, get)).status, 502)
  assert.deepEqual(told(gateway, await leftover(gateway)), [502, 'connection_reset', 2, 1])
  assert.deepEqual(asked(), [1, 1])
})

test('an upstream that cannot be picked is none that is left', async (t) => {
  const { gateway, asked } = await row(t, [refuses, named('second'), named('third')], { retry: { backoff: { baseMs: 20000, maxMs: 20000 } } })
  const { app } = gateway
  app.pools.setDraining('shop', gateway.upstream(1).id, true)
  app.breakers.get('shop', gateway.upstream(2).id).force('open', 60000)
  assert.equal((await rawRequest(gateway.port, get)).status, 502)
  assert.deepEqual(told(gateway, await leftover(gateway)), [502, 'connect_refused', 1, 0])
  assert.deepEqual(asked(), [0, 0, 0])
})

for (const [budget, statuses] of [[{ ratio: 0, minPerSecond: 0 }, [502, 502, 502]], [{ ratio: 0, minPerSecond: 0.2 }, [200, 200, 502]], [{ ratio: 0.5, minPerSecond: 0 }, [502, 200, 502]]] as const) {
  test(`the budget bounds what retries add: of three failing requests ${statuses.filter((status) => status === 200).length} are retried with ${JSON.stringify(budget)}`, async (t) => {
    const { gateway, asked } = await row(t, [refuses, named('second')], { retry: { budget } })
    const got: number[] = []
    for (let i = 0; i < 3; i++) got.push((await rawRequest(gateway.port, get)).status)
    assert.deepEqual(got, statuses)
    await gateway.idle()
    assert.equal(asked()[1], statuses.filter((status) => status === 200).length)
    const { retries, notRetried } = gateway.app.forwarding.view('shop')
    assert.deepEqual([retries, notRetried.budget], [asked()[1], 3 - (asked()[1] as number)])
  })
}

test('a pool that is not forwarded to has nothing to tell', async (t) => {
  const { gateway } = await row(t, [named('first')])
  const { retries, hedges, repeats, moves, mirrors } = gateway.app.forwarding.view('shop')
  assert.deepEqual([retries, hedges, repeats, moves, mirrors], [0, 0, 0, 0, { sent: 0, failed: 0, dropped: 0 }])
})
