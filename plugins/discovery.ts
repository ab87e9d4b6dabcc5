/**
 * Discovery: the upstreams of a pool from DNS, from a file, or from a source that a plugin provides. Each list is handed to
 * `app.pools` as a whole; the last good one stays while its source fails. Decorates `app.discovery`.
 */
import { isDeepStrictEqual } from 'node:util'
import fp from 'fastify-plugin'
import type { DiscoveryOptions } from '../config/schema.ts'
import { monotonic, type Clock } from '../lib/clock.ts'
import { Emitter } from '../lib/emitter.ts'
import type { DiscoveredUpstream } from '../lib/discovery/members.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { DnsSource } from './discovery/dns-source.ts'
import { FileSource } from './discovery/file-source.ts'
import { Follower, type FollowerContext } from './discovery/follower.ts'
import { LocalNames } from './discovery/local-names.ts'
import { NamedSources } from './discovery/named-sources.ts'
import type { DiscoverySource } from './discovery/source.ts'
import type { DiscoveryEvent, DiscoveryView } from './discovery/view.ts'

export type { DiscoveredUpstream, DiscoveryEvent, DiscoverySource, DiscoveryView }

export interface DiscoveryPluginOptions {
  /** How long the app waits at its start for the first word of every source, in ms. 0: not at all. Default: 2000. */
  readyMs?: number
  /** The hosts file that names are looked up in before DNS is asked. Default: the system's. */
  hosts?: string
  /** Monotonic milliseconds, by which the age of a list is measured. Default: the process's own. */
  clock?: Clock
  /** Numbers in [0, 1) for the jitter. Default: Math.random. */
  random?: Random
}

export interface Discovery {
  /**
   * Gives a name to a source, for pools whose `discovery.source` is that name. It is started when the app is ready, or at once if
   * that has been, and only while a pool names it. Throws BREAKWATER_SOURCE_EXISTS for a name that has one.
   */
  provide (name: string, source: DiscoverySource): void
  /** Every pool with discovery, in the pools' order; frozen copies. */
  view (): readonly DiscoveryView[]
  /** Makes a pool's source look now. False where the pool has none. */
  refresh (pool: string): boolean
  /** Reads `app.pools` again: new sources are started, gone ones stopped, those that are as they were go on. */
  sync (): void
  /** Calls `fn` on each event until the returned function is called. A listener that throws is logged and harms nobody. */
  on (type: 'change', fn: (event: DiscoveryEvent) => unknown): () => void
}

declare module 'fastify' {
  interface FastifyInstance {
    discovery: Discovery
  }
}

/** So long, in ms, the end of the app waits for sources to end. */
const stopMs = 1000

export default fp<DiscoveryPluginOptions>(async (app, { readyMs = 2000, hosts, clock = monotonic, random = systemRandom }) => {
  const { log, pools } = app
  const events = new Emitter<DiscoveryEvent>((err) => { log.error({ err, source: 'discovery' }, 'listener_failed') })
  const context: FollowerContext = { pools, log, clock, tell: (event) => { events.emit(event) } }
  const named = new NamedSources()
  let followers = new Map<string, Follower>()
  let state: 'idle' | 'running' | 'closed' = 'idle'
  /** Ends of sources that are not over. */
  const ending = new Map<Follower, Promise<void>>()

  function sourceOf ({ dns, file, source = '', keep }: DiscoveryOptions): DiscoverySource {
    // Whoever names resolvers wants those asked, and nobody else.
    if (dns !== undefined) return new DnsSource(dns, keep, random, dns.servers.length === 0 ? new LocalNames(hosts) : null)
    return file !== undefined ? new FileSource(file) : named.follow(source)
  }

  function end (follower: Follower): void {
    const ended = follower.stop().catch((err: unknown) => { log.error({ err, pool: follower.pool }, 'discovery_stop_failed') })
    ending.set(follower, ended.finally(() => { ending.delete(follower) }))
  }

  function forget (pool: string): void {
    try {
      pools.setMembers(pool, [])
    } catch (err) {
      log.error({ err, pool }, 'discovery_forget_failed')
    }
  }

  function sync (): void {
    if (state === 'closed') return
    const before = followers
    followers = new Map()
    const fresh: Follower[] = []
    for (const { name, options: { discovery } } of pools.list()) {
      const earlier = before.get(name)
      if (discovery === undefined) {
        if (earlier !== undefined) forget(name)
      } else if (earlier !== undefined && isDeepStrictEqual(earlier.options, discovery)) {
        followers.set(name, earlier)
        before.delete(name)
        earlier.apply()
      } else {
        const follower = new Follower(name, discovery, sourceOf(discovery), context, earlier)
        followers.set(name, follower)
        fresh.push(follower)
        follower.apply()
      }
    }
    // Before the others end, so that a source that both name goes on.
    if (state === 'running') for (const follower of fresh) follower.start()
    for (const follower of before.values()) end(follower)
  }

  const discovery: Discovery = {
    provide: (name, source) => { named.provide(name, source) },
    view: () => Array.from(followers.values(), ({ view }) => view),
    refresh (pool) {
      const follower = followers.get(pool)
      follower?.refresh()
      return follower !== undefined
    },
    sync,
    on: (_type, fn) => events.on(fn)
  }

  sync()
  app.decorate('discovery', discovery)

  app.addHook('onReady', async () => {
    if (state !== 'idle') return
    state = 'running'
    for (const follower of followers.values()) follower.start()
    if (readyMs > 0) await within(Array.from(followers.values(), ({ heard }) => heard), readyMs)
  })

  app.addHook('onClose', async () => {
    state = 'closed'
    for (const follower of followers.values()) end(follower)
    await within([...ending.values()], stopMs)
    for (const { pool } of ending.keys()) log.warn({ pool, ms: stopMs }, 'discovery_stop_late')
    events.clear()
  })
}, {
  fastify: '5.x',
  name: 'breakwater-discovery',
  dependencies: ['breakwater-upstream-pools'],
  decorators: { fastify: ['pools'] }
})

/** Waits until all of them have come, but no longer than `ms`. */
async function within (promises: ReadonlyArray<Promise<void>>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, ms) })
  await Promise.race([Promise.all(promises), late])
  clearTimeout(timer)
}
