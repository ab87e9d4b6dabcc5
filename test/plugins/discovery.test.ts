import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import type { DiscoveredUpstream } from '../../plugins/discovery.ts'
import { until } from '../support/wait.ts'
import { DnsServer } from './discovery/dns-server.ts'
import { dnsOptions, folder, harness } from './discovery/fixtures.ts'
import { at, idsOf, Played } from './discovery/played.ts'

test('a source of somebody else\'s is started when the app is ready, followed, and stopped with the app', async (t) => {
  const { app, ids, types } = await harness(t, { shop: { source: 'mine' } }, { readyMs: 0 })
  const mine = new Played()
  app.discovery.provide('mine', mine)
  assert.deepEqual(mine.calls, [])
  await app.ready()
  mine.report(at(2, 1))
  mine.report(at(1, 2))
  mine.report(at(2, 3))
  assert.deepEqual([ids(), types()], [idsOf(2, 3), ['discovery_changed', 'discovery_changed']])
  mine.nextAt = Date.UTC(2030, 0, 1)
  assert.equal(app.discovery.view()[0]!.nextAt, '2030-01-01T00:00:00.000Z')
  app.discovery.refresh('shop')
  await app.close()
  mine.report(at(9))
  mine.fail(new Error('late'))
  assert.deepEqual([ids(), types().length, mine.calls], [idsOf(2, 3), 2, ['start', 'refresh', 'stop']])
})

test('a name that nobody provides is told, and a source that comes later is used', async (t) => {
  const { app, ids, log } = await harness(t, { shop: { source: 'mine' } })
  await app.ready()
  assert.equal(log.find('discovery_failed')!['error'], 'no source "mine" is provided')
  const mine = new Played()
  app.discovery.provide('mine', mine)
  mine.report(at(1))
  assert.deepEqual([ids(), log.all('discovery_recovered').length], [idsOf(1), 1])
  assert.throws(() => { app.discovery.provide('mine', new Played()) }, { code: 'BREAKWATER_SOURCE_EXISTS' })
})

test('a source is shared by the pools that name it, and a pool that comes later is told what was said last', async (t) => {
  const { app, pools, ids } = await harness(t, { a: { source: 'mine' }, b: { source: 'mine' } }, { readyMs: 0 })
  const mine = new Played()
  app.discovery.provide('mine', mine)
  await app.ready()
  mine.report(at(1))
  pools.define('c', { source: 'mine' })
  pools.pools.delete('a')
  app.discovery.sync()
  assert.deepEqual([ids('a'), ids('b'), ids('c'), mine.calls], [idsOf(1), idsOf(1), idsOf(1), ['start']])
  mine.report(at(2))
  assert.deepEqual([ids('a'), ids('b'), ids('c')], [idsOf(1), idsOf(2), idsOf(2)])
  pools.pools.clear()
  app.discovery.sync()
  assert.deepEqual([mine.calls, app.discovery.view()], [['start', 'stop'], []])
})

test('a source that throws when it is started has failed, and the app starts', async (t) => {
  const { app, log } = await harness(t, { shop: { source: 'mine' } })
  const mine = new Played()
  mine.begin = () => { throw new Error('no registry here') }
  app.discovery.provide('mine', mine)
  await app.ready()
  assert.equal(log.find('discovery_failed')!['error'], 'no registry here')
})

test('a list with an upstream that is none is a failure, and changes nothing', async (t) => {
  const { app, ids, log } = await harness(t, { shop: { source: 'mine' } }, { readyMs: 0 })
  const mine = new Played()
  app.discovery.provide('mine', mine)
  await app.ready()
  mine.report(at(1))
  for (const bad of [{ url: 'ftp://x' }, { url: 'http://x', address: 'no-address' }, { url: 'unix:/run/a.sock', address: '10.0.0.1' },
    { url: 'http://x', weight: Number.NaN }, { url: 'http://x', health: { intervalMs: 0 } }, { url: 'http://x', wieght: 1 }, {}, 'http://x', null]) {
    mine.report([...at(2), bad as DiscoveredUpstream])
    assert.deepEqual(ids(), idsOf(1))
    assert.equal(app.discovery.view()[0]!.stale, true)
    mine.report(at(1))
  }
  assert.deepEqual([log.all('discovery_failed').length, log.all('discovery_recovered').length], [9, 9])
  mine.report('no list' as unknown as DiscoveredUpstream[])
  assert.deepEqual([ids(), app.discovery.view()[0]!.stale], [idsOf(1), true])
})

test('a list that its source changes after it was reported is no matter, until it is reported again', async (t) => {
  const { app, pools, ids } = await harness(t, { shop: { source: 'mine' } }, { readyMs: 0 })
  const mine = new Played()
  app.discovery.provide('mine', mine)
  await app.ready()
  const list = at(1, 2).map((each) => ({ ...each, weight: 1 }))
  mine.report(list)
  list.pop()
  list[0]!.weight = 7
  app.discovery.sync()
  assert.deepEqual([ids(), pools.given.get('shop')![0]!.weight], [idsOf(1, 2), 1])
  mine.report(list)
  assert.deepEqual([ids(), pools.given.get('shop')![0]!.weight], [idsOf(1), 7])
})

test('an incomplete list is used, and is told as a failure until a whole one comes', async (t) => {
  const { app, ids, types } = await harness(t, { shop: { source: 'mine' } }, { readyMs: 0 })
  const mine = new Played()
  app.discovery.provide('mine', mine)
  await app.ready()
  mine.report(at(1, 2), new Error('one of two registries'))
  mine.report(at(1, 3), new Error('one of two registries'))
  assert.deepEqual([ids(), app.discovery.view()[0]!.lastSuccess], [idsOf(1, 3), null])
  mine.report(at(1, 3))
  assert.deepEqual(types(), ['discovery_changed', 'discovery_failed', 'discovery_changed', 'discovery_recovered'])
})

test('the app is ready when every source has said something, and does not wait for one that says nothing', async (t) => {
  const { app, ids } = await harness(t, { quick: { source: 'quick' }, slow: { source: 'slow' } }, { readyMs: 100 })
  const quick = new Played()
  quick.begin = () => { setTimeout(() => { quick.report(at(1)) }, 20) }
  app.discovery.provide('quick', quick)
  app.discovery.provide('slow', new Played())
  await app.ready()
  assert.deepEqual([ids('quick'), ids('slow')], [idsOf(1), []])
})

test('the age of the last list is told', async (t) => {
  let now = 1000
  const { app } = await harness(t, { shop: { source: 'mine' } }, { readyMs: 0, clock: () => now })
  const mine = new Played()
  app.discovery.provide('mine', mine)
  await app.ready()
  assert.deepEqual([app.discovery.view()[0]!.ageMs, app.discovery.view()[0]!.stale], [null, true])
  mine.report(at(1))
  now += 61_234.5
  const [view] = app.discovery.view()
  assert.deepEqual([view!.ageMs, view!.stale, view!.members, view!.kind, view!.from], [61_235, false, idsOf(1), 'source', 'mine'])
  assert.ok(Object.isFrozen(view))
})

test('sync: a source that is as it was goes on, and its pool gets its members again', async (t) => {
  const dns = await DnsServer.start(t)
  dns.addresses('shop.test', ['10.0.0.1'], 60)
  const options = { dns: dnsOptions({ name: 'shop.test', servers: [dns.address], minTtlMs: 60000, maxTtlMs: 60000 }) }
  const { app, pools, ids, events } = await harness(t, { shop: options })
  await app.ready()
  const asked = dns.asked.length
  // A pool that was made anew has none.
  pools.members.clear()
  app.discovery.sync()
  assert.deepEqual([ids(), dns.asked.length, events.length], [['10.0.0.1:80'], asked, 1])
})

test('sync: a source that changed replaces the old one, whose members stay until it has a list', async (t) => {
  const dns = await DnsServer.start(t)
  dns.addresses('old.test', ['10.0.0.1', '10.0.0.2'])
  const of = (name: string) => ({ dns: dnsOptions({ name, servers: [dns.address] }) })
  const { app, pools, ids, events } = await harness(t, { shop: of('old.test') })
  await app.ready()
  dns.both('new.test', 'SERVFAIL')
  pools.define('shop', of('new.test'))
  app.discovery.sync()
  await until(() => app.discovery.view()[0]!.lastError !== null)
  assert.deepEqual([ids(), app.discovery.view()[0]!.from], [['10.0.0.1:80', '10.0.0.2:80'], 'new.test'])
  const asked = dns.count('old.test A')
  dns.addresses('new.test', ['10.0.0.2', '10.0.0.3'])
  await until(() => ids().join() === '10.0.0.2:80,10.0.0.3:80')
  const last = events.findLast(({ type }) => type === 'discovery_changed')
  assert.ok(last?.type === 'discovery_changed')
  assert.deepEqual([last.added, last.removed, dns.count('old.test A')], [['10.0.0.3:80'], ['10.0.0.1:80'], asked])
})

test('sync: a pool without discovery any more loses what was discovered; one that is gone is left alone; a new one starts', async (t) => {
  const { app, pools, ids } = await harness(t, { plain: { source: 'mine' }, gone: { source: 'mine' } }, { readyMs: 0 })
  const mine = new Played()
  app.discovery.provide('mine', mine)
  await app.ready()
  mine.report(at(1))
  pools.define('plain')
  pools.pools.delete('gone')
  pools.define('fresh', { source: 'mine' })
  app.discovery.sync()
  assert.deepEqual([ids('plain'), ids('gone'), ids('fresh')], [[], idsOf(1), idsOf(1)])
  assert.deepEqual(app.discovery.view().map(({ pool }) => pool), ['fresh'])
})

test('sync during a question: nothing of the old one is taken', async (t) => {
  const dns = await DnsServer.start(t)
  const of = (name: string) => ({ dns: dnsOptions({ name, servers: [dns.address], timeoutMs: 60000 }) })
  const { app, pools, ids, log } = await harness(t, { shop: of('old.test') }, { readyMs: 0 })
  dns.both('old.test', 'silence')
  await app.ready()
  await until(() => dns.count('old.test A') === 1)
  dns.addresses('new.test', ['10.0.0.3'])
  pools.define('shop', of('new.test'))
  app.discovery.sync()
  await until(() => ids().join() === '10.0.0.3:80')
  assert.equal(log.find('discovery_failed'), undefined)
})

test('a listener that throws or leaves is nobody else\'s concern', async (t) => {
  const { app, types, log } = await harness(t, { shop: { source: 'mine' } }, { readyMs: 0 })
  const mine = new Played()
  app.discovery.provide('mine', mine)
  app.discovery.on('change', () => { throw new Error('bad listener') })
  const leave = app.discovery.on('change', () => assert.fail('has left'))
  leave()
  await app.ready()
  mine.report(at(1))
  assert.deepEqual([types(), log.all('listener_failed').length], [['discovery_changed'], 1])
})

test('discovery does not keep a process alive', async (t) => {
  const dns = await DnsServer.start(t)
  dns.addresses('shop.test', ['10.0.0.1'])
  const file = join(folder(t), 'list.yaml')
  writeFileSync(file, '- url: http://10.0.0.2\n')
  const plugin = (name: string): string => JSON.stringify(new URL(`../../plugins/${name}.js`, import.meta.url).href)
  const program = `
    import Fastify from 'fastify'
    import pools from ${plugin('upstream-pools')}
    import discovery from ${plugin('discovery')}
    const app = Fastify()
    await app.register(pools, { pools: {
      a: { discovery: { dns: { name: 'shop.test', servers: [${JSON.stringify(dns.address)}] } } },
      b: { discovery: { file: { path: ${JSON.stringify(file)} } } }
    } })
    await app.register(discovery)
    await app.ready()
    console.log(app.discovery.view().flatMap(({ members }) => members).join())`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { cwd: new URL('.', import.meta.url), timeout: 30000 })
  assert.equal(stdout.trim(), '10.0.0.1:80,10.0.0.2:80')
})

test('a stop that fails is logged, and the app closes', async (t) => {
  const { app, log } = await harness(t, { shop: { source: 'mine' } }, { readyMs: 0 })
  const mine = new Played()
  mine.end = () => Promise.reject(new Error('the registry hung up'))
  app.discovery.provide('mine', mine)
  await app.ready()
  await app.close()
  assert.equal(log.all('discovery_stop_failed').length, 1)
})

test('a stop that never ends is logged, and the app closes without it', async (t) => {
  const { app, log } = await harness(t, { shop: { source: 'mine' }, other: { source: 'quick' } }, { readyMs: 0 })
  const mine = new Played()
  mine.end = () => new Promise(() => {})
  app.discovery.provide('mine', mine)
  app.discovery.provide('quick', new Played())
  await app.ready()
  await app.close()
  assert.deepEqual(log.all('discovery_stop_late').map(({ pool, level }) => [pool, level]), [['shop', 40]])
})
