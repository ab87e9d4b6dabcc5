import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { NameAnswer } from '../../../lib/discovery/answer.ts'
import { memberId, type DiscoveredUpstream } from '../../../lib/discovery/members.ts'
import { DnsSource } from '../../../plugins/discovery/dns-source.ts'
import { LocalNames } from '../../../plugins/discovery/local-names.ts'
import { until } from '../../support/wait.ts'
import { DnsServer } from './dns-server.ts'
import { dnsOptions, folder, harness } from './fixtures.ts'

test('without resolvers of its own, a pool goes by the hosts file before DNS, as every program of the machine does', async (t) => {
  const hosts = join(folder(t), 'hosts')
  writeFileSync(hosts, '10.0.0.1 shop.test # the first\n10.0.0.2 other.test Shop.Test.\nfd00::1 shop.test\nfe80::1%lo shop.test\n')
  const { app, ids } = await harness(t, { shop: { dns: dnsOptions({ name: 'shop.test' }) } }, { hosts })
  await app.ready()
  assert.deepEqual(ids(), ['10.0.0.1:80', '10.0.0.2:80', '[fd00::1]:80'])
  writeFileSync(hosts, '10.0.0.3 shop.test\n')
  await until(() => ids().join() === '10.0.0.3:80')
})

test('with resolvers of its own, the hosts file does not count', async (t) => {
  const hosts = join(folder(t), 'hosts')
  writeFileSync(hosts, '10.0.0.1 shop.test\n')
  const dns = await DnsServer.start(t)
  dns.addresses('shop.test', ['10.9.9.9'])
  const { app, ids } = await harness(t, { shop: { dns: dnsOptions({ name: 'shop.test', servers: [dns.address] }) } }, { hosts })
  await app.ready()
  assert.deepEqual(ids(), ['10.9.9.9:80'])
})

test('localhost works, whatever the hosts file says', async (t) => {
  const local = new LocalNames(join(folder(t), 'nowhere'))
  assert.equal((await local.inHosts(['localhost'], ['ipv4'])).size, 0)
  const { ipv4 } = await local.lookup('localhost', ['ipv4'], 5000)
  assert.deepEqual(ipv4, { kind: 'found', addresses: ['127.0.0.1'], ttlMs: null })
})

test('the system is not asked again while it has not answered, as each question may hold a thread', async () => {
  const local = new LocalNames()
  const [first, second] = await Promise.all([local.lookup('localhost', ['ipv4'], 5000), local.lookup('localhost', ['ipv4'], 5000)])
  assert.deepEqual([first.ipv4?.kind, second.ipv4], ['found', { kind: 'failed', why: 'localhost: no answer in time', late: true }])
  assert.equal((await local.lookup('localhost', ['ipv4'], 5000)).ipv4?.kind, 'found')
})

/** The system's look-up, scripted. */
class Scripted extends LocalNames {
  readonly asked: string[] = []
  answer: NameAnswer = {}

  override async inHosts (): Promise<Map<string, NameAnswer>> { return new Map() }
  override async lookup (name: string): Promise<NameAnswer> {
    this.asked.push(name)
    return this.answer
  }
}

async function withScripted (t: Parameters<typeof DnsServer.start>[0], name = 'shop') {
  const dns = await DnsServer.start(t)
  const local = new Scripted()
  const source = new DnsSource(dnsOptions({ name, servers: [dns.address], timeoutMs: 100 }), true, () => 0.5, local)
  const told: string[] = []
  t.after(() => { source.stop() })
  const start = (): void => {
    source.start((members: readonly DiscoveredUpstream[]) => { told.push(members.map(memberId).join()) }, (error) => { told.push(error.message) })
  }
  return { dns, local, source, told, start }
}

test('a name that only the system can complete is looked up by it, and again after a while', async (t) => {
  const { local, told, start } = await withScripted(t)
  local.answer = { ipv4: { kind: 'found', addresses: ['10.0.0.1'], ttlMs: null }, ipv6: { kind: 'none', why: 'none' } }
  start()
  await until(() => told.length >= 2)
  assert.deepEqual([told[0], told[1], local.asked[0]], ['10.0.0.1:80', '10.0.0.1:80', 'shop'])
})

test('a name that neither knows fails with what DNS said', async (t) => {
  const { local, told, start } = await withScripted(t)
  local.answer = { ipv4: { kind: 'failed', why: 'something else', late: false } }
  start()
  await until(() => told.length >= 1)
  assert.equal(told[0], 'shop: there is no such name')
})

test('the system is not asked where DNS knew the name, or gave no answer in time', async (t) => {
  const { dns, local, told, start } = await withScripted(t, 'shop.test')
  dns.addresses('shop.test', ['10.0.0.1'])
  start()
  await until(() => told.includes('10.0.0.1:80'))
  dns.both('shop.test', 'silence')
  await until(() => told.includes('shop.test: no answer in time'), { timeoutMs: 10000 })
  assert.deepEqual(local.asked, [])
})
