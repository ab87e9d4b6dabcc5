import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { build } from '../../examples/whole-gateway.ts'
import { until } from '../support/wait.ts'
import { ask, listen, upstream } from './support.ts'

test('examples/whole-gateway: /api goes to the upstreams in turn, without its prefix, with probes on the public listener', async (t) => {
  const upstreams = [await upstream(t, { name: 'a' }), await upstream(t, { name: 'b' })]
  const app = await build(upstreams.map((each) => each.url), 0)
  app.log.level = 'silent'
  const url = await listen(t, app)
  await until(async () => (await ask(`${url}/readyz`)).status === 204, { what: 'ready' })
  assert.equal((await ask(`${url}/livez`)).status, 204)
  const answers = [await ask(`${url}/api/hello?x=1`), await ask(`${url}/api/hello?x=1`)].map((answer) => answer.json())
  assert.deepEqual(answers.map(({ upstream: name }) => name).toSorted(), ['a', 'b'])
  assert.deepEqual(answers.map(({ url: path }) => path), ['/hello?x=1', '/hello?x=1'])
  const other = await ask(`${url}/elsewhere`)
  assert.equal(other.status, 404)
  assert.equal(other.json().reason, 'no_route')
})

test('examples/whole-gateway: the admin routes are on a listener of their own and show the breakers', async (t) => {
  const one = await upstream(t)
  const app = await build([one.url], 0)
  app.log.level = 'silent'
  const url = await listen(t, app)
  await until(async () => (await ask(`${url}/readyz`)).status === 204, { what: 'ready' })
  assert.ok(app.adminAddress !== null)
  const admin = `http://127.0.0.1:${app.adminAddress.port}`
  one.set({ failRatio: 1 })
  for (let i = 0; i < 3; i++) assert.equal((await ask(`${url}/api/`)).status, 500)
  const refused = await ask(`${url}/api/`)
  assert.equal(refused.json().reason, 'breaker_open')
  const { breakers } = (await ask(`${admin}/breakers`)).json()
  assert.deepEqual(breakers.map((breaker: { pool: string, state: string }) => [breaker.pool, breaker.state]), [['shop', 'open']])
  assert.equal((await ask(`${url}/breakers`)).status, 404)
})

test('examples/fastify-cli: is what fastify-cli takes: options, and a plugin with two parameters', async (t) => {
  process.env['BREAKWATER_ADMIN_PORT'] = '0'
  t.after(() => { delete process.env['BREAKWATER_ADMIN_PORT'] })
  const { default: gateway, options } = await import('../../examples/fastify-cli.ts')
  assert.equal(gateway.length, 2, 'it refuses any other')
  const app = Fastify(options)
  app.log.level = 'silent'
  await app.register(gateway, {})
  const url = await listen(t, app)
  assert.deepEqual((await ask(`${url}/hello`)).json(), { hello: 'from this app' })
  assert.equal((await ask(`${url}/elsewhere`)).json().reason, 'no_route')
  assert.equal((await ask(`${url}/api/x`)).headers['proxy-status']?.toString().startsWith('breakwater; error='), true)
})
