/**
 * The configuration in force, and how another one takes its place while requests run. Decorates `app.configuration`. A new one is
 * judged whole before anything is changed. Pools that are new are looked at first; then all is swapped in one turn of the event loop:
 * a request has met either the one or the other.
 * What it holds is given to whoever goes by it: `app.pools`, `app.routeTable`, `app.shedding`, `app.discovery`.
 */
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import type { ConfigDiff } from '../config/diff.ts'
import type { Problem } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { Emitter } from '../lib/emitter.ts'
import { Rejection, rejectionOf } from './configuration/rejection.ts'
import { warm } from './configuration/warm.ts'
import type {} from './discovery.ts'
import { watchFile } from './file-watch.ts'
import type {} from './lifecycle.ts'
import type {} from './load-shedding.ts'
import type {} from './routing.ts'
import type {} from './upstream-pools.ts'

export interface ConfigurationOptions {
  /** What is in force at first. */
  config: Config
  /** Makes a configuration of plain data. Throws an error with `errors`: everything that is wrong. */
  parse: (input: unknown, where: string) => Config
  diff: (before: Config, after: Config) => ConfigDiff
}

/** Where a configuration comes from. */
export interface ConfigSource {
  /** Reads it again. Throws an error with `errors`: everything that is wrong. */
  load: () => Config
  /** The file that is watched, if the configuration says so; null: there is none. */
  file: string | null
}

/** What a change would do to what is running, beside what it changes. */
export interface ConfigImpact {
  /** Upstreams that leave or get new connections, with the exchanges that are at them now. */
  readonly upstreams: ReadonlyArray<{ readonly pool: string, readonly upstream: string, readonly inFlight: number }>
  /** Exchanges at them, together. They end as they began. */
  readonly exchanges: number
}

export type ConfigChange = ConfigDiff & { readonly impact: ConfigImpact }
export type Verdict = { readonly valid: true, readonly diff: ConfigChange } | { readonly valid: false, readonly errors: readonly Problem[] }
/** What made somebody ask for a reload. */
export type ReloadCause = 'signal' | 'file' | 'admin' | 'code'

/** What became of a reload; frozen, emitted once it is so. `reason`: what operators gave for it, of all whom it served; null: none did. */
export type ConfigEvent =
  | { readonly type: 'config_reloaded', readonly at: string, readonly version: number, readonly cause: ReloadCause, readonly reason: string | null, readonly diff: ConfigChange }
  | { readonly type: 'config_rejected', readonly at: string, readonly version: number, readonly cause: ReloadCause, readonly reason: string | null, readonly errors: readonly Problem[] }

export interface ConfigurationView {
  /** Counts the configurations that were in force. */
  readonly version: number
  /** Since when, ISO 8601. */
  readonly loadedAt: string
  readonly file: string | null
  readonly watched: boolean
  /** The latest one that was refused, until one is taken. */
  readonly rejected: { readonly at: string, readonly cause: ReloadCause, readonly reason: string | null, readonly errors: readonly Problem[] } | null
}

export interface Configuration {
  readonly current: Config
  view (): ConfigurationView
  /** Says where the configuration comes from, for `reload`; where it says so, the file is watched from now on. */
  follow (source: ConfigSource): void
  /**
   * Judges a configuration, plain data or else what the source gives now, and says what would change, what only a restart can change
   * included. Changes nothing. Text is taken as it is: variables are not looked up for it.
   */
  validate (input?: unknown): Verdict
  /** Reads the source again, and swaps what it gives in, after those asked for before. What is wrong changes nothing. Never rejects. @param reason an operator's */
  reload (cause: ReloadCause, reason?: string | null): Promise<Verdict>
  /** Swaps a configuration in that code gives, likewise. */
  apply (input: unknown): Promise<Verdict>
  /** Calls `fn` on each event until the returned function is called. A listener that throws is logged and harms nobody. */
  on (type: 'event', fn: (event: ConfigEvent) => unknown): () => void
}

declare module 'fastify' {
  interface FastifyInstance {
    configuration: Configuration
  }
}

/** Of operators whom one reload serves. */
const maxReasons = 10

const configuration: FastifyPluginAsync<ConfigurationOptions> = async (app, { config, parse, diff }) => {
  const emitter = new Emitter<ConfigEvent>((err) => { app.log.error({ err, source: 'configuration' }, 'listener_failed') })
  let current = config
  let version = 1
  let loadedAt = new Date().toISOString()
  let rejected: ConfigurationView['rejected'] = null
  let source: ConfigSource | null = null
  let unwatch: (() => void) | null = null
  /** What the watch is for; null: there is none. */
  let watched: string | null = null
  let closed = false
  /** One after the other. */
  let latest: Promise<unknown> = Promise.resolve()
  /** A reload from the source that has not had its turn yet. */
  let waiting: { readonly verdict: Promise<Verdict>, readonly reasons: Set<string> } | null = null

  /** @throws Rejection */
  function judge (make: () => Config): { next: Config, change: ConfigChange, swapRoutes: () => void } {
    try {
      const next = make()
      const difference = diff(current, next)
      // Worked out here, because it may throw.
      const swapRoutes = app.hasDecorator('routeTable') ? app.routeTable.prepare(next.routes) : () => {}
      return { next, change: { ...difference, impact: impactOf(app, difference) }, swapRoutes }
    } catch (error) {
      throw rejectionOf(error)
    }
  }

  function fromSource (): Config {
    if (source === null) throw new Rejection([{ path: '', message: 'there is nothing to read again: the configuration was given by code' }])
    return source.load()
  }

  function validate (make: () => Config): Verdict {
    try {
      return { valid: true, diff: judge(make).change }
    } catch (error) {
      return { valid: false, errors: rejectionOf(error).errors }
    }
  }

  function refuseTheEnd (): void {
    if (closed || (app.hasDecorator('lifecycle') && app.lifecycle.phase !== 'serving')) throw new Rejection([{ path: '', message: 'the proxy is shutting down' }])
  }

  /** @throws Rejection */
  async function change (make: () => Config): Promise<ConfigChange> {
    refuseTheEnd()
    const { next, change: difference, swapRoutes } = judge(make)
    const { needsRestart } = difference
    if (needsRestart.length > 0) throw new Rejection(needsRestart.map((path) => ({ path, message: 'cannot be changed while running; restart to change it' })))
    const needed = new Set(next.routes.flatMap(({ pool, split }) => [...pool === undefined ? [] : [pool], ...Object.keys(split?.pools ?? {})]))
    const fresh = difference.pools.added.filter((pool) => needed.has(pool))
    if (fresh.length === 0 || !app.hasDecorator('pools')) {
      swapIn(next, swapRoutes)
      return difference
    }
    // All that is in force stays as it is meanwhile.
    applyPools({ ...next.pools, ...current.pools })
    try {
      await warm(app, fresh)
      refuseTheEnd()
      swapIn(next, swapRoutes)
    } catch (error) {
      if (!closed) applyPools(current.pools)
      throw error
    }
    return difference
  }

  function swapIn (next: Config, swapRoutes: () => void): void {
    applyPools(next.pools)
    swapRoutes()
    if (app.hasDecorator('shedding')) app.shedding.configure(next.shedding)
    current = next
  }

  async function swap (cause: ReloadCause, make: () => Config, reasons: ReadonlySet<string>): Promise<Verdict> {
    const given = (): string | null => reasons.size === 0 ? null : Array.from(reasons).join('; ')
    try {
      const changed = await change(make)
      const reason = given()
      const at = new Date().toISOString()
      version++
      loadedAt = at
      rejected = null
      watch()
      app.log.info({ version, cause, reason, diff: changed }, 'config_reloaded')
      emitter.emit(Object.freeze({ type: 'config_reloaded', at, version, cause, reason, diff: changed }))
      return { valid: true, diff: changed }
    } catch (error) {
      const { errors } = rejectionOf(error)
      const at = new Date().toISOString()
      const reason = given()
      rejected = Object.freeze({ at, cause, reason, errors })
      app.log.error({ version, cause, reason, errors }, 'config_rejected')
      emitter.emit(Object.freeze({ type: 'config_rejected', at, version, cause, reason, errors }))
      return { valid: false, errors }
    }
  }

  function enqueue (cause: ReloadCause, make: () => Config, reasons: ReadonlySet<string> = new Set()): Promise<Verdict> {
    const swapped = latest.then(() => swap(cause, make, reasons))
    latest = swapped
    return swapped
  }

  /** The source is read when it is this one's turn: whoever asks while one waits is served by it. */
  function enqueueSource (cause: ReloadCause, reason: string | null = null): Promise<Verdict> {
    if (waiting === null) {
      const reasons = new Set<string>()
      const verdict = enqueue(cause, () => {
        waiting = null
        return fromSource()
      }, reasons).finally(() => { if (waiting?.verdict === verdict) waiting = null })
      waiting = { verdict, reasons }
    }
    if (reason !== null && waiting.reasons.size < maxReasons) waiting.reasons.add(reason)
    return waiting.verdict
  }

  /** A certificate that was there when the configuration was judged may be gone now. */
  function applyPools (pools: Config['pools']): void {
    try {
      if (app.hasDecorator('pools')) app.pools.apply(pools)
      if (app.hasDecorator('discovery')) app.discovery.sync()
    } catch (error) {
      throw rejectionOf(error)
    }
  }

  function watch (): void {
    const file = source?.file ?? null
    const { watch: wanted, pollMs } = current.reload
    const key = !wanted || file === null || closed ? null : `${pollMs} ${file}`
    // One that goes on remembers what it has told.
    if (key === watched) return
    watched = key
    unwatch?.()
    unwatch = null
    if (key === null || file === null) return
    let first = true
    unwatch = watchFile(file, {
      pollMs,
      onChange: () => {
        const isFirst = first
        first = false
        // What is there when the watch begins is mostly what we run; if it is not, it was changed a moment ago.
        if (isFirst && isSame()) return
        void enqueueSource('file')
      },
      onError: (error) => { void enqueue('file', () => { throw new Rejection([{ path: '', message: `cannot be read: ${error.message}` }]) }) }
    })
  }

  function isSame (): boolean {
    const verdict = validate(fromSource)
    return verdict.valid && verdict.diff.same
  }

  app.decorate('configuration', {
    get current () { return current },
    view: () => ({ version, loadedAt, file: source?.file ?? null, watched: unwatch !== null, rejected }),
    follow (given: ConfigSource) {
      source = given
      watch()
    },
    validate: (input?: unknown) => validate(input === undefined ? fromSource : () => parse(input, 'the request')),
    reload: enqueueSource,
    apply: (input: unknown) => enqueue('code', () => parse(input, 'the configuration')),
    on: (_type: 'event', fn: (event: ConfigEvent) => unknown) => emitter.on(fn)
  })

  app.addHook('onClose', async () => {
    closed = true
    unwatch?.()
    emitter.clear()
  })
}

function impactOf (app: FastifyInstance, { upstreams: { removed, changed } }: ConfigDiff): ConfigImpact {
  const touched = [...removed, ...changed.filter(({ reconnects }) => reconnects)]
  const upstreams = touched.map(({ pool, upstream }) => ({ pool, upstream, inFlight: app.hasDecorator('pools') ? app.pools.find(pool, upstream)?.inFlight ?? 0 : 0 }))
  return { upstreams, exchanges: upstreams.reduce((sum, { inFlight }) => sum + inFlight, 0) }
}

export default fp(configuration, { name: 'breakwater-configuration', fastify: '5.x' })
