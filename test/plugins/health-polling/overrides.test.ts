/** What an upstream says for itself in the place of its pool, and what a reload makes of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closedPort } from '../../support/ports.ts'
import { fakePool, harness, ok, overTls, RawUpstream, status, until, type Answer } from './fixtures.ts'

const down = status(503)
const hang: Answer = () => {}

test('another port: the check goes there and names it, and the upstream itself is not asked', async (t) => {
  const [own, side] = await Promise.all([down, ok].map((answer) => new RawUpstream(answer).listen(t))) as [RawUpstream, RawUpstream]
  const { app, check, pools } = await harness(t, { upstreams: [{ url: own.url, basePath: '/base', health: { port: side.port } }] })
  const { cause, upstream } = await check()
  assert.deepEqual([cause, upstream], ['check_passed', new URL(own.url).host])
  assert.equal(pools[0]!.upstreams[0]!.healthy, true)
  assert.deepEqual([own.accepted, side.accepted], [0, 1])
  assert.match(side.requests[0]!, new RegExp(`^GET /base/healthz HTTP/1\\.1\r\nhost: 127\\.0\\.0\\.1:${side.port}\r\n`, 'i'))
  await app.close()
  await until('no connection stays', () => side.sockets.size === 0)
})

test('another port that refuses fails the check, though the upstream itself would pass', async (t) => {
  const upstream = await new RawUpstream(ok).listen(t)
  const { check } = await harness(t, { upstreams: [{ url: upstream.url, health: { port: await closedPort(t) } }] })
  assert.equal((await check()).cause, 'connect_refused')
})

test('another port with a check of type tcp', async (t) => {
  const side = await new RawUpstream(hang).listen(t)
  const { check } = await harness(t, { upstreams: [{ url: `http://127.0.0.1:${await closedPort(t)}`, health: { port: side.port } }], health: { type: 'tcp' } })
  assert.equal((await check()).cause, 'check_passed')
})

test('the name that exchanges ask for is asked for, and checked in the certificate unless another one is configured', async (t) => {
  const raw = new RawUpstream(ok)
  const { url, cert } = await overTls(t, raw)
  const named = [
    { host: 'localhost', connector: { ca: cert } },
    { host: 'shop.internal', connector: { ca: cert } },
    { host: 'shop.internal', connector: { ca: cert, servername: 'localhost' } }
  ]
  for (const type of ['http', 'tcp'] as const) {
    const { check } = await harness(t, { upstreams: named.map((each, index) => ({ url, id: `${index}`, ...each })), health: { type } })
    const causes: string[] = []
    for (const index of named.keys()) causes.push((await check(index)).cause)
    assert.deepEqual(causes, ['check_passed', 'tls_failed', 'check_passed'], type)
  }
  assert.match(raw.requests[1]!, /\r\nhost: shop\.internal\r\n/i)
})

test('path, time limit, rise and fall are each upstream\'s own, the rest is the pool\'s', async (t) => {
  const [plain, special] = await Promise.all([[ok, down, ok], [ok, down, down, hang]].map((script) => new RawUpstream(...script).listen(t))) as [RawUpstream, RawUpstream]
  const { app, check } = await harness(t, {
    upstreams: [plain.url, { url: special.url, health: { path: '/up', timeoutMs: 400, fall: 2 } }], health: { path: '/pool', timeoutMs: 60000, removal: { share: 1, seconds: 10 } }
  })
  const beliefs: boolean[][] = []
  for (let round = 0; round < 3; round++) {
    await Promise.all([check(0), check(1)])
    beliefs.push(app.health.list().map(({ healthy }) => healthy))
  }
  assert.deepEqual(beliefs, [[true, true], [false, true], [true, false]])
  assert.equal((await check(1)).cause, 'timeout')
  assert.match(plain.requests[0]!, /^GET \/pool /)
  assert.match(special.requests[0]!, /^GET \/up /)
})

test('an interval of its own: it is asked again while the others wait for theirs', async (t) => {
  const [slow, quick] = await Promise.all([ok, ok].map((answer) => new RawUpstream(answer).listen(t))) as [RawUpstream, RawUpstream]
  const { app } = await harness(t, { upstreams: [slow.url, { url: quick.url, health: { intervalMs: 10 } }], health: { intervalMs: 60000 } })
  await app.ready()
  await until('it was asked again and again', () => quick.requests.length >= 5 && slow.requests.length > 0)
  assert.equal(slow.requests.length, 1)
})

test('the view tells how each upstream is checked', async (t) => {
  const url = 'http://127.0.0.1:1'
  const { app } = await harness(t,
    { upstreams: [{ url, basePath: '/base' }, { url, id: 'own', health: { path: '/up', port: 8081, intervalMs: 70 } }], health: { path: '/pool', intervalMs: 500 } },
    { name: 'tcp', upstreams: [url], health: { type: 'tcp' } },
    { name: 'off', upstreams: [url], health: { enabled: false } })
  assert.deepEqual(app.health.list().map(({ polling }) => polling), [
    { type: 'http', path: '/base/pool', port: null, intervalMs: 500 },
    { type: 'http', path: '/up', port: 8081, intervalMs: 70 },
    { type: 'tcp', path: null, port: null, intervalMs: 60000 },
    null
  ])
})

test('a reload that changes an upstream\'s own check makes it anew at once, and keeps the belief and the others\' checks', async (t) => {
  const [same, moved] = await Promise.all([hang, hang].map((answer) => new RawUpstream(answer).listen(t))) as [RawUpstream, RawUpstream]
  const side = await new RawUpstream(ok).listen(t)
  const health = { initial: 'healthy' as const, timeoutMs: 60000 }
  const { app, pools } = await harness(t, { upstreams: [same.url, moved.url], health })
  await app.ready()
  await until('both checks run', () => same.requests.length === 1 && moved.requests.length === 1)
  pools[0] = fakePool({ upstreams: [same.url, { url: moved.url, health: { port: side.port } }], health })
  app.health.sync()
  await until('the other port was asked', () => app.health.list()[1]!.lastCheck !== null)
  assert.deepEqual(app.health.list().map(({ healthy, lastCheck }) => [healthy, lastCheck?.cause]), [[true, undefined], [true, 'check_passed']])
  await until('the dropped check has no connection', () => moved.sockets.size === 0)
  assert.deepEqual([same.accepted, same.sockets.size, side.requests.length], [1, 1, 1])
  pools[0] = fakePool({ upstreams: [same.url, moved.url], health })
  app.health.sync()
  await until('the upstream itself is asked again', () => moved.requests.length === 2)
  await until('the other port has no connection', () => side.sockets.size === 0)
})

test('a reload that changes nothing about a check leaves it alone, and tells the new object what is believed', async (t) => {
  const upstream = await new RawUpstream(ok, hang).listen(t)
  const { app, check, pools } = await harness(t, { upstreams: [upstream.url] })
  await check()
  const running = check()
  await until('a check runs', () => upstream.requests.length === 2)
  pools[0] = fakePool({ upstreams: [upstream.url] })
  Object.assign(pools[0].upstreams[0]!, { healthy: false })
  app.health.sync()
  const { healthy, checked } = pools[0].upstreams[0]!
  assert.deepEqual([healthy, checked], [true, true])
  assert.equal((await running).cause, 'timeout')
  assert.equal(pools[0].upstreams[0]!.healthy, false)
  assert.equal(upstream.accepted, 1)
})

test('an upstream is told what it is once, and again only where that changes', async (t) => {
  const upstream = await new RawUpstream(ok, ok, down, down, ok).listen(t)
  const told: string[] = []
  const { app, check, pools } = await harness(t)
  pools.push(fakePool({ upstreams: [upstream.url] }))
  let [healthy, checked] = [true, false]
  Object.defineProperties(pools[0]!.upstreams[0]!, {
    healthy: { get: () => healthy, set (to: boolean) { told.push(`healthy ${to}`); healthy = to } },
    checked: { get: () => checked, set (to: boolean) { told.push(`checked ${to}`); checked = to } }
  })
  app.health.sync()
  for (let round = 0; round < 5; round++) await check()
  app.health.sync()
  assert.deepEqual(told, ['healthy false', 'checked true', 'healthy true', 'healthy false', 'healthy true'])
})

test('whether a first check has ended is told, and where checks are off none is waited for', async (t) => {
  const [silent, sound] = await Promise.all([hang, ok].map((answer) => new RawUpstream(answer).listen(t))) as [RawUpstream, RawUpstream]
  const health = { initial: 'healthy' as const, timeoutMs: 400 }
  const { app, check, pools } = await harness(t, { upstreams: [silent.url, sound.url], health })
  const checked = (): boolean[] => pools[0]!.upstreams.map((upstream) => upstream.checked)
  assert.deepEqual(checked(), [false, false])
  await check(1)
  assert.deepEqual(checked(), [false, true])
  await check(0)
  assert.deepEqual(checked(), [true, true])
  pools[0] = fakePool({ upstreams: [silent.url, sound.url], health: { enabled: false } })
  app.health.sync()
  assert.deepEqual(checked(), [true, true])
  pools[0] = fakePool({ upstreams: [silent.url, sound.url], health })
  app.health.sync()
  assert.deepEqual(checked(), [false, false])
})
