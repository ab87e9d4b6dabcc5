/**
 * Active health checks. Polls every upstream of every pool and writes what it believes into `upstream.healthy`, which the forwarder
 * reads on each pick. The arithmetic is in lib/health; one upstream's state in health-polling/tracker.ts; one check in http-checker.ts
 * and tcp-checker.ts.
 */
import createError from '@fastify/error'
import fp from 'fastify-plugin'
import { monotonic, type Clock } from '../lib/clock.ts'
import { Emitter } from '../lib/emitter.ts'
import type { FailedCause, HealthCause } from '../lib/health/cause.ts'
import { RemovalLimit } from '../lib/health/removal.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { Tracker, type TrackerContext } from './health-polling/tracker.ts'
import type { CheckResult, HealthView, PollingView } from './health-polling/view.ts'
import type { UpstreamPools } from './upstream-pools.ts'

export type { CheckResult, HealthCause, HealthView, PollingView }

export interface HealthPollingOptions {
  /** Monotonic milliseconds, by which checks are measured and scheduled. Default: the process's own. */
  clock?: Clock
  /** Numbers in [0, 1) for the jitter. Default: Math.random. */
  random?: Random
}

/** A change of belief; frozen, emitted once, in order, after it is committed. */
export interface HealthChange {
  readonly type: 'health_changed'
  readonly pool: string
  readonly upstream: string
  readonly healthy: boolean
  readonly cause: HealthCause
  /** ISO 8601. */
  readonly at: string
}

/**
 * An upstream failed its checks and stays healthy: as many members of its pool as may turn unhealthy within the time have done so.
 * Frozen; told once, until it passes a check or has fallen.
 */
export interface RemovalHeld {
  readonly type: 'health_removal_held'
  readonly pool: string
  readonly upstream: string
  readonly cause: FailedCause
  /** So many members turned unhealthy within the time ... */
  readonly removed: number
  /** ... and so many may. */
  readonly limit: number
  readonly seconds: number
  /** ISO 8601. */
  readonly at: string
}

export interface Health {
  /** Every upstream of every pool, in the pools' order; frozen copies. */
  list (): readonly HealthView[]
  get (pool: string, upstream: string): HealthView | undefined
  /**
   * Checks now and counts the result, or joins the check that runs. Rejects with BREAKWATER_UNKNOWN_UPSTREAM where there is no such
   * upstream, else never: `passed` is null where the check says nothing about the upstream.
   */
  checkNow (pool: string, upstream: string): Promise<CheckResult>
  /** How often a member of the pool was held back: once for each `held`. 0 where there is no such pool. */
  held (pool: string): number
  /** Calls `fn` on each change until the returned function is called. A listener that throws is logged and harms nobody. */
  on (type: 'change', fn: (change: HealthChange) => unknown): () => void
  /** The same, on each member that is held back. */
  on (type: 'held', fn: (held: RemovalHeld) => unknown): () => void
  /** Begins to poll. Called by the plugin when the app is ready; again it does nothing. */
  start (): void
  /** Reads `app.pools` again: new upstreams are polled at once, gone ones no more, those that stayed keep their state. */
  sync (): void
}

declare module 'fastify' {
  interface FastifyInstance {
    health: Health
  }
}

const UnknownUpstream = createError('BREAKWATER_UNKNOWN_UPSTREAM', 'Pool "%s" has no upstream "%s"', 404)

/** What is kept for a pool as long as there is one of that name. */
interface PoolRecord {
  readonly removals: RemovalLimit
  held: number
}

/** A pool's name holds no space. */
const keyOf = (pool: string, upstream: string): string => `${pool} ${upstream}`

export default fp<HealthPollingOptions>(async (app, options) => {
  const { clock = monotonic, random = systemRandom } = options
  const log = app.log
  const pools: UpstreamPools = app.pools
  // One for both kinds, so that they are told in the order in which they happened.
  const news = new Emitter<HealthChange | RemovalHeld>((err) => log.error({ err, source: 'health-polling' }, 'listener_failed'))
  let trackers = new Map<string, Tracker>()
  let records = new Map<string, PoolRecord>()
  let state: 'idle' | 'polling' | 'closed' = 'idle'

  const context: TrackerContext = {
    log,
    clock,
    random,
    changed (tracker, cause) {
      const { pool, upstream, healthy, since } = tracker.view
      log[healthy ? 'info' : 'warn']({ pool, upstream, healthy, cause }, 'health_changed')
      news.emit(Object.freeze({ type: 'health_changed', pool, upstream, healthy, cause, at: since }))
    },
    held (tracker, hold) {
      const { pool, upstream } = tracker.view
      const record = records.get(pool)
      if (record !== undefined) record.held++
      log.warn({ pool, upstream, ...hold }, 'health_removal_held')
      news.emit(Object.freeze({ type: 'health_removal_held', pool, upstream, ...hold, at: new Date().toISOString() }))
    }
  }

  const health: Health = {
    list: () => Array.from(trackers.values(), (tracker) => tracker.view),
    get: (pool, upstream) => trackers.get(keyOf(pool, upstream))?.view,
    async checkNow (pool, upstream) {
      const tracker = trackers.get(keyOf(pool, upstream))
      if (tracker === undefined) throw new UnknownUpstream(pool, upstream)
      return tracker.check()
    },
    held: (pool) => records.get(pool)?.held ?? 0,
    on: (type: 'change' | 'held', fn: (event: never) => unknown) => {
      const wanted = type === 'held' ? 'health_removal_held' : 'health_changed'
      return news.on((event) => event.type === wanted ? fn(event as never) : undefined)
    },
    start () {
      if (state !== 'idle') return
      state = 'polling'
      for (const tracker of trackers.values()) tracker.poll()
    },
    sync () {
      if (state === 'closed') return
      const before = trackers
      const recordsBefore = records
      const kept: Array<() => void> = []
      trackers = new Map()
      records = new Map()
      for (const pool of pools.list()) {
        const record = recordsBefore.get(pool.name) ?? { removals: new RemovalLimit(), held: 0 }
        records.set(pool.name, record)
        for (const [index, upstream] of pool.upstreams.entries()) {
          const key = keyOf(pool.name, upstream.id)
          const member = { pool, upstream, index, count: pool.upstreams.length, removals: record.removals }
          const tracker = before.get(key) ?? new Tracker(member, context)
          if (before.delete(key)) kept.push(() => tracker.update(member))
          trackers.set(key, tracker)
        }
      }
      for (const tracker of before.values()) {
        const { pool, upstream } = tracker.view
        tracker.stop()
        records.get(pool)?.removals.forget(upstream)
      }
      // Last, as it may tell listeners, who then see the whole new list.
      for (const update of kept) update()
      if (state === 'polling') for (const tracker of trackers.values()) tracker.poll()
    }
  }

  health.sync()
  app.decorate('health', health)
  app.addHook('onReady', async () => { health.start() })
  app.addHook('onClose', async () => {
    state = 'closed'
    for (const tracker of trackers.values()) tracker.stop()
    news.clear()
  })
}, {
  fastify: '5.x',
  name: 'breakwater-health-polling',
  dependencies: ['breakwater-upstream-pools'],
  decorators: { fastify: ['pools'] }
})
