/** What is believed, told and kept over many checks, and how the polling starts, changes and stops. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { test } from 'node:test'
import type { HealthChange } from '../../plugins/health-polling.ts'
import { fakePool, harness, ok, RawUpstream, status, until, type Answer } from './health-polling/fixtures.ts'

const down = status(503)
const hang: Answer = () => {}
const fast = { intervalMs: 10, timeoutMs: 1000 }

test('rise and fall count checks in a row, and the first check counts alone', async (t) => {
  const upstream = await new RawUpstream(down, ok, ok, down, ok, down, down, down, ok).listen(t)
  const { app, check, pools, logged } = await harness(t, { upstreams: [upstream.url], health: { rise: 2, fall: 3 } })
  const beliefs: Array<[boolean, number]> = []
  const seen: HealthChange[] = []
  app.health.on('change', (change) => seen.push(change))
  for (let round = 0; round < 9; round++) {
    await check()
    const view = app.health.list()[0]!
    assert.equal(pools[0]!.upstreams[0]!.healthy, view.healthy)
    beliefs.push([view.healthy, view.streak])
  }
  assert.deepEqual(beliefs, [[false, 1], [false, 1], [true, 2], [true, 1], [true, 1], [true, 1], [true, 2], [false, 3], [false, 1]])
  assert.deepEqual(seen.map(({ healthy, cause }) => [healthy, cause]), [[true, 'check_passed'], [false, 'status_503']])
  const id = new URL(upstream.url).host
  assert.deepEqual(logged('health_changed').map((line) => ['level', 'pool', 'upstream', 'healthy', 'cause'].map((field) => line[field])), [
    [30, 'shop', id, true, 'check_passed'],
    [40, 'shop', id, false, 'status_503']
  ])
})

test('a change is a frozen record, told after the belief is committed', async (t) => {
  const upstream = await new RawUpstream(ok).listen(t)
  const { app, check, pools } = await harness(t, { upstreams: [upstream.url] })
  const seen: unknown[] = []
  app.health.on('change', (change) => {
    const view = app.health.get('shop', change.upstream)!
    seen.push([change, Object.isFrozen(change), view.healthy, view.lastCheck?.passed, pools[0]!.upstreams[0]!.healthy])
  })
  await check()
  const [view] = app.health.list()
  assert.deepEqual(seen, [[{ type: 'health_changed', pool: 'shop', upstream: view!.upstream, healthy: true, cause: 'check_passed', at: view!.since }, true, true, true, true]])
})

test('a listener that throws, rejects or leaves is nobody else\'s concern', async (t) => {
  const upstream = await new RawUpstream(ok, down, ok).listen(t)
  const { app, check, logged } = await harness(t, { upstreams: [upstream.url] })
  const seen: boolean[] = []
  app.health.on('change', () => { throw new Error('first') })
  app.health.on('change', async () => { throw new Error('second') })
  const leave = app.health.on('change', () => assert.fail('has left'))
  app.health.on('change', ({ healthy }) => seen.push(healthy))
  leave()
  await check()
  await check()
  await check()
  assert.deepEqual(seen, [true, false, true])
  await until('both failures are logged', () => logged('listener_failed').length === 6)
})

test('every listener has the changes in their order, though one causes another', async (t) => {
  const upstream = await new RawUpstream(down).listen(t)
  const { app, check, pools } = await harness(t, { upstreams: [upstream.url], health: { initial: 'healthy' } })
  const seen: string[] = []
  app.health.on('change', () => {
    pools[0] = fakePool({ upstreams: [upstream.url], health: { enabled: false } })
    app.health.sync()
  })
  app.health.on('change', ({ cause }) => seen.push(cause))
  await check()
  assert.deepEqual(seen, ['status_503', 'checks_off'])
})

test('the view says what is believed, since when, and why', async (t) => {
  const upstream = await new RawUpstream(ok).listen(t)
  const { app, check } = await harness(t, { upstreams: [upstream.url] })
  const before = app.health.get('shop', new URL(upstream.url).host)!
  assert.deepEqual([before.healthy, before.lastCheck, before.streak], [false, null, 0])
  const { ms, at } = await check()
  const [view] = app.health.list()
  assert.ok(view!.since >= before.since && Object.isFrozen(view))
  assert.deepEqual(view!.lastCheck, { at, passed: true, status: 200, cause: 'check_passed', ms })
  assert.equal(app.health.get('shop', 'nobody:1'), undefined)
})

test('an upstream that begins and stays unhealthy is no change, but is logged, once', async (t) => {
  const upstream = await new RawUpstream(down).listen(t)
  const { app, check, logged } = await harness(t, { upstreams: [upstream.url] })
  app.health.on('change', () => assert.fail('nothing changed'))
  const told: object[] = []
  app.health.on('trouble', (trouble) => { told.push({ ...trouble, at: typeof trouble.at, frozen: Object.isFrozen(trouble) }) })
  await check()
  await check()
  assert.deepEqual(logged('health_first_check_failed').map(({ level, cause }) => [level, cause]), [[40, 'status_503']])
  assert.deepEqual(told, [{ type: 'health_first_check_failed', pool: 'shop', upstream: new URL(upstream.url).host, cause: 'status_503', error: null, at: 'string', frozen: true }])
})

test('pools without checks are healthy, are not asked, and can be checked by hand', async (t) => {
  const upstream = await new RawUpstream(down).listen(t)
  const { app, check, pools } = await harness(t, { upstreams: [upstream.url], health: { enabled: false } })
  await app.ready()
  const [view] = app.health.list()
  assert.deepEqual([view!.healthy, view!.lastCheck, upstream.accepted], [true, null, 0])
  assert.equal((await check()).cause, 'status_503')
  assert.equal(app.health.list()[0]!.healthy, true)
  assert.equal(pools[0]!.upstreams[0]!.healthy, true)
})

test('checkNow joins the check that runs, and rejects for an unknown upstream', async (t) => {
  const upstream = await new RawUpstream((socket) => { setTimeout(() => socket.write(ok), 30) }).listen(t)
  const { app, check } = await harness(t, { upstreams: [upstream.url] })
  const [first, second] = await Promise.all([check(), check()])
  assert.equal(first, second)
  assert.equal(upstream.requests.length, 1)
  await assert.rejects(app.health.checkNow('shop', 'nobody:1'), { code: 'BREAKWATER_UNKNOWN_UPSTREAM', statusCode: 404 })
})

test('upstreams begin unhealthy and are polled from the moment the app is ready, all at once', async (t) => {
  const upstreams = await Promise.all([ok, ok, hang].map((answer) => new RawUpstream(answer).listen(t)))
  const { app, pools } = await harness(t, { upstreams: upstreams.map(({ url }) => url), health: { intervalMs: 60000, timeoutMs: 60000 } })
  const beliefs = (): boolean[] => pools[0]!.upstreams.map(({ healthy }) => healthy)
  assert.deepEqual(beliefs(), [false, false, false])
  await app.ready()
  await until('the two that answer are healthy', () => beliefs().join() === 'true,true,false')
  assert.ok(upstreams.every(({ requests }) => requests.length === 1))
})

test('polling goes on, follows the upstream down and up, and never overlaps itself', async (t) => {
  let inFlight = 0
  let most = 0
  let answer = ok
  const slow: Answer = (socket) => {
    most = Math.max(most, ++inFlight)
    setTimeout(() => {
      inFlight--
      socket.write(answer)
    }, 25)
  }
  const upstream = await new RawUpstream(slow).listen(t)
  const { app } = await harness(t, { upstreams: [upstream.url], health: fast })
  const seen: string[] = []
  app.health.on('change', ({ cause }) => seen.push(cause))
  await app.ready()
  await until('it is healthy', () => seen.length === 1)
  answer = down
  await until('it is unhealthy', () => seen.length === 2)
  answer = ok
  await until('it is healthy again', () => seen.length === 3 && upstream.requests.length >= 6)
  assert.deepEqual(seen, ['check_passed', 'status_503', 'check_passed'])
  assert.equal(most, 1)
})

test('an upstream that hangs is asked again only when its check has ended, and the old connection is closed', async (t) => {
  const upstream = await new RawUpstream(hang).listen(t)
  let most = 0
  upstream.server.on('connection', () => { most = Math.max(most, upstream.sockets.size) })
  const { app } = await harness(t, { upstreams: [upstream.url], health: { intervalMs: 10, timeoutMs: 200 } })
  await app.ready()
  await until('four checks have begun', () => upstream.requests.length >= 4)
  assert.ok(most <= 2, `${most} connections: the new one, and an old one that is closing`)
})

test('close ends the polling, drops the check that runs, and leaves no connection', async (t) => {
  const upstreams = await Promise.all([ok, hang].map((answer) => new RawUpstream(answer).listen(t)))
  const { app } = await harness(t, { upstreams: upstreams.map(({ url }) => url), health: { initial: 'healthy', timeoutMs: 60000 } })
  await app.ready()
  await until('one is checked, one hangs', () => app.health.list()[0]!.lastCheck !== null && upstreams[1]!.requests.length === 1)
  app.health.on('change', () => assert.fail('told after the close'))
  const running = app.health.checkNow('shop', app.health.list()[1]!.upstream)
  const before = app.health.list()
  await app.close()
  const { passed, cause } = await running
  assert.deepEqual([passed, cause], [null, 'stopped'])
  await until('the connections are gone', () => upstreams.every(({ sockets }) => sockets.size === 0))
  assert.deepEqual(app.health.list(), before)
  app.health.start()
  app.health.sync()
  assert.equal((await app.health.checkNow('shop', before[0]!.upstream)).cause, 'stopped')
  assert.deepEqual(upstreams.map(({ accepted }) => accepted), [1, 1])
})

test('sync: a new upstream is polled at once, a gone one no more, one that stayed keeps its state', async (t) => {
  const [stays, goes, comes] = await Promise.all([ok, ok, ok].map((answer) => new RawUpstream(answer).listen(t))) as [RawUpstream, RawUpstream, RawUpstream]
  const { app, pools } = await harness(t, { upstreams: [stays.url, goes.url], health: { intervalMs: 60000 } })
  await app.ready()
  await until('both are healthy', () => app.health.list().every(({ healthy }) => healthy))
  const [before] = app.health.list()
  const kept = pools[0]!.upstreams[0]!
  const next = fakePool({ upstreams: [stays.url, comes.url], health: { intervalMs: 60000 } })
  pools[0] = { ...next, upstreams: [kept, next.upstreams[1]!] }
  app.health.sync()
  assert.deepEqual(app.health.list()[0], before)
  assert.equal(app.health.list()[1]!.healthy, false)
  await until('the new one is healthy', () => app.health.list()[1]!.healthy)
  await until('the gone one has no connection', () => goes.sockets.size === 0)
  await app.health.checkNow('shop', before!.upstream)
  assert.deepEqual([stays, goes, comes].map(({ accepted }) => accepted), [1, 1, 1])
  await assert.rejects(app.health.checkNow('shop', new URL(goes.url).host))
})

test('sync: a kept upstream under new options keeps its belief, on the new object, and is checked by the new options', async (t) => {
  const upstream = await new RawUpstream(ok).listen(t)
  const { app, pools } = await harness(t, { upstreams: [upstream.url], health: { path: '/old' } })
  await app.ready()
  await until('it is healthy', () => app.health.list()[0]!.healthy)
  const { since } = app.health.list()[0]!
  upstream.script = [hang]
  pools[0] = fakePool({ upstreams: [upstream.url], health: { path: '/new' } })
  app.health.sync()
  assert.equal(pools[0].upstreams[0]!.healthy, true)
  assert.equal(app.health.list()[0]!.since, since)
  await until('the new path is asked', () => upstream.requests.length === 2)
  assert.match(upstream.requests[1]!, /^GET \/new /)
})

test('sync: checks that are switched off make the upstream healthy, and on again poll it at once', async (t) => {
  const upstream = await new RawUpstream(down).listen(t)
  const { app, pools } = await harness(t, { upstreams: [upstream.url] })
  const seen: Array<[boolean, string]> = []
  app.health.on('change', ({ healthy, cause }) => seen.push([healthy, cause]))
  await app.ready()
  await until('it was checked', () => app.health.list()[0]!.lastCheck !== null)
  pools[0] = fakePool({ upstreams: [upstream.url], health: { enabled: false } })
  app.health.sync()
  assert.deepEqual(seen, [[true, 'checks_off']])
  pools[0] = fakePool({ upstreams: [upstream.url], health: { fall: 9 } })
  app.health.sync()
  await until('it is unhealthy', () => !app.health.list()[0]!.healthy)
  assert.deepEqual(seen, [[true, 'checks_off'], [false, 'status_503']])
})

test('two pools with the same upstream and different checks hold two beliefs', async (t) => {
  const upstream = await new RawUpstream((socket) => { socket.write(upstream.requests.at(-1)!.startsWith('GET /good') ? ok : down) }).listen(t)
  const { app } = await harness(t,
    { name: 'good', upstreams: [upstream.url], health: { path: '/good' } },
    { name: 'bad', upstreams: [upstream.url], health: { path: '/bad' } })
  await app.ready()
  await until('both are checked', () => app.health.list().every(({ lastCheck }) => lastCheck !== null))
  assert.deepEqual(app.health.list().map(({ pool, healthy }) => [pool, healthy]), [['good', true], ['bad', false]])
})

test('an interval longer than a timer holds does not become a flood', async (t) => {
  const upstream = await new RawUpstream(ok).listen(t)
  const { app } = await harness(t, { upstreams: [upstream.url], health: { intervalMs: 2147483647, jitter: 1 } })
  await app.ready()
  await until('it was checked', () => app.health.list()[0]!.lastCheck !== null)
  await sleep(50)
  assert.equal(upstream.requests.length, 1)
})

test('polling does not keep a process alive', async (t) => {
  const upstream = await new RawUpstream(ok).listen(t)
  const program = `
    import { fakePool } from ${JSON.stringify(new URL('health-polling/fixtures.js', import.meta.url).href)}
    import Fastify from 'fastify'
    import fp from 'fastify-plugin'
    import health from ${JSON.stringify(new URL('../../plugins/health-polling.js', import.meta.url).href)}
    const app = Fastify()
    app.register(fp(async (scope) => { scope.decorate('pools', { list: () => [fakePool({ upstreams: [${JSON.stringify(upstream.url)}] })] }) }, { name: 'breakwater-upstream-pools' }))
    app.register(health)
    app.addHook('onReady', async () => { app.health.on('change', ({ cause }) => console.log(cause)) })
    await app.ready()`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { cwd: new URL('.', import.meta.url), timeout: 30000 })
  assert.equal(stdout.trim(), 'check_passed')
})
