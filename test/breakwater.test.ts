import { equal, ok, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { startUpstream } from '../bin/scripted-upstream.ts'
import { breakwater, ConfigError } from '../index.ts'
import { until } from './support/wait.ts'

test('the gateway takes what a file would say, and fills in the defaults', async (t) => {
  const upstream = await startUpstream({ name: 'a' })
  t.after(() => upstream.close())
  const app = Fastify()
  t.after(() => app.close())
  await app.register(breakwater, { admin: { port: 0 }, pools: { shop: { upstreams: [{ url: upstream.url }] } } })
  await app.ready()
  await until(() => app.readiness().ready, { what: 'readiness' })
  const answer = await app.inject('/x')
  equal(answer.statusCode, 200)
  ok(answer.headers['x-request-id'])
})

test('a wrong configuration in code is refused with everything that is wrong', async () => {
  const app = Fastify()
  await rejects(async () => { await app.register(breakwater, { pools: { shop: { upstreams: [{ url: 'ftp://x' }], healt: {} } } }) }, (error: unknown) =>
    error instanceof ConfigError && error.errors.length === 2 && error.errors.some(({ path }) => path === 'pools.shop.healt'))
})
