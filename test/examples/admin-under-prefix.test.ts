import assert from 'node:assert/strict'
import { test } from 'node:test'
import { build } from '../../examples/admin-under-prefix.ts'
import { until } from '../support/wait.ts'
import { ask, listen, post, upstream } from './support.ts'

const token = 'the-token-of-the-example'
const authorization = `Bearer ${token}`

test('examples/admin-under-prefix: the routes are under /ops and want the token; the probes do not', async (t) => {
  const one = await upstream(t)
  const app = await build(token, [one.url])
  const url = await listen(t, app)
  await until(() => app.health.list().every(({ healthy }) => healthy), { what: 'a healthy upstream' })
  const without = await ask(`${url}/ops/breakers`)
  assert.equal(without.status, 401)
  assert.equal(without.headers['www-authenticate'], 'Bearer')
  assert.equal((await ask(`${url}/ops/breakers`, { headers: { authorization: 'Bearer wrong' } })).status, 401)
  assert.equal((await ask(`${url}/ops/readyz`)).status, 204)
  const { breakers } = (await ask(`${url}/ops/breakers`, { headers: { authorization } })).json()
  assert.equal(breakers[0].upstream, `127.0.0.1:${one.port}`)
  assert.equal((await ask(`${url}/shop/hello`)).json().url, '/hello')
})

test('examples/admin-under-prefix: a drained upstream gets no more requests until it is ready again, and the journal tells of it', async (t) => {
  const [one, two] = [await upstream(t), await upstream(t)]
  const app = await build(token, [one.url, two.url])
  const url = await listen(t, app)
  await until(() => app.health.list().every(({ healthy }) => healthy), { what: 'healthy upstreams' })
  const member = `${url}/ops/pools/shop/upstreams/${encodeURIComponent(`127.0.0.1:${one.port}`)}`
  assert.equal((await post(`${member}/drain`, { reason: 'kernel update' }, { authorization })).json().draining, true)
  for (let i = 0; i < 4; i++) assert.equal((await ask(`${url}/shop/`)).status, 200)
  assert.deepEqual([one.stats().requests, two.stats().requests], [0, 4])
  assert.equal((await post(`${member}/ready`, {}, { authorization })).json().draining, false)
  await ask(`${url}/shop/`)
  assert.equal(one.stats().requests, 1)
  const { events } = (await ask(`${url}/ops/events`, { headers: { authorization } })).json()
  const writes = events.filter(({ type }: { type: string }) => type === 'admin_write')
  assert.deepEqual(writes.map(({ action, reason }: { action: string, reason: string | null }) => [action, reason]), [['upstream_drain', 'kernel update'], ['upstream_ready', null]])
})

test('examples/admin-under-prefix: it does not start without a token', async () => {
  await assert.rejects(build(''), { code: 'BREAKWATER_ADMIN_TOKEN_REQUIRED' })
})
