/**
 * Upstream pools: named groups of upstreams, each with its own bounded connections, and for each pool a lane that picks among them.
 * Decorates `app.pools`. What is running of a pool is in upstream-pools/pool.ts, of an upstream in state.ts, its connections in
 * transport.ts.
 */
import createError from '@fastify/error'
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { completePools, type DeepPartial } from '../config/complete.ts'
import type { PoolOptions } from '../config/schema.ts'
import type { Lane, SelectBreaker } from '../lib/balance/lane.ts'
import { Emitter } from '../lib/emitter.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import type {} from './breaker-registry.ts'
import type {} from './health-polling.ts'
import { PoolEvents, type PoolEvent } from './upstream-pools/events.ts'
import { PoolRuntime, type DiscoveredUpstream, type MembersChange, type Plan, type UpstreamPool } from './upstream-pools/pool.ts'
import type { Drain } from './upstream-pools/state.ts'
import type { Transport } from './upstream-pools/transport.ts'
import type { Upstream } from './upstream-pools/upstream.ts'

export type { DiscoveredUpstream, MembersChange, PoolEvent, Upstream, UpstreamPool }

/** A pool's settings as code may give them: everything but the upstreams may be left out, and an upstream may be a bare URL. */
export type PoolInput = { upstreams?: ReadonlyArray<string | DeepPartial<PoolOptions['upstreams'][number]> & { url: string }> } & { [K in Exclude<keyof PoolOptions, 'upstreams'>]?: DeepPartial<PoolOptions[K]> }

export interface UpstreamPoolsOptions {
  pools: Readonly<Record<string, PoolInput | PoolOptions>>
  /** Where a balancer starts and chance decides. Default: Math.random. */
  random?: Random
}

export interface DrainOptions {
  /** Ends by itself after this time, in ms. 0 or left out: when somebody ends it. */
  ttlMs?: number
  /** Why; for the journal and for those who look. */
  reason?: string | null
}

export interface UpstreamPools {
  get (name: string): UpstreamPool | undefined
  list (): readonly UpstreamPool[]
  find (pool: string, upstream: string): Upstream | undefined
  /** The lane of a pool as it is now; an exchange stays on the one that it began with. */
  lane (name: string): Lane<UpstreamPool, Upstream> | undefined
  /**
   * Takes an upstream out of rotation (true) or back in (false). Exchanges at it go on. Returns false if there is none of that name.
   * A drain is remembered for an upstream that goes and comes back.
   * @throws RangeError unless 0 <= ttlMs < 2^31
   */
  setDraining (pool: string, upstream: string, draining: boolean, options?: DrainOptions): boolean
  /**
   * Swaps what discovery has found for a pool, beside its configured upstreams. Those that stay keep everything; those that are gone
   * end their exchanges; new ones count as unchecked.
   * @throws BREAKWATER_UNKNOWN_POOL, and a TypeError for a URL that is none, which changes nothing
   */
  setMembers (pool: string, members: readonly DiscoveredUpstream[]): MembersChange
  /**
   * Swaps the options of all pools: new pools come, missing ones go, upstreams that stay keep everything but what was changed.
   * @param pools complete, as `parseConfig` gives them
   * @throws what reading a certificate throws, which changes nothing
   */
  apply (pools: Readonly<Record<string, PoolOptions>>): void
  /** Calls `fn` on each event until the returned function is called. A listener that throws is logged and harms nobody. */
  on (type: 'event', fn: (event: PoolEvent) => unknown): () => void
}

declare module 'fastify' {
  interface FastifyInstance {
    pools: UpstreamPools
  }
}

const UnknownPool = createError('BREAKWATER_UNKNOWN_POOL', 'There is no pool "%s"', 404)

const sweepMs = 1000
/** The longest time that a timer can hold, in ms. */
const maxTimerMs = 2147483647

const isText = (each: unknown): boolean => typeof each === 'string'

/** Upstreams that are given as bare URLs, written out; what has none is given back as it is. */
function withUrls (inputs: UpstreamPoolsOptions['pools']): object {
  const lists = Object.values(inputs).map((input) => input?.upstreams)
  if (!lists.some((upstreams) => Array.isArray(upstreams) && upstreams.some(isText))) return inputs
  return Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, withUrlsOf(input)]))
}

function withUrlsOf (input: PoolInput | PoolOptions): object {
  const { upstreams } = input
  return Array.isArray(upstreams) ? { ...input, upstreams: upstreams.map((each: unknown) => isText(each) ? { url: each } : each) } : input
}

const upstreamPools: FastifyPluginAsync<UpstreamPoolsOptions> = async (app, { pools: inputs, random = systemRandom }) => {
  let runtimes = new Map<string, PoolRuntime>()
  /** Connections that nothing new will use, until the last exchange on them has ended. */
  const ending = new Set<Transport>()
  const emitter = new Emitter<PoolEvent>((err) => { app.log.error({ err, source: 'upstream-pools' }, 'listener_failed') })
  const events = new PoolEvents(app.log, emitter)
  let unsubscribe: (() => void) | null = null

  function retire (transport: Transport): void {
    ending.add(transport)
    transport.retire(() => { ending.delete(transport) })
  }

  function breakerOf ({ pool, id }: Upstream): SelectBreaker | null {
    if (!app.hasDecorator('breakers')) return null
    unsubscribe ??= app.breakers.on('transition', (transition) => { runtimes.get(transition.pool)?.signal.touch() })
    return app.breakers.get(pool, id, runtimes.get(pool)?.snapshot.options.breaker).breaker
  }

  function laneOf (runtime: PoolRuntime): Lane<UpstreamPool, Upstream> {
    return runtime.madeLane ?? runtime.lane(breakerOf, events.of(runtime.name))
  }

  /** Whoever keeps something for each upstream, and the journal, learn of those that came and went. */
  function changed (pool: string, { added, removed }: MembersChange): void {
    if (app.hasDecorator('breakers')) for (const id of removed) app.breakers.remove(pool, id)
    const runtime = runtimes.get(pool)
    if (runtime !== undefined) laneOf(runtime)
    for (const id of added) {
      const drain = runtime?.takeDrain(id) ?? null
      if (drain !== null) setDrain(pool, id, drain)
    }
    if (added.length > 0 || removed.length > 0) events.members(pool, added, removed)
  }

  function apply (pools: Readonly<Record<string, PoolOptions>>): void {
    const next = new Map<string, PoolRuntime>()
    const plans: Array<[PoolRuntime, Plan]> = []
    for (const [name, options] of Object.entries(pools)) {
      const runtime = runtimes.get(name) ?? new PoolRuntime(name, options, random, performance.now(), retire)
      next.set(name, runtime)
      plans.push([runtime, runtime.plan(options)])
    }
    const before = runtimes
    runtimes = next
    for (const [runtime, { commit }] of plans) commitOf(runtime, commit)
    for (const [name, runtime] of before) if (!next.has(name)) runtime.leave()
    for (const [{ name }, { change, same }] of plans) if (!same) changed(name, change)
    for (const [name, { snapshot, signal }] of before) {
      if (next.has(name)) continue
      changed(name, { added: [], removed: snapshot.upstreams.map(({ id }) => id), kept: [] })
      if (signal.panic) events.of(name).panicChanged(false, 0, 0)
    }
    if (app.hasDecorator('health')) app.health.sync()
  }

  function commitOf ({ name, snapshot }: PoolRuntime, commit: () => void): void {
    const skipped = snapshot?.options.tls?.insecureSkipVerify === true
    commit()
    if (!skipped && runtimes.get(name)?.snapshot.options.tls?.insecureSkipVerify === true) {
      app.log.warn({ pool: name }, 'upstream certificates are NOT verified: insecureSkipVerify is set')
    }
  }

  const find = (pool: string, upstream: string): Upstream | undefined => runtimes.get(pool)?.snapshot.upstreams.find(({ id }) => id === upstream)

  function setDrain (pool: string, id: string, drain: Drain): void {
    const leftMs = drain.until === null ? 0 : Math.max(1, Date.parse(drain.until) - Date.now())
    find(pool, id)?.state.setDrain(drain, leftMs, () => { endDrain(pool, id, 'ttl', drain.reason) })
    runtimes.get(pool)?.renewConnections(id)
    events.draining(pool, id, drain)
  }

  function endDrain (pool: string, id: string, cause: 'operator' | 'ttl', reason: string | null): void {
    const upstream = find(pool, id)
    if (upstream === undefined || upstream.drain === null) return
    upstream.state.setDrain(null, 0, () => {})
    events.ready(pool, id, cause, reason)
  }

  app.decorate('pools', {
    get: (name: string) => runtimes.get(name)?.snapshot,
    list: () => Array.from(runtimes.values(), ({ snapshot }) => snapshot),
    find,
    lane (name: string) {
      const runtime = runtimes.get(name)
      return runtime === undefined ? undefined : laneOf(runtime)
    },
    setDraining (pool: string, id: string, draining: boolean, { ttlMs = 0, reason = null }: DrainOptions = {}) {
      const upstream = find(pool, id)
      if (upstream === undefined) return false
      if (!draining) {
        endDrain(pool, id, 'operator', reason)
        return true
      }
      if (!(ttlMs >= 0 && ttlMs <= maxTimerMs)) throw new RangeError(`ttlMs must be from 0 to ${maxTimerMs}, got ${ttlMs}`)
      const now = Date.now()
      setDrain(pool, id, Object.freeze({ since: upstream.drain?.since ?? new Date(now).toISOString(), until: ttlMs > 0 ? new Date(now + ttlMs).toISOString() : null, reason }))
      return true
    },
    setMembers (pool: string, members: readonly DiscoveredUpstream[]) {
      const runtime = runtimes.get(pool)
      if (runtime === undefined) throw new UnknownPool(pool)
      const { change, same, commit } = runtime.plan(runtime.snapshot.options, members)
      if (same) return change
      commit()
      changed(pool, change)
      if (app.hasDecorator('health')) app.health.sync(pool)
      return change
    },
    apply,
    on: (_type: 'event', fn: (event: PoolEvent) => unknown) => emitter.on(fn)
  })

  const complete = completePools(withUrls(inputs))
  for (const [name, options] of Object.entries(complete)) {
    const runtime = new PoolRuntime(name, options, random, performance.now(), retire)
    runtimes.set(name, runtime)
    commitOf(runtime, runtime.plan(options).commit)
  }

  function watchBudget (runtime: PoolRuntime, now: number): void {
    const { name, spending, snapshot: { budget } } = runtime
    if (runtime.looksSpent(now)) events.budgetSpent(name, budget.snapshot(now))
    const ended = spending.ended(now)
    if (ended !== null) events.budgetRecovered(name, ended)
  }

  function release (runtime: PoolRuntime, now: number): void {
    const change = runtime.release(now)
    if (change === null) return
    changed(runtime.name, change)
    if (app.hasDecorator('health')) app.health.sync(runtime.name)
  }

  // What time alone has brought is seen without traffic, too: ends of ejections, of open times, of panic.
  const timer = setInterval(() => {
    const now = performance.now()
    for (const runtime of runtimes.values()) {
      runtime.madeLane?.sweep(now)
      watchBudget(runtime, now)
      release(runtime, now)
    }
  }, sweepMs).unref()

  // The lanes are made when everybody is there, so that their breakers are to be seen before the first request.
  app.addHook('onReady', async () => {
    if (app.hasDecorator('health')) {
      app.health.on('change', ({ pool, healthy }) => {
        const runtime = runtimes.get(pool)
        if (healthy && runtime !== undefined) release(runtime, performance.now())
      })
    }
    for (const runtime of runtimes.values()) laneOf(runtime)
  })

  app.addHook('onClose', async () => {
    clearInterval(timer)
    unsubscribe?.()
    const transports = [...ending, ...Array.from(runtimes.values()).flatMap((runtime) => runtime.transports())]
    for (const runtime of runtimes.values()) runtime.close()
    await Promise.all(transports.map((transport) => transport.close()))
    emitter.clear()
  })
}

export default fp(upstreamPools, { name: 'breakwater-upstream-pools', fastify: '5.x' })
