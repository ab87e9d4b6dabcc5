import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, answering, rawUpstream, send, stall } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import { closedPort } from '../../support/ports.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import type { RawConnection, RawResult } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, inFront, request } from './support.ts'

/** Holds each request until it is let go, in any order. */
function holding (): { handler: RawHandler, held: Map<string, () => void> } {
  const held = new Map<string, () => void>()
  const handler: RawHandler = async (socket, { target }) => {
    await new Promise<void>(resolve => { held.set(target, resolve) })
    held.delete(target)
    await send(socket, answer({ body: target }))
  }
  return { handler, held }
}

function reasonOf (got: RawResult): unknown {
  return (got.json() as Record<string, unknown>)['reason']
}

/** Whole seconds, from when another try may help, plus at most a fifth or a second. */
function assertRetryAfter (got: RawResult, atLeast: number, atMost: number): void {
  const value = got.header('retry-after') ?? ''
  assert.match(value, /^\d+$/)
  assert.ok(Number(value) >= atLeast && Number(value) <= atMost, `Retry-After: ${value}`)
}

test('requests over connections.max wait in their order, and the queue is as long as connections.max', async (t) => {
  const { handler, held } = holding()
  const { gateway, upstream } = await inFront(t, handler, { pool: { connections: { max: 2 } } })
  const order: string[] = []
  const ask = async (path: string): Promise<RawResult> => {
    const got = await rawRequest(gateway.port, request('GET', path))
    order.push(path)
    return got
  }
  const first = [ask('/1'), ask('/2')]
  await until(() => held.size === 2)
  const third = ask('/3')
  await until(() => gateway.upstream().waiting === 1)
  const fourth = ask('/4')
  await until(() => gateway.upstream().waiting === 2)
  assert.deepEqual([gateway.upstream().inFlight, gateway.upstream().busyConnections, upstream.requests.length], [4, 2, 2])

  const fifth = await rawRequest(gateway.port, request('GET', '/5'))
  assert.deepEqual([fifth.status, reasonOf(fifth)], [503, 'upstream_capacity'])
  assertRetryAfter(fifth, 1, 2)
  const line = await gateway.lines.waitFor('access')
  assert.deepEqual([line['reason'], line['attempts'], line['upstream']], ['upstream_capacity', 0, null])

  held.get('/2')?.()
  await until(() => held.has('/3'))
  assert.equal(held.has('/4'), false)
  held.get('/1')?.()
  await until(() => held.has('/4'))
  held.get('/3')?.()
  await until(() => order.length === 3)
  held.get('/4')?.()
  const all = await Promise.all([...first, third, fourth])
  assert.deepEqual(all.map(got => [got.status, got.text()]), [[200, '/1'], [200, '/2'], [200, '/3'], [200, '/4']])
  assert.deepEqual(order, ['/2', '/1', '/3', '/4'])
  await gateway.idle()
  assert.equal(upstream.connections, 2, 'never more connections than that')
  assert.equal(gateway.breaker().window.total, 4)
})

test('a waiting request whose client leaves makes room in the queue and is never sent', async (t) => {
  const { handler, held } = holding()
  const { gateway, upstream } = await inFront(t, handler, { pool: { connections: { max: 1 } } })
  const first = rawRequest(gateway.port, request('GET', '/1'))
  await until(() => held.size === 1)
  const leaving = await rawConnect(gateway.port)
  await leaving.write(request('GET', '/2'))
  await until(() => gateway.upstream().waiting === 1)
  assert.equal((await rawRequest(gateway.port, request('GET', '/full'))).status, 503)
  leaving.reset()
  await until(() => gateway.upstream().waiting === 0)
  const third = rawRequest(gateway.port, request('GET', '/3'))
  await until(() => gateway.upstream().waiting === 1)
  held.get('/1')?.()
  await until(() => held.has('/3'))
  held.get('/3')?.()
  assert.deepEqual([(await first).status, (await third).text()], [200, '/3'])
  assert.deepEqual(upstream.requests.map(each => each.target), ['/1', '/3'])
  await gateway.idle()
})

test('a request whose time runs out in the queue is refused for capacity, and blames nobody', async (t) => {
  const { gateway, upstream } = await inFront(t, stall, {
    pool: { connections: { max: 1 } },
    routes: [{ path: '/hold', pool: 'shop' }, { path: '/*', pool: 'shop', timeouts: { totalMs: 150 } }]
  })
  const holder = await rawConnect(gateway.port)
  await holder.write(request('GET', '/hold'))
  await until(() => upstream.requests.length === 1)
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, reasonOf(got)], [503, 'upstream_capacity'])
  assertRetryAfter(got, 1, 2)
  const line = await gateway.lines.waitFor('access')
  assert.deepEqual([line['status'], line['reason']], [503, 'upstream_capacity'])
  assert.equal(gateway.lines.find('upstream_error'), undefined, 'our own limit is no upstream\'s error')
  assert.deepEqual([gateway.upstream().waiting, gateway.upstream().inFlight, gateway.breaker().window.total], [0, 1, 0])
  holder.destroy()
  await gateway.idle()
  assert.equal(upstream.requests.length, 1)
})

test('a request with a body waits in the queue and arrives whole', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket, { body }) => {
    const { body: bytes } = await body()
    await send(socket, answer({ body: String(bytes.length) }))
  }, { pool: { connections: { max: 1 } } })
  upstream.handle(async (socket, { body, total }) => {
    const { body: bytes } = await body()
    if (total === 1) await until(() => gateway.upstream().waiting === 1)
    await send(socket, answer({ body: String(bytes.length) }))
  })
  const both = await Promise.all([100_000, 200_000].map(size => rawRequest(gateway.port, request('POST', '/', {}, Buffer.alloc(size)))))
  assert.deepEqual(both.map(got => got.text()), ['100000', '200000'])
  await gateway.idle()
})

test('maxInFlightPerUpstream refuses what is over it, and not for ever', async (t) => {
  const { handler, held } = holding()
  const { gateway } = await inFront(t, handler, { pool: { maxInFlightPerUpstream: 2 } })
  const both = [rawRequest(gateway.port, request('GET', '/1')), rawRequest(gateway.port, request('GET', '/2'))]
  await until(() => held.size === 2)
  const got = await rawRequest(gateway.port, request('GET', '/3'))
  assert.deepEqual([got.status, reasonOf(got)], [503, 'upstream_capacity'])
  assertRetryAfter(got, 1, 2)
  for (const letGo of held.values()) letGo()
  await Promise.all(both)
  await gateway.skip()
  const again = rawRequest(gateway.port, request('GET', '/4'))
  await until(() => held.has('/4'))
  held.get('/4')?.()
  assert.equal((await again).status, 200)
  await gateway.left({ counted: 'success', status: 200 })
})

test('a full upstream is passed over while another has room', async (t) => {
  const { handler, held } = holding()
  const slow = await rawUpstream(handler)
  const quick = await rawUpstream(answering({ body: 'quick' }))
  t.after(() => Promise.all([slow.close(), quick.close()]))
  const gateway = await startGateway(t, { upstreams: [slow.url, quick.url], pool: { maxInFlightPerUpstream: 1 } })
  const holder = rawRequest(gateway.port, request('GET', '/1')).then(async (got) => got.text() === '/1' ? got : rawRequest(gateway.port, request('GET', '/1')))
  await until(() => held.size === 1)
  for (let i = 0; i < 4; i++) assert.equal((await rawRequest(gateway.port, get)).text(), 'quick')
  held.get('/1')?.()
  await holder
  await gateway.idle()
})

test('with all upstreams drained nobody is asked: no_upstream_healthy', async (t) => {
  const { gateway, upstream } = await inFront(t, answering(), { pool: { health: { enabled: false, intervalMs: 3000 } } })
  gateway.app.pools.setDraining('shop', gateway.upstream().id, true)
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, reasonOf(got)], [503, 'no_upstream_healthy'])
  assertRetryAfter(got, 3, 4)
  await gateway.left({ counted: 'neutral', status: 503, reason: 'no_upstream_healthy', upstream: null })
  gateway.app.pools.setDraining('shop', gateway.upstream().id, false)
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  assert.equal(upstream.requests.length, 1)
})

test('an open breaker refuses with its reason, and tells when to come again', async (t) => {
  const gateway = await startGateway(t, { upstreams: [`http://127.0.0.1:${await closedPort(t)}`], pool: { breaker: { consecutiveFailures: 2, openMs: 20000, jitter: 0 } } })
  for (let i = 0; i < 2; i++) assert.equal((await rawRequest(gateway.port, get)).status, 502)
  await gateway.skip()
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, reasonOf(got)], [503, 'breaker_open'])
  assertRetryAfter(got, 19, 24)
  await gateway.left({ counted: 'neutral', status: 503, reason: 'breaker_open', upstream: null })
})

test('which reason is told: capacity before the breaker, the breaker before health', async (t) => {
  const { handler, held } = holding()
  const upstreams = await Promise.all([0, 1, 2].map(() => rawUpstream(handler)))
  t.after(() => Promise.all(upstreams.map(each => each.close())))
  const gateway = await startGateway(t, { upstreams: upstreams.map(({ url }) => url), pool: { maxInFlightPerUpstream: 1 } })
  const { app } = gateway
  const [full, open, down] = [0, 1, 2].map(index => gateway.upstream(index).id) as [string, string, string]
  app.breakers.get('shop', open).force('open', 60_000)
  app.pools.setDraining('shop', down, true)
  const holder = rawRequest(gateway.port, request('GET', '/1'))
  await until(() => held.size === 1)
  assert.equal(reasonOf(await rawRequest(gateway.port, get)), 'upstream_capacity')
  app.pools.setDraining('shop', full, true)
  assert.equal(reasonOf(await rawRequest(gateway.port, get)), 'breaker_open')
  app.pools.setDraining('shop', open, true)
  assert.equal(reasonOf(await rawRequest(gateway.port, get)), 'no_upstream_healthy')
  held.get('/1')?.()
  assert.equal((await holder).status, 200)
  await gateway.idle()
})

test('the gate is full, and is empty again, however its requests ended', async (t) => {
  const { gateway, upstream } = await inFront(t, stall, { shedding: { maxInFlight: 3 } })
  const clients: RawConnection[] = []
  for (let i = 0; i < 3; i++) {
    const client = await rawConnect(gateway.port)
    await client.write(get)
    clients.push(client)
  }
  await until(() => upstream.requests.length === 3)
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, reasonOf(got)], [503, 'shed_capacity'])
  for (const client of clients) client.reset()
  await gateway.idle()
  upstream.handle(answering({ body: 'room' }))
  assert.equal((await rawRequest(gateway.port, get)).text(), 'room')
})
