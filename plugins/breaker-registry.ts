/**
 * Circuit breakers, one for each upstream of each pool, and the single timer that they share.
 * Decorates `app.breakers`. The arithmetic is in lib/breaker; names, ISO times, log lines and listeners in breaker-registry/.
 */
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import type { DeepPartial } from '../config/complete.ts'
import type { BreakerOptions } from '../config/schema.ts'
import { monotonic, type Clock } from '../lib/clock.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { BreakerRegistry } from './breaker-registry/registry.ts'
import { watchStalls } from './breaker-registry/stall-watch.ts'

export { BreakerOpenError } from './breaker-registry/open-error.ts'
export type { AcquiredPermit, RegisteredBreaker, RegisteredSnapshot, RunOptions } from './breaker-registry/registered-breaker.ts'
export type { BreakerRegistry, BreakerTransition, TransitionListener } from './breaker-registry/registry.ts'
export type { Breaker } from '../lib/breaker/breaker.ts'
export type { BreakerMode, BreakerSnapshot, BreakerState, Outcome, Permit, TransitionCause } from '../lib/breaker/types.ts'
export type { DeepPartial }

export interface BreakerRegistryOptions {
  /** Laid over the defaults of the `breaker` section of a pool. */
  defaults?: DeepPartial<BreakerOptions>
  /** Monotonic milliseconds. Default: the process's own. */
  clock?: Clock
  /** Numbers in [0, 1) for the jitter of open times. Default: Math.random. */
  random?: Random
}

declare module 'fastify' {
  interface FastifyInstance {
    breakers: BreakerRegistry
  }
}

const breakerRegistry: FastifyPluginAsync<BreakerRegistryOptions> = async (app, { defaults = {}, clock = monotonic, random = systemRandom }) => {
  const registry = new BreakerRegistry({ defaults, clock, random, log: app.log })
  // it sees what does not happen, and makes time visible where there is no traffic; admission itself never waits for it
  const stop = watchStalls(registry)
  app.decorate('breakers', registry)
  app.addHook('onClose', async () => stop())
}

export default fp(breakerRegistry, { name: 'breakwater-breaker-registry', fastify: '5.x' })
