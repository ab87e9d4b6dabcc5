import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { util } from 'undici'
import type { TimeoutOptions } from '../../config/schema.ts'
import type { Exchange } from '../../lib/exchange.ts'
import type { Outcome, Reason } from '../../lib/failure.ts'
import { responseFields, type ResponseFields } from '../../lib/http/response-head.ts'
import { afterReading, stallMs } from '../exact-timer.ts'
import { abortConnection, linger } from '../connection.ts'
import type { Attempt, AttemptOwner, Stage } from './attempt.ts'
import { informational } from './informational.ts'
import type { RequestBody } from './request-body.ts'
import { ResponseBody, type BodySource } from './response-body.ts'

/** An answer as reply-from takes it. */
export interface UpstreamAnswer {
  statusCode: number
  headers: ResponseFields
  body: Buffer | Readable | undefined
}

export type AnswerCallback = (error: null, answer: UpstreamAnswer) => void

/** How a forward tells its plugin what became of it. */
export interface ForwardHost {
  readonly requestIdHeader: string
  /** Nothing was sent to the client yet: refuse with this reason. */
  refuse (reply: FastifyReply, reason: Reason): unknown
  /** An attempt ended without a whole answer. */
  attemptEnded (exchange: Exchange, attempt: Attempt, reason: Reason, outcome: Outcome, error: string): void
}

/** What may pile up before a response counts as streamed, in bytes. */
const wholeLimit = 65536

/** A limit due within this time, in ms, is due: Node's timers may be a fraction early. */
const earlyMs = 0.5

const kForward = Symbol('breakwater.forward')
interface TaggedResponse extends ServerResponse { [kForward]?: Forward }

/**
 * One exchange on its way through one attempt: it owns the time limits, hands the answer up to reply-from and decides what the
 * client sees when something breaks. Exactly one of `answered`, `cut`, `refused` or `left` ends it.
 */
export class Forward implements AttemptOwner, BodySource {
  readonly #host: ForwardHost
  readonly #reply: FastifyReply
  readonly #exchange: Exchange
  readonly #limits: TimeoutOptions
  readonly #requestBody: RequestBody | null
  #attempt: Attempt | null = null
  #callback: AnswerCallback | null = null
  #over = false

  // The answer: its head and, until it is handed up, what has come of the body.
  #status = 0
  #rawFields: Buffer[] | null = null
  #chunks: Buffer[] = []
  #chunkBytes = 0
  #handUpPending = false
  #complete = false
  #stream: ResponseBody | null = null
  #eventStream = false

  // One timer for all limits: it wakes at the earliest moment at which one could be due, and then looks.
  #timer: NodeJS.Timeout | null = null
  #timerDue = 0
  readonly #step: number
  #sentAt = 0
  #lastByteAt = 0

  constructor (host: ForwardHost, reply: FastifyReply, exchange: Exchange, limits: TimeoutOptions, requestBody: RequestBody | null) {
    this.#host = host
    this.#reply = reply
    this.#exchange = exchange
    this.#limits = limits
    this.#requestBody = requestBody
    this.#step = Math.min(limits.headersMs || Infinity, limits.bodyIdleMs || Infinity, limits.totalMs || Infinity)
    const response = reply.raw as TaggedResponse
    response[kForward] = this
    response.on('close', onClose)
  }

  /** Begins with the attempt; the answer goes to `callback`, at most once. */
  begin (attempt: Attempt, now: number, callback: AnswerCallback): void {
    this.#attempt = attempt
    this.#callback = callback
    if (this.#over) return attempt.cancel('cancelled')
    if (this.#step !== Infinity) this.#arm(now, Math.max(1, Math.min(this.#step, this.#totalLeft(now))))
    attempt.upstream.enter(attempt)
  }

  // ---- the attempt's side

  requestSent (): void {
    this.#sentAt = performance.now()
  }

  informational (status: number, rawFields: Buffer[]): void {
    if (!this.#over) informational(this.#reply, status, rawFields)
  }

  responseHead (status: number, rawFields: Buffer[]): void {
    this.#status = status
    this.#rawFields = rawFields
    if (status >= 500) this.#attempt?.settle('failure')
    // A small response arrives with its head in one read of the socket: it is whole before the next tick.
    this.#handUpPending = true
    process.nextTick(handUp, this)
  }

  bodyChunk (chunk: Buffer): boolean {
    if (this.#stream !== null) {
      this.#lastByteAt = performance.now()
      this.#exchange.bytes += chunk.length
      return this.#stream.give(chunk)
    }
    this.#chunks.push(chunk)
    this.#chunkBytes += chunk.length
    return this.#chunkBytes <= wholeLimit
  }

  bodyEnd (): void {
    this.#complete = true
    this.#attempt?.settle(this.#status >= 500 ? 'failure' : 'success')
    if (this.#stream === null) return
    this.#over = true
    this.#stream.push(null)
  }

  attemptFailed (reason: Reason, outcome: Outcome, error: Error): void {
    if (this.#over) return
    this.#host.attemptEnded(this.#exchange, this.#attempt as Attempt, reason, outcome, error.message)
    this.#giveUp(reason)
  }

  // ---- handing up

  /** Called on the tick after the head arrived. */
  handUp (): void {
    this.#handUpPending = false
    if (this.#over || this.#callback === null) return
    const request = this.#reply.request.raw
    // A FIN counts as leaving, before the response's own close tells of it.
    if (request.aborted) return this.left()
    linger(request, this.#reply.raw)
    const headers = responseFields(this.#rawFields as Buffer[], nameOf)
    headers[this.#host.requestIdHeader] = this.#exchange.requestId
    if (this.#status === 204) delete headers['content-length']
    this.#rawFields = null
    const callback = this.#callback
    this.#callback = null
    if (this.#complete) {
      this.#over = true
      this.#exchange.bytes = this.#chunkBytes
      return this.#hand(callback, { statusCode: this.#status, headers, body: this.#whole(headers) })
    }
    const stream = new ResponseBody(this, this.#reply.raw)
    this.#stream = stream
    this.#lastByteAt = performance.now()
    this.#eventStream = isEventStream(headers['content-type'])
    if (this.#eventStream) this.#attempt?.settle('success')
    this.#exchange.bytes = this.#chunkBytes
    for (const chunk of this.#chunks) stream.give(chunk)
    this.#chunks = []
    this.#hand(callback, { statusCode: this.#status, headers, body: stream })
  }

  /** No throw may leave this tick: there is nobody above to catch it. */
  #hand (callback: AnswerCallback, answer: UpstreamAnswer): void {
    try {
      callback(null, answer)
    } catch (error) {
      this.#attempt?.cancel('ignored')
      this.#reply.log.error({ err: error }, 'internal_error')
      this.#giveUp('internal_error')
    }
  }

  #whole (headers: ResponseFields): Buffer | Readable | undefined {
    if (this.#chunkBytes === 0) return undefined
    const body = this.#chunks.length === 1 ? this.#chunks[0] as Buffer : Buffer.concat(this.#chunks)
    // Fastify gives a Buffer without a type one of its own; an upstream's silence is passed on.
    return headers['content-type'] === undefined ? Readable.from([body], { objectMode: false }) : body
  }

  // ---- the stream's side

  resumeBody (): void {
    this.#lastByteAt = performance.now()
    this.#attempt?.resumeBody()
  }

  bodyClosed (): void {
    if (!this.#over) this.left()
  }

  // ---- the client's side

  /** The response closed: the client is gone, or somebody else has answered it. */
  left (): void {
    this.#stopTimer()
    if (this.#over) return
    this.#over = true
    if (!this.#reply.raw.writableFinished) this.#exchange.fail('client_cancelled')
    this.#attempt?.cancel('cancelled')
  }

  // ---- time limits

  #arm (now: number, ms: number): void {
    this.#timerDue = now + ms
    this.#timer = setTimeout(onTimer, ms, this)
  }

  #stopTimer (): void {
    if (this.#timer === null) return
    clearTimeout(this.#timer)
    this.#timer = null
  }

  timerFired (): void {
    this.#timer = null
    if (performance.now() - this.#timerDue < stallMs) return this.#judge(false)
    // Our own loop stood still: what has arrived in time is read before anybody is blamed.
    afterReading(() => { this.#judge(true) })
  }

  #judge (stalled: boolean): void {
    if (this.#over) return this.#watchTail()
    const now = performance.now()
    if (this.#handUpPending) return this.#arm(now, this.#step)
    const totalLeft = this.#totalLeft(now)
    if (totalLeft < earlyMs) return this.#expire('deadline_exceeded', stalled)
    const phaseLeft = this.#phaseLeft(now)
    if (phaseLeft < earlyMs) return this.#expire(this.#phaseReason(), stalled)
    this.#arm(now, Math.ceil(Math.min(this.#step, phaseLeft, totalLeft)))
  }

  #totalLeft (now: number): number {
    const { totalMs } = this.#limits
    return totalMs === 0 || this.#eventStream ? Infinity : this.#exchange.receivedAt + totalMs - now
  }

  /** Milliseconds until this phase's own limit is due. */
  #phaseLeft (now: number): number {
    const { headersMs, bodyIdleMs } = this.#limits
    const stage = this.#attempt?.stage
    if (stage === 'headers') return headersMs > 0 ? this.#sentAt + headersMs - now : Infinity
    if (bodyIdleMs === 0) return Infinity
    if (stage === 'body' && this.#stream !== null) return this.#lastByteAt + bodyIdleMs - now
    if (stage === 'send' && this.#requestBody !== null) return this.#requestBody.lastActivity + bodyIdleMs - now
    return Infinity
  }

  #phaseReason (): Reason {
    const stage = this.#attempt?.stage
    if (stage === 'headers') return 'headers_timeout'
    return 'body_idle_timeout'
  }

  #waitsForClient (stage: Stage): boolean {
    return stage === 'send' && this.#requestBody?.waitingForClient === true
  }

  /**
   * The answer is whole on our side, and the client is slow to take the last of it, or does not take it at all: from now on the
   * connection's own idle timer watches, which sees the progress of a single write, too.
   */
  #watchTail (): void {
    const { raw } = this.#reply
    const { bodyIdleMs } = this.#limits
    if (bodyIdleMs === 0 || raw.writableFinished || raw.destroyed) return
    raw.setTimeout(bodyIdleMs, () => {
      this.#exchange.fail('body_idle_timeout')
      abortConnection(raw)
    })
  }

  #expire (reason: Reason, stalled: boolean): void {
    const attempt = this.#attempt as Attempt
    const { stage } = attempt
    // Waiting for a connection until the time was spent: our capacity; for the client's body: its slowness. Not the upstream's.
    const said: Reason = stage === 'waiting' ? 'upstream_capacity' : this.#waitsForClient(stage) ? 'request_timeout' : reason
    const outcome = this.#blame(stage, stalled)
    attempt.cancel(outcome)
    this.#host.attemptEnded(this.#exchange, attempt, said, outcome, `time limit reached while the attempt was at: ${stage}`)
    this.#giveUp(said)
  }

  #blame (stage: Stage, stalled: boolean): Outcome {
    if (stage === 'waiting') return 'ignored'
    if (this.#stream?.blocked === true) return 'cancelled'
    if (this.#waitsForClient(stage)) return 'cancelled'
    return stalled ? 'ignored' : 'failure'
  }

  // ---- giving up

  /** No whole answer will come: refuse, or, when the client has a part of one already, break its connection off. */
  #giveUp (reason: Reason): void {
    this.#over = true
    this.#stopTimer()
    this.#exchange.fail(reason)
    const raw = this.#reply.raw
    if (this.#stream !== null || raw.headersSent) {
      abortConnection(raw)
      this.#stream?.destroy()
      return
    }
    this.#host.refuse(this.#reply, reason)
  }
}

const nameOf = util.headerNameToString

const eventStreamType = /^text\/event-stream[ \t]*(?:;|$)/i

function isEventStream (type: ResponseFields[string] | undefined): boolean {
  return typeof type === 'string' && eventStreamType.test(type)
}

function handUp (forward: Forward): void { forward.handUp() }
function onTimer (forward: Forward): void { forward.timerFired() }

function onClose (this: TaggedResponse): void {
  this[kForward]?.left()
}

