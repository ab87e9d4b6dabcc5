import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import breakerRegistry from '../../../plugins/breaker-registry.ts'
import upstreamPools, { type PoolEvent, type PoolInput } from '../../../plugins/upstream-pools.ts'
import { until } from '../../support/wait.ts'

const off = { health: { enabled: false } }

async function withPools (t: TestContext, pools: Record<string, PoolInput>): Promise<{ app: FastifyInstance, events: PoolEvent[] }> {
  const app = Fastify() as unknown as FastifyInstance
  t.after(() => app.close())
  await app.register(upstreamPools, { pools })
  await app.register(breakerRegistry)
  await app.ready()
  const events: PoolEvent[] = []
  app.pools.on('event', (event) => { events.push(event) })
  return { app, events }
}

const ids = (app: FastifyInstance, pool = 'shop') => app.pools.get(pool)?.upstreams.map(({ id }) => id)
const found = (app: FastifyInstance, id: string) => app.pools.find('shop', id)!

test('what discovery has found stands beside what is configured, and is swapped whole', async (t) => {
  const { app, events } = await withPools(t, { shop: { upstreams: ['http://10.0.0.1:80'], discovery: { source: 'x' }, ...off } })
  const change = app.pools.setMembers('shop', [{ url: 'http://10.0.0.2:80', weight: 1 }, { url: 'http://10.0.0.1:80' }, { url: 'http://shop.internal:8080', address: '::1' }])
  deepEqual(change, { added: ['10.0.0.2:80', '[::1]:8080'], removed: [], kept: ['10.0.0.1:80'] })
  deepEqual(ids(app), ['10.0.0.1:80', '10.0.0.2:80', '[::1]:8080'])
  equal(found(app, '[::1]:8080').host, 'shop.internal:8080', 'it is asked for by its name')
  equal(found(app, '10.0.0.1:80').discovered, false)
  equal(found(app, '10.0.0.2:80').discovered, true)
  const second = found(app, '10.0.0.2:80')
  deepEqual(app.pools.setMembers('shop', [{ url: 'http://10.0.0.2:80', weight: 1 }]), { added: [], removed: ['[::1]:8080'], kept: ['10.0.0.1:80', '10.0.0.2:80'] })
  equal(found(app, '10.0.0.2:80').state, second.state, 'what is known of it stays')
  deepEqual(events.map(({ type }) => type), ['members_changed', 'members_changed'])
  equal(app.breakers.find('shop', '[::1]:8080'), undefined)
})

test('the same list again changes nothing', async (t) => {
  const { app, events } = await withPools(t, { shop: { discovery: { source: 'x' }, ...off } })
  app.pools.setMembers('shop', [{ url: 'http://10.0.0.2:80' }])
  const pool = app.pools.get('shop')
  const lane = app.pools.lane('shop')
  app.pools.setMembers('shop', [{ url: 'http://10.0.0.2:80' }])
  equal(app.pools.get('shop'), pool)
  equal(app.pools.lane('shop'), lane)
  equal(events.length, 1)
})

test('a pool that waits for its discovery refuses, and an unknown one is an error', async (t) => {
  const { app } = await withPools(t, { shop: { discovery: { source: 'x' }, ...off } })
  equal(app.pools.lane('shop')?.select(performance.now()), 'no_upstream_healthy')
  throws(() => app.pools.setMembers('other', []), { code: 'BREAKWATER_UNKNOWN_POOL' })
})

test('a drain ends by itself when its time is over', async (t) => {
  const { app, events } = await withPools(t, { shop: { upstreams: ['http://10.0.0.1:80', 'http://10.0.0.2:80'], ...off } })
  ok(app.pools.setDraining('shop', '10.0.0.1:80', true, { ttlMs: 30, reason: 'reboot' }))
  equal(found(app, '10.0.0.1:80').draining, true)
  equal(found(app, '10.0.0.1:80').drain?.reason, 'reboot')
  await until(() => !found(app, '10.0.0.1:80').draining)
  deepEqual(events.map((event) => [event.type, 'cause' in event ? event.cause : null]), [['upstream_draining', null], ['upstream_ready', 'ttl']])
})

test('a drain without a time lasts, a second one replaces the first, and one that is ended twice is told once', async (t) => {
  const { app, events } = await withPools(t, { shop: { upstreams: ['http://10.0.0.1:80'], ...off } })
  app.pools.setDraining('shop', '10.0.0.1:80', true, { ttlMs: 1 })
  app.pools.setDraining('shop', '10.0.0.1:80', true, { reason: 'for good' })
  await new Promise((resolve) => { setTimeout(resolve, 20) })
  equal(found(app, '10.0.0.1:80').drain?.until, null)
  app.pools.setDraining('shop', '10.0.0.1:80', false)
  app.pools.setDraining('shop', '10.0.0.1:80', false)
  equal(events.filter(({ type }) => type === 'upstream_ready').length, 1)
  equal(app.pools.setDraining('shop', 'nobody', true), false)
})

test('a drain is remembered for an upstream that goes and comes back, until its time is over', async (t) => {
  const { app, events } = await withPools(t, { shop: { discovery: { source: 'x' }, ...off } })
  const [one, two] = [{ url: 'http://10.0.0.1:80' }, { url: 'http://10.0.0.2:80' }]
  app.pools.setMembers('shop', [one, two])
  app.pools.setDraining('shop', '10.0.0.1:80', true, { reason: 'disk' })
  app.pools.setDraining('shop', '10.0.0.2:80', true, { ttlMs: 40 })
  app.pools.setMembers('shop', [])
  await new Promise((resolve) => { setTimeout(resolve, 60) })
  app.pools.setMembers('shop', [one, two])
  equal(found(app, '10.0.0.1:80').drain?.reason, 'disk')
  equal(found(app, '10.0.0.2:80').drain, null)
  equal(events.filter(({ type }) => type === 'upstream_draining').length, 3)
  throws(() => app.pools.setDraining('shop', '10.0.0.1:80', true, { ttlMs: 2 ** 31 }), RangeError)
})

test('new options keep the connections unless these are to be made otherwise', async (t) => {
  const { app } = await withPools(t, { shop: { upstreams: ['http://10.0.0.1:80'], ...off } })
  const options = app.pools.get('shop')!.options
  const { transport, state } = found(app, '10.0.0.1:80')
  app.pools.apply({ shop: { ...options, maxInFlightPerUpstream: 1 } })
  equal(found(app, '10.0.0.1:80').transport, transport)
  app.pools.apply({ shop: { ...options, connections: { ...options.connections, max: 3 } } })
  ok(found(app, '10.0.0.1:80').transport !== transport)
  equal(found(app, '10.0.0.1:80').state, state)
  await until(() => transport.dispatcher.closed)
})

test('a change that cannot be made, for want of a certificate, changes nothing at all', async (t) => {
  const { app, events } = await withPools(t, { shop: { upstreams: ['http://10.0.0.1:80'], ...off }, users: { upstreams: ['https://10.0.0.2:443'], ...off } })
  const [shop, users] = [app.pools.get('shop')!, app.pools.get('users')!]
  throws(() => app.pools.apply({
    shop: { ...shop.options, upstreams: [{ url: 'http://10.0.0.9:80', weight: 1, priority: 0 }] },
    users: { ...users.options, tls: { ca: '/nowhere/ca.pem', insecureSkipVerify: false } }
  }), /ENOENT/)
  equal(app.pools.get('shop'), shop)
  equal(app.pools.get('users'), users)
  deepEqual(events, [])
})

test('a pool that is left out is gone, with its breakers, and its upstreams take nothing new', async (t) => {
  const { app } = await withPools(t, { shop: { upstreams: ['http://10.0.0.1:80'], ...off }, users: { upstreams: ['http://10.0.0.2:80'], ...off } })
  const lane = app.pools.lane('users')!
  app.pools.apply({ shop: app.pools.get('shop')!.options })
  deepEqual(app.pools.list().map(({ name }) => name), ['shop'])
  equal(app.pools.lane('users'), undefined)
  equal(app.breakers.find('users', '10.0.0.2:80'), undefined)
  equal(lane.select(performance.now()), 'no_upstream_healthy')
})

test('an upstream of its own limit takes no more, and less in its slow start', async (t) => {
  const { app } = await withPools(t, { shop: { upstreams: [{ url: 'http://10.0.0.1:80', maxInFlight: 4 }, 'http://10.0.0.2:80'], maxInFlightPerUpstream: 1, ...off } })
  const [own, pools] = [found(app, '10.0.0.1:80'), found(app, '10.0.0.2:80')]
  equal(fill(own), 4)
  equal(fill(pools), 1)
  own.inFlight = 0
  own.share = 0.3
  equal(fill(own), 2)
})

function fill (upstream: { inFlight: number, share: number, readonly hasRoom: boolean }): number {
  while (upstream.hasRoom) upstream.inFlight++
  return upstream.inFlight
}
