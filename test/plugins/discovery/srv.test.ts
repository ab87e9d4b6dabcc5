import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { until } from '../../support/wait.ts'
import { DnsServer, type Srv } from './dns-server.ts'
import { dnsOptions, harness } from './fixtures.ts'

const service = '_http._tcp.shop.test'
const srv = (target: string, fields: Partial<Srv> = {}): Srv => ({ priority: 0, weight: 0, port: 8080, ...fields, target })

async function setup (t: TestContext, prepare: (dns: DnsServer) => void) {
  const dns = await DnsServer.start(t)
  prepare(dns)
  const made = await harness(t, { shop: { dns: dnsOptions({ name: service, type: 'srv', servers: [dns.address] }) } })
  await made.app.ready()
  return { ...made, dns, view: () => made.app.discovery.view()[0]! }
}

test('targets become upstreams with their ports, and with weights and tiers of ours', async (t) => {
  const { pools } = await setup(t, (dns) => {
    dns.answer(service, 'SRV', [
      srv('a.shop.test', { priority: 10, weight: 60, port: 8001 }),
      srv('b.shop.test', { priority: 10, weight: 30, port: 8002 }),
      srv('c.shop.test', { priority: 10, weight: 0, port: 8003 }),
      srv('spare.shop.test', { priority: 20, weight: 5, port: 8004 })
    ])
    dns.addresses('a.shop.test', ['10.0.0.1'])
    dns.addresses('b.shop.test', ['10.0.0.2', 'fd00::2'])
    dns.addresses('c.shop.test', ['10.0.0.3'])
    dns.addresses('spare.shop.test', ['10.0.0.4'])
  })
  assert.deepEqual(pools.given.get('shop')!.map(({ url, address, weight, priority }) => [url, address, weight, priority]), [
    ['http://shop.test:8001', '10.0.0.1', 1000, 0],
    ['http://shop.test:8002', '10.0.0.2', 500, 0],
    ['http://shop.test:8003', '10.0.0.3', 1, 0],
    ['http://shop.test:8002', 'fd00::2', 500, 0],
    ['http://shop.test:8004', '10.0.0.4', 1, 1]
  ])
})

test('other weights alone are a change that adds and removes nobody', async (t) => {
  const { dns, pools, events } = await setup(t, (each) => {
    each.answer(service, 'SRV', [srv('a.shop.test', { weight: 1 }), srv('b.shop.test', { weight: 1 })])
    each.addresses('a.shop.test', ['10.0.0.1'])
    each.addresses('b.shop.test', ['10.0.0.2'])
  })
  dns.answer(service, 'SRV', [srv('a.shop.test', { weight: 1 }), srv('b.shop.test', { weight: 2 })])
  await until(() => events.length === 2)
  assert.deepEqual(pools.given.get('shop')!.map(({ weight }) => weight), [500, 1000])
  assert.deepEqual(events.map((event) => event.type === 'discovery_changed' && [event.added.length, event.removed.length, event.members]), [[2, 0, 2], [0, 0, 2]])
})

test('a target that cannot be asked for keeps its addresses; one that is gone from the records goes', async (t) => {
  const { dns, ids, view, log } = await setup(t, (each) => {
    each.answer(service, 'SRV', [srv('a.shop.test'), srv('b.shop.test')])
    each.addresses('a.shop.test', ['10.0.0.1'])
    each.addresses('b.shop.test', ['10.0.0.2'])
  })
  dns.both('b.shop.test', 'SERVFAIL')
  dns.addresses('a.shop.test', ['10.0.0.9'])
  await until(() => ids().join() === '10.0.0.2:8080,10.0.0.9:8080')
  assert.deepEqual([view().stale, log.find('discovery_failed')!['error']], [true, 'b.shop.test: the resolver failed (SERVFAIL)'])
  dns.answer(service, 'SRV', [srv('a.shop.test')])
  await until(() => ids().join() === '10.0.0.9:8080' && !view().stale)
})

test('a target without a name of its own is left out, and a target asked for by two records is asked once', async (t) => {
  const { ids, dns, types } = await setup(t, (each) => {
    each.answer(service, 'SRV', [srv('a.shop.test', { port: 1 }), srv('a.shop.test', { port: 2 }), srv('gone.shop.test')])
    each.addresses('a.shop.test', ['10.0.0.1'])
  })
  assert.deepEqual([ids(), types()], [['10.0.0.1:1', '10.0.0.1:2'], ['discovery_changed']])
  assert.equal(dns.count('a.shop.test A'), dns.count(`${service} SRV`))
})

test('the target "." says that there is none: the last good set stays', async (t) => {
  const { dns, ids, log, view } = await setup(t, (each) => {
    each.answer(service, 'SRV', [srv('a.shop.test')])
    each.addresses('a.shop.test', ['10.0.0.1'])
  })
  dns.answer(service, 'SRV', [srv('.', { port: 0 })])
  await log.waitFor('discovery_failed')
  assert.deepEqual([ids(), view().stale], [['10.0.0.1:8080'], true])
})

for (const reply of ['NXDOMAIN', 'SERVFAIL', 'NODATA'] as const) {
  test(`the question for the service is answered with ${reply}: the last good set stays`, async (t) => {
    const { dns, ids, log, types } = await setup(t, (each) => {
      each.answer(service, 'SRV', [srv('a.shop.test')])
      each.addresses('a.shop.test', ['10.0.0.1'])
    })
    dns.answer(service, 'SRV', reply)
    await log.waitFor('discovery_failed')
    dns.answer(service, 'SRV', [srv('a.shop.test')])
    await log.waitFor('discovery_recovered')
    assert.deepEqual([ids(), types()], [['10.0.0.1:8080'], ['discovery_changed', 'discovery_failed', 'discovery_recovered']])
  })
}

test('no target has an address any more: the last good set stays', async (t) => {
  const { dns, ids, log } = await setup(t, (each) => {
    each.answer(service, 'SRV', [srv('a.shop.test')])
    each.addresses('a.shop.test', ['10.0.0.1'])
  })
  dns.both('a.shop.test', 'NXDOMAIN')
  const { error } = await log.waitFor('discovery_failed')
  assert.deepEqual([ids(), error], [['10.0.0.1:8080'], 'a.shop.test: there is no such name'])
})

test('a close between the two questions asks no second one', async (t) => {
  const { app, dns } = await setup(t, (each) => {
    each.answer(service, 'SRV', [srv('a.shop.test')])
    each.addresses('a.shop.test', ['10.0.0.1'])
  })
  dns.answer(service, 'SRV', 'silence')
  const before = dns.count(`${service} SRV`)
  await until(() => dns.count(`${service} SRV`) > before)
  const asked = dns.count('a.shop.test A')
  dns.answer(service, 'SRV', [srv('a.shop.test')])
  await app.close()
  await new Promise((resolve) => { setTimeout(resolve, 100) })
  assert.equal(dns.count('a.shop.test A'), asked)
})

test('more members than a pool takes are cut, and that is logged once', async (t) => {
  const { dns, events, ids, log, view } = await setup(t, (each) => {
    each.answer(service, 'SRV', [srv('a.shop.test'), srv('b.shop.test', { priority: 1 })])
    each.addresses('a.shop.test', Array.from({ length: 200 }, (_, index) => `10.0.0.${index}`))
    each.addresses('b.shop.test', Array.from({ length: 200 }, (_, index) => `10.0.1.${index}`))
  })
  const asked = dns.count(`${service} SRV`)
  await until(() => dns.count(`${service} SRV`) >= asked + 3)
  assert.equal(ids().length, 256)
  assert.equal(ids().filter((id) => id.startsWith('10.0.0.')).length, 200)
  assert.deepEqual(log.all('discovery_cut').map(({ given, used }) => [given, used]), [[400, 256]])
  assert.deepEqual(events.filter((event) => event.type === 'discovery_cut').map(({ given, used }) => [given, used]), [[400, 256]])
  assert.deepEqual([view().stale, view().members.length], [false, 256])
})
