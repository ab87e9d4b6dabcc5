/** The health checks over the real pools: what a reload and discovery change, and what they leave alone. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import { completePools } from '../../../config/complete.ts'
import healthPolling from '../../../plugins/health-polling.ts'
import upstreamPools from '../../../plugins/upstream-pools.ts'
import { ok, RawUpstream, status, until, type Answer } from './fixtures.ts'

const hang: Answer = () => {}
const health = { intervalMs: 60000, timeoutMs: 60000 }

async function appWith (t: TestContext, pool: object): Promise<FastifyInstance> {
  const app = Fastify()
  t.after(() => app.close())
  await app.register(upstreamPools, { pools: completePools({ shop: pool }) })
  await app.register(healthPolling)
  return app
}

test('a reload keeps what is believed, leaves checks that run alone, and checks by what is new', async (t) => {
  const [stays, changes, comes] = await Promise.all([[ok, hang], [ok, status(404), ok], [ok]].map((script) => new RawUpstream(...script).listen(t))) as [RawUpstream, RawUpstream, RawUpstream]
  const app = await appWith(t, { upstreams: [{ url: stays.url }, { url: changes.url }], health })
  await app.ready()
  await until('both are healthy', () => app.pools.list()[0]!.upstreams.every(({ healthy, checked }) => healthy && checked))
  const running = app.health.checkNow('shop', `127.0.0.1:${stays.port}`)
  await until('a check runs', () => stays.requests.length === 2)
  app.pools.apply(completePools({ shop: { upstreams: [{ url: stays.url }, { url: changes.url, health: { path: '/own', intervalMs: 10 } }, { url: comes.url }], health } }))
  const [first, second, third] = app.pools.get('shop')!.upstreams
  assert.deepEqual([first, second, third].map((each) => [each!.healthy, each!.checked]), [[true, true], [true, true], [false, false]])
  await until('the own path was asked', () => changes.requests.length >= 3)
  assert.match(changes.requests[1]!, /^GET \/own /)
  await until('the new one is healthy', () => third!.healthy && third!.checked)
  assert.deepEqual([stays.accepted, stays.requests.length, comes.requests.length], [1, 2, 1])
  await app.close()
  assert.equal((await running).cause, 'stopped')
})

test('an upstream that discovery found by a name is checked at its address, and asked for by the name', async (t) => {
  const [found, side] = await Promise.all([ok, ok].map((answer) => new RawUpstream(answer).listen(t))) as [RawUpstream, RawUpstream]
  const app = await appWith(t, { discovery: { source: 'mine' }, health })
  await app.ready()
  assert.deepEqual(app.health.list(), [])
  const url = `http://shop.internal:${found.port}`
  app.pools.setMembers('shop', [{ url, address: '127.0.0.1' }])
  await until('it is healthy', () => app.pools.get('shop')!.upstreams[0]!.healthy)
  assert.match(found.requests[0]!, new RegExp(`\r\nhost: shop\\.internal:${found.port}\r\n`, 'i'))
  app.pools.setMembers('shop', [{ url, address: '127.0.0.1', health: { port: side.port } }])
  await until('its other port was asked', () => side.requests.length === 1)
  assert.match(side.requests[0]!, new RegExp(`\r\nhost: shop\\.internal:${side.port}\r\n`, 'i'))
  app.pools.setMembers('shop', [])
  assert.deepEqual(app.health.list(), [])
  await until('no connection stays', () => found.sockets.size === 0 && side.sockets.size === 0)
})

test('what is held back goes on taking exchanges', async (t) => {
  const upstreams = await Promise.all([1, 2].map(() => new RawUpstream(ok, status(404)).listen(t)))
  const app = await appWith(t, { upstreams: upstreams.map(({ url }) => ({ url })), health: { ...health, intervalMs: 10 } })
  const held: string[] = []
  app.health.on('held', ({ upstream }) => held.push(upstream))
  await app.ready()
  await until('one is held back', () => held.length > 0)
  const usable = app.pools.get('shop')!.upstreams.filter(({ healthy }) => healthy).map(({ id }) => id)
  assert.deepEqual(usable, held)
  assert.equal(app.health.held('shop'), 1)
})
