/**
 * Upstream pools: named groups of upstreams, each with its own bounded undici Pool.
 * Decorates `app.pools`.
 */
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { Value } from 'typebox/value'
import { PoolOptions } from '../config/schema.ts'
import type { Balancer } from '../lib/balance/balancer.ts'
import { RoundRobin } from '../lib/balance/round-robin.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { Upstream } from './upstream-pools/upstream.ts'

export type { Upstream }

/** A pool's settings as code may give them: everything but the upstreams may be left out, and an upstream may be a bare URL. */
export type PoolInput = { upstreams: ReadonlyArray<string | { url: string, weight?: number }> } & { [K in Exclude<keyof PoolOptions, 'upstreams'>]?: DeepPartial<PoolOptions[K]> }
type DeepPartial<T> = T extends object ? { [K in keyof T]?: DeepPartial<T[K]> | undefined } : T

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

/** Fills in the defaults and checks. Throws a TypeError that names each bad option with its path. */
export function completePool (name: string, input: PoolInput | PoolOptions): PoolOptions {
  const upstreams = input.upstreams.map((each) => typeof each === 'string' ? { url: each } : { ...each })
  const options: unknown = Value.Default(PoolOptions, { ...structuredClone({ ...input, upstreams: [] }), upstreams })
  if (!Value.Check(PoolOptions, options)) {
    const details = Value.Errors(PoolOptions, options).map((each) => `${name}${each.instancePath.replaceAll('/', '.')}: ${each.message}`)
    throw new TypeError(`invalid pool options:\n  ${details.join('\n  ')}`)
  }
  return options
}

function buildPool (name: string, input: PoolInput | PoolOptions, random: Random): UpstreamPool {
  const options = completePool(name, input)
  const upstreams = options.upstreams.map((each) => new Upstream(name, each, options))
  const ids = new Set<string>()
  for (const { id } of upstreams) {
    if (ids.has(id)) throw new TypeError(`invalid pool options:\n  ${name}.upstreams: ${id} stands there twice`)
    ids.add(id)
  }
  return Object.freeze({ name, options: Object.freeze(options), upstreams: Object.freeze(upstreams), balancer: new RoundRobin(upstreams.length, random) })
}

const upstreamPools: FastifyPluginAsync<UpstreamPoolsOptions> = async (app, { pools: inputs, random = systemRandom }) => {
  const pools = new Map<string, UpstreamPool>()
  for (const [name, input] of Object.entries(inputs)) {
    const pool = buildPool(name, input, random)
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
