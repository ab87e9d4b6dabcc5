import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import { Counter, Registry } from 'prom-client'
import metrics, { type MetricsPluginOptions } from '../../../plugins/metrics.ts'
import { exposition, Expositions } from '../../../plugins/metrics/exposition.ts'
import { Family, register } from '../../../plugins/metrics/family.ts'
import edge from '../../../plugins/edge.ts'
import observation from '../../../plugins/observation.ts'
import adminRoutes from '../../../routes/admin/index.ts'
import { inFront, request } from '../../e2e/forwarder/support.ts'
import { named, refuses, row } from '../../e2e/retries/support.ts'
import { pageOf } from '../../docs/pages.ts'
import { readExposition, type ReadFamily } from '../../support/exposition.ts'
import { answer, answering, reset, send } from '../../support/faulty-upstream.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { counted, scrape } from './support.ts'

/** An app with metrics, and nothing of ours that it does not need. */
async function alone (t: TestContext, options: MetricsPluginOptions = {}): Promise<FastifyInstance> {
  const app = Fastify() as unknown as FastifyInstance
  t.after(() => app.close())
  await app.register(edge)
  await app.register(observation)
  await app.register(metrics, options)
  app.get('/', async () => 'x')
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app
}

/** Resolves when the request has been counted. */
async function ask (app: FastifyInstance): Promise<void> {
  const ended = new Promise<void>((resolve) => { app.observers.add({ exchangeEnded: () => { resolve() } }) })
  await rawRequest((app.server.address() as AddressInfo).port, request())
  await ended
}

const labelsOf = ({ samples }: ReadFamily): string[] => Object.keys(samples[0]?.labels ?? {}).filter((name) => name !== 'le')

test('docs/plugins/metrics.md: its table has every name, type and label that is exposed after traffic, and no other', async (t) => {
  const { gateway } = await row(t, [refuses, named('second')], {
    pools: { found: { health: { enabled: false }, discovery: { source: 'mine' } } },
    extend: (app) => { app.discovery.provide('mine', { start: (report) => { report([{ url: 'http://10.0.0.1:80' }]) }, stop: () => {} }) },
    routes: [{ path: '/*', pool: 'shop' }],
    // As the listener has them with TLS.
    before: (app) => { app.addHook('onReady', async () => { Object.assign(app.listener, { certificates: () => [{ file: '/etc/a.pem', notAfter: '2030-01-01T00:00:00.000Z' }] }) }) }
  })
  for (const path of ['/a', '/../b']) await rawRequest(gateway.port, request('GET', path))
  await gateway.idle()
  const told = [...pageOf('docs/plugins/metrics.md').text.matchAll(/^\| `(\w+)` \| (\w+) \|([^|]*)\|/gm)]
    .map(([, name, type, labels = '']) => [name, type, [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label).join()])
  const families = await scrape(gateway)
  assert.deepEqual(Array.from(families.values(), (family) => [family.name, family.type, labelsOf(family).join()]).toSorted(), told.toSorted())
  for (const { name, samples } of families.values()) assert.ok(samples.length > 0, `${name} has no series`)
})

test('both formats hold to their grammar, one after the other and under traffic, and say the same', async (t) => {
  const { gateway } = await inFront(t, (socket, { target }) => target === '/reset' ? reset(socket) : send(socket, answer({ body: 'x' })))
  const state = { over: false }
  const traffic = Promise.all([0, 1, 2, 3].map(async (client) => {
    for (let i = 0; i < 25; i++) await rawRequest(gateway.port, request('GET', client === 0 && i % 5 === 0 ? '/reset' : `/${i}`))
  })).finally(() => { state.over = true })
  let last = 0
  while (!state.over) {
    for (const format of ['text', 'openmetrics'] as const) {
      const families = await scrape(gateway, format)
      const total = families.get(format === 'text' ? 'edge_requests_total' : 'edge_requests')?.samples.reduce((sum, { value }) => sum + value, 0) ?? 0
      assert.ok(total >= last, 'a counter goes only up')
      last = total
    }
    await new Promise((resolve) => { setImmediate(resolve) })
  }
  await traffic
  await gateway.idle()
  const [text, open] = [await scrape(gateway), await scrape(gateway, 'openmetrics')]
  assert.deepEqual(await counted(gateway, 'edge_requests_total'), { 'route=/*,method=GET,code=200': 95, 'route=/*,method=GET,code=502': 5 })
  const ours = (families: ReadonlyMap<string, ReadFamily>): object[] =>
    Array.from(families.values()).filter(({ name }) => name.startsWith('edge_') && !name.startsWith('edge_event_loop')).flatMap(({ samples }) => samples.map(({ name, labels, value }) => ({ name, labels, value })))
  assert.deepEqual(ours(open), ours(text))
})

test('exemplars name a request that was counted there', async (t) => {
  const { gateway } = await inFront(t, reset, { server: { trustedProxies: ['127.0.0.1'] } })
  await rawRequest(gateway.port, request('GET', '/', { 'X-Request-Id': 'one-1' }))
  await gateway.idle()
  const families = await scrape(gateway, 'openmetrics')
  for (const name of ['edge_request_duration_seconds', 'edge_upstream_duration_seconds', 'edge_request_failures', 'edge_upstream_errors']) {
    const [exemplar, ...others] = (families.get(name)?.samples ?? []).flatMap((sample) => sample.exemplar ?? [])
    assert.deepEqual([exemplar?.labels, others], [{ request_id: 'one-1' }, []], name)
    assert.ok(Math.abs((exemplar?.timestamp ?? 0) - Date.now() / 1000) < 60)
  }
  // Longer than the format takes.
  await rawRequest(gateway.port, request('GET', '/', { 'X-Request-Id': 'x'.repeat(128) }))
  await gateway.idle()
  const again = await scrape(gateway, 'openmetrics')
  assert.equal(again.get('edge_request_failures')?.samples[0]?.exemplar, null)
})

test('without exemplars there are none, and buckets are those of the options', async (t) => {
  const app = await alone(t, { exemplars: false, durationBuckets: [0.5, 2], process: false })
  await ask(app)
  const families = await scrape({ app }, 'openmetrics')
  assert.deepEqual(families.get('edge_request_duration_seconds')?.samples.map(({ labels: { le }, exemplar }) => [le, exemplar]), [['0.5', null], ['2.0', null], ['+Inf', null], [undefined, null], [undefined, null]])
  assert.deepEqual([...families.keys()].filter((name) => /^(?:process|nodejs)_/.test(name)), [])
})

test('options that are wrong are told by their paths', async () => {
  const app = Fastify()
  app.register(edge).register(observation).register(metrics, { durationBuckets: [1, 1] })
  await assert.rejects(async () => { await app.ready() }, /metrics\.durationBuckets\[1\]: must be above the one before \(1\), got 1/)
})

test('two apps in a process count for themselves, and metrics of the app stand beside ours', async (t) => {
  const apps = [await alone(t), await alone(t)] as const
  const mine = new Counter({ name: 'mine_total', help: 'Mine.', labelNames: ['a'], registers: [apps[0].edgeMetrics.registry] })
  mine.inc({ a: 'b"\\\n' })
  await ask(apps[0])
  assert.deepEqual([await counted({ app: apps[0] }, 'edge_requests_total'), await counted({ app: apps[1] }, 'edge_requests_total')], [{ 'route=none,method=GET,code=200': 1 }, {}])
  assert.deepEqual((await scrape({ app: apps[0] }, 'openmetrics')).get('mine')?.samples.map(({ name, labels, value }) => [name, labels['a'], value]), [['mine_total', 'b"\\\n', 1]])
  assert.deepEqual(await counted({ app: apps[0] }, 'mine_total'), { 'a=b"\\\n': 1 })
  assert.equal((await scrape({ app: apps[1] })).has('mine_total'), false)
})

test('others have their turn while the series of a large table are written, and these are what prom-client writes', async () => {
  for (const count of [0, 1, 999, 1000, 1001, 3001]) {
    const registry = new Registry()
    const samples = (name: string) => () => Array.from({ length: count }, (_, i) => ({ labels: { route: `/${i}"`, le: '1.0' }, value: i, ...i % 2 === 0 && { metricName: `${name}_bucket` } }))
    register(registry, [new Family('counter', 'a_total', 'A\nb.', samples('a')), new Family('histogram', 'b', 'B.', samples('b'))])
    const mine = new Counter({ name: 'mine_total', help: 'Mine.', registers: [registry] })
    mine.inc()
    let turns = 0
    let over = false
    const turn = (): void => { if (!over) setImmediate(() => { turns++; turn() }) }
    turn()
    const text = await exposition(registry, 'text')
    const turnsOfText = turns
    const open = await exposition(registry, 'openmetrics')
    over = true
    assert.equal(text, await registry.metrics())
    // Each family is written on its own, in pieces of a thousand.
    assert.ok(turnsOfText >= 2 * Math.max(0, Math.ceil(count / 1000) - 1), `${turnsOfText} turns for ${count}`)
    // It takes the names of the counters for its own from now on.
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never)
    assert.equal(open, await registry.metrics())
  }
})

test('however many ask at once, two expositions are written, and the later has what was counted before they asked', async () => {
  const registry = new Registry()
  let reads = 0
  let failing = false
  register(registry, [new Family('gauge', 'a', 'A.', () => {
    reads++
    if (failing) throw new Error('unreadable')
    return Array.from({ length: 2500 }, (_, i) => ({ labels: { i: String(i) }, value: reads }))
  })])
  const expositions = new Expositions(registry, 'text')
  const first = expositions.expose()
  const others = Array.from({ length: 50 }, () => expositions.expose())
  assert.match(await first, / 1\n$/)
  for (const text of await Promise.all(others)) assert.match(text, / 2\n$/)
  assert.equal(reads, 2)
  // One that fails harms nobody who comes later.
  failing = true
  const fails = assert.rejects(expositions.expose(), /unreadable/)
  const behind = expositions.expose()
  failing = false
  await fails
  assert.match(await behind, / 4\n$/)
})

test('what cannot be read of the process is left out, and the rest is told', async (t) => {
  const { gateway } = await inFront(t, answering())
  const fails = (): never => { throw Object.assign(new Error('too many open files'), { code: 'EMFILE' }) }
  t.mock.method(process.memoryUsage, 'rss', fails)
  t.mock.method(process, 'cpuUsage', fails)
  const families = await scrape(gateway)
  assert.deepEqual(['process_resident_memory_bytes', 'process_cpu_seconds_total'].map((name) => families.get(name)?.samples), [[], []])
  assert.equal(families.get('edge_in_flight')?.samples.length, 1)
})

test('GET /metrics: OpenMetrics where Accept prefers it, with the token where there is one', async (t) => {
  const { gateway } = await inFront(t, answering())
  const admin = Fastify() as unknown as FastifyInstance
  t.after(() => admin.close())
  await admin.register(adminRoutes, { source: gateway.app, token: 'secret' })
  const authorization = 'Bearer secret'
  assert.equal((await admin.inject('/metrics')).statusCode, 401)
  const open = 'application/openmetrics-text; version=1.0.0; charset=utf-8'
  const text = 'text/plain; version=0.0.4; charset=utf-8'
  for (const [accept, type] of [
    [undefined, text],
    ['*/*', text],
    ['text/plain', text],
    ['application/json', text],
    ['application/openmetrics-text', open],
    ['application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.1', open],
    ['application/openmetrics-text;version=1.0.0;q=0.2,text/plain;version=0.0.4;q=0.3', text],
    ['application/openmetrics-text;version=2.0.0,text/plain;q=0.5', text],
    ['application/openmetrics-text;q=0', text]
  ] as const) {
    const response = await admin.inject({ url: '/metrics', headers: { authorization, ...accept !== undefined && { accept } } })
    assert.deepEqual([response.statusCode, response.headers['content-type']], [200, type], accept)
    readExposition(response.body, type === open ? 'openmetrics' : 'text')
  }
  const head = await admin.inject({ method: 'HEAD', url: '/metrics', headers: { authorization } })
  assert.deepEqual([head.statusCode, head.body], [200, ''])
})
