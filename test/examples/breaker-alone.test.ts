import assert from 'node:assert/strict'
import { test } from 'node:test'
import { build } from '../../examples/breaker-alone.ts'
import { until } from '../support/wait.ts'
import { ask, listen, upstream } from './support.ts'

test('examples/breaker-alone: three failures open the circuit, which then refuses without a call and says when to come back', async (t) => {
  const prices = await upstream(t, { name: 'prices' })
  const url = await listen(t, await build(prices.url))
  assert.equal((await ask(`${url}/price/tea`)).json().url, '/price/tea')

  prices.set({ failRatio: 1 })
  for (let i = 0; i < 3; i++) assert.equal((await ask(`${url}/price/tea`)).status, 500)
  const before = prices.stats().requests
  const refused = await ask(`${url}/price/tea`)
  assert.equal(refused.status, 503)
  assert.deepEqual(refused.json(), { error: 'no prices for the moment' })
  const seconds = Number(refused.headers['retry-after'])
  assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 6, `Retry-After: ${refused.headers['retry-after']}`)
  assert.equal(prices.stats().requests, before)
})

test('examples/breaker-alone: after the open time one call tries again, and its success closes the circuit', async (t) => {
  const prices = await upstream(t, { failRatio: 1 })
  const app = await build(prices.url, 50)
  const states: string[] = []
  app.breakers.on('transition', ({ to }) => { states.push(to) })
  const url = await listen(t, app)
  for (let i = 0; i < 3; i++) await ask(`${url}/price/tea`)
  prices.set({ failRatio: 0 })
  await until(async () => (await ask(`${url}/price/tea`)).status === 200, { what: 'a call that is let through' })
  assert.deepEqual(states, ['open', 'half-open', 'closed'])
})
