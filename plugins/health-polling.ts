/**
 * Active health checks. Polls every upstream of every pool and writes what it believes into `upstream.healthy`, which the forwarder
 * reads on each pick. The arithmetic is in lib/health; one upstream's state in health-polling/tracker.ts; one check in http-checker.ts
 * and tcp-checker.ts.
 */
import createError from '@fastify/error'
import fp from 'fastify-plugin'
import { monotonic, type Clock } from '../lib/clock.ts'
import { Emitter } from '../lib/emitter.ts'
import type { CheckCause, FailedCause, HealthCause } from '../lib/health/cause.ts'
import { RemovalLimit } from '../lib/health/removal.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { Tracker, type TrackerContext } from './health-polling/tracker.ts'
import type { CheckResult, HealthView, PollingView } from './health-polling/view.ts'
import type { UpstreamPool, UpstreamPools } from './upstream-pools.ts'

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

/**
 * What checks found that changes no belief: the first one of an upstream failed, which counted as unhealthy before (`health_first_check_failed`);
 * or they say nothing about it, by our own fault (`health_check_inconclusive`), which is told once, until one says something. Frozen.
 */
export interface CheckTrouble {
  readonly type: 'health_first_check_failed' | 'health_check_inconclusive'
  readonly pool: string
  readonly upstream: string
  readonly cause: CheckCause
  /** What the error said; null: there was none. */
  readonly error: string | null
  /** ISO 8601. */
  readonly at: string
}

const newsOf = { change: ['health_changed'], held: ['health_removal_held'], trouble: ['health_first_check_failed', 'health_check_inconclusive'] } as const

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
  /** The same, on each check that has found such a thing. */
  on (type: 'trouble', fn: (trouble: CheckTrouble) => unknown): () => void
  /** Begins to poll. Called by the plugin when the app is ready; again it does nothing. */
  start (): void
  /**
   * Reads `app.pools` again: new upstreams are polled at once, gone ones no more, those that stayed keep their state. A listener may
   * call it while it runs: the later call counts.
   * @param pool the one that has changed; left out: any of them may have
   */
  sync (pool?: string): void
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
  /** By the upstreams' ids, in their order. */
  trackers: Map<string, Tracker>
}

export default fp<HealthPollingOptions>(async (app, options) => {
  const { clock = monotonic, random = systemRandom } = options
  const log = app.log
  const pools: UpstreamPools = app.pools
  // One for all kinds, so that they are told in the order in which they happened.
  const news = new Emitter<HealthChange | RemovalHeld | CheckTrouble>((err) => log.error({ err, source: 'health-polling' }, 'listener_failed'))
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
    },
    troubled (tracker, type, cause, error) {
      const { pool, upstream } = tracker.view
      log.warn({ pool, upstream, ...type === 'health_first_check_failed' && { healthy: false }, cause, ...error !== null && { error } }, type)
      news.emit(Object.freeze({ type, pool, upstream, cause, error, at: new Date().toISOString() }))
    }
  }

  function* trackers (): Generator<Tracker> {
    for (const record of records.values()) yield* record.trackers.values()
  }

  /** Takes the members of a pool over as they are now, which tells nobody. Returns those that are to be updated. */
  function enlist (record: PoolRecord, pool: UpstreamPool): Tracker[] {
    const before = record.trackers
    const { removals } = record
    const kept: Tracker[] = []
    record.trackers = new Map()
    for (const [index, upstream] of pool.upstreams.entries()) {
      const member = { pool, upstream, index, count: pool.upstreams.length, removals }
      const known = before.get(upstream.id)
      if (known !== undefined) {
        known.expect(member)
        kept.push(known)
      }
      record.trackers.set(upstream.id, known ?? new Tracker(member, context))
    }
    for (const [id, tracker] of before) {
      if (record.trackers.has(id)) continue
      tracker.stop()
      removals.forget(id)
    }
    return kept
  }

  function sync (name?: string): void {
    if (state === 'closed') return
    // A pool that comes or goes concerns all: they are kept in their order.
    const only = name === undefined || !records.has(name) ? undefined : pools.get(name)
    const changed = only === undefined ? pools.list() : [only]
    const before = records
    if (only === undefined) records = new Map()
    const kept: Tracker[] = []
    for (const pool of changed) {
      const record = before.get(pool.name) ?? { removals: new RemovalLimit(), held: 0, trackers: new Map() }
      records.set(pool.name, record)
      kept.push(...enlist(record, pool))
    }
    for (const [gone, record] of before) if (!records.has(gone)) for (const tracker of record.trackers.values()) tracker.stop()
    // Last, as it may tell listeners, who then see the whole new list, and may change it again.
    for (const tracker of kept) tracker.update()
    if (state === 'polling') for (const pool of changed) for (const tracker of records.get(pool.name)?.trackers.values() ?? []) tracker.poll()
  }

  const health: Health = {
    list: () => Array.from(trackers(), ({ view }) => view),
    get: (pool, upstream) => records.get(pool)?.trackers.get(upstream)?.view,
    async checkNow (pool, upstream) {
      const tracker = records.get(pool)?.trackers.get(upstream)
      if (tracker === undefined) throw new UnknownUpstream(pool, upstream)
      return tracker.check()
    },
    held: (pool) => records.get(pool)?.held ?? 0,
    on: (type: keyof typeof newsOf, fn: (event: never) => unknown) => {
      const wanted: readonly string[] = newsOf[type]
      return news.on((event) => wanted.includes(event.type) ? fn(event as never) : undefined)
    },
    start () {
      if (state !== 'idle') return
      state = 'polling'
      for (const tracker of trackers()) tracker.poll()
    },
    sync
  }

  sync()
  app.decorate('health', health)
  app.addHook('onReady', async () => { health.start() })
  app.addHook('onClose', async () => {
    state = 'closed'
    for (const tracker of trackers()) tracker.stop()
    news.clear()
  })
}, {
  fastify: '5.x',
  name: 'breakwater-health-polling',
  dependencies: ['breakwater-upstream-pools'],
  decorators: { fastify: ['pools'] }
})
