import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { selfSigned } from '../../config/certificate.ts'
import { ask } from '../../examples/support.ts'
import { DnsServer } from '../../plugins/discovery/dns-server.ts'
import { answer, rawUpstream, send } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import { until } from '../../support/wait.ts'
import { breakDns, discovering, named, publish, service, srvDiscovery } from './support.ts'

test('traffic follows DNS: the new upstream gets its share, the gone one gets nothing, the one that stayed notices nothing', async (t) => {
  const [a, b, c] = [await named(t, 'a'), await named(t, 'b'), await named(t, 'c')]
  const { gateway, dns, spread } = await discovering(t, [a, b])
  await spread('a', 'b')
  const stays = gateway.app.pools.find('shop', `127.0.0.1:${b.port}`)!
  const { since } = gateway.app.health.get('shop', stays.id)!
  publish(dns, c, b)
  await spread('b', 'c')
  const { requests } = a.stats()
  await spread('b', 'c')
  assert.equal(a.stats().requests, requests)
  assert.equal(gateway.app.pools.find('shop', stays.id)!.state, stays.state)
  assert.deepEqual([gateway.app.health.get('shop', stays.id)!.since, gateway.app.health.get('shop', `127.0.0.1:${a.port}`)], [since, undefined])
})

test('a new upstream gets nothing before its first check has passed', async (t) => {
  const [a, c] = [await named(t, 'a'), await named(t, 'c', { refuseHealth: true })]
  const { dns, who, ids, spread } = await discovering(t, [a])
  await spread('a')
  publish(dns, a, c)
  await until(() => ids().length === 2 && c.stats().healthChecks > 0)
  for (let times = 0; times < 10; times++) assert.equal(await who(), 'a')
  c.set({ refuseHealth: false })
  await spread('a', 'c')
})

test('an exchange at an upstream that is gone from DNS ends as it should', async (t) => {
  let finish = (): void => {}
  const held = new Promise<void>((resolve) => { finish = resolve })
  const slow = await rawUpstream(async (socket, { target }) => {
    if (target !== '/healthz') await held
    await send(socket, answer({ body: '{"upstream":"slow"}' }))
  })
  t.after(() => slow.close())
  const next = await named(t, 'next')
  const { gateway, dns, who, spread, ids } = await discovering(t, [slow])
  await until(() => gateway.app.pools.get('shop')!.upstreams[0]?.healthy)
  const exchange = who('/slow')
  await until(() => gateway.app.pools.get('shop')!.upstreams[0]!.inFlight === 1)
  publish(dns, next)
  await until(() => ids().join() === `127.0.0.1:${next.port}`)
  await spread('next')
  finish()
  assert.equal(await exchange, 'slow')
})

for (const how of ['SERVFAIL', 'NXDOMAIN', 'silence'] as const) {
  test(`the resolver says ${how}: requests are served by the last good set, and the journal says so`, async (t) => {
    const [a, b] = [await named(t, 'a'), await named(t, 'b')]
    const { gateway, dns, spread } = await discovering(t, [a, b])
    await spread('a', 'b')
    breakDns(dns, how)
    await gateway.lines.waitFor('discovery_failed')
    await spread('a', 'b')
    assert.equal(gateway.app.discovery.view()[0]!.stale, true)
    publish(dns, b)
    await spread('b')
    const types = gateway.app.events.since(0).events.map(({ type }) => type).filter((type) => type.startsWith('discovery_'))
    assert.deepEqual(types.toSorted(), ['discovery_changed', 'discovery_changed', 'discovery_failed', 'discovery_recovered'])
  })
}

test('the resolver dies and comes back: nobody is refused meanwhile', async (t) => {
  const [a, b] = [await named(t, 'a'), await named(t, 'b')]
  const { gateway, dns, who, spread } = await discovering(t, [a])
  await spread('a')
  await dns.close()
  await gateway.lines.waitFor('discovery_failed')
  for (let times = 0; times < 10; times++) assert.equal(await who(), 'a')
  publish(dns, b)
  await dns.open()
  await spread('b')
})

test('records that flap under load refuse nobody', async (t) => {
  const upstreams = [await named(t, 'a'), await named(t, 'b'), await named(t, 'c')] as const
  const { dns, who, spread } = await discovering(t, upstreams)
  await spread('a', 'b', 'c')
  const answers: Record<string, number> = {}
  const over = new AbortController()
  const load = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) {
      const by = await who()
      answers[by] = (answers[by] ?? 0) + 1
    }
  })
  const [a, b, c] = upstreams
  for (let round = 0; round < 12; round++) {
    // One of them always stays, so that a checked one is there.
    publish(dns, ...[[a, b], [b, c], [c, a], [a, b, c]][round % 4]!)
    const asked = dns.count(`${service} SRV`)
    await until(() => dns.count(`${service} SRV`) >= asked + 2)
    if (round % 3 === 0) {
      breakDns(dns, 'SERVFAIL')
      await until(() => dns.count(`${service} SRV`) >= asked + 3)
    }
  }
  over.abort()
  await Promise.all(load)
  assert.deepEqual(Object.keys(answers).filter((by) => !['a', 'b', 'c'].includes(by)), [], JSON.stringify(answers))
})

test('the Host and the name of the certificate are the name that was resolved, whatever the address', async (t) => {
  const { cert, key } = selfSigned('shop.test')
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-e2e-'))
  t.after(() => { rmSync(folder, { recursive: true }) })
  writeFileSync(join(folder, 'ca.pem'), cert)
  const tellHost: RequestListener = (request, response) => { response.end(request.headers.host) }
  const server = createServer({ cert, key }, tellHost).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => { server.close() })
  const { port } = server.address() as AddressInfo
  const dns = await DnsServer.start(t)
  for (const name of ['shop.test', 'other.test']) dns.addresses(name, ['127.0.0.1'])
  const pool = (name: string) => ({
    health: { enabled: false },
    tls: { ca: join(folder, 'ca.pem') },
    discovery: { dns: { name, port, scheme: 'https', servers: [dns.address] } }
  })
  const gateway = await startGateway(t, { pools: { right: pool('shop.test'), wrong: pool('other.test') }, routes: [{ path: '/wrong', pool: 'wrong' }, { path: '/*', pool: 'right' }] })
  const url = `http://127.0.0.1:${gateway.port}`
  assert.equal((await ask(url)).text, `shop.test:${port}`)
  assert.equal((await ask(`${url}/wrong`)).json().reason, 'tls_failed')
})

test('a gateway whose resolver is dead starts, is not ready, and becomes so', async (t) => {
  const a = await named(t, 'a')
  const dns = await DnsServer.start(t)
  breakDns(dns, 'SERVFAIL')
  const gateway = await startGateway(t, { pools: { shop: { discovery: srvDiscovery(dns), health: { intervalMs: 20 } } } })
  const url = `http://127.0.0.1:${gateway.port}`
  assert.deepEqual([(await ask(`${url}/readyz`)).status, (await ask(`${url}/livez`)).status, (await ask(url)).json().reason], [503, 204, 'no_upstream_healthy'])
  publish(dns, a)
  await until(async () => (await ask(`${url}/readyz`)).status === 204)
  assert.equal((await ask(url)).json().upstream, 'a')
})
