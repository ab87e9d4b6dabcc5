import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ask } from '../../examples/support.ts'
import { DnsServer } from '../../plugins/discovery/dns-server.ts'
import { startGateway } from '../../support/gateway.ts'
import { until } from '../../support/wait.ts'
import { named, publish, service, srvDiscovery } from './support.ts'

test('a file is followed beside upstreams that are configured, and one that stands in both is there once', async (t) => {
  const [fixed, one, two] = [await named(t, 'fixed'), await named(t, 'one'), await named(t, 'two')]
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-e2e-'))
  t.after(() => { rmSync(folder, { recursive: true }) })
  const file = join(folder, 'upstreams.json')
  const write = (...upstreams: ReadonlyArray<{ url: string }>): void => {
    writeFileSync(`${file}.new`, JSON.stringify(upstreams.map(({ url }) => ({ url }))))
    renameSync(`${file}.new`, file)
  }
  write(one, fixed)
  const gateway = await startGateway(t, { pools: { shop: { upstreams: [{ url: fixed.url }], health: { enabled: false }, discovery: { file: { path: file } } } } })
  const ids = () => gateway.app.pools.get('shop')!.upstreams.map(({ id, discovered }) => `${id} ${discovered}`)
  const id = ({ port }: { port: number }) => `127.0.0.1:${port}`
  assert.deepEqual(ids(), [`${id(fixed)} false`, `${id(one)} true`])
  write(two)
  await until(() => ids().join() === `${id(fixed)} false,${id(two)} true`)
  const seen = new Set<string>()
  for (let times = 0; times < 4; times++) seen.add((await ask(`http://127.0.0.1:${gateway.port}/`)).json().upstream)
  assert.deepEqual([...seen].toSorted(), ['fixed', 'two'])
})

test('a reload that leaves the discovery as it was leaves its members, their state and its questions alone', async (t) => {
  const [a, b] = [await named(t, 'a'), await named(t, 'b')]
  const dns = await DnsServer.start(t)
  publish(dns, a, b)
  const config = (keepAliveMs: number, discovery: object): Record<string, unknown> => ({ pools: { shop: { health: { intervalMs: 20 }, discovery, connections: { keepAliveMs } } } })
  const seldom = { dns: { name: service, type: 'srv', servers: [dns.address], minTtlMs: 3_600_000, maxTtlMs: 3_600_000 } }
  const gateway = await startGateway(t, config(4000, seldom))
  const upstreams = () => gateway.app.pools.get('shop')!.upstreams
  await until(() => upstreams().every(({ healthy }) => healthy))
  const states = upstreams().map(({ state }) => state)
  const asked = dns.asked.length
  const first = { ...gateway.app.configuration.current, ...config(5000, seldom) }
  const verdict = await gateway.app.configuration.apply(first)
  assert.ok(verdict.valid, JSON.stringify(verdict))
  assert.deepEqual(upstreams().map(({ state, healthy }) => [states.indexOf(state), healthy]), [[0, true], [1, true]])
  assert.equal(dns.asked.length, asked)

  // Now the discovery itself changes: the members stay, and are followed by the new terms.
  publish(dns, b)
  assert.ok((await gateway.app.configuration.apply({ ...first, ...config(5000, srvDiscovery(dns)) })).valid)
  await until(() => upstreams().length === 1)
  assert.equal(upstreams()[0]!.state, states.find((_, index) => index === (a.port < b.port ? 1 : 0)))

  // And goes: what was discovered goes with it.
  const fixed = { pools: { shop: { upstreams: [{ url: a.url }] } } }
  assert.ok((await gateway.app.configuration.apply({ ...first, ...fixed })).valid)
  await until(() => upstreams().map(({ id }) => id).join() === `127.0.0.1:${a.port}`)
  const before = dns.asked.length
  await new Promise((resolve) => { setTimeout(resolve, 150) })
  assert.equal(dns.asked.length, before)
  assert.deepEqual(gateway.app.discovery.view(), [])
})
