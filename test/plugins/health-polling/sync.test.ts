/** What `sync` looks at, and what happens where a listener calls it while it runs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakePool, harness, ok, RawUpstream, status, until } from './fixtures.ts'

const down = status(503)
const url = (port: number): string => `http://127.0.0.1:${port}`
const checksOff = { enabled: false }

test('a named pool is taken over alone, and any other with the next sync of all', async (t) => {
  const { app, pools } = await harness(t, { name: 'a', upstreams: [url(1)] }, { name: 'b', upstreams: [url(1)] })
  const listed = (): string[] => app.health.list().map(({ pool, upstream }) => `${pool} ${upstream}`)
  pools[0] = fakePool({ name: 'a', upstreams: [url(1), url(2)] })
  pools[1] = fakePool({ name: 'b', upstreams: [url(3)] })
  app.health.sync('a')
  assert.deepEqual(listed(), ['a 127.0.0.1:1', 'a 127.0.0.1:2', 'b 127.0.0.1:1'])
  app.health.sync('b')
  assert.deepEqual(listed(), ['a 127.0.0.1:1', 'a 127.0.0.1:2', 'b 127.0.0.1:3'])
  pools.splice(1, 0, fakePool({ name: 'between', upstreams: [url(1)] }))
  app.health.sync('between')
  assert.deepEqual(listed(), ['a 127.0.0.1:1', 'a 127.0.0.1:2', 'between 127.0.0.1:1', 'b 127.0.0.1:3'])
  pools.shift()
  app.health.sync('a')
  app.health.sync('nobody')
  assert.deepEqual(listed(), ['between 127.0.0.1:1', 'b 127.0.0.1:3'])
})

test('a named pool: a new upstream is polled at once, a gone one no more, one that stayed keeps its state', async (t) => {
  const [stays, goes, comes] = await Promise.all([ok, ok, ok].map((answer) => new RawUpstream(answer).listen(t))) as [RawUpstream, RawUpstream, RawUpstream]
  const { app, pools } = await harness(t, { upstreams: [stays.url, goes.url] })
  await app.ready()
  await until('both are healthy', () => app.health.list().every(({ healthy }) => healthy))
  const [before] = app.health.list()
  pools[0] = fakePool({ upstreams: [stays.url, comes.url] })
  app.health.sync('shop')
  assert.deepEqual(app.health.list()[0], before)
  await until('the new one is healthy', () => app.health.list()[1]!.healthy)
  await until('the gone one has no connection', () => goes.sockets.size === 0)
  assert.deepEqual([stays, goes, comes].map(({ requests }) => requests.length), [1, 1, 1])
})

test('an upstream that is as it was is not even asked what its connections are made with', async (t) => {
  const { app, pools } = await harness(t, { upstreams: [url(1), url(2)] })
  let asked = 0
  for (const upstream of pools[0]!.upstreams) {
    upstream.connector = () => {
      asked++
      return {}
    }
  }
  app.health.sync()
  app.health.sync('shop')
  assert.equal(asked, 0)
})

test('another certificate, another look-up and another time for idle connections: only what matters makes a check anew', async (t) => {
  const upstream = await new RawUpstream((socket) => { socket.pause() }).listen(t)
  const of = (connector: object) => fakePool({ upstreams: [{ url: upstream.url, connector }], health: { timeoutMs: 60000 } })
  const { app, pools } = await harness(t)
  pools.push(of({ ca: 'one', lookup: () => {} }))
  app.health.sync()
  await app.ready()
  await until('a check runs', () => upstream.requests.length === 1)
  pools[0] = of({ ca: 'one', lookup: () => {} })
  app.health.sync()
  assert.equal(upstream.accepted, 1)
  for (const [index, connector] of [{ ca: 'two', lookup: () => {} }, { ca: 'two' }, { cert: 'two' }, { ca: 'one', rejectUnauthorized: false }].entries()) {
    pools[0] = of(connector)
    app.health.sync()
    await until('another check runs', () => upstream.requests.length === index + 2)
  }
})

test('a listener that syncs while a sync tells it of a change: what it brought counts, for all members', async (t) => {
  const upstreams = await Promise.all([down, down, down].map((answer) => new RawUpstream(answer).listen(t))) as [RawUpstream, RawUpstream, RawUpstream]
  const [first, second, gone] = upstreams
  const urls = upstreams.map((each) => each.url)
  const { app, pools } = await harness(t, { upstreams: urls })
  await app.ready()
  await until('all were checked', () => app.health.list().every(({ lastCheck }) => lastCheck !== null))
  const told: string[] = []
  app.health.on('change', ({ upstream, cause }) => {
    told.push(`${upstream} ${cause}`)
    if (told.length > 1) return
    pools[0] = fakePool({ upstreams: [first.url, second.url], health: { path: '/new' } })
    app.health.sync('shop')
    assert.deepEqual(app.health.list().map(({ polling }) => polling?.path), ['/new', '/new'])
  })
  pools[0] = fakePool({ upstreams: urls, health: checksOff })
  app.health.sync()
  assert.deepEqual(app.health.list().map(({ polling }) => polling?.path), ['/new', '/new'])
  assert.equal(told.join(), `127.0.0.1:${first.port} checks_off`)
  await until('both are asked by the new path', () => [first, second].every(({ requests }) => requests.at(-1)!.startsWith('GET /new ')))
  await until('the gone one has no connection', () => gone.sockets.size === 0)
  assert.equal(gone.requests.length, 1)
})

test('a listener that closes the app while a sync tells it of a change ends the polling of all', async (t) => {
  const upstreams = await Promise.all([down, down].map((answer) => new RawUpstream(answer).listen(t))) as [RawUpstream, RawUpstream]
  const { app, pools } = await harness(t, { upstreams: upstreams.map((each) => each.url) }, { name: 'late', upstreams: [] })
  await app.ready()
  await until('all were checked', () => app.health.list().every(({ lastCheck }) => lastCheck !== null))
  let closed: Promise<unknown> | undefined
  app.health.on('change', () => { closed ??= app.close() })
  pools[0] = fakePool({ upstreams: upstreams.map((each) => each.url), health: checksOff })
  app.health.sync()
  await closed
  await until('no connection stays', () => upstreams.every(({ sockets }) => sockets.size === 0))
  assert.deepEqual(upstreams.map(({ requests }) => requests.length), [1, 1])
})
