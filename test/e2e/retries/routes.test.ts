import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, rawUpstream, send, stall } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import type { RawConnection } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, inFront, request } from '../forwarder/support.ts'
import { named, refuses, row } from './support.ts'

const tellsHead: RawHandler = (socket, { target, text }) =>
  send(socket, answer({ headers: [['X-Secret', 'a'], ['X-Kind', 'theirs'], ['Set-Cookie', 'a=1'], ['Set-Cookie', 'b=2']], body: `${target}\n${text.split('\r\n').slice(1).join('\n')}` }))

test('a route changes fields on both ways: what it says replaces what the client and the upstream say', async (t) => {
  const { gateway } = await inFront(t, tellsHead, {
    routes: [{
      path: '/*',
      pool: 'shop',
      requestHeaders: { set: { 'X-Tenant': 'acme' }, remove: ['x-debug'] },
      responseHeaders: { set: { 'X-Kind': 'ours', 'Cache-Control': 'no-store' }, remove: ['X-Secret'] }
    }]
  })
  const got = await rawRequest(gateway.port, request('GET', '/', { 'X-Tenant': 'evil', 'x_tenant': 'evil', 'X-Debug': '1' }))
  const sent = got.text().toLowerCase()
  assert.ok(sent.includes('\nx-tenant: acme\n'))
  assert.ok(!sent.includes('evil') && !sent.includes('debug'), sent)
  assert.deepEqual([got.header('x-kind'), got.header('x-secret'), got.header('cache-control'), got.header('set-cookie')], ['ours', undefined, 'no-store', 'a=1, b=2'])
})

test('what is sent to the second upstream has its own Host and base path, and everything else as before', async (t) => {
  const upstreams = await Promise.all([rawUpstream(named('first', 503)), rawUpstream(tellsHead)])
  t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())))
  const [first, second] = upstreams as [typeof upstreams[0], typeof upstreams[0]]
  const pools = {
    shop: {
      health: { enabled: false },
      retry: { retries: 1 },
      upstreams: [{ url: `${first.url}/old` }, { url: `${second.url}/new`, priority: 1 }]
    }
  }
  const gateway = await startGateway(t, { pools, routes: [{ path: '/api/*', pool: 'shop', stripPrefix: '/api' }] })
  const got = await rawRequest(gateway.port, request('GET', '/api/things?x=1', { 'X-Any': 'y' }))
  assert.equal(first.requests[0]?.target, '/old/things?x=1')
  assert.equal(second.requests[0]?.target, '/new/things?x=1')
  assert.equal(second.requests[0]?.header('host'), second.url.slice('http://'.length))
  assert.equal(first.requests[0]?.header('host'), first.url.slice('http://'.length))
  const rest = (text: string): string => text.split('\r\n').slice(1).filter((line) => !/^host:/i.test(line)).toSorted().join('\n')
  assert.equal(rest(second.requests[0]?.text ?? ''), rest(first.requests[0]?.text ?? ''))
  assert.equal(got.status, 200)
})

test('with hostHeader: preserve each upstream gets the client\'s Host', async (t) => {
  const { gateway, upstreams } = await row(t, [named('first', 503), named('second')], { pool: { hostHeader: 'preserve' } })
  await rawRequest(gateway.port, get)
  assert.deepEqual(upstreams.map(({ requests }) => requests[0]?.header('host')), ['shop.example', 'shop.example'])
})

test('requests of a low priority are refused first, with their reason and a time to come again', async (t) => {
  const routes = [{ path: '/low', pool: 'shop', priority: 'low' }, { path: '/high', pool: 'shop', priority: 'high' }, { path: '/*', pool: 'shop' }]
  const { gateway, upstream } = await inFront(t, stall, { routes, shedding: { maxInFlight: 4, priorities: { normal: 0.75, low: 0.5 } } })
  const clients: RawConnection[] = []
  const hold = async (path: string): Promise<void> => {
    const client = await rawConnect(gateway.port)
    clients.push(client)
    const before = upstream.requests.length
    await client.write(request('GET', path))
    await until(() => upstream.requests.length > before)
  }
  await hold('/low')
  await hold('/low')
  for (const [path, fits] of [['/low', false], ['/any', true], ['/any', false], ['/high', true]] as const) {
    if (fits) {
      await hold(path)
      continue
    }
    const got = await rawRequest(gateway.port, request('GET', path))
    assert.deepEqual([got.status, (got.json() as { reason: string }).reason], [503, 'shed_priority'])
    assert.ok(Number(got.header('retry-after')) >= 1)
  }
  assert.equal(upstream.requests.length, 4)
  const { shedding } = gateway.app
  assert.deepEqual([shedding.refused('shed_priority', 'normal'), shedding.refused('shed_priority', 'low'), shedding.refused('shed_capacity', 'normal')], [1, 1, 0])
  for (const client of clients) client.destroy()
  await gateway.idle()
})

test('a split route keeps its terms for each of its pools', async (t) => {
  const other = await rawUpstream(named('other', 503))
  t.after(() => other.close())
  const { gateway, asked } = await row(t, [refuses, named('second')], {
    pools: { canary: { health: { enabled: false }, upstreams: [{ url: other.url }] } },
    routes: [{ path: '/*', split: { pools: { shop: 1, canary: 1 }, overrideHeader: 'X-Pool' } }]
  })
  for (const [pool, status] of [['shop', 200], ['canary', 503], ['shop', 200], ['canary', 503]] as const) {
    assert.equal((await rawRequest(gateway.port, request('GET', '/', { 'X-Pool': pool }))).status, status)
  }
  assert.equal(asked()[1], 2)
})

test('a pool that is changed while an exchange waits for its retry is asked as it is then', async (t) => {
  const late = await rawUpstream(named('late'))
  t.after(() => late.close())
  const busy: RawHandler = (socket) => send(socket, answer({ status: 503, headers: [['Retry-After', '1']] }))
  const { gateway, asked } = await row(t, [busy, named('second')])
  const { app } = gateway
  const pending = rawRequest(gateway.port, get)
  await until(() => asked()[0] === 1)
  await until(() => gateway.breaker(0).window.total === 1)
  const pool = app.pools.get('shop')
  assert.ok(pool !== undefined)
  const [first] = pool.options.upstreams
  app.pools.apply({ shop: { ...pool.options, upstreams: [{ ...first, url: late.url, priority: 0, weight: 1 }, first] as typeof pool.options.upstreams } })
  assert.equal((await pending).header('x-upstream'), 'late')
  await gateway.idle()
  assert.deepEqual(asked(), [1, 0])
})

test('a pool that is gone when an exchange has waited for its retry is asked no more: the answer that is held is given', async (t) => {
  const other = await rawUpstream(named('other'))
  t.after(() => other.close())
  const busy: RawHandler = (socket) => send(socket, answer({ status: 503, headers: [['Retry-After', '1']], body: 'busy' }))
  const { gateway, asked } = await row(t, [busy, named('second')], { pools: { other: { health: { enabled: false }, upstreams: [{ url: other.url }] } }, routes: [{ path: '/*', pool: 'shop' }] })
  const { app } = gateway
  const pending = rawRequest(gateway.port, get)
  await until(() => gateway.breaker(0).window.total === 1)
  const rest = app.pools.get('other')
  assert.ok(rest !== undefined)
  app.pools.apply({ other: rest.options })
  const got = await pending
  assert.deepEqual([got.status, got.text()], [503, 'busy'])
  assert.deepEqual(asked(), [1, 0])
})
