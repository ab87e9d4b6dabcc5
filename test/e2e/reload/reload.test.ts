import { deepEqual, equal, ok } from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { until } from '../../support/wait.ts'
import { client, named, quick, type NamedUpstream } from './kit.ts'

const poolOf = (...upstreams: NamedUpstream[]) => ({ upstreams: upstreams.map(({ url }) => ({ url })), health: quick })
const base = { admin: { enabled: false }, shedding: { pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 } } }

async function gatewayOf (t: TestContext, pools: Record<string, object>, routes?: Array<Record<string, unknown>>): Promise<Gateway> {
  const gateway = await startGateway(t, { pools, ...routes !== undefined && { routes } })
  await until(() => gateway.app.readiness().ready, { what: 'readiness' })
  return gateway
}

async function applied ({ app }: Gateway, config: Record<string, unknown>): Promise<void> {
  const verdict = await app.configuration.apply({ ...base, ...config })
  ok(verdict.valid, JSON.stringify(verdict))
}

test('a new upstream gets traffic once it has been checked, one that left gets none, and one that stayed keeps what is known of it', async (t) => {
  const [a, b, c] = [await named(t, 'a'), await named(t, 'b'), await named(t, 'c')]
  const gateway = await gatewayOf(t, { shop: poolOf(a, b) })
  const get = client(t, gateway.port)
  for (let i = 0; i < 4; i++) await get()
  const kept = gateway.upstream(0)
  const { connects } = kept
  gateway.app.breakers.find('shop', a.id)?.breaker.force('closed', 60000, 'test', performance.now())
  await applied(gateway, { pools: { shop: poolOf(a, c) } })

  const seen = new Set<string>()
  await until(async () => {
    seen.add((await get()).text)
    return seen.has('c') && seen.has('a')
  })
  const before = b.count
  for (let i = 0; i < 6; i++) ok((await get()).text !== 'b')
  equal(b.count, before)
  equal(gateway.upstream(0).connects, connects, 'its connections are the same')
  equal(gateway.app.breakers.find('shop', a.id)?.snapshot().force?.state, 'closed', 'a force survives')
  equal(gateway.app.breakers.find('shop', b.id), undefined)
  deepEqual(gateway.app.health.list().map(({ upstream }) => upstream), [a.id, c.id])
  await gateway.idle()
})

test('an exchange ends as it began although its upstream has left, and then its connection closes', async (t) => {
  const [a, b] = [await named(t, 'a'), await named(t, 'b')]
  let held: ServerResponse | null = null
  a.handle = (_request, response) => { held = response }
  const gateway = await gatewayOf(t, { shop: poolOf(a) })
  const leaving = gateway.upstream(0)
  const get = client(t, gateway.port)
  const answer = get('/slow')
  await until(() => held)
  await applied(gateway, { pools: { shop: poolOf(b) } })
  await until(() => gateway.app.pools.list()[0]?.upstreams.length === 1 && gateway.upstream(0).id === b.id)
  equal((await get()).text, 'b')
  equal(leaving.inFlight, 1)
  ;(held as ServerResponse | null)?.end('late')
  deepEqual(await answer.then(({ status, text }) => [status, text]), [200, 'late'])
  await until(() => leaving.dispatcher.closed && leaving.inFlight === 0)
  await gateway.idle()
})

test('a change of all addresses at once refuses nobody: the old ones serve until a new one is known to be healthy', async (t) => {
  const [a, b] = [await named(t, 'a'), await named(t, 'b')]
  const pending: Array<() => void> = []
  b.check = (response) => { pending.push(() => { response.writeHead(204).end() }) }
  const gateway = await gatewayOf(t, { shop: poolOf(a) })
  const get = client(t, gateway.port)
  await applied(gateway, { pools: { shop: { ...poolOf(b), health: { ...quick, timeoutMs: 20000 } } } })
  for (let i = 0; i < 5; i++) deepEqual(await get().then(({ status, text }) => [status, text]), [200, 'a'])
  equal(gateway.app.pools.find('shop', a.id)?.leaving, true)
  await until(() => pending.length > 0)
  b.check = (response) => { response.writeHead(204).end() }
  for (const answer of pending.splice(0)) answer()
  await until(() => gateway.app.pools.find('shop', a.id) === undefined)
  deepEqual(await get().then(({ status, text }) => [status, text]), [200, 'b'])
  ok(gateway.lines.all('members_changed').some(({ removed }) => String(removed) === a.id))
})

test('most of the old servers serve until enough of the new ones have been looked at, and nobody panics', async (t) => {
  const [a, b, c, d] = [await named(t, 'a'), await named(t, 'b'), await named(t, 'c'), await named(t, 'd')]
  c.healthy = false
  d.healthy = false
  const gateway = await gatewayOf(t, { shop: { ...poolOf(a, b), health: { ...quick, fall: 100, rise: 1 } } })
  // Neither of the new ones answers its check for now.
  const pending: Array<() => void> = []
  for (const upstream of [c, d]) upstream.check = (response) => { pending.push(() => { response.writeHead(204).end() }) }
  await applied(gateway, { pools: { shop: { ...poolOf(a, c, d), health: { ...quick, timeoutMs: 20000 } } } })
  const get = client(t, gateway.port)
  const seen = new Set<string>()
  for (let i = 0; i < 10; i++) seen.add((await get()).text)
  deepEqual([...seen].toSorted(), ['a', 'b'])
  equal(gateway.app.pools.lane('shop')?.panic, false)
  await until(() => pending.length === 2)
  for (const answer of pending.splice(0)) answer()
  await until(() => gateway.app.pools.find('shop', b.id) === undefined)
  for (const upstream of [c, d]) upstream.check = (response) => { response.writeHead(204).end() }
})

test('nothing of a configuration is in force before its new pools have been looked at', async (t) => {
  const [a, b, c] = [await named(t, 'a'), await named(t, 'b'), await named(t, 'c')]
  const gateway = await gatewayOf(t, { old: poolOf(a) }, [{ path: '/*', pool: 'old' }])
  const pending: Array<() => void> = []
  c.check = (response) => { pending.push(() => { response.writeHead(204).end() }) }
  const get = client(t, gateway.port)
  const swapped = applied(gateway, { pools: { old: poolOf(b), fresh: { ...poolOf(c), health: { ...quick, timeoutMs: 20000 } } }, routes: [{ path: '/b/*', pool: 'old' }, { path: '/*', pool: 'fresh' }] })
  await until(() => pending.length > 0)
  for (let i = 0; i < 3; i++) equal((await get()).text, 'a')
  equal(gateway.app.configuration.view().version, 1)
  c.check = (response) => { response.writeHead(204).end() }
  for (const answer of pending.splice(0)) answer()
  await swapped
  equal((await get()).text, 'c')
  await until(async () => (await get('/b/')).text === 'b')
})

test('a route that is sent to a new pool meets it only once it has been looked at', async (t) => {
  const [a, b] = [await named(t, 'a'), await named(t, 'b')]
  const gateway = await gatewayOf(t, { one: poolOf(a) }, [{ path: '/*', pool: 'one' }])
  const get = client(t, gateway.port)
  const swapped = applied(gateway, { pools: { two: poolOf(b) }, routes: [{ path: '/*', pool: 'two' }] })
  const texts: string[] = []
  for (;;) {
    const { status, text } = await get()
    equal(status, 200)
    texts.push(text)
    if (text === 'b') break
  }
  await swapped
  equal(gateway.app.pools.get('one'), undefined)
  ok(gateway.lines.find('config_reloaded'))
})

test('what is wrong changes nothing, and is told whole', async (t) => {
  const a = await named(t, 'a')
  const gateway = await gatewayOf(t, { shop: poolOf(a) })
  const { app } = gateway
  const before = app.configuration.current
  const verdict = await app.configuration.apply({ pools: { shop: { upstreams: [{ url: 'ftp://x' }], balancer: 'best' } } })
  equal(verdict.valid, false)
  deepEqual(verdict.valid ? [] : verdict.errors.map(({ path }) => path).toSorted(), ['pools.shop.balancer', 'pools.shop.upstreams[0].url'])
  equal(app.configuration.current, before)
  equal(app.configuration.view().version, 1)
  equal(app.configuration.view().rejected?.errors.length, 2)
  equal((await client(t, gateway.port)()).text, 'a')
  ok(gateway.lines.find('config_rejected'))
  await applied(gateway, { pools: { shop: poolOf(a) } })
  equal(app.configuration.view().rejected, null)
})

test('a reload tells the reasons of all whom it serves, taken or refused', async (t) => {
  const a = await named(t, 'a')
  const gateway = await gatewayOf(t, { shop: poolOf(a) })
  const { configuration, events } = gateway.app
  let broken = true
  const load = (): typeof configuration.current => {
    if (broken) throw new Error('it is half written')
    return configuration.current
  }
  configuration.follow({ file: null, load })
  const told = (type: string): unknown => events.since(0).events.findLast((event) => event.type === type)?.['reason']
  await Promise.all([configuration.reload('signal'), configuration.reload('admin', 'a new disk'), configuration.reload('admin', 'a drill'), configuration.reload('admin', 'a new disk')])
  equal(told('config_rejected'), 'a new disk; a drill')
  equal(configuration.view().rejected?.reason, 'a new disk; a drill')
  equal(gateway.lines.find('config_rejected')?.['reason'], 'a new disk; a drill')
  equal(events.since(0).events.filter(({ type }) => type === 'config_rejected').length, 1)
  await configuration.reload('signal')
  equal(told('config_rejected'), null)
  broken = false
  await configuration.reload('admin', 'it is whole')
  equal(told('config_reloaded'), 'it is whole')
})

test('options of the listener are refused with their paths', async (t) => {
  const gateway = await gatewayOf(t, { shop: poolOf(await named(t, 'a')) })
  const verdict = await gateway.app.configuration.apply({ ...base, server: { maxHeaderBytes: 2048, maxBodyBytes: 10 }, pools: gateway.app.configuration.current.pools })
  deepEqual(verdict.valid ? [] : verdict.errors.map(({ path }) => path), ['server.maxHeaderBytes'])
})

test('the body limit of the server, shedding and the routes hold at once', async (t) => {
  const a = await named(t, 'a')
  const gateway = await gatewayOf(t, { shop: poolOf(a) })
  const pools = { shop: poolOf(a) }
  await applied(gateway, { pools, server: { maxBodyBytes: 3 }, shedding: { ...base.shedding, maxInFlight: 7 }, routes: [{ path: '/only', pool: 'shop' }] })
  const post = (path: string) => fetch(`http://127.0.0.1:${gateway.port}${path}`, { method: 'POST', body: '1234' }).then(({ status }) => status)
  equal(await post('/only'), 413)
  equal(await post('/other'), 404)
  equal(gateway.app.shedding.view().maxInFlight, 7)
})

test('a reload looks at nothing twice: two at once come one after the other', async (t) => {
  const [a, b] = [await named(t, 'a'), await named(t, 'b')]
  const gateway = await gatewayOf(t, { one: poolOf(a) }, [{ path: '/*', pool: 'one' }])
  await Promise.all([
    applied(gateway, { pools: { two: poolOf(b) }, routes: [{ path: '/*', pool: 'two' }] }),
    applied(gateway, { pools: { one: poolOf(a) }, routes: [{ path: '/*', pool: 'one' }] })
  ])
  deepEqual(gateway.app.pools.list().map(({ name }) => name), ['one'])
  equal(gateway.app.configuration.view().version, 3)
  equal((await client(t, gateway.port)()).text, 'a')
})

test('a breaker takes its new options, and its window stays', async (t) => {
  const a = await named(t, 'a')
  a.handle = (_request, response) => { response.writeHead(500).end() }
  const gateway = await gatewayOf(t, { shop: { ...poolOf(a), breaker: { consecutiveFailures: 0, window: { failureRatio: 0 } } } })
  const get = client(t, gateway.port)
  for (let i = 0; i < 3; i++) await get()
  await gateway.idle()
  await applied(gateway, { pools: { shop: { ...poolOf(a), breaker: { consecutiveFailures: 4, window: { failureRatio: 0 } } } } })
  equal(gateway.breaker().window.failures, 3)
  await get()
  await until(() => gateway.breaker().state === 'open')
  equal((await get()).status, 503)
})

test('a drain survives a reload', async (t) => {
  const [a, b] = [await named(t, 'a'), await named(t, 'b')]
  const gateway = await gatewayOf(t, { shop: poolOf(a, b) })
  gateway.app.pools.setDraining('shop', a.id, true, { reason: 'disk' })
  await applied(gateway, { pools: { shop: { ...poolOf(a, b), connections: { max: 3 } } } })
  const get = client(t, gateway.port)
  for (let i = 0; i < 5; i++) equal((await get()).text, 'b')
  equal(gateway.app.pools.find('shop', a.id)?.drain?.reason, 'disk')
})
