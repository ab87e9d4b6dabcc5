import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { build } from '../../examples/forward-in-a-route.ts'
import { until } from '../support/wait.ts'
import { ask, listen, post, upstream } from './support.ts'

async function start (t: TestContext) {
  const one = await upstream(t, { name: 'a', headers: [['x-from', 'upstream']] })
  const app = await build([one.url])
  const url = await listen(t, app)
  await until(() => app.health.list().every(({ healthy }) => healthy), { what: 'a healthy upstream' })
  return { one, url }
}

test('examples/forward-in-a-route: a forwarded answer has the headers of cors and helmet, and the upstream\'s own', async (t) => {
  const { url } = await start(t)
  const { status, headers, json } = await ask(`${url}/products/7?size=xl`, { headers: { origin: 'https://shop.example' } })
  assert.equal(status, 200)
  assert.equal(json().url, '/products/7?size=xl')
  assert.equal(headers['access-control-allow-origin'], 'https://shop.example')
  assert.equal(headers['x-content-type-options'], 'nosniff')
  assert.match(String(headers['content-security-policy']), /default-src 'self'/)
  assert.equal(headers['x-from'], 'upstream')
})

test('examples/forward-in-a-route: other routes, validation and hooks work beside it, and what they refuse reaches no upstream', async (t) => {
  const { one, url } = await start(t)
  assert.deepEqual((await ask(`${url}/hello`)).json(), { hello: 'from this app' })
  assert.equal((await post(`${url}/orders`, { quantity: 1 })).status, 400)
  assert.equal((await ask(`${url}/private/report`)).status, 401)
  assert.equal(one.stats().requests, 0)

  const order = (await post(`${url}/orders`, { product: 'tea' })).json()
  assert.deepEqual([order.method, order.url, order.bodyBytes], ['POST', '/v1/orders', JSON.stringify({ product: 'tea' }).length])
  const report = await ask(`${url}/private/report`, { headers: { authorization: 'Basic eA==' } })
  assert.equal(report.json().url, '/report')
})

test('examples/forward-in-a-route: an upstream that does not answer is told as a problem, with the same headers', async (t) => {
  const { one, url } = await start(t)
  await one.close()
  const refused = await ask(`${url}/products/7`, { headers: { origin: 'https://shop.example' } })
  assert.ok([502, 503].includes(refused.status), String(refused.status))
  assert.equal(refused.headers['content-type'], 'application/problem+json')
  assert.ok(['connect_refused', 'connection_reset', 'no_upstream_healthy'].includes(refused.json().reason))
  assert.equal(refused.headers['access-control-allow-origin'], 'https://shop.example')
  assert.equal(refused.headers['x-content-type-options'], 'nosniff')
  assert.ok(!refused.text.includes(one.url.slice('http://'.length)))
})
