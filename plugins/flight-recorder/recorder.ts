import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RecorderOptions } from '../../config/schema-recorder.ts'
import type { Evidence, Exchange } from '../../lib/exchange.ts'
import { failureOf, type Reason } from '../../lib/failure.ts'
import type { Random } from '../../lib/random.ts'
import { pack } from '../../lib/record/pack.ts'
import { Note, RecordRing } from '../../lib/record/ring.ts'
import { SeenIds } from '../../lib/record/seen.ts'
import type { Kept, StoredLine } from '../../lib/record/types.ts'
import type {} from '../configuration.ts'
import type { UpstreamLane } from '../forwarder/terms.ts'
import type {} from '../load-shedding.ts'
import type { ExchangeEnd, ObservedAttempt, Observer, UnparsedRequest } from '../observation.ts'
import { attemptsOf, keptFor, lineOf, type Moment } from './line.ts'
import { passedOver, PoolNotes } from './pool-notes.ts'

/** What became of an id of which there is no record. */
export type Absence = 'not_kept' | 'too_old' | 'unknown'

/**
 * Watches exchanges and keeps what is worth it. An ordinary one costs a few pointers: what was believed of its pool is written down once
 * for all that go by it, its attempt is there anyway, and all else is worked out when it is known that it is kept.
 */
export class Recorder implements Observer {
  readonly #app: FastifyInstance
  readonly #notes: PoolNotes
  readonly #random: Random
  readonly ring: RecordRing
  /** Ids of exchanges that were not kept, and of records that made room. */
  readonly #passed = new SeenIds()
  readonly #evicted = new SeenIds()
  #options: RecorderOptions

  constructor (app: FastifyInstance, options: RecorderOptions, random: Random) {
    this.#app = app
    this.#options = options
    this.#random = random
    this.#notes = new PoolNotes(app)
    this.ring = new RecordRing(options.maxBytes, (id) => { this.#evicted.add(id) })
  }

  get options (): RecorderOptions { return this.#options }

  configure (options: RecorderOptions): void {
    this.#options = options
    this.ring.setMaxBytes(options.maxBytes)
  }

  absenceOf (id: string): Absence {
    if (this.#evicted.has(id)) return 'too_old'
    return this.#passed.has(id) ? 'not_kept' : 'unknown'
  }

  attemptBegun (exchange: Exchange | null, attempt: ObservedAttempt): void {
    if (exchange === null) return
    const { lane, begunAt } = attempt
    attempt.note = this.#notes.of(lane, begunAt)
    if (lane.searched) attempt.passed = passedOver(lane, attempt.index, begunAt)
    attempt.before = exchange.latest as ObservedAttempt | null
    exchange.latest = attempt
  }

  pickRefused (exchange: Exchange, lane: UpstreamLane, _reason: Reason, now: number): void {
    const moment = this.#look(null)
    moment.note = this.#notes.of(lane, now)
    moment.passed = passedOver(lane, -1, now)
    exchange.moment = moment
  }

  exchangeFailed (exchange: Exchange, _reason: Reason, evidence: Evidence | null): void {
    const moment = exchange.moment as Moment | null
    if (moment === null) exchange.moment = this.#look(evidence)
    else moment.evidence = evidence
  }

  exchangeEnded (request: FastifyRequest, _reply: FastifyReply, end: ExchangeEnd): void {
    const { exchange } = request
    const { slowMs, sampleRatio } = this.#options
    if (exchange.reason === null && keptFor(exchange, end, slowMs) === null && !(sampleRatio > 0 && this.#random() < sampleRatio)) {
      this.#passed.add(exchange.requestId)
      return
    }
    const moment = exchange.moment as Moment | null ?? this.#look(null)
    // Whoever else hears of the end may be about to end an attempt.
    process.nextTick(keep, this, request, moment, end)
  }

  unparsed ({ reason, method, requestId, fault, bytes }: UnparsedRequest): void {
    const { gate, readings } = this.#gateAndReadings()
    const line: StoredLine = {
      requestId, kept: 'refused', method, path: null, route: null, pool: null, upstream: null, status: failureOf(reason).status, reason, ms: 0, bytes, traceId: null,
      timeline: { received: 0, admitted: null, picked: null, connect: null, sent: null, head: null, end: 0 },
      gate, readings, version: this.#version, match: null, deadline: null, evidence: reason === 'headers_too_large' ? headLimit(this.#app) : fault == null ? null : { parser: fault }, retry: null, attempts: [], used: [], passed: [], lookedMs: 0
    }
    this.#add(line, null, Date.now())
  }

  keep (request: FastifyRequest, moment: Moment, end: ExchangeEnd): void {
    const { exchange } = request
    const attempts = attemptsOf(exchange)
    const kept: Kept = keptFor(exchange, end, this.#options.slowMs) ?? 'sample'
    const note = moment.note ?? attempts.at(-1)?.note as Note | null ?? null
    this.#add(lineOf(this.#app, request, kept, attempts, moment, end), note, Date.now() - (performance.now() - exchange.receivedAt))
  }

  #add (line: StoredLine, note: Note | null, at: number): void {
    const { requestId, kept, reason, status, pool } = line
    this.ring.add({ id: copied(requestId), at, kept, reason, status, pool, line: pack(line), note: note !== null && this.ring.takes(note) ? note : null })
  }

  get #version (): number { return this.#app.hasDecorator('configuration') ? this.#app.configuration.view().version : 0 }

  #look (evidence: Evidence | null): Moment {
    return { ...this.#gateAndReadings(), version: this.#version, evidence, note: null, passed: null }
  }

  #gateAndReadings (): Pick<Moment, 'gate' | 'readings' | 'limits'> {
    if (!this.#app.hasDecorator('shedding')) return { gate: null, readings: null, limits: null }
    const { inFlight, maxInFlight, pressure: { eventLoopDelayMs, eventLoopUtilization, heapUsedBytes, rssBytes, limits } } = this.#app.shedding.view()
    return { gate: { limit: maxInFlight, inFlight }, readings: { eventLoopDelayMs, eventLoopUtilization, heapUsedBytes, rssBytes }, limits }
  }
}

/** Of a listener that has one of its own. */
function headLimit ({ server }: FastifyInstance): Evidence | null {
  const { maxHeaderSize } = server as { maxHeaderSize?: number }
  return maxHeaderSize === undefined ? null : { limit: maxHeaderSize }
}

/** No throw may leave this tick: there is nobody above to catch it. */
function keep (recorder: Recorder, request: FastifyRequest, moment: Moment, end: ExchangeEnd): void {
  try {
    recorder.keep(request, moment, end)
  } catch (err) {
    request.server.log.error({ err, source: 'flight-recorder' }, 'listener_failed')
  }
}

/** A text of its own: one that was cut out of a longer one would keep that. */
const copied = (text: string): string => JSON.parse(JSON.stringify(text)) as string
