/** What happened, as one story each: transitions with the requests that they are for, shedding, spent budgets, restarts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, answering, rawUpstream, reset, send } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import { closedPort } from '../../support/ports.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get } from '../forwarder/support.ts'
import { holding, recordNamed, recordOf, scene } from './support.ts'

test('a transition names the requests that failed, and each of them has a record', async (t) => {
  const { gateway } = await scene(t, (socket, { total }) => total === 2 ? send(socket, answer()) : reset(socket), { pool: { breaker: { consecutiveFailures: 3, window: { failureRatio: 0 } } } })
  const ids: string[] = []
  for (let i = 0; i < 5; i++) ids.push(String((await rawRequest(gateway.port, get)).header('x-request-id')))
  const event = await until(() => gateway.app.events.since(0).events.find(({ type }) => type === 'breaker_transition'))
  assert.deepEqual([event['to'], event['cause'], event['requests']], ['open', 'consecutive_failures', ids.slice(2)])
  assert.deepEqual(event['evidence'], { total: 5, failures: 4, ratio: 0.8, consecutiveFailures: 3 })
  for (const id of event['requests'] as string[]) assert.equal((await recordNamed(gateway, id)).reason, 'connection_reset')
  const [line] = gateway.lines.all('breaker_transition')
  assert.deepEqual(line?.['requests'], ids.slice(2))
})

test('a probe that fails is named; an operator\'s act names nobody', async (t) => {
  const { gateway } = await scene(t, (socket) => { reset(socket) }, { pool: { breaker: { consecutiveFailures: 1, openMs: 30, jitter: 0, halfOpen: { probes: 1 } } } })
  await rawRequest(gateway.port, get)
  const probe = await until(async () => {
    const got = await rawRequest(gateway.port, get)
    return got.status === 502 ? got : null
  })
  const transitions = gateway.app.events.since(0).events.filter(({ type }) => type === 'breaker_transition')
  assert.deepEqual(transitions.find(({ cause }) => cause === 'probes_failed')?.['requests'], [probe.header('x-request-id')])
  assert.deepEqual(transitions.find(({ cause }) => cause === 'open_elapsed')?.['requests'], [])
  const failed = transitions.find(({ cause }) => cause === 'probes_failed')
  assert.deepEqual([failed?.['failure'], failed?.['explanation']], ['connection_reset', 'Opened again after its probe failed (connection_reset), for 60 ms.'])
  assert.match(gateway.breaker().explanation, /^Open after 1 failure in a row \(consecutiveFailures 1; last: connection_reset\), then after its probe failed \(connection_reset\): /)
  const told: unknown[] = []
  gateway.app.breakers.on('transition', ({ cause, requests }) => { told.push([cause, requests]) })
  gateway.app.breakers.find('shop', gateway.upstream().id)?.reset('a drill')
  assert.deepEqual(told, [['reset', []]])
})

test('an answer that is a failure is named by its status, and a later refusal is explained by it', async (t) => {
  const { gateway } = await scene(t, answering({ status: 503 }), { pool: { breaker: { consecutiveFailures: 0, openMs: 30000, window: { minimumRequests: 2, failureRatio: 0.5, seconds: 30 } } } })
  for (let i = 0; i < 2; i++) await rawRequest(gateway.port, get)
  const event = await until(() => gateway.app.events.since(0).events.find(({ type }) => type === 'breaker_transition'))
  assert.equal(event['failure'], 'status_503')
  const why = 'after 2 of 2 requests failed within 30 s (failureRatio 0.5, from 2 requests on; last: status_503)'
  assert.ok(String(event['explanation']).startsWith(`Opened ${why}, for `), String(event['explanation']))
  assert.ok(Number.isInteger(event['openForMs']))
  assert.ok((await recordOf(gateway, await rawRequest(gateway.port, get))).explanation.includes(` ${why}, admits again in `))
})

test('a first check that fails is in the journal: why nothing goes to an upstream that was never healthy', async (t) => {
  const port = await closedPort(t)
  const gateway = await startGateway(t, { pools: { shop: { upstreams: [{ url: `http://127.0.0.1:${port}` }], health: { intervalMs: 20 } } } })
  await until(() => (gateway.app.health.get('shop', `127.0.0.1:${port}`)?.streak ?? 0) > 2)
  const [event, ...others] = gateway.app.events.since(0).events.filter(({ type }) => type.startsWith('health_'))
  assert.deepEqual([event?.type, event?.['pool'], event?.['upstream'], event?.['cause'], others], ['health_first_check_failed', 'shop', `127.0.0.1:${port}`, 'connect_refused', []])
  assert.match(String(event?.['error']), /ECONNREFUSED/)
})

test('a time of shedding is one story with a begin and an end, however many requests there were', async (t) => {
  const { gateway, upstream } = await scene(t, holding, { shedding: { maxInFlight: 1 } })
  const first = await rawConnect(gateway.port)
  t.after(() => { first.destroy() })
  await first.write(get)
  await until(() => upstream.requests.length === 1)
  for (let i = 0; i < 20; i++) assert.equal((await rawRequest(gateway.port, get)).status, 503)
  const { episode } = gateway.app.shedding.view()
  assert.deepEqual([episode?.total, episode?.reasons], [20, { shed_capacity: 20 }])
  const ended = await until(() => gateway.app.events.since(0).events.find(({ type }) => type === 'shed_ended'), { timeoutMs: 15000 })
  const [begun, ...others] = gateway.app.events.since(0).events.filter(({ type }) => type === 'shed_begun')
  assert.ok([10 * Number(begun?.['eventLoopDelayMs']), 1000 * Number(begun?.['eventLoopUtilization'])].every((digits) => Math.abs(digits - Math.round(digits)) < 1e-6), 'as people read them')
  assert.deepEqual([begun?.['reason'], begun?.['priority'], begun?.['inFlight'], begun?.['maxInFlight'], others], ['shed_capacity', 'normal', 1, 1, []])
  assert.deepEqual([ended['total'], ended['reasons'], ended['since']], [20, { shed_capacity: 20 }, episode?.since])
  assert.ok((ended['peakPerSecond'] as number) > 1 && (ended['lastedMs'] as number) >= 0)
  assert.equal(gateway.app.shedding.view().episode, null)
  for (const name of ['shed_begun', 'shed_ended']) assert.equal(gateway.lines.all(name).length, 1, name)
})

test('a retry budget that is spent is told once', async (t) => {
  const bad = await rawUpstream((socket) => { reset(socket) })
  t.after(() => bad.close())
  const other = await rawUpstream(answering())
  t.after(() => other.close())
  const gateway = await startGateway(t, { upstreams: [bad.url, other.url], pool: { retry: { retries: 1, budget: { ratio: 0, minPerSecond: 0 } } } })
  for (let i = 0; i < 8; i++) await rawRequest(gateway.port, get)
  const event = await until(() => gateway.app.events.since(0).events.find(({ type }) => type === 'retry_budget_spent'))
  assert.deepEqual([event['pool'], event['taken'], event['allowed']], ['shop', 0, 0])
  assert.equal(gateway.app.events.since(0).events.filter(({ type }) => type === 'retry_budget_spent').length, 1)
  const record = await until(() => gateway.app.recorder.list({ kept: 'failed' })[0])
  assert.match(record.explanation, /No further attempt: the retry budget of the pool was spent \(0 of 0 taken, by \d requests? in 10 s\)\.$/)
})

test('the start and the way down are in the journal', async (t) => {
  const { gateway } = await scene(t, answering())
  const told: string[] = []
  gateway.app.events.subscribe(({ type }) => { told.push(type) })
  assert.ok(gateway.app.events.since(0).events.some(({ type }) => type === 'proxy_started'))
  await gateway.close()
  assert.ok(told.includes('shutdown_started'))
})
