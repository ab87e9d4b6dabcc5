import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import rateLimit from '@fastify/rate-limit'
import Fastify, { type FastifyInstance } from 'fastify'
import type { RateLimitOptions } from '../../config/schema.ts'
import edge from '../../plugins/edge.ts'
import rateLimits from '../../plugins/rate-limits.ts'

/** An app whose `/` is limited; clients are told apart by X-Forwarded-For. */
async function limited (t: TestContext, options: Partial<RateLimitOptions>, random = () => 0): Promise<FastifyInstance> {
  const app = Fastify() as unknown as FastifyInstance
  t.after(() => app.close())
  await app.register(edge, { trustedProxies: ['127.0.0.1'] })
  await app.register(rateLimits, { random })
  const limit = app.rateLimits.create(options)
  app.all('/', { onRequest: async (request, reply) => await limit(request, reply) ? undefined : reply }, async () => 'served')
  return app
}

const ask = (app: FastifyInstance, client: string, headers: Record<string, string> = {}) => app.inject({ url: '/', headers: { ...client !== '' && { 'x-forwarded-for': client }, ...headers } })
const statuses = async (app: FastifyInstance, asked: Array<[client: string, headers?: Record<string, string>]>) => {
  const seen: number[] = []
  for (const [client, headers] of asked) seen.push((await ask(app, client, headers)).statusCode)
  return seen
}

test('who asks more often than the limit allows gets 429 as a problem document, with the time to wait', async (t) => {
  const app = await limited(t, { max: 2, windowMs: 30000 })
  assert.deepEqual(await statuses(app, [['10.0.0.1'], ['10.0.0.1'], ['10.0.0.2']]), [200, 200, 200])
  const { statusCode, headers, json } = await ask(app, '10.0.0.1', { 'x-request-id': 'r1' })
  const { type, reason, status, requestId } = json()
  assert.deepEqual([statusCode, headers['content-type'], type, reason, status, requestId], [429, 'application/problem+json', 'urn:breakwater:reason:rate_limited', 'rate_limited', 429, 'r1'])
  assert.equal(headers['proxy-status'], 'breakwater; error=http_request_denied; details="rate_limited"')
  assert.deepEqual([headers['retry-after'], headers['ratelimit-limit'], headers['ratelimit-remaining'], headers['ratelimit-reset']], ['30', '2', '0', '30'])
  assert.equal((await ask(app, '10.0.0.2')).headers['ratelimit-limit'], undefined, 'what is served says nothing')
})

test('of many at once as many are served as the limit allows', async (t) => {
  const app = await limited(t, { max: 3 })
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask(app, '10.0.0.1')))
  assert.equal(answers.filter(({ statusCode }) => statusCode === 200).length, 3)
})

test('Retry-After is at least a second, and has jitter', async (t) => {
  for (const [random, least] of [[() => 0, 1], [() => 0.999, 2]] as const) {
    const app = await limited(t, { max: 1, windowMs: 900 }, random)
    const answers = await Promise.all([ask(app, '10.0.0.1'), ask(app, '10.0.0.1')])
    assert.deepEqual(answers.map(({ statusCode, headers }) => [statusCode, headers['retry-after']]), [[200, undefined], [429, String(least)]])
  }
})

test('clients are told apart by their trusted address, those of IPv6 by their network', async (t) => {
  const app = await limited(t, { max: 1 })
  assert.deepEqual(await statuses(app, [['2001:db8::1'], ['2001:db8::ffff'], ['2001:db8:0:1::1'], ['::ffff:10.0.0.1'], ['10.0.0.1'], ['10.0.0.2']]), [200, 429, 200, 200, 429, 200])
  const distrusting = Fastify() as unknown as FastifyInstance
  t.after(() => distrusting.close())
  await distrusting.register(edge)
  await distrusting.register(rateLimits)
  const limit = distrusting.rateLimits.create({ max: 1 })
  distrusting.get('/', { onRequest: async (request, reply) => await limit(request, reply) ? undefined : reply }, async () => 'served')
  assert.deepEqual(await statuses(distrusting, [['10.0.0.1'], ['10.0.0.2']]), [200, 429], 'whatever it says of itself')
})

test('by a header: each value for itself, those without it together, and however long it is', async (t) => {
  const app = await limited(t, { max: 1, by: 'header', name: 'X-Api-Key' })
  const key = (value: string): [string, Record<string, string>] => ['', { 'x-api-key': value }]
  const long = 'k'.repeat(9000)
  assert.deepEqual(await statuses(app, [['10.0.0.1'], ['10.0.0.2'], key('a'), key('a'), key('b'), key(''), key(''), key(`${long}1`), key(`${long}2`), key(`${long}1`)]), [200, 429, 200, 429, 200, 200, 429, 200, 200, 429])
})

test('no more keys are remembered than there may be', async (t) => {
  const app = await limited(t, { max: 1, maxKeys: 2 })
  assert.deepEqual(await statuses(app, [['10.0.0.1'], ['10.0.0.2'], ['10.0.0.1'], ['10.0.0.3'], ['10.0.0.1'], ['10.0.0.2']]), [200, 200, 429, 200, 429, 200])
})

test('the wall clock may be set while a window lasts', async (t) => {
  const app = await limited(t, { max: 1, windowMs: 1000 })
  assert.deepEqual(await statuses(app, [['10.0.0.1'], ['10.0.0.1']]), [200, 429])
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() - 86400000 })
  const start = performance.now()
  let status = 429
  // Each refusal is no longer than the window: with the wall clock it would be a day.
  while (status === 429 && performance.now() - start < 20000) {
    await new Promise((resolve) => { setTimeout(resolve, 20) })
    status = (await ask(app, '10.0.0.1')).statusCode
  }
  assert.equal(status, 200)
})

test('limiters count each for itself', async (t) => {
  const app = Fastify() as unknown as FastifyInstance
  t.after(() => app.close())
  await app.register(edge)
  await app.register(rateLimits)
  for (const url of ['/a', '/b']) {
    const limit = app.rateLimits.create({ max: 1 })
    app.get(url, { onRequest: async (request, reply) => await limit(request, reply) ? undefined : reply }, async () => 'served')
  }
  const seen: number[] = []
  for (const url of ['/a', '/b', '/a', '/b']) seen.push((await app.inject(url)).statusCode)
  assert.deepEqual(seen, [200, 200, 429, 429])
})

test('bad options are told by their paths', async (t) => {
  const app = await limited(t, {})
  assert.throws(() => app.rateLimits.create({ max: 0, by: 'header' }), (error: Error) => error instanceof TypeError && error.message.includes('rateLimit.max: '))
  assert.throws(() => app.rateLimits.create({ by: 'header' }), /rateLimit\.name: is required/)
})

test('an app may use @fastify/rate-limit itself, registered after it', async (t) => {
  const app = await limited(t, { max: 1 })
  await app.register(rateLimit, { global: false })
  app.get('/own', { config: { rateLimit: { max: 1 } } }, async () => 'served')
  assert.deepEqual([(await app.inject('/own')).statusCode, (await app.inject('/own')).statusCode, (await app.inject('/')).statusCode], [200, 429, 200])

  const other = Fastify() as unknown as FastifyInstance
  t.after(() => other.close())
  await other.register(edge)
  await other.register(rateLimit, { global: false })
  await other.register(rateLimits)
  assert.throws(() => other.rateLimits.create({}), /register breakwater-rate-limits before it/)
})
