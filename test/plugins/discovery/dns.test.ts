import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { DiscoveryOptions } from '../../../config/schema.ts'
import { DnsSource } from '../../../plugins/discovery/dns-source.ts'
import { until } from '../../support/wait.ts'
import { DnsServer } from './dns-server.ts'
import { dnsOptions, harness, type Harness } from './fixtures.ts'

const name = 'shop.test'

type Setup = Harness & { dns: DnsServer }

/** A pool whose members are the addresses of `shop.test`, by a resolver of our own. */
async function setup (t: TestContext, options: Partial<Parameters<typeof dnsOptions>[0]> = {}, rest: Partial<DiscoveryOptions> = {}, prepare: (dns: DnsServer) => void = () => {}): Promise<Setup> {
  const dns = await DnsServer.start(t)
  prepare(dns)
  const made = await harness(t, { shop: { dns: dnsOptions({ name, servers: [dns.address], ...options }), ...rest } })
  await made.app.ready()
  return { ...made, dns }
}

const view = ({ app }: Setup) => app.discovery.view()[0]!

test('every A and AAAA record is an upstream at the port of the options, under the name\'s Host', async (t) => {
  const { pools, ids, log } = await setup(t, { port: 8080 }, {}, (dns) => { dns.addresses(name, ['10.0.0.2', 'fd00::1', '10.0.0.1']) })
  assert.deepEqual(ids(), ['10.0.0.1:8080', '10.0.0.2:8080', '[fd00::1]:8080'])
  assert.deepEqual(pools.given.get('shop')![2], { url: 'http://shop.test:8080', address: 'fd00::1' })
  const { pool, added, removed, members } = log.find('discovery_changed')!
  assert.deepEqual({ pool, added, removed, members }, { pool: 'shop', added: ids(), removed: [], members: 3 })
})

test('without a port https means 443, and a family can be chosen', async (t) => {
  const { pools, ids, dns } = await setup(t, { scheme: 'https', family: 'ipv4' }, {}, (each) => { each.addresses(name, ['10.0.0.1', 'fd00::1']) })
  assert.deepEqual([ids(), pools.given.get('shop')![0]!.url], [['10.0.0.1:443'], 'https://shop.test:443'])
  assert.equal(dns.count(`${name} AAAA`), 0)
})

test('a change of the records is a change of the members; those that stay are told of as kept', async (t) => {
  const made = await setup(t, {}, {}, (dns) => { dns.addresses(name, ['10.0.0.1', '10.0.0.2']) })
  const { dns, ids, events } = made
  dns.addresses(name, ['10.0.0.2', '10.0.0.3'])
  await until(() => ids().join() === '10.0.0.2:80,10.0.0.3:80')
  assert.deepEqual(events.map((event) => event.type === 'discovery_changed' && [event.added, event.removed]), [[['10.0.0.1:80', '10.0.0.2:80'], []], [['10.0.0.3:80'], ['10.0.0.1:80']]])
  assert.ok(Object.isFrozen(events[1]))
})

test('the same records in another order are no change, and the view stays fresh', async (t) => {
  const made = await setup(t, {}, {}, (dns) => { dns.addresses(name, ['10.0.0.1', '10.0.0.2']) })
  const { dns, pools, events } = made
  const { lastSuccess } = view(made)
  dns.addresses(name, ['10.0.0.2', '10.0.0.1'])
  const asked = dns.asked.length
  await until(() => dns.asked.length >= asked + 6 && view(made).lastSuccess! > lastSuccess!)
  assert.deepEqual([pools.sets, events.length], [1, 1])
})

test('records are resolved again when the shortest TTL ends, within the bounds', async (t) => {
  const bounds = { minTtlMs: 2000, maxTtlMs: 60000 }
  for (const [ttls, least, most] of [[[30, 10], 10000, 11000], [[0, 5], 2000, 2200], [[3600, 7200], 54000, 60000]] as const) {
    const made = await setup(t, bounds, {}, (dns) => {
      dns.answer(name, 'A', [{ address: '10.0.0.1', ttl: ttls[0] }])
      dns.answer(name, 'AAAA', [{ address: 'fd00::1', ttl: ttls[1] }])
    })
    const { nextAt, lastSuccess } = view(made)
    const wait = Date.parse(nextAt!) - Date.parse(lastSuccess!)
    assert.ok(wait >= least - 5 && wait <= most + 5, `${wait} ms for TTLs of ${ttls.join(' and ')} s`)
    await made.app.close()
  }
})

for (const reply of ['NXDOMAIN', 'SERVFAIL', 'REFUSED', 'NODATA'] as const) {
  test(`${reply}: the last good set stays, one warning, then all is well again`, async (t) => {
    const made = await setup(t, {}, {}, (dns) => { dns.addresses(name, ['10.0.0.1', '10.0.0.2']) })
    const { dns, ids, log, types } = made
    dns.both(name, reply)
    await until(() => types().includes('discovery_failed'))
    const asked = dns.asked.length
    await until(() => dns.asked.length >= asked + 6)
    assert.deepEqual(ids(), ['10.0.0.1:80', '10.0.0.2:80'])
    const [line, ...more] = log.all('discovery_failed')
    assert.deepEqual([line!['level'], line!['pool'], line!['keeping'], more.length], [40, 'shop', 2, 0])
    assert.match(String(line!['error']), /^shop\.test: /)
    assert.deepEqual([view(made).stale, view(made).lastError?.message, view(made).members], [true, line!['error'], ids()])
    dns.addresses(name, ['10.0.0.2'])
    await until(() => log.find('discovery_recovered'))
    assert.deepEqual(types(), ['discovery_changed', 'discovery_failed', 'discovery_changed', 'discovery_recovered'])
    assert.deepEqual([ids(), view(made).stale, view(made).lastError], [['10.0.0.2:80'], false, null])
  })
}

test('a resolver that says nothing fails within the time limit, and the last good set stays', async (t) => {
  const made = await setup(t, { timeoutMs: 100 }, {}, (dns) => { dns.addresses(name, ['10.0.0.1']) })
  made.dns.both(name, 'silence')
  const line = await made.log.waitFor('discovery_failed')
  assert.equal(line['error'], 'shop.test: no answer in time')
  assert.deepEqual(made.ids(), ['10.0.0.1:80'])
  made.dns.addresses(name, ['10.0.0.9'])
  await until(() => made.ids().join() === '10.0.0.9:80')
})

test('a resolver that is gone fails, and one that is back is used', async (t) => {
  const made = await setup(t, { timeoutMs: 200 }, {}, (dns) => { dns.addresses(name, ['10.0.0.1']) })
  await made.dns.close()
  await made.log.waitFor('discovery_failed')
  made.dns.addresses(name, ['10.0.0.2'])
  await made.dns.open()
  await until(() => made.ids().join() === '10.0.0.2:80')
})

test('a resolver that does not answer costs a part of the time, then the next one is asked', async (t) => {
  const silent = await DnsServer.start(t)
  silent.both(name, 'silence')
  const dns = await DnsServer.start(t)
  dns.addresses(name, ['10.0.0.1'])
  const { app, ids } = await harness(t, { shop: { dns: dnsOptions({ name, servers: [silent.address, dns.address], timeoutMs: 1000, maxTtlMs: 60000, minTtlMs: 60000 }) } })
  await app.ready()
  assert.deepEqual(ids(), ['10.0.0.1:80'])
  assert.ok(silent.asked.length > 0)
})

test('bytes that are no DNS are a failure', async (t) => {
  const made = await setup(t, { timeoutMs: 200 }, {}, (dns) => { dns.both(name, 'garbage') })
  await made.log.waitFor('discovery_failed')
  assert.deepEqual([made.ids(), view(made).stale, view(made).lastSuccess, view(made).ageMs], [[], true, null, null])
})

test('an answer that does not fit into a datagram is fetched over TCP', async (t) => {
  const addresses = Array.from({ length: 100 }, (_, index) => `10.0.1.${index}`)
  const made = await setup(t, {}, {}, (dns) => {
    dns.truncated = true
    dns.addresses(name, addresses)
  })
  assert.equal(made.ids().length, 100)
})

test('one family without records is no failure', async (t) => {
  const made = await setup(t, {}, {}, (dns) => {
    dns.answer(name, 'A', [{ address: '10.0.0.1' }])
    dns.answer(name, 'AAAA', 'NXDOMAIN')
  })
  assert.deepEqual([made.ids(), made.types(), view(made).stale], [['10.0.0.1:80'], ['discovery_changed'], false])
})

test('a family that never was there and cannot be asked for is no failure', async (t) => {
  const made = await setup(t, {}, {}, (dns) => {
    dns.answer(name, 'A', [{ address: '10.0.0.1' }])
    dns.answer(name, 'AAAA', 'SERVFAIL')
  })
  await until(() => made.dns.count(`${name} AAAA`) >= 3)
  assert.deepEqual([made.ids(), made.types(), view(made).stale], [['10.0.0.1:80'], ['discovery_changed'], false])
})

test('a family that cannot be asked for keeps its addresses, while the other one is followed', async (t) => {
  const made = await setup(t, {}, {}, (dns) => { dns.addresses(name, ['10.0.0.1', 'fd00::1']) })
  const { dns, ids, log } = made
  dns.answer(name, 'AAAA', 'SERVFAIL')
  dns.answer(name, 'A', [{ address: '10.0.0.2' }])
  await until(() => ids().join() === '10.0.0.2:80,[fd00::1]:80')
  assert.deepEqual([view(made).stale, log.all('discovery_failed').length, log.find('discovery_failed')!['keeping']], [true, 1, 2])
  const before = dns.count(`${name} AAAA`)
  await until(() => dns.count(`${name} AAAA`) >= before + 3)
  assert.deepEqual([ids(), log.all('discovery_failed').length], [['10.0.0.2:80', '[fd00::1]:80'], 1])
  dns.answer(name, 'AAAA', [{ address: 'fd00::2' }])
  await until(() => ids().join() === '10.0.0.2:80,[fd00::2]:80' && !view(made).stale)
  dns.answer(name, 'AAAA', 'NODATA')
  await until(() => ids().join() === '10.0.0.2:80')
})

test('keep: false drops the members with the first failure', async (t) => {
  const made = await setup(t, {}, { keep: false }, (dns) => { dns.addresses(name, ['10.0.0.1']) })
  made.dns.both(name, 'SERVFAIL')
  await until(() => made.ids().length === 0)
  assert.deepEqual(made.types(), ['discovery_changed', 'discovery_failed', 'discovery_changed'])
  assert.equal(made.log.find('discovery_failed')!['keeping'], 0)
})

test('records that flap are followed to the last', async (t) => {
  const made = await setup(t, { timeoutMs: 100 }, {}, (dns) => { dns.addresses(name, ['10.0.0.1']) })
  for (let round = 1; round <= 5; round++) {
    made.dns.both(name, round % 2 === 0 ? 'silence' : 'NXDOMAIN')
    await until(() => view(made).stale, { timeoutMs: 10000 })
    made.dns.addresses(name, [`10.0.1.${round}`])
    await until(() => made.ids().join() === `10.0.1.${round}:80` && !view(made).stale, { timeoutMs: 10000 })
  }
  const failed = made.log.all('discovery_failed').length
  assert.deepEqual([failed, made.log.all('discovery_recovered').length], [5, 5])
})

test('failures are asked about less and less often, but never beyond the longest time', async (t) => {
  const made = await setup(t, { minTtlMs: 1000, maxTtlMs: 3000 }, {}, (dns) => { dns.both(name, 'NXDOMAIN') })
  const waits: number[] = []
  for (let round = 0; round < 4; round++) {
    await until(() => view(made).nextAt !== null)
    waits.push(Date.parse(view(made).nextAt!) - Date.parse(view(made).lastError!.at))
    const asked = made.dns.asked.length
    made.app.discovery.refresh('shop')
    await until(() => made.dns.asked.length >= asked + 2)
  }
  for (const [index, most] of [1000, 2000, 3000, 3000].entries()) {
    assert.ok(waits[index]! > most * 0.85 && waits[index]! <= most + 5, waits.join())
  }
})

test('refresh asks at once, and joins a question under way', async (t) => {
  const made = await setup(t, { minTtlMs: 60000, maxTtlMs: 60000 }, {}, (dns) => { dns.addresses(name, ['10.0.0.1'], 60) })
  made.dns.addresses(name, ['10.0.0.2'], 60)
  for (let times = 0; times < 10; times++) assert.equal(made.app.discovery.refresh('shop'), true)
  await until(() => made.ids().join() === '10.0.0.2:80')
  assert.equal(made.dns.count(`${name} A`), 2)
  assert.equal(made.app.discovery.refresh('nobody'), false)
})

test('a close during a question leaves nothing behind', async (t) => {
  const made = await setup(t, { timeoutMs: 60000 }, {}, (dns) => { dns.addresses(name, ['10.0.0.1']) })
  made.dns.both(name, 'silence')
  const before = made.dns.asked.length
  await until(() => made.dns.asked.length > before)
  await made.app.close()
  const { length } = made.events
  made.dns.addresses(name, ['10.0.0.9'])
  made.app.discovery.refresh('shop')
  made.app.discovery.sync()
  await new Promise((resolve) => { setTimeout(resolve, 150) })
  assert.deepEqual([made.ids(), made.events.length, view(made).nextAt], [['10.0.0.1:80'], length, null])
})

test('resolvers that are no addresses are told as a failure like any other, and it looks again', async (t) => {
  const source = new DnsSource(dnsOptions({ name, servers: ['nonsense'] }), true, () => 0, null)
  t.after(() => { source.stop() })
  const told: Array<[string, boolean]> = []
  source.start(() => assert.fail('there is nobody to ask'), ({ message }) => { told.push([message, source.nextAt !== null]) })
  source.refresh()
  assert.equal(told.length, 2)
  await until(() => told.length >= 4)
  for (const [message, waits] of told) {
    assert.match(message, /nonsense/)
    assert.ok(waits)
  }
  source.stop()
  assert.equal(source.nextAt, null)
})
