/**
 * The last 15 minutes of traffic and beliefs, in memory, for whoever opens the admin page in the middle of an incident.
 * Decorates `app.history`. The rings are in lib/history.
 */
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { monotonic, type Clock } from '../lib/clock.ts'
import { History, type HistoryFigures, type Sample } from '../lib/history/history.ts'
import type {} from './breaker-registry.ts'
import type {} from './load-shedding.ts'
import type {} from './observation.ts'
import type { Upstream } from './upstream-pools.ts'

export type { HistoryFigures }

export interface HistoryOptions {
  /** Monotonic milliseconds. Default: the process's own. */
  clock?: Clock
}

export interface HistoryView extends HistoryFigures {
  /** Tells this run of the process from another one, whose steps are numbered anew. */
  readonly run: string
  /** When the step `last` ended, ISO 8601, by the clock of now. */
  readonly endedAt: string
}

export interface TrafficHistory {
  /** The steps after `step` that have ended; all that are kept for 0 or a step that has not ended yet. */
  since (step: number): HistoryView
}

declare module 'fastify' {
  interface FastifyInstance {
    history: TrafficHistory
  }
}

const sampleMs = 1000

const history: FastifyPluginAsync<HistoryOptions> = async (app, { clock = monotonic }) => {
  const kept = new History(clock())
  const run = Date.now().toString(36)
  const hasGate = app.hasDecorator('shedding')
  const hasPools = app.hasDecorator('pools')

  const leave = app.observers.add({
    exchangeBegun: () => { kept.exchangeBegun() },
    exchangeEnded: ({ exchange }) => { kept.exchangeEnded(exchange.reason) },
    attemptBegun: (_exchange, { upstream }) => { kept.attemptBegun(upstream.pool, upstream.id, upstream.inFlight, hasGate ? app.shedding.inFlight : 0) },
    attemptEnded: (_exchange, { upstream, outcome, begunAt, headAt }) => {
      kept.attemptEnded(upstream.pool, upstream.id, outcome ?? 'ignored', headAt === 0 ? -1 : headAt - begunAt)
    }
  })

  function sampleOf (upstream: Upstream, now: number): Sample {
    const { pool, id, healthy, draining, ejectedUntil, inFlight } = upstream
    const breaker = app.hasDecorator('breakers') ? app.breakers.find(pool, id)?.breaker.state ?? null : null
    return { id, breaker, healthy, draining, ejected: ejectedUntil > now, inFlight }
  }

  /** Requests that come meanwhile are counted without asking a clock. */
  function sample (): void {
    const now = clock()
    kept.advance(now)
    if (hasPools) {
      const pools = app.pools.list()
      for (const { name, upstreams } of pools) kept.sample(name, upstreams.map((each) => sampleOf(each, now)))
      kept.keep(new Set(pools.map(({ name }) => name)))
    }
    if (!hasGate) return
    const { inFlight, pressure } = app.shedding.view()
    kept.sampleGate(inFlight, pressure.eventLoopDelayMs)
  }

  let timer: NodeJS.Timeout
  /** On the whole second, so that steps are of one length. */
  function arm (): void {
    timer = setTimeout(() => {
      sample()
      arm()
    }, sampleMs - clock() % sampleMs).unref()
  }

  app.decorate('history', {
    since (step: number): HistoryView {
      const now = clock()
      kept.advance(now)
      const figures = kept.figures(step)
      return { run, endedAt: new Date(Date.now() - (now - figures.last * figures.stepMs)).toISOString(), ...figures }
    }
  })

  app.addHook('onReady', async () => {
    sample()
    arm()
  })
  app.addHook('onClose', async () => {
    clearTimeout(timer)
    leave()
  })
}

export default fp(history, { name: 'breakwater-history', fastify: '5.x', dependencies: ['breakwater-observation'] })
