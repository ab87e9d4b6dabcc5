/** How fast checks may take members out of a pool. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { HealthOptions } from '../../../config/schema.ts'
import type { HealthChange, RemovalHeld } from '../../../plugins/health-polling.ts'
import { closedPort } from '../../support/ports.ts'
import { fakePool, harness, ok, RawUpstream, status, type Harness } from './fixtures.ts'

const down = status(503)

interface Pool extends Harness {
  upstreams: RawUpstream[]
  urls: string[]
  seen: Array<HealthChange | RemovalHeld>
  /** Checks all, one after the other. */
  round: () => Promise<void>
  /** Who is healthy, and who is held back: `H`, `h`, or `u` for neither. */
  state: () => string
  all: (answer: string) => void
}

async function poolOf (t: TestContext, count: number, health: Partial<HealthOptions> = {}): Promise<Pool> {
  const upstreams = await Promise.all(Array.from({ length: count }, () => new RawUpstream(ok).listen(t)))
  const urls = upstreams.map(({ url }) => url)
  const gateway = await harness(t, { upstreams: urls, health })
  const seen: Pool['seen'] = []
  const { app, check, pools } = gateway
  app.health.on('change', (change) => seen.push(change))
  app.health.on('held', (held) => seen.push(held))
  return {
    ...gateway,
    upstreams,
    urls,
    seen,
    async round () { for (const index of pools[0]!.upstreams.keys()) await check(index) },
    state: () => app.health.list().map(({ healthy, held }, index) => {
      assert.equal(pools[0]!.upstreams[index]!.healthy, healthy)
      return healthy ? held ? 'h' : 'H' : 'u'
    }).join(''),
    all (answer) { for (const upstream of upstreams) upstream.script = [answer] }
  }
}

test('a check that fails everywhere removes half of the pool, and the rest only after the time', async (t) => {
  const { app, round, state, all, advance, seen, urls, logged } = await poolOf(t, 4)
  await round()
  assert.equal(state(), 'HHHH')
  seen.length = 0
  all(status(404))
  await round()
  assert.equal(state(), 'uuhh')
  const [a, b, c, d] = urls.map((url) => new URL(url).host)
  const held = { type: 'health_removal_held', pool: 'shop', cause: 'status_404', removed: 2, limit: 2, seconds: 10 }
  assert.deepEqual(seen.map(({ at: _at, ...event }) => event), [
    { type: 'health_changed', pool: 'shop', upstream: a, healthy: false, cause: 'status_404' },
    { type: 'health_changed', pool: 'shop', upstream: b, healthy: false, cause: 'status_404' },
    { ...held, upstream: c },
    { ...held, upstream: d }
  ])
  assert.ok(seen.every((event) => Object.isFrozen(event) && event.at === new Date(event.at).toISOString()))
  assert.equal(app.health.held('shop'), 2)
  for (let more = 0; more < 3; more++) await round()
  assert.equal(state(), 'uuhh')
  assert.equal(seen.length, 4, 'an episode is told once')
  assert.deepEqual(logged('health_removal_held').map(({ level, pool, upstream, cause, removed, limit, seconds }) => [level, pool, upstream, cause, removed, limit, seconds]), [
    [40, 'shop', c, 'status_404', 2, 2, 10], [40, 'shop', d, 'status_404', 2, 2, 10]
  ])
  advance(10000)
  await round()
  assert.equal(state(), 'uuuu')
  assert.deepEqual(seen.slice(4).map((event) => [event.type, event.upstream]), [['health_changed', c], ['health_changed', d]])
  assert.equal(app.health.held('shop'), 2)
})

test('one that is held back and passes again was never away; held back again it is told again', async (t) => {
  const { app, round, state, upstreams, seen, all, advance } = await poolOf(t, 2)
  await round()
  all(down)
  await round()
  assert.equal(state(), 'uh')
  const { since } = app.health.list()[1]!
  upstreams[1]!.script = [ok]
  await round()
  assert.equal(state(), 'uH')
  assert.equal(app.health.list()[1]!.since, since)
  upstreams[1]!.script = [down]
  await round()
  assert.equal(state(), 'uh')
  assert.deepEqual([seen.filter(({ type }) => type === 'health_removal_held').length, app.health.held('shop')], [2, 2])
  advance(10000)
  await round()
  assert.equal(state(), 'uu')
})

test('one that is held back falls with its next failure after the time, whatever fall is', async (t) => {
  const { round, state, all, advance } = await poolOf(t, 2, { fall: 3 })
  await round()
  all(down)
  for (const expected of ['HH', 'HH', 'uh', 'uh']) {
    await round()
    assert.equal(state(), expected)
  }
  advance(10000)
  await round()
  assert.equal(state(), 'uu')
})

test('upstreams that accept no connection leave at once, all of them', async (t) => {
  const { round, state, upstreams, seen, app } = await poolOf(t, 4)
  await round()
  for (const upstream of upstreams) await upstream.close()
  await round()
  assert.equal(state(), 'uuuu')
  assert.deepEqual([seen.some(({ type }) => type === 'health_removal_held'), app.health.held('shop')], [false, 0])
})

test('one that is held back and then accepts no connection leaves at once', async (t) => {
  const { round, state, upstreams, all } = await poolOf(t, 2)
  await round()
  all(down)
  await round()
  assert.equal(state(), 'uh')
  await upstreams[1]!.close()
  await round()
  assert.equal(state(), 'uu')
})

test('upstreams that accept no connection at a port that only checks use are held back', async (t) => {
  const { round, state, urls, pools, app } = await poolOf(t, 2)
  await round()
  const port = await closedPort(t)
  pools[0] = fakePool({ upstreams: urls.map((url) => ({ url, health: { port } })) })
  app.health.sync()
  await round()
  assert.equal(state(), 'uh')
})

test('a pool of one loses its one, again and again', async (t) => {
  const { round, state, all, app } = await poolOf(t, 1)
  for (const [answer, expected] of [[ok, 'H'], [down, 'u'], [ok, 'H'], [down, 'u']] as const) {
    all(answer)
    await round()
    assert.equal(state(), expected)
  }
  assert.equal(app.health.held('shop'), 0)
})

test('share 1 is no limit, share 0 is one at a time', async (t) => {
  for (const [share, expected] of [[1, 'uuu'], [0, 'uhh']] as const) {
    const { round, state, all } = await poolOf(t, 3, { removal: { share, seconds: 10 } })
    await round()
    all(down)
    await round()
    assert.equal(state(), expected)
  }
})

test('what began as unhealthy and stays so takes no place from others', async (t) => {
  const { round, state, upstreams, all, app } = await poolOf(t, 3)
  upstreams[0]!.script = [down]
  upstreams[1]!.script = [down]
  await round()
  assert.equal(state(), 'uuH')
  all(down)
  await round()
  assert.equal(state(), 'uuu')
  assert.equal(app.health.held('shop'), 0)
})

test('what began as healthy is not removed all at once by the first checks', async (t) => {
  const { round, state, all, advance, logged } = await poolOf(t, 3, { initial: 'healthy', fall: 2 })
  all(down)
  await round()
  assert.equal(state(), 'uhh')
  assert.equal(logged('health_first_check_failed').length, 0)
  advance(10000)
  await round()
  assert.equal(state(), 'uuh')
})

test('checks that are switched on, or moved to a path that is wrong, do not remove the pool at once', async (t) => {
  const { app, round, state, all, pools, urls } = await poolOf(t, 4, { enabled: false })
  all(down)
  pools[0] = fakePool({ upstreams: urls })
  app.health.sync()
  assert.equal(state(), 'HHHH')
  await round()
  assert.equal(state(), 'uuhh')
  pools[0] = fakePool({ upstreams: urls, health: { path: '/other' } })
  app.health.sync()
  assert.equal(state(), 'uuhh')
  await round()
  assert.equal(state(), 'uuhh')
  pools[0] = fakePool({ upstreams: urls, health: { enabled: false } })
  app.health.sync()
  assert.equal(state(), 'HHHH')
})

test('a reload keeps the count of what was removed, and a new limit holds at once', async (t) => {
  const { app, round, state, all, pools, urls } = await poolOf(t, 4)
  await round()
  all(down)
  await round()
  pools[0] = fakePool({ upstreams: urls })
  app.health.sync()
  await round()
  assert.equal(state(), 'uuhh')
  pools[0] = fakePool({ upstreams: urls, health: { removal: { share: 0.8, seconds: 10 } } })
  app.health.sync()
  await round()
  assert.equal(state(), 'uuuh')
  assert.equal(app.health.held('shop'), 2)
})

test('members that a reload takes away take no place, and each pool has its own', async (t) => {
  const { app, round, state, all, pools, urls, check } = await poolOf(t, 2)
  pools.push(fakePool({ name: 'other', upstreams: urls }))
  app.health.sync()
  await round()
  for (const url of urls) await app.health.checkNow('other', new URL(url).host)
  all(down)
  await check(0)
  assert.equal((await app.health.checkNow('other', new URL(urls[0]!).host)).passed, false)
  assert.deepEqual(app.health.list().map(({ healthy }) => healthy), [false, true, false, true])
  pools.splice(0, 2, fakePool({ upstreams: [urls[1]!] }))
  app.health.sync()
  await round()
  assert.equal(state(), 'u')
  assert.deepEqual([app.health.held('shop'), app.health.held('other'), app.health.held('nobody')], [0, 0, 0])
})

test('a listener of what is held back that throws harms nobody, and one that has left hears no more', async (t) => {
  const { app, round, state, all, logged } = await poolOf(t, 2)
  app.health.on('held', () => { throw new Error('held') })
  const leave = app.health.on('held', () => assert.fail('has left'))
  leave()
  await round()
  all(down)
  await round()
  assert.equal(state(), 'uh')
  assert.equal(logged('listener_failed').length, 1)
})
