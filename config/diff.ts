/** What taking another configuration would change, worked out without touching anything. */
import { parseUpstreamUrl } from '../lib/upstream-url.ts'
import { differences } from './differences.ts'
import { routeKey, routeLabel } from './route-label.ts'
import type { Config, PoolOptions, RouteOptions, UpstreamOptions } from './schema.ts'
import { isObject } from './values.ts'

/** An upstream by its pool and its id; also a breaker. */
export interface UpstreamName {
  pool: string
  upstream: string
}

export interface ConfigDiff {
  pools: {
    added: string[]
    removed: string[]
    /** `options`: paths below the pool at which it differs, like `timeouts.headersMs`; its upstreams aside. */
    changed: { pool: string, options: string[] }[]
    /** Those that stay as they are, but perhaps for their upstreams. */
    kept: string[]
  }
  /** Those that the configuration names; what discovery brings is not known here. */
  upstreams: {
    added: UpstreamName[]
    removed: UpstreamName[]
    /** `options`: paths below the upstream. `reconnects`: its connections are made anew, for these or for options of its pool. */
    changed: (UpstreamName & { options: string[], reconnects: boolean })[]
    kept: number
  }
  breakers: {
    added: UpstreamName[]
    removed: UpstreamName[]
    /** Pools whose breaker options differ. */
    changed: string[]
    /** Breakers of upstreams that stay, those of changed pools among them. */
    kept: number
  }
  /** Routes are named as `routeLabel` does, and are the same where they match the same requests. */
  routes: {
    added: string[]
    removed: string[]
    /** `options`: paths below the route. */
    changed: { route: string, options: string[] }[]
    kept: number
    /** Those that stay come in another order. */
    reordered: boolean
  }
  /** Paths below `shedding`. */
  shedding: string[]
  /** Whole paths of other options that are taken while running. */
  other: string[]
  /** Whole paths of options that a running process cannot change. */
  needsRestart: string[]
  /** Nothing differs. */
  same: boolean
}

/** Options of a pool by which its connections are made. */
const connecting = /^(?:tls(?:\.|$)|connections\.|http2$|timeouts\.connectMs$)/

/** Options of `server` that are read for each request. */
const liveServerOptions: ReadonlySet<string> = new Set(['server.maxBodyBytes'])

/** Members by their keys: [those that came, those that went, those that are in both]. */
const compareKeys = <T>(before: ReadonlyMap<string, T>, after: ReadonlyMap<string, T>): [added: string[], removed: string[], kept: string[]] => {
  const keys = [...before.keys()]
  return [[...after.keys()].filter(key => !before.has(key)), keys.filter(key => !after.has(key)), keys.filter(key => after.has(key))]
}

const upstreamsOf = (pool: PoolOptions | undefined): Map<string, UpstreamOptions> =>
  new Map((pool?.upstreams ?? []).map(upstream => [parseUpstreamUrl(upstream.url).id, upstream]))

/** How one upstream differs, given the options in which its pool does. */
const compareUpstream = ({ url, ...before }: UpstreamOptions, { url: newUrl, ...after }: UpstreamOptions, poolOptions: readonly string[]) => {
  const one = parseUpstreamUrl(url)
  const other = parseUpstreamUrl(newUrl)
  const moved = one.origin !== other.origin
  const options = [...moved || one.basePath !== other.basePath ? ['url'] : [], ...differences(before, after)]
  return { options, reconnects: moved || poolOptions.some(path => connecting.test(path) && (other.secure || !path.startsWith('tls'))) }
}

const comparePools = (before: Config['pools'], after: Config['pools']): Pick<ConfigDiff, 'pools' | 'upstreams' | 'breakers'> => {
  const [old, now] = [new Map(Object.entries(before)), new Map(Object.entries(after))]
  const [added, removed, both] = compareKeys(old, now)
  const pools: ConfigDiff['pools'] = { added, removed, changed: [], kept: [] }
  const upstreams: ConfigDiff['upstreams'] = { added: [], removed: [], changed: [], kept: 0 }
  const breakers: ConfigDiff['breakers'] = { added: [], removed: [], changed: [], kept: 0 }
  const changedOptions = new Map<string, string[]>()
  for (const pool of both) {
    const { upstreams: _before, ...one } = old.get(pool) as PoolOptions
    const { upstreams: _after, ...other } = now.get(pool) as PoolOptions
    const options = differences(one, other)
    changedOptions.set(pool, options)
    if (options.length === 0) pools.kept.push(pool)
    else pools.changed.push({ pool, options })
    if (options.some(path => path.startsWith('breaker.'))) breakers.changed.push(pool)
  }
  for (const pool of [...removed, ...both, ...added]) {
    const name = (upstream: string): UpstreamName => ({ pool, upstream })
    const [members, newMembers] = [upstreamsOf(old.get(pool)), upstreamsOf(now.get(pool))]
    const [came, went, stayed] = compareKeys(members, newMembers)
    upstreams.added.push(...came.map(name))
    upstreams.removed.push(...went.map(name))
    breakers.kept += stayed.length
    for (const id of stayed) {
      const change = compareUpstream(members.get(id) as UpstreamOptions, newMembers.get(id) as UpstreamOptions, changedOptions.get(pool) ?? [])
      if (change.options.length > 0 || change.reconnects) upstreams.changed.push({ ...name(id), ...change })
      else upstreams.kept++
    }
  }
  return { pools, upstreams, breakers: { ...breakers, added: [...upstreams.added], removed: [...upstreams.removed] } }
}

/** What a route does with the requests that it matches. */
const doingOf = ({ host: _host, path: _path, methods: _methods, headers: _headers, query: _query, ...doing }: RouteOptions) => doing

const compareRoutes = (before: readonly RouteOptions[], after: readonly RouteOptions[]): ConfigDiff['routes'] => {
  const old = new Map(before.map(route => [routeKey(route), route]))
  const now = new Map(after.map(route => [routeKey(route), route]))
  const [added, removed, both] = compareKeys(old, now)
  const changed = both.map(key => {
    const route = now.get(key) as RouteOptions
    return { route: routeLabel(route), options: differences(doingOf(old.get(key) as RouteOptions), doingOf(route)) }
  }).filter(({ options }) => options.length > 0)
  const order = [...now.keys()].filter(key => old.has(key))
  return {
    added: added.map(key => routeLabel(now.get(key) as RouteOptions)),
    removed: removed.map(key => routeLabel(old.get(key) as RouteOptions)),
    changed,
    kept: both.length - changed.length,
    reordered: both.some((key, index) => key !== order[index])
  }
}

/** True for a difference with nothing in it, however deep. `kept` tells what does not differ. */
const isEmpty = (value: unknown): boolean => {
  if (Array.isArray(value)) return value.length === 0
  return isObject(value) ? Object.entries(value).every(([key, member]) => key === 'kept' || isEmpty(member)) : value === false
}

/**
 * How one configuration differs from another, by what it means: the order of pools and upstreams and the spelling of URLs and hosts
 * do not count. Paths only, no values, so that no secret is in it.
 */
export const diffConfig = (before: Config, after: Config): ConfigDiff => {
  const server = differences(before.server, after.server, 'server')
  const events = differences(before.events, after.events, 'events')
  const parts = {
    ...comparePools(before.pools, after.pools),
    routes: compareRoutes(before.routes, after.routes),
    shedding: differences(before.shedding, after.shedding),
    other: [...server.filter(path => liveServerOptions.has(path)), ...differences(before.reload, after.reload, 'reload'), ...differences(before.recorder, after.recorder, 'recorder'), ...events.filter(path => path !== 'events.capacity')],
    needsRestart: [...server.filter(path => !liveServerOptions.has(path)), ...differences(before.admin, after.admin, 'admin'), ...differences(before.metrics, after.metrics, 'metrics'), ...differences(before.tracing, after.tracing, 'tracing'), ...events.filter(path => path === 'events.capacity')]
  }
  return { ...parts, same: isEmpty(parts) }
}
