/**
 * Load shedding: a request over the concurrency limit, or while the process itself is under pressure, is refused at once, before
 * its body is read. Nothing waits here. Decorates `app.shedding`.
 */
import underPressure from '@fastify/under-pressure'
import type { ServerResponse } from 'node:http'
import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import { completeShedding } from '../config/complete.ts'
import type { SheddingOptions } from '../config/schema.ts'
import { retryAfter } from '../lib/http/problem.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { Gate } from '../lib/shed/gate.ts'
import type {} from './edge.ts'
import { guardMemoryUsage } from './load-shedding/memory-usage.ts'
import { refuse } from './refusal.ts'
import { closeWithConnection } from './waiting-responses.ts'

export interface LoadSheddingOptions extends Partial<Omit<SheddingOptions, 'pressure'>> {
  pressure?: Partial<SheddingOptions['pressure']>
  /** Where jitter comes from. Default: Math.random. */
  random?: Random
}

/** The gate and the process's last readings. */
export interface SheddingView {
  inFlight: number
  maxInFlight: number
  pressure: {
    under: boolean
    eventLoopDelayMs: number
    eventLoopUtilization: number
    heapUsedBytes: number
    rssBytes: number
    limits: SheddingOptions['pressure']
  }
  shed: { shed_capacity: number, shed_pressure: number }
}

export interface Shedding {
  view (): SheddingView
}

declare module 'fastify' {
  interface FastifyInstance {
    shedding: Shedding
  }
  interface FastifyContextConfig {
    /** True for a route that is never shed and takes no place: probes and admin routes. */
    shedExempt?: boolean
  }
}

const kGate = Symbol('breakwater.gate')
interface TaggedResponse extends ServerResponse { [kGate]?: Gate | undefined }

/** The only event that always comes, and comes once, whatever became of the request (with `closeWithConnection` for those that wait). */
function releasePlace (this: TaggedResponse): void {
  const gate = this[kGate]
  if (gate === undefined) return
  this[kGate] = undefined
  gate.release()
}

const over = (value: number, limit: number): boolean => limit > 0 && value > limit

const loadShedding: FastifyPluginAsync<LoadSheddingOptions> = async (app, { random = systemRandom, ...given }) => {
  const options = completeShedding(given)
  const { pressure: limits } = options
  const gate = new Gate(options.maxInFlight)
  const shed = { shed_capacity: 0, shed_pressure: 0 }

  const unguard = guardMemoryUsage()
  app.addHook('onClose', async () => { unguard() })
  await app.register(underPressure, {
    maxEventLoopDelay: limits.maxEventLoopDelayMs,
    maxEventLoopUtilization: limits.maxEventLoopUtilization,
    maxHeapUsedBytes: limits.maxHeapUsedBytes,
    maxRssBytes: limits.maxRssBytes,
    eventLoopUtilizationMode: 'interval',
    sampleInterval: 1000,
    exposeStatusRoute: false,
    // One decision, one reason: its own hook lets everything pass and ours asks `isUnderPressure`.
    pressureHandler: () => undefined
  } as never)

  function shedRequest (reply: FastifyReply, reason: 'shed_capacity' | 'shed_pressure'): void {
    shed[reason]++
    refuse(reply, reason, retryAfter(options.retryAfterSeconds * 1000, random))
  }

  /**
   * A busy loop alone is no reason to refuse everybody: while nothing piles up it is only well used. It narrows the gate; a late
   * loop and full memory close it.
   */
  const narrowed = Math.max(1, Math.floor(options.maxInFlight / 8))
  function pressed (): boolean {
    if (!app.isUnderPressure()) return false
    const { eventLoopDelay, heapUsed, rssBytes } = app.memoryUsage()
    return gate.inFlight >= narrowed || over(eventLoopDelay, limits.maxEventLoopDelayMs) || over(heapUsed, limits.maxHeapUsedBytes) ||
      over(rssBytes, limits.maxRssBytes)
  }

  app.addHook('onRequest', (request, reply, done) => {
    if (request.routeOptions.config.shedExempt === true) return done()
    if (pressed()) return shedRequest(reply, 'shed_pressure')
    const response = reply.raw as TaggedResponse
    const waits = response.socket === null
    // Whoever left while other hooks were at work: its close has been, so that a place would never come back.
    if (response.destroyed || (waits && request.raw.socket.destroyed)) {
      refuse(reply, 'client_cancelled')
      return
    }
    if (!gate.tryAcquire()) return shedRequest(reply, 'shed_capacity')
    response[kGate] = gate
    response.on('close', releasePlace)
    if (waits) closeWithConnection(request.raw.socket, response)
    done()
  })

  app.decorate('shedding', {
    view () {
      const readings = app.memoryUsage()
      return {
        inFlight: gate.inFlight,
        maxInFlight: gate.limit,
        pressure: {
          under: app.isUnderPressure(),
          eventLoopDelayMs: readings.eventLoopDelay,
          eventLoopUtilization: readings.eventLoopUtilized,
          heapUsedBytes: readings.heapUsed,
          rssBytes: readings.rssBytes,
          limits
        },
        shed: { ...shed }
      }
    }
  })
}

export default fp(loadShedding, { name: 'breakwater-load-shedding', fastify: '5.x' })
