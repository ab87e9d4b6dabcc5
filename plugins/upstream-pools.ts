/**
 * Upstream pools: named groups of upstreams, each with its own bounded undici Pool.
 * Decorates `app.pools`.
 */
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { completePools, type DeepPartial } from '../config/complete.ts'
import type { PoolOptions } from '../config/schema.ts'
import type { Balancer } from '../lib/balance/balancer.ts'
import { RoundRobin } from '../lib/balance/round-robin.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { Upstream } from './upstream-pools/upstream.ts'

export type { Upstream }

/** A pool's settings as code may give them: everything but the upstreams may be left out, and an upstream may be a bare URL. */
export type PoolInput = { upstreams: ReadonlyArray<string | { url: string, weight?: number }> } & { [K in Exclude<keyof PoolOptions, 'upstreams'>]?: DeepPartial<PoolOptions[K]> }

export interface UpstreamPoolsOptions {
  pools: Readonly<Record<string, PoolInput | PoolOptions>>
  /** Where a balancer starts. Default: Math.random. */
  random?: Random
}

/** A pool as it is now: immutable, swapped whole; its upstreams carry the running state. */
export interface UpstreamPool {
  readonly name: string
  readonly options: PoolOptions
  readonly upstreams: readonly Upstream[]
  readonly balancer: Balancer
}

export interface UpstreamPools {
  get (name: string): UpstreamPool | undefined
  list (): readonly UpstreamPool[]
  find (pool: string, upstream: string): Upstream | undefined
  /** Takes an upstream out of rotation (true) or back in (false). Exchanges at it go on. Returns false if there is none of that name. */
  setDraining (pool: string, upstream: string, draining: boolean): boolean
}

declare module 'fastify' {
  interface FastifyInstance {
    pools: UpstreamPools
  }
}

/** An upstream that is given as a bare URL, written out. */
function withUrls (input: PoolInput | PoolOptions): object {
  const { upstreams } = input
  return Array.isArray(upstreams) ? { ...input, upstreams: upstreams.map((each: unknown) => typeof each === 'string' ? { url: each } : each) } : input
}

function buildPool (name: string, options: PoolOptions, random: Random): UpstreamPool {
  const upstreams = options.upstreams.map((each) => new Upstream(name, each, options))
  return Object.freeze({ name, options, upstreams: Object.freeze(upstreams), balancer: new RoundRobin(upstreams.length, random) })
}

const upstreamPools: FastifyPluginAsync<UpstreamPoolsOptions> = async (app, { pools: inputs, random = systemRandom }) => {
  const pools = new Map<string, UpstreamPool>()
  const complete = completePools(Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, withUrls(input)])))
  for (const [name, options] of Object.entries(complete)) {
    const pool = buildPool(name, options, random)
    pools.set(name, pool)
    if (pool.options.tls?.insecureSkipVerify === true) app.log.warn({ pool: name }, 'upstream certificates are NOT verified: insecureSkipVerify is set')
  }
  const find = (pool: string, upstream: string): Upstream | undefined => pools.get(pool)?.upstreams.find(({ id }) => id === upstream)

  app.decorate('pools', {
    get: (name: string) => pools.get(name),
    list: () => [...pools.values()],
    find,
    setDraining (pool: string, id: string, draining: boolean) {
      const upstream = find(pool, id)
      if (upstream !== undefined) upstream.draining = draining
      return upstream !== undefined
    }
  })

  app.addHook('onClose', async () => {
    await Promise.all([...pools.values()].flatMap(({ upstreams }) => upstreams.map((upstream) => upstream.close())))
  })
}

export default fp(upstreamPools, { name: 'breakwater-upstream-pools', fastify: '5.x' })
