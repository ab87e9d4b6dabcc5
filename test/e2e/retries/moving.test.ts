import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { stall } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, request } from '../forwarder/support.ts'
import { named, row } from './support.ts'
import type { Row, RowOptions } from './support.ts'

const breaker = { consecutiveFailures: 0, window: { failureRatio: 0 }, stall: { outstanding: 8, factor: 8, minMs: 300 }, openMs: 60000 }

/** Its first upstream was quick until now, and answers nobody any more. */
async function stalled (t: TestContext, { pool = {}, ...options }: RowOptions = {}): Promise<Row> {
  const set = await row(t, [named('first'), named('second')], { ...options, pool: { breaker, timeouts: { headersMs: 30000, totalMs: 60000 }, ...pool } })
  for (let i = 0; i < 40; i++) assert.equal((await rawRequest(set.gateway.port, get)).header('x-upstream'), 'first')
  await set.gateway.skip()
  set.upstreams[0]?.handle(stall)
  return set
}

const times = <T> (count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

test('those who wait at an upstream that falls silent are moved to another one as soon as its circuit opens', async (t) => {
  const { gateway, upstreams } = await stalled(t)
  const got = await Promise.all(times(12, () => rawRequest(gateway.port, get)))
  assert.deepEqual(got.map(({ status, header }) => [status, header('x-upstream')]), times(12, () => [200, 'second']))
  await gateway.idle()
  assert.equal(gateway.breaker(0).state, 'open')
  await until(() => upstreams[0]?.open.size === 0, { what: 'the requests there cancelled' })
  const lines = gateway.lines.all('access').slice(40)
  const [opened] = gateway.app.events.since(0).events.filter(({ cause }) => cause === 'stall')
  const waited = opened?.['requests'] as string[]
  assert.ok(waited.length >= 8 && waited.length <= 10 && new Set(waited).size === waited.length)
  for (const id of waited) assert.equal(lines.find((line) => line['request_id'] === id)?.['attempts'], 2, 'named are those who waited there')
  assert.deepEqual(lines.map(({ status, reason, upstream }) => [status, reason, upstream]), times(12, () => [200, null, gateway.upstream(1).id]))
  const moved = lines.filter(({ attempts }) => attempts === 2).length
  assert.ok(moved >= 8)
  assert.equal(gateway.app.forwarding.view('shop').moves, moved)
  assert.deepEqual(new Set(gateway.lines.all('upstream_error').map(({ outcome }) => outcome)), new Set(['cancelled']), 'as the metrics and the record have it')
  const record = await until(() => gateway.app.recorder.find(waited[0] as string))
  assert.match(record.explanation, /^Answered with 200 after .* It took 2 attempts: \S+: no answer after .* \(moved away: the upstream answers nobody any more\)\.$/)
})

test('what may not be repeated waits on, and so does what the budget does not pay for', async (t) => {
  const { gateway, upstreams, asked } = await stalled(t, { retry: { budget: { ratio: 0, minPerSecond: 0.2 } }, pool: { timeouts: { headersMs: 3000, totalMs: 60000 } } })
  const clients = await Promise.all(times(12, async () => {
    const client = await rawConnect(gateway.port)
    await client.write(get)
    return client
  }))
  const poster = await rawConnect(gateway.port)
  await poster.write(request('POST', '/', {}, 'x'))
  await until(() => gateway.breaker(0).state === 'open')
  await until(() => asked()[1] === 2)
  const before = upstreams[0]?.requests.length ?? 0
  const first = await Promise.all(clients.map((client) => client.readResponse()))
  assert.equal(first.filter(({ status }) => status === 200).length, 2)
  assert.equal(first.filter(({ status }) => status === 504).length, 10)
  assert.equal((await poster.readResponse('POST')).status, 504)
  for (const client of [...clients, poster]) client.destroy()
  await gateway.idle()
  assert.deepEqual([upstreams[0]?.requests.length, asked()[1]], [before, 2])
})

test('without retries, or where the breaker only observes, nobody is moved', async (t) => {
  for (const options of [{ retry: { retries: 0 } }, { pool: { breaker: { ...breaker, mode: 'observe' } } }]) {
    const { gateway, asked } = await stalled(t, { ...options, pool: { timeouts: { headersMs: 1500, totalMs: 60000 }, ...options.pool }, ...('retry' in options ? {} : { retry: { retries: 1, budget: { ratio: 0, minPerSecond: 0 } } }) })
    const pending = Promise.all(times(10, () => rawRequest(gateway.port, get)))
    await until(() => gateway.breaker(0).state === 'open' || gateway.lines.find('upstream_error') !== undefined)
    assert.deepEqual([...new Set((await pending).map(({ status }) => status))], [504])
    assert.equal(asked()[1], 0)
    assert.equal(gateway.app.forwarding.view('shop').moves, 0)
  }
})

test('clients that leave while others are moved leave nothing behind', async (t) => {
  const { gateway } = await stalled(t)
  const clients = await Promise.all(times(12, async () => {
    const client = await rawConnect(gateway.port)
    await client.write(get)
    return client
  }))
  await until(() => gateway.breaker(0).state === 'open')
  for (const client of clients.slice(0, 6)) client.reset()
  const answers = await Promise.all(clients.slice(6).map((client) => client.readResponse()))
  assert.deepEqual(answers.map(({ status }) => status), times(6, () => 200))
  for (const client of clients) client.destroy()
  await gateway.idle()
})
