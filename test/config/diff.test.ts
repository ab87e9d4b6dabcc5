import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { diffConfig, type ConfigDiff } from '../../config/diff.ts'
import { parseConfig } from '../../config/parse.ts'
import { routeKey, routeLabel } from '../../config/route-label.ts'
import type { Config, UpstreamOptions } from '../../config/schema.ts'
import { upstreamId } from '../../lib/upstream-url.ts'
import { withShop } from './support.ts'
import { validConfig } from './valid-config.ts'

const parse = (input: unknown) => parseConfig(input, 'test')
const one = { url: 'http://10.0.0.1:80' }
const two = { url: 'http://10.0.0.2:80' }
const shop = (pool: Record<string, unknown>, rest: Record<string, unknown> = {}) => parse(withShop({ upstreams: [one], ...pool }, rest))
const routed = (...routes: Record<string, unknown>[]) => shop({}, { routes: routes.map(route => ({ pool: 'shop', ...route })) })
/** Without the checks, which are not what is tested here. */
const withRoutes = (...routes: Record<string, unknown>[]): Config => ({ ...shop({}), routes: routes.map(route => ({ path: '/*', pool: 'shop', ...route })) })
const name = (upstream: string, pool = 'shop') => ({ pool, upstream })

test('nothing differs from itself, however it is written', () => {
  const before = parse({ pools: { a: { upstreams: [one, two] }, b: { upstreams: [one] } }, routes: [{ path: '/*', host: 'shop.example', pool: 'a', methods: ['GET', 'PUT'], headers: { 'X-A': '1', 'x-b': '2' } }] })
  const after = parse({ pools: { b: { upstreams: [{ url: 'http://10.0.0.1' }] }, a: { upstreams: [{ url: 'HTTP://10.0.0.2/' }, one] } }, routes: [{ path: '/*', host: 'Shop.Example', pool: 'a', methods: ['PUT', 'GET'], headers: { 'x-b': '2', 'x-a': '1' } }] })
  deepEqual(diffConfig(before, after), {
    pools: { added: [], removed: [], changed: [], kept: ['a', 'b'] },
    upstreams: { added: [], removed: [], changed: [], kept: 3 },
    breakers: { added: [], removed: [], changed: [], kept: 3 },
    routes: { added: [], removed: [], changed: [], kept: 1, reordered: false },
    shedding: [],
    other: [],
    needsRestart: [],
    same: true
  })
})

test('pools and upstreams that come and go take their breakers along', () => {
  const before = parse({ pools: { a: { upstreams: [one, two] }, b: { upstreams: [one] } }, routes: [{ path: '/*', pool: 'a' }] })
  const after = parse({ pools: { a: { upstreams: [two, { url: 'unix:/run/a.sock' }] }, c: { upstreams: [one] } }, routes: [{ path: '/*', pool: 'a' }] })
  const { pools, upstreams, breakers, same } = diffConfig(before, after)
  deepEqual(pools, { added: ['c'], removed: ['b'], changed: [], kept: ['a'] })
  const added = [name('/run/a.sock', 'a'), name('10.0.0.1:80', 'c')]
  const removed = [name('10.0.0.1:80', 'b'), name('10.0.0.1:80', 'a')]
  deepEqual(upstreams, { added, removed, changed: [], kept: 1 })
  deepEqual(breakers, { added, removed, changed: [], kept: 1 })
  equal(same, false)
})

test('the options of a pool, and which of them need new connections', () => {
  const table: [Record<string, unknown>, string[], boolean][] = [
    [{ timeouts: { headersMs: 3000 } }, ['timeouts.headersMs'], false],
    [{ timeouts: { connectMs: 3000, totalMs: 0 } }, ['timeouts.connectMs', 'timeouts.totalMs'], true],
    [{ connections: { max: 4 } }, ['connections.max'], true],
    [{ connections: { learnKeepAlive: false } }, ['connections.learnKeepAlive'], true],
    [{ http2: 'prior-knowledge' }, ['http2'], true],
    [{ tls: { insecureSkipVerify: true }, upstreams: [{ url: 'https://10.0.0.1:80' }] }, ['tls'], true],
    [{ health: { json: { pointer: '', equals: 1 }, statuses: [200, 204] } }, ['health.json', 'health.statuses'], false],
    [{ sticky: { secret: '0123456789abcdef' } }, ['sticky'], false],
    [{ balancer: 'hash', hash: { by: 'header', name: 'x-user' } }, ['balancer', 'hash.by', 'hash.name'], false],
    [{ discovery: { source: 'mine' } }, ['discovery'], false],
    [{ deadlineHeader: 'x-deadline' }, ['deadlineHeader'], false]
  ]
  for (const [pool, options, reconnects] of table) {
    const before = shop('upstreams' in pool ? { upstreams: pool['upstreams'] } : {})
    const { pools, upstreams, breakers } = diffConfig(before, shop(pool))
    deepEqual(pools.changed, [{ pool: 'shop', options }])
    deepEqual(pools.kept, [])
    deepEqual(upstreams.changed, reconnects ? [{ ...name('10.0.0.1:80'), options: [], reconnects: true }] : [], JSON.stringify(pool))
    deepEqual(breakers.changed, [])
  }
})

test('tls is for https upstreams alone', () => {
  const upstreams = [one, { url: 'https://10.0.0.2:443' }]
  const { upstreams: { changed, kept } } = diffConfig(shop({ upstreams }), shop({ upstreams, tls: { servername: 'shop' } }))
  deepEqual(changed, [{ ...name('10.0.0.2:443'), options: [], reconnects: true }])
  equal(kept, 1)
})

test('breaker options, of which each pool has one set', () => {
  const { breakers, pools } = diffConfig(shop({}), shop({ breaker: { window: { seconds: 5 }, mode: 'observe' } }))
  deepEqual(breakers, { added: [], removed: [], changed: ['shop'], kept: 1 })
  deepEqual(pools.changed[0]?.options, ['breaker.mode', 'breaker.window.seconds'])
})

test('the options of an upstream', () => {
  const changed = (before: Record<string, unknown>, after: Record<string, unknown>) => diffConfig(shop({ balancer: 'p2c', upstreams: [{ ...one, ...before }] }), shop({ balancer: 'p2c', upstreams: [{ ...one, ...after }] })).upstreams.changed
  deepEqual(changed({}, { weight: 5, priority: 1, maxInFlight: 0 }), [{ ...name('10.0.0.1:80'), options: ['maxInFlight', 'priority', 'weight'], reconnects: false }])
  deepEqual(changed({ health: { port: 1 } }, { health: { port: 2, rise: 3 } })[0]?.options, ['health.port', 'health.rise'])
  deepEqual(changed({}, { url: 'http://10.0.0.1:80/base/' }), [{ ...name('10.0.0.1:80'), options: ['url'], reconnects: false }], 'a base path is put before each request')
  deepEqual(changed({}, { url: 'https://10.0.0.1:80' }), [{ ...name('10.0.0.1:80'), options: ['url'], reconnects: true }])
})

test('routes are known by what they match', () => {
  const before = routed({ path: '/a' }, { path: '/b', host: 'Shop.Example', methods: ['GET', 'PUT'] }, { path: '/c', timeouts: { totalMs: 1 } })
  const after = routed({ path: '/c', timeouts: { totalMs: 2 }, rewrite: '/d' }, { path: '/a' }, { path: '/b', host: 'shop.example', methods: ['GET'] })
  deepEqual(diffConfig(before, after).routes, {
    added: ['GET shop.example/b'],
    removed: ['GET,PUT shop.example/b'],
    changed: [{ route: '/c', options: ['rewrite', 'timeouts.totalMs'] }],
    kept: 1,
    reordered: true
  })
  equal(diffConfig(routed({ path: '/a' }, { path: '/b' }), routed({ path: '/x' }, { path: '/a' }, { path: '/b' })).routes.reordered, false)
})

test('routes that only constraints tell apart, whose secrets are not told', () => {
  const before = withRoutes({ path: '/*', headers: { 'x-version': '1' } }, { path: '/*' })
  const after = withRoutes({ path: '/*', headers: { 'x-version': '2' }, query: { preview: '*' } }, { path: '/*' }, { path: '/*', headers: { 'x-api-key': 'hidden' } })
  const { added, removed, kept } = diffConfig(before, after).routes
  deepEqual(added, ['/* (header x-version=2, query preview)', '/* (header x-api-key=[redacted])'])
  deepEqual(removed, ['/* (header x-version=1)'])
  equal(kept, 1)
})

test('what a running process takes, and what it does not', () => {
  const rest = { server: { maxBodyBytes: 5, maxHeaderBytes: 4096, shutdown: { graceMs: 1 } }, admin: { port: 0, token: 'secret' }, reload: { watch: true }, shedding: { maxInFlight: 5, priorities: { low: 0.2 } } }
  const found = diffConfig(shop({}), shop({}, rest))
  deepEqual(found.needsRestart, ['server.maxHeaderBytes', 'server.shutdown.graceMs', 'admin.port', 'admin.token'])
  deepEqual(found.other, ['server.maxBodyBytes', 'reload.watch'])
  deepEqual(found.shedding, ['maxInFlight', 'priorities.low'])
  equal(found.same, false)
  for (const alone of [{ server: { maxBodyBytes: 5 } }, { admin: { port: 0 } }, { reload: { pollMs: 100 } }, { shedding: { maxInFlight: 5 } }]) equal(diffConfig(shop({}), shop({}, alone)).same, false)
  ok(!JSON.stringify(found).includes('secret'))
})

// ---- laws

/** Two configurations, most of the second taken from the first: wholly different ones have nothing in common. */
const pairs = fc.tuple(validConfig, validConfig, fc.infiniteStream(fc.boolean())).map(([a, b, coins]): [Config, Config] => {
  const before = parse(a)
  const other = parse(b)
  const flip = () => coins.next().value
  const pools = Object.fromEntries(Object.entries(before.pools).map(([pool, options]) => {
    const donor = Object.values(other.pools)[0] as Config['pools'][string]
    return [pool, { ...options, ...flip() ? { timeouts: donor.timeouts, breaker: donor.breaker } : {}, ...flip() ? { upstreams: [...options.upstreams.slice(1), ...donor.upstreams] } : {} }]
  }).filter((_, index) => index === 0 || flip()))
  const candidate = {
    server: flip() ? other.server : before.server,
    admin: flip() ? other.admin : before.admin,
    reload: flip() ? other.reload : before.reload,
    shedding: flip() ? other.shedding : before.shedding,
    pools: { ...pools, ...flip() ? { extra: { upstreams: [one] } } : {} },
    routes: before.routes.map(route => ({ ...route, ...flip() ? { maxBodyBytes: 77 } : {} })).filter((_, index) => index === 0 || flip())
  }
  try {
    return [before, parse(candidate)]
  } catch {
    // The parts may contradict each other.
    return [before, other]
  }
})
const laws = (seed: number, law: (before: Config, after: Config, found: ConfigDiff) => void) =>
  { fc.assert(fc.property(pairs, ([before, after]) => { law(before, after, diffConfig(before, after)) }), { seed, numRuns: 150 }) }

test('law: a configuration is the same as itself', () => {
  laws(21, (before, after) => {
    ok(diffConfig(before, before).same)
    ok(diffConfig(after, parse(after)).same)
  })
})

test('law: the way back adds what the way there removes', () => {
  laws(22, (before, after, there) => {
    const back = diffConfig(after, before)
    equal(back.same, there.same)
    for (const part of ['pools', 'upstreams', 'breakers', 'routes'] as const) {
      const sorted = (list: readonly unknown[]) => list.map(each => JSON.stringify(each)).toSorted()
      deepEqual(sorted(back[part].added), sorted(there[part].removed), part)
      deepEqual(sorted(back[part].removed), sorted(there[part].added), part)
      equal(back[part].changed.length, there[part].changed.length, part)
    }
    deepEqual(back.needsRestart.toSorted(), there.needsRestart.toSorted())
  })
})

test('law: everything is added, removed, changed or kept, and nothing twice', () => {
  laws(23, (before, after, { pools, upstreams, routes }) => {
    const upstreamsOf = (config: Config) => Object.values(config.pools).flatMap(pool => pool.upstreams).length
    equal(pools.added.length + pools.changed.length + pools.kept.length, Object.keys(after.pools).length)
    equal(pools.removed.length + pools.changed.length + pools.kept.length, Object.keys(before.pools).length)
    equal(upstreams.added.length + upstreams.changed.length + upstreams.kept, upstreamsOf(after))
    equal(upstreams.removed.length + upstreams.changed.length + upstreams.kept, upstreamsOf(before))
    equal(routes.added.length + routes.changed.length + routes.kept, after.routes.length)
    equal(routes.removed.length + routes.changed.length + routes.kept, before.routes.length)
  })
})

/** Sets the value at a path of a tree to the one of another tree. */
const copyAt = (to: Record<string, unknown>, from: Record<string, unknown>, path: string): void => {
  const keys = [...path.matchAll(/\.?([\w-]+)|\["([^"]*)"\]/g)].map(([, plain, quoted]) => plain ?? quoted ?? '')
  const last = keys.pop() as string
  const [target, source] = keys.reduce(([t, s], key) => [t[key], s[key]] as [Record<string, unknown>, Record<string, unknown>], [to, from])
  if (source[last] === undefined) delete target[last]
  else target[last] = structuredClone(source[last])
}

/** The configuration that a difference leads to: every part of it taken from `after`, and nothing else. */
const applied = (before: Config, after: Config, found: ConfigDiff): Config => {
  const result = structuredClone(before) as Config & Record<string, unknown>
  for (const pool of found.pools.removed) delete result.pools[pool]
  for (const pool of found.pools.added) result.pools[pool] = structuredClone(after.pools[pool]) as Config['pools'][string]
  for (const { pool, options } of found.pools.changed) for (const path of options) copyAt(result.pools[pool] as Record<string, unknown>, after.pools[pool] as Record<string, unknown>, path)
  const of = (config: Config, pool: string, id: string) => config.pools[pool]?.upstreams.find(({ url }) => upstreamId(url) === id) as UpstreamOptions
  for (const { pool, upstream } of found.upstreams.removed) result.pools[pool]?.upstreams.splice(result.pools[pool].upstreams.indexOf(of(result, pool, upstream)), 1)
  for (const { pool, upstream } of found.upstreams.added) if (of(result, pool, upstream) === undefined) result.pools[pool]?.upstreams.push(of(after, pool, upstream))
  for (const { pool, upstream, options } of found.upstreams.changed) for (const path of options) copyAt(of(result, pool, upstream) as Record<string, unknown>, of(after, pool, upstream) as Record<string, unknown>, path)
  const known = new Map(before.routes.map(route => [routeKey(route), route]))
  const changes = new Map(found.routes.changed.map(({ route, options }) => [route, options]))
  result.routes = after.routes.map(route => {
    const old = structuredClone(known.get(routeKey(route)))
    if (old === undefined) ok(found.routes.added.includes(routeLabel(route)), routeLabel(route))
    for (const path of old === undefined ? [] : changes.get(routeLabel(route)) ?? []) copyAt(old as Record<string, unknown>, route, path)
    return old ?? route
  })
  for (const path of found.shedding) copyAt(result, after, `shedding.${path}`)
  for (const path of [...found.other, ...found.needsRestart]) copyAt(result, after, path)
  return result
}

test('law: who takes exactly what differs has the other configuration', () => {
  laws(24, (before, after, found) => {
    const result = applied(before, after, found)
    const left = diffConfig(result, after)
    ok(left.same, JSON.stringify({ found, left }))
    deepEqual(result.routes, after.routes)
  })
})

test('law: every path that is told is one at which they differ', () => {
  const at = (tree: unknown, path: string) => [...path.matchAll(/\.?([\w-]+)|\["([^"]*)"\]/g)].reduce<unknown>((value, [, plain, quoted]) => (value as Record<string, unknown> | undefined)?.[plain ?? quoted ?? ''], tree)
  laws(25, (before, after, found) => {
    const differ = (one_: unknown, other: unknown, path: string) => { ok(JSON.stringify(at(one_, path)) !== JSON.stringify(at(other, path)), path) }
    for (const { pool, options } of found.pools.changed) for (const path of options) differ(before.pools[pool], after.pools[pool], path)
    for (const path of found.shedding) differ(before.shedding, after.shedding, path)
    for (const path of [...found.other, ...found.needsRestart]) differ(before, after, path)
  })
})
