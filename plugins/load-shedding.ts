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
import { Emitter } from '../lib/emitter.ts'
import { Episodes, type EpisodeView } from '../lib/episode.ts'
import { retryAfter } from '../lib/http/problem.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { busyPlaces, Gate } from '../lib/shed/gate.ts'
import type {} from './edge.ts'
import { guardMemoryUsage } from './load-shedding/memory-usage.ts'
import { refuse } from './refusal.ts'
import { closeWithConnection } from './waiting-responses.ts'

export interface LoadSheddingOptions extends Partial<Omit<SheddingOptions, 'pressure' | 'priorities'>> {
  pressure?: Partial<SheddingOptions['pressure']>
  priorities?: Partial<SheddingOptions['priorities']>
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
  shed: Record<ShedReason, number>
  /** The time of shedding that is on; null: there is none. */
  episode: ShedEpisode | null
}

/** A time in which requests are shed: it ends when none has been for five seconds. */
export interface ShedEpisode {
  /** ISO 8601. */
  readonly since: string
  /** Refusals so far, by reason, and the most within a second. */
  readonly total: number
  readonly reasons: Readonly<Partial<Record<ShedReason, number>>>
  readonly peakPerSecond: number
}

/** Begin and end of such a time: one event each, however many requests there were. Frozen. */
export type ShedEvent =
  | ({ readonly type: 'shed_begun', readonly at: string, readonly reason: ShedReason, readonly priority: Priority } & Pick<SheddingView, 'inFlight' | 'maxInFlight'> & Omit<SheddingView['pressure'], 'under'>)
  | ({ readonly type: 'shed_ended', readonly at: string, /** From the first refusal to the last. */ readonly lastedMs: number } & ShedEpisode)

/** How much a request matters where places are scarce: the low ones go first. */
export type Priority = 'high' | 'normal' | 'low'

export type ShedReason = 'shed_capacity' | 'shed_pressure' | 'shed_priority'

export interface Shedding {
  view (): SheddingView
  /** Requests that have a place now. */
  readonly inFlight: number
  /**
   * Whether a request of this priority, which has its place, may keep it: asked once the route is known. False, and counted: too
   * much of the gate is taken for it.
   */
  admits (priority: Priority): boolean
  /**
   * How many requests were refused, only upwards. Before the route is known a request counts as one of normal priority; high ones
   * are never refused for their priority.
   */
  refused (reason: ShedReason, priority: Exclude<Priority, 'high'>): number
  /** How many places of the gate may be taken for a request of this priority to be admitted. */
  places (priority: Priority): number
  /** The least Retry-After of a shed request, in ms. */
  readonly retryAfterMs: number
  /** Calls `fn` on each event until the returned function is called. A listener that throws is logged and harms nobody. */
  on (type: 'event', fn: (event: ShedEvent) => unknown): () => void
  /** Swaps the limits; places that are taken stay taken. @throws TypeError that names each bad option by its path */
  configure (options: Omit<LoadSheddingOptions, 'random'>): void
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

/** At least one: a priority that never gets a place would be a route that is switched off. */
const placesOf = (share: number, limit: number): number => Math.max(1, Math.floor(share * limit))

/** So long, in ms, nobody is shed when a time of shedding has ended. */
const quietMs = 5000

const episodeOf = ({ total, reasons, peakPerSecond }: EpisodeView, since: string): ShedEpisode => ({ since, total, reasons, peakPerSecond })

/** How often the process is sampled, in ms. */
const sampleMs = 1000

/** No turn in a whole sample is infinite to who measures. */
const shownDelay = (ms: number): number => Number.isFinite(ms) ? ms : sampleMs

const over = (value: number, limit: number): boolean => limit > 0 && value > limit

const loadShedding: FastifyPluginAsync<LoadSheddingOptions> = async (app, { random = systemRandom, ...given }) => {
  let options = completeShedding(given)
  const gate = new Gate(options.maxInFlight)
  const shed: Record<ShedReason, number> = { shed_capacity: 0, shed_pressure: 0, shed_priority: 0 }
  /** Of those for their priority, the ones of low priority. */
  let shedLow = 0

  const emitter = new Emitter<ShedEvent>((err) => { app.log.error({ err, source: 'load-shedding' }, 'listener_failed') })
  const episodes = new Episodes(quietMs)
  let timer: NodeJS.Timeout | undefined
  /** Of the latest episode, ISO 8601. */
  let begunAt = ''

  const unguard = guardMemoryUsage()
  app.addHook('onClose', async () => {
    unguard()
    endEpisode(episodes.end())
    emitter.clear()
  })
  // It samples; the limits are judged here, because they may change while we run: without limits of its own it adds no hook.
  await app.register(underPressure, { eventLoopUtilizationMode: 'interval', sampleInterval: sampleMs, exposeStatusRoute: false } as never)

  const places = (priority: Priority): number => priority === 'high' ? gate.limit : placesOf(options.priorities[priority], gate.limit)

  /** One story, and not a line for each request. */
  function note (reason: ShedReason, priority: Priority): void {
    shed[reason]++
    if (!episodes.note(reason, performance.now())) return
    const { inFlight, maxInFlight, pressure: { under: _under, ...rest } } = view()
    const readings = { ...rest, eventLoopDelayMs: Math.round(rest.eventLoopDelayMs * 10) / 10, eventLoopUtilization: Math.round(rest.eventLoopUtilization * 1000) / 1000 }
    app.log.warn({ reason, priority, inFlight, maxInFlight, ...readings }, 'shed_begun')
    begunAt = new Date().toISOString()
    emitter.emit(Object.freeze({ type: 'shed_begun', at: begunAt, reason, priority, inFlight, maxInFlight, ...readings }))
    timer = setInterval(() => { endEpisode(episodes.ended(performance.now())) }, 1000).unref()
  }

  function endEpisode (ended: EpisodeView | null): void {
    if (ended === null) return
    clearInterval(timer)
    const told = { ...episodeOf(ended, begunAt), lastedMs: Math.round(ended.lastAt - ended.startedAt) }
    app.log.info(told, 'shed_ended')
    emitter.emit(Object.freeze({ type: 'shed_ended', at: new Date().toISOString(), ...told }))
  }

  function shedRequest (reply: FastifyReply, reason: 'shed_capacity' | 'shed_pressure'): void {
    note(reason, 'normal')
    refuse(reply, reason, retryAfter(options.retryAfterSeconds * 1000, random))
  }

  /** A start that takes more than a second is no pressure: a loop that has never been measured says nothing. */
  let measured = false
  function loopDelay (ms: number): number {
    if (ms > 0 && ms < Infinity) measured = true
    return measured ? ms : 0
  }

  /**
   * A busy loop alone is no reason to refuse everybody: while nothing piles up it is only well used. It narrows the gate; a late
   * loop and full memory close it.
   */
  function pressed (): boolean {
    const { eventLoopDelay, eventLoopUtilized, heapUsed, rssBytes } = app.memoryUsage()
    const { pressure: limits, maxInFlight } = options
    return over(loopDelay(eventLoopDelay), limits.maxEventLoopDelayMs) || over(heapUsed, limits.maxHeapUsedBytes) || over(rssBytes, limits.maxRssBytes) ||
      (over(eventLoopUtilized, limits.maxEventLoopUtilization) && gate.inFlight >= busyPlaces(maxInFlight))
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
    const { exchange } = request
    // A hook of the app may have waited for something before.
    if (exchange != null) exchange.admittedMs = Math.round(performance.now() - exchange.receivedAt)
    done()
  })

  function view (): SheddingView {
    const readings = app.memoryUsage()
    const { current } = episodes
    const { pressure: limits } = options
    return {
      inFlight: gate.inFlight,
      maxInFlight: gate.limit,
      pressure: {
        under: over(loopDelay(readings.eventLoopDelay), limits.maxEventLoopDelayMs) || over(readings.eventLoopUtilized, limits.maxEventLoopUtilization) ||
          over(readings.heapUsed, limits.maxHeapUsedBytes) || over(readings.rssBytes, limits.maxRssBytes),
        eventLoopDelayMs: shownDelay(loopDelay(readings.eventLoopDelay)),
        eventLoopUtilization: readings.eventLoopUtilized,
        heapUsedBytes: readings.heapUsed,
        rssBytes: readings.rssBytes,
        limits
      },
      shed: { ...shed },
      episode: current === null ? null : episodeOf(current, begunAt)
    }
  }

  app.decorate('shedding', {
    get inFlight () { return gate.inFlight },
    get retryAfterMs () { return options.retryAfterSeconds * 1000 },
    configure (changed: Omit<LoadSheddingOptions, 'random'>) {
      options = completeShedding(changed)
      gate.setLimit(options.maxInFlight)
    },
    admits (priority: Priority) {
      if (priority === 'high' || gate.inFlight <= places(priority)) return true
      note('shed_priority', priority)
      if (priority === 'low') shedLow++
      return false
    },
    places,
    refused (reason: ShedReason, priority: Exclude<Priority, 'high'>) {
      const low = reason === 'shed_priority' ? shedLow : 0
      return priority === 'low' ? low : shed[reason] - low
    },
    view,
    on: (_type: 'event', fn: (event: ShedEvent) => unknown) => emitter.on(fn)
  })
}

export default fp(loadShedding, { name: 'breakwater-load-shedding', fastify: '5.x' })
