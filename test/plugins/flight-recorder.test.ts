/** What is kept, what is not, and what it takes. */
import assert from 'node:assert/strict'
import { Agent, get as httpGet } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import Fastify from 'fastify'
import edge from '../../plugins/edge.ts'
import flightRecorder from '../../plugins/flight-recorder.ts'
import observation from '../../plugins/observation.ts'
import { answering, answer, rawUpstream, reset, send } from '../support/faulty-upstream.ts'
import { startGateway } from '../support/gateway.ts'
import { rawRequest } from '../support/raw-client.ts'
import { until } from '../support/wait.ts'
import { get, request } from '../e2e/forwarder/support.ts'
import { recordFor, recordOf, scene } from '../e2e/explain/support.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

test('an ordinary exchange is not kept, and it is said why there is no record of it', async (t) => {
  const { gateway } = await scene(t, answering())
  gateway.app.recorder.configure({ sampleRatio: 0 })
  const got = await rawRequest(gateway.port, get)
  const id = got.header('x-request-id') ?? ''
  await until(() => gateway.lines.all('access').length === 1)
  assert.equal(gateway.app.recorder.find(id), undefined)
  assert.match(gateway.app.recorder.whyMissing(id), /^it was answered well, in less than 1000 ms and at the first attempt, and is not in the sample \(0 of such requests\)$/)
  assert.match(gateway.app.recorder.whyMissing('nobody-1'), /^no request of this id has ended in this process since \d{4}-/)
  gateway.app.recorder.configure({ enabled: false })
  assert.match(gateway.app.recorder.whyMissing(id), /off/)
})

test('a sample of the others is kept', async (t) => {
  const { gateway } = await scene(t, answering({ body: 'hello' }))
  gateway.app.recorder.configure({ sampleRatio: 1 })
  const record = await recordOf(gateway, await rawRequest(gateway.port, request('GET', '/a/b?token=secret', { Authorization: 'Bearer secret' })))
  assert.deepEqual([record.kept, record.method, record.path, record.status, record.reason, record.bytes, record.route, record.match?.by], ['sample', 'GET', '/a/b', 200, null, 5, '/*', 'default'])
  assert.deepEqual(record.attempts.map(({ outcome, status, permit, kind, noRetry }) => [outcome, status, permit, kind, noRetry]), [['success', 200, 'closed', 'first', null]])
  const { received, admitted, picked, connect, sent, head, end } = record.timeline
  const steps = [received, admitted, picked, sent, head, end]
  assert.ok(steps.every((at, i) => at !== null && (i < 2 || at >= (steps[i - 1] ?? 0))), JSON.stringify(record.timeline))
  assert.ok(connect !== null)
  assert.match(record.explanation, /^Answered with 200 after [\d.]+ ms\.$/)
  const again = await recordOf(gateway, await rawRequest(gateway.port, get))
  assert.equal(again.timeline.connect, null)
  assert.doesNotMatch(JSON.stringify(gateway.app.recorder.list()), /secret|token|shop\.example/i)
})

test('a record that cannot be made ends nothing but itself', async (t) => {
  const { gateway } = await scene(t, answering())
  gateway.app.recorder.configure({ sampleRatio: 1 })
  const leave = gateway.app.observers.add({
    exchangeEnded: ({ exchange }) => { Object.defineProperty(exchange, 'admittedMs', { get () { throw new Error('broken') } }) }
  })
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  await until(() => gateway.lines.all('listener_failed').some(({ source }) => source === 'flight-recorder'))
  leave()
  assert.equal((await recordOf(gateway, await rawRequest(gateway.port, get))).status, 200)
})

test('a slow one is kept and says where the time went', async (t) => {
  const { gateway } = await scene(t, async (socket) => { setTimeout(() => { void send(socket, answer()) }, 60) })
  gateway.app.recorder.configure({ sampleRatio: 0, slowMs: 50 })
  const record = await recordOf(gateway, await rawRequest(gateway.port, get))
  assert.equal(record.kept, 'slow')
  assert.match(record.explanation, /^Answered with 200 after \d+ ms\. That is slow: \d+ ms of it for the head of the answer\.$/)
})

test('an upstream\'s own 5xx is kept as failed, and told apart from an answer of ours', async (t) => {
  const { gateway } = await scene(t, answering({ status: 500 }))
  const record = await recordOf(gateway, await rawRequest(gateway.port, get))
  assert.deepEqual([record.kept, record.reason, record.status], ['failed', null, 500])
  assert.match(record.explanation, /^Answered with 500 after [\d.]+ ms\. That is the upstream's own answer \(127\.0\.0\.1:\d+\), and counts as a failure\. Retries are off\.$/)
})

test('a retried one tells both attempts, who was used, and how long it waited', async (t) => {
  const bad = await rawUpstream((socket) => { reset(socket) })
  t.after(() => bad.close())
  const good = await rawUpstream(answering())
  t.after(() => good.close())
  const gateway = await startGateway(t, { upstreams: [bad.url, good.url], pool: { retry: { retries: 1, backoff: { baseMs: 1, maxMs: 1 } } } })
  gateway.app.recorder.configure({ sampleRatio: 0 })
  for (let i = 0; i < 2; i++) await rawRequest(gateway.port, get)
  const [record] = await until(() => gateway.app.recorder.list().length > 0 ? gateway.app.recorder.list() : null)
  assert.ok(record !== undefined)
  assert.deepEqual(record.attempts.map(({ kind, outcome, reason }) => [kind, outcome, reason]), [['first', 'failure', 'connection_reset'], ['retry', 'success', null]])
  assert.equal(record.kept, 'retried')
  assert.ok((record.attempts[0]?.retryInMs ?? -1) >= 0)
  assert.deepEqual(record.candidates.map(({ used, why }) => [used, why]), [[true, 'picked'], [true, 'picked']])
  assert.match(record.explanation, /^Answered with 200 after [\d.]+ ms\. It took 2 attempts: 127\.0\.0\.1:\d+: connection_reset after /)
})

test('every member of the pool is among the candidates, with why it was passed over', async (t) => {
  const upstream = await rawUpstream(answering())
  t.after(() => upstream.close())
  const members = [{ url: upstream.url }, { url: 'http://127.0.0.1:7', weight: 0 }, { url: 'http://127.0.0.1:8' }, { url: 'http://127.0.0.1:9', priority: 1 }]
  const gateway = await startGateway(t, { pools: { shop: { upstreams: members, health: { enabled: false }, maxInFlightPerUpstream: 5 } } })
  gateway.app.pools.setDraining('shop', '127.0.0.1:8', true, { reason: 'new kernel' })
  gateway.app.recorder.configure({ sampleRatio: 1 })
  const { candidates } = await recordOf(gateway, await rawRequest(gateway.port, get))
  assert.deepEqual(candidates.map(({ why, used }) => [why, used]), [['picked', true], ['weight_zero', false], ['draining', false], ['not_needed', false]])
  assert.match(candidates[2]?.detail ?? '', /^drained since \S+: new kernel$/)
})

test('one that was passed over for capacity while another had room says by which numbers', async (t) => {
  const { holding } = await import('../e2e/explain/support.ts')
  const upstreams = await Promise.all([rawUpstream(holding), rawUpstream(holding)])
  for (const each of upstreams) t.after(() => each.close())
  const gateway = await startGateway(t, { upstreams: upstreams.map(({ url }) => url), pool: { maxInFlightPerUpstream: 1, timeouts: { headersMs: 300 }, balancer: 'hash', hash: { by: 'path' } } })
  const [one, two] = await Promise.all([rawRequest(gateway.port, get), rawRequest(gateway.port, get)])
  const records = [await recordOf(gateway, one), await recordOf(gateway, two)]
  const passed = records.flatMap(({ candidates }) => candidates).filter(({ why }) => why === 'capacity')
  assert.deepEqual(passed.map(({ detail, used }) => [detail, used]), [['1 of 1 exchange in flight', false]])
})

test('records are listed by reason, pool, upstream and time, the newest first', async (t) => {
  const { gateway } = await scene(t, (socket, { target }) => target === '/bad' ? reset(socket) : send(socket, answer()))
  const { recorder } = gateway.app
  recorder.configure({ sampleRatio: 1 })
  for (const path of ['/1', '/bad', '/3']) await rawRequest(gateway.port, request('GET', path))
  await until(() => recorder.list().length === 3)
  assert.deepEqual(recorder.list().map(({ path }) => path), ['/3', '/bad', '/1'])
  assert.deepEqual(recorder.list({ limit: 1 }).map(({ path }) => path), ['/3'])
  assert.deepEqual(recorder.list({ reason: 'connection_reset' }).map(({ path }) => path), ['/bad'])
  assert.equal(recorder.list({ pool: 'other' }).length, 0)
  assert.equal(recorder.list({ pool: 'shop' }).length, 3)
  assert.equal(recorder.list({ upstream: gateway.upstream().id }).length, 3)
  assert.equal(recorder.list({ upstream: '127.0.0.1:1' }).length, 0)
  assert.equal(recorder.list({ since: Date.now() + 1000 }).length, 0)
})

test('a flood of failures takes no more memory than it may, and what had to go is told from what never was', async (t) => {
  const { gateway } = await scene(t, answering({ status: 500 }))
  const { recorder } = gateway.app
  const maxBytes = 2 * 1048576
  recorder.configure({ maxBytes })
  const first = await recordOf(gateway, await rawRequest(gateway.port, get))
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => { agent.destroy() })
  const flood = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      await new Promise((resolve, reject) => {
        httpGet({ port: gateway.port, agent, path: `/${'x'.repeat(1500)}?${'secret'.repeat(1000)}` }, (response) => { response.resume().on('end', resolve) }).on('error', reject)
      })
      gateway.lines.lines.length = 0
    }
  }
  gateway.app.breakers.get('shop', gateway.upstream().id).force('open', 600000, 'a drill')
  await flood(500)
  gc()
  const before = process.memoryUsage().heapUsed
  await flood(5000)
  gc()
  const grown = process.memoryUsage().heapUsed - before
  assert.ok(recorder.view().bytes <= maxBytes && recorder.view().bytes > maxBytes * 0.9, JSON.stringify(recorder.view()))
  // They would take nine megabytes. Code that is compiled meanwhile counts too.
  assert.ok(grown < maxBytes + 3 * 1048576, `${grown} bytes of heap`)
  assert.equal(recorder.find(first.requestId), undefined)
  assert.match(recorder.whyMissing(first.requestId), /^its record has made room for newer ones: the oldest that is kept is of \d{4}-\S+ \(recorder\.maxBytes is 2097152\)$/)
  const [refused] = recorder.list({ limit: 1 })
  assert.match(refused?.explanation ?? '', /: breaker forced open for [\d.]+ m?s \(a drill\), admits again in /)
  recorder.configure({ enabled: false })
  recorder.configure({ maxBytes })
  assert.equal(recorder.whyMissing(refused?.requestId ?? ''), 'its record was given up, and none is kept now (recorder.maxBytes is 2097152)')
})

test('it works alone, with what there is', async (t) => {
  const app = Fastify()
  t.after(() => app.close())
  await app.register(edge)
  await app.register(observation)
  await app.register(flightRecorder, { sampleRatio: 1 })
  app.get('/hello', async () => 'hello')
  await app.listen({ port: 0, host: '127.0.0.1' })
  const got = await rawRequest((app.server.address() as AddressInfo).port, request('GET', '/hello'))
  const record = await until(() => app.recorder.find(got.header('x-request-id') ?? ''))
  assert.deepEqual([record.status, record.gate, record.readings, record.candidates, record.match], [200, null, null, [], null])
  assert.throws(() => { app.recorder.configure({ maxBytes: 1 }) }, /recorder\.maxBytes/)
})

test('a reload changes its options, and switching it off forgets all', async (t) => {
  const { gateway } = await scene(t, (socket) => { reset(socket) })
  const { app } = gateway
  await rawRequest(gateway.port, get)
  await recordFor(gateway, 'connection_reset')
  assert.equal((await app.configuration.apply({ ...app.configuration.current, recorder: { slowMs: 77 } })).valid, true)
  assert.deepEqual([app.recorder.view().slowMs, app.recorder.view().records], [77, 1])
  await app.configuration.apply({ ...app.configuration.current, recorder: { enabled: false } })
  await rawRequest(gateway.port, get)
  assert.deepEqual([app.recorder.view().enabled, app.recorder.view().records], [false, 0])
})
