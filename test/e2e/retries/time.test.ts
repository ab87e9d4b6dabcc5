import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, rawUpstream, reset, send, stall } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { startGateway, unlessStalled } from '../../support/gateway.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { deafPort } from '../forwarder/deaf-port.ts'
import { get, request } from '../forwarder/support.ts'
import { leftover, named, row, told } from './support.ts'

const tellsTime: RawHandler = (socket, { header }) => send(socket, answer({ body: header('x-time-left') ?? 'none' }))
const resets: RawHandler = (socket) => { reset(socket) }

test('an upstream that hangs leaves time for the others: it has its share of what is left', async (t) => {
  await unlessStalled(async () => {
    const { gateway, upstreams } = await row(t, [stall, stall, named('third')], { retry: { retries: 2 }, pool: { timeouts: { headersMs: 0, totalMs: 1500 } } })
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, got.header('x-upstream')], [200, 'third'])
    const left = await leftover(gateway)
    assert.deepEqual(told(gateway, left), [200, null, 3, 2])
    assert.deepEqual(left.errors.map((line) => [line['reason'], line['outcome']]), [['headers_timeout', 'failure'], ['headers_timeout', 'failure']])
    assert.deepEqual(left.counts, [[1, 1], [1, 1], [1, 0]])
    await until(() => upstreams[0]?.open.size === 0 && upstreams[1]?.open.size === 0)
    assert.equal(gateway.app.forwarding.view('shop').moves, 2)
  })
})

test('where nobody can take over, the one upstream has all of the time', async (t) => {
  const late: RawHandler = async (socket) => {
    await new Promise((resolve) => { setTimeout(resolve, 700) })
    await send(socket, answer({ body: 'late' }))
  }
  const { gateway, asked } = await row(t, [late, named('second')], { retry: { budget: { ratio: 0, minPerSecond: 0 } }, pool: { timeouts: { headersMs: 0, totalMs: 1000 } } })
  assert.equal((await rawRequest(gateway.port, get)).text(), 'late')
  assert.deepEqual(told(gateway, await leftover(gateway)), [200, null, 1, 0])
  assert.equal(asked()[1], 0)
})

test('a POST has all of the time, as nobody could take it over', async (t) => {
  const late: RawHandler = async (socket, { body }) => {
    await body()
    await new Promise((resolve) => { setTimeout(resolve, 700) })
    await send(socket, answer({ body: 'late' }))
  }
  const { gateway, asked } = await row(t, [late, named('second')], { pool: { timeouts: { headersMs: 0, totalMs: 1000 } } })
  assert.equal((await rawRequest(gateway.port, request('POST', '/', {}, 'x'))).text(), 'late')
  assert.deepEqual(told(gateway, await leftover(gateway)), [200, null, 1, 0])
  assert.equal(asked()[1], 0)
})

test('totalMs covers all attempts and the waits between them', async (t) => {
  await unlessStalled(async () => {
    const { gateway } = await row(t, [resets, stall], { pool: { timeouts: { headersMs: 0, totalMs: 400 } } })
    const before = performance.now()
    const got = await rawRequest(gateway.port, get)
    assert.ok(performance.now() - before >= 395)
    assert.deepEqual([got.status, (got.json() as { reason: string }).reason], [504, 'deadline_exceeded'])
    const left = await leftover(gateway)
    assert.deepEqual(told(gateway, left), [504, 'deadline_exceeded', 2, 1])
    assert.deepEqual(left.errors.map((line) => [line['reason'], line['no_retry']]), [['connection_reset', undefined], ['deadline_exceeded', 'deadline']])
  })
})

test('an exchange that waits in the queue of one upstream is taken by another one before its time is over', async (t) => {
  const { gateway, upstreams, asked } = await row(t, [stall, named('second')], { pool: { connections: { max: 1 }, timeouts: { headersMs: 0, totalMs: 1200 } } })
  const first = rawRequest(gateway.port, request('POST', '/', {}, 'x'))
  await until(() => asked()[0] === 1)
  const got = await rawRequest(gateway.port, request('POST', '/', {}, 'y'))
  assert.deepEqual([got.status, got.text()], [200, 'second:y'])
  assert.equal(upstreams[0]?.requests.length, 1)
  assert.equal((await first).status, 504)
  await gateway.idle()
})

test('an upstream that accepts no connection leaves time for the others, whatever the method', async (t) => {
  await unlessStalled(async () => {
    const second = await rawUpstream(named('second'))
    t.after(() => second.close())
    const pools = {
      shop: {
        health: { enabled: false },
        timeouts: { connectMs: 2000, totalMs: 1000 },
        retry: { retries: 1 },
        upstreams: [{ url: `http://127.0.0.1:${await deafPort(t)}` }, { url: second.url, priority: 1 }]
      }
    }
    const gateway = await startGateway(t, { pools })
    assert.equal((await rawRequest(gateway.port, request('POST', '/', {}, 'x'))).text(), 'second:x')
    const left = await leftover(gateway)
    assert.deepEqual(told(gateway, left), [200, null, 2, 1])
    assert.deepEqual(left.errors.map(({ reason, outcome }) => [reason, outcome]), [['connect_timeout', 'failure']])
  })
})

test('an upstream is told what is left of the time, each attempt less, and a client cannot say it', async (t) => {
  const seen: string[] = []
  const first: RawHandler = (socket, { header }) => {
    seen.push(header('x-time-left') ?? 'none')
    reset(socket)
  }
  const { gateway } = await row(t, [first, tellsTime], { pool: { deadlineHeader: 'X-Time-Left', timeouts: { totalMs: 5000 } }, retry: { backoff: { baseMs: 30, maxMs: 30 } } })
  const got = await rawRequest(gateway.port, request('GET', '/', { 'x-time-left': '99999999', 'X_Time_Left': '99999999' }))
  const [before, after] = [Number(seen[0]), Number(got.text())]
  assert.ok(Number.isInteger(before) && before > 4000 && before <= 5000, String(before))
  assert.ok(Number.isInteger(after) && after <= before && after > 3000, String(after))
  assert.equal(got.header('x-time-left'), undefined)
})

test('where there is no time limit an upstream is told of none', async (t) => {
  const { gateway } = await row(t, [tellsTime], { pool: { deadlineHeader: 'X-Time-Left', timeouts: { totalMs: 0 } } })
  assert.equal((await rawRequest(gateway.port, request('GET', '/', { 'X-Time-Left': '7' }))).text(), 'none')
})

test('without the option a client\'s field of that name is a field like any', async (t) => {
  const { gateway } = await row(t, [tellsTime])
  assert.equal((await rawRequest(gateway.port, request('GET', '/', { 'X-Time-Left': '7' }))).text(), '7')
})
