/**
 * Rate limits: who asks more often than a limit allows is refused with 429, before a body is read. By @fastify/rate-limit with a store
 * of our own: its time is monotonic, so that nobody is locked out when the wall clock is set back, and it gives each request the
 * count that it was counted with. Decorates `app.rateLimits`.
 */
import { createHash } from 'node:crypto'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { completeRateLimit } from '../config/complete.ts'
import type { RateLimitOptions } from '../config/schema.ts'
import { retryAfter } from '../lib/http/problem.ts'
import { subnetOf } from '../lib/http/subnet.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { FixedWindows } from '../lib/shed/fixed-windows.ts'
import type {} from './edge.ts'
import { refuse } from './refusal.ts'

export interface RateLimitsOptions {
  /** Where the jitter of Retry-After comes from. Default: Math.random. */
  random?: Random
}

/** Counts a request. True: it may go on; false: it has been refused. */
export type Limiter = (request: FastifyRequest, reply: FastifyReply) => Promise<boolean>

export interface RateLimits {
  /** A limiter with counts of its own. @throws TypeError that names each bad option by its path, like `rateLimit.max` */
  create (options: Partial<RateLimitOptions>): Limiter
}

declare module 'fastify' {
  interface FastifyInstance {
    rateLimits: RateLimits
  }
}

type Counted = (error: null, result: { current: number, ttl: number }) => void

/** What @fastify/rate-limit takes for a store: one for itself, which nobody uses, and a child for each limiter. */
class Store {
  readonly #windows: FixedWindows

  constructor ({ timeWindow = 1, cache = 1 }: { timeWindow?: number, cache?: number }) {
    this.#windows = new FixedWindows(timeWindow, cache)
  }

  incr (key: string, callback: Counted): void {
    // A copy: it is read turns later, when other requests have been counted in.
    const { current, ttl } = this.#windows.count(key, performance.now())
    callback(null, { current, ttl })
  }

  child (options: object): Store {
    return new Store(options)
  }
}

// A longer one is remembered by its digest: how much a key takes is not for clients to say.
const maxKeyLength = 64

/** What a request is counted by. */
function keyOf ({ exchange, headers }: FastifyRequest, { by, name = '' }: RateLimitOptions): string {
  if (by === 'client-address') return subnetOf(exchange.clientIp)
  const value = headers[name.toLowerCase()]
  if (value === undefined) return ''
  const key = `=${String(value)}`
  return key.length <= maxKeyLength ? key : createHash('sha256').update(key).digest('base64')
}

const rateLimits: FastifyPluginAsync<RateLimitsOptions> = async (app, { random = systemRandom }) => {
  // In a scope of its own: what the app does with @fastify/rate-limit, with other settings and another store, is the app's.
  const scopes: FastifyInstance[] = []
  if (!app.hasDecorator('createRateLimit')) {
    await app.register(async (scope) => {
      await scope.register(rateLimit, { global: false, store: Store as never })
      scopes.push(scope)
    })
  }

  app.decorate('rateLimits', {
    create (given: Partial<RateLimitOptions>): Limiter {
      const options = completeRateLimit(given)
      const [scope] = scopes
      if (scope === undefined) throw new Error('@fastify/rate-limit is registered in this app already: register breakwater-rate-limits before it')
      const { max, windowMs, maxKeys } = options
      const count = scope.createRateLimit({ max, timeWindow: windowMs, cache: maxKeys, keyGenerator: (request: FastifyRequest) => keyOf(request, options) } as never)
      return async (request, reply) => {
        const result = await count(request)
        if (result.isAllowed || !result.isExceeded) return true
        reply.headers({ 'ratelimit-limit': result.max, 'ratelimit-remaining': 0, 'ratelimit-reset': result.ttlInSeconds })
        refuse(reply, 'rate_limited', retryAfter(result.ttl, random), { evidence: { max, windowMs, by: options.by, freeInMs: Math.round(result.ttl) } })
        return false
      }
    }
  })
}

export default fp(rateLimits, { name: 'breakwater-rate-limits', fastify: '5.x', dependencies: ['breakwater-edge'] })
