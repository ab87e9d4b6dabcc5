/**
 * Readiness: whether this instance should get traffic. Decorates `app.readiness()`, which reads what is known and asks nobody.
 */
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import type { Reason } from '../lib/failure.ts'
import { plural } from '../lib/words.ts'
import type {} from './breaker-registry.ts'
import type {} from './lifecycle.ts'
import type { UpstreamPool } from './upstream-pools.ts'

export interface ReadinessOptions {
  /** The pools that traffic needs, or what tells them each time. Default: all. */
  pools?: readonly string[] | (() => readonly string[])
}

export interface Readiness {
  ready: boolean
  /** Why not, or null: that of the first pool, where there are several. */
  reason: Reason | null
  /** For people; names each pool that could serve nothing, up to eight, and never an address. */
  detail: string
}

declare module 'fastify' {
  interface FastifyInstance {
    readiness (): Readiness
  }
}

/** Pools that are told of by name. */
const maxNamed = 8

const yes: Readiness = Object.freeze({ ready: true, reason: null, detail: 'every pool has an upstream that would be asked' })

/** Why a pool could serve nothing now, or null: it needs one member that is healthy and whose breaker would admit. */
function poolRefusal (app: FastifyInstance, pool: UpstreamPool, now: number): Reason | null {
  let refusal: Reason = 'no_upstream_healthy'
  for (const upstream of pool.upstreams) {
    if (!upstream.healthy || upstream.draining || upstream.weight === 0 || now < upstream.ejectedUntil) continue
    const { mode } = pool.options.breaker
    const breaker = mode === 'enforce' && app.hasDecorator('breakers') ? app.breakers.find(pool.name, upstream.id)?.breaker : undefined
    // A half-open breaker counts as admitting, even while all of its probes are out.
    if (breaker === undefined || breaker.state !== 'open' || breaker.wouldAdmit(now)) return null
    refusal = 'breaker_open'
  }
  return refusal
}

const readiness: FastifyPluginAsync<ReadinessOptions> = async (app, options) => {
  app.decorate('readiness', () => {
    if (app.hasDecorator('lifecycle') && app.lifecycle.phase !== 'serving') return { ready: false, reason: 'draining' as const, detail: 'shutting down' }
    const now = performance.now()
    const needed = typeof options.pools === 'function' ? options.pools() : options.pools
    const refusals: Array<{ pool: string, reason: Reason }> = []
    for (const pool of app.pools.list()) {
      if (needed !== undefined && !needed.includes(pool.name)) continue
      const reason = poolRefusal(app, pool, now)
      if (reason !== null) refusals.push({ pool: pool.name, reason })
    }
    const [first] = refusals
    if (first === undefined) return yes
    const named = refusals.slice(0, maxNamed).map(({ pool, reason }) => `pool "${pool}": ${reason}`)
    const more = refusals.length - named.length
    return { ready: false, reason: first.reason, detail: [...named, ...more === 0 ? [] : [`and ${plural(more, 'more pool')}`]].join('; ') }
  })
}

export default fp(readiness, { name: 'breakwater-readiness', fastify: '5.x', dependencies: ['breakwater-upstream-pools'] })
