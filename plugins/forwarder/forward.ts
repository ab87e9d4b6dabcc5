import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { util } from 'undici'
import type { TimeoutOptions } from '../../config/schema.ts'
import { ExchangeError, type Exchange } from '../../lib/exchange.ts'
import type { Outcome, Reason } from '../../lib/failure.ts'
import { isMediaType } from '../../lib/http/media-type.ts'
import { responseFields, type ResponseFields } from '../../lib/http/response-head.ts'
import { abortConnection, linger } from '../connection.ts'
import { answererOf, setAnswerer, type Answerer } from '../refusal.ts'
import type { Attempt, AttemptOwner, Stage } from './attempt.ts'
import { Deadline, type Limited } from './deadline.ts'
import { informational } from './informational.ts'
import type { RequestBody } from './request-body.ts'
import { ResponseBody, type BodySource } from './response-body.ts'
import { removeFields } from './upstream-fields.ts'

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

/** How long hooks that are at work on an answer that failed may take until its connection is broken off, in ms. */
const hooksMs = 5000

/**
 * One exchange on its way through one attempt: it knows the time limits, hands the answer up to reply-from and decides what the
 * client sees when something breaks. Exactly one of `answered`, `cut`, `refused`, `left` or `outrun` ends it.
 */
export class Forward implements AttemptOwner, BodySource, Answerer, Limited {
  readonly #host: ForwardHost
  readonly #reply: FastifyReply
  readonly #exchange: Exchange
  readonly #limits: TimeoutOptions
  readonly #requestBody: RequestBody | null
  #attempt: Attempt | null = null
  #callback: AnswerCallback | null = null
  #over = false
  /** working: no answer yet · sending: it is being given to Fastify · sent: Fastify has it, and hooks may be at work on it. */
  #answer: 'working' | 'sending' | 'sent' = 'working'
  /** The upstream's fields in the reply. */
  #fields: ResponseFields | null = null

  // The answer: its head and, until it is handed up, what has come of the body.
  #status = 0
  #rawFields: Buffer[] | null = null
  #chunks: Buffer[] = []
  #chunkBytes = 0
  #handUpPending = false
  #complete = false
  #stream: ResponseBody | null = null

  readonly #deadline: Deadline
  #sentAt = 0
  #lastByteAt = 0

  constructor (host: ForwardHost, reply: FastifyReply, exchange: Exchange, limits: TimeoutOptions, requestBody: RequestBody | null) {
    this.#host = host
    this.#reply = reply
    this.#exchange = exchange
    this.#limits = limits
    this.#requestBody = requestBody
    this.#deadline = new Deadline(this, limits, exchange.receivedAt)
    setAnswerer(reply.raw, this)
    reply.raw.on('close', onClose)
  }

  /** Begins with the attempt; the answer goes to `callback`, at most once. */
  begin (attempt: Attempt, now: number, callback: AnswerCallback): void {
    this.#attempt = attempt
    this.#callback = callback
    if (this.#over) return attempt.cancel('cancelled')
    this.#deadline.start(now)
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
    if (reason === 'internal_error') this.#reply.log.error({ err: error }, 'internal_error')
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
    this.#fields = headers
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
    if (isEventStream(headers['content-type'])) {
      this.#deadline.endless()
      this.#attempt?.settle('success')
    }
    this.#exchange.bytes = this.#chunkBytes
    for (const chunk of this.#chunks) stream.give(chunk)
    this.#chunks = []
    this.#hand(callback, { statusCode: this.#status, headers, body: stream })
  }

  /** No throw may leave this tick: there is nobody above to catch it. */
  #hand (callback: AnswerCallback, answer: UpstreamAnswer): void {
    this.#answer = 'sending'
    try {
      callback(null, answer)
      this.#answer = 'sent'
    } catch (error) {
      this.#reply.log.error({ err: error }, 'internal_error')
      this.takeBack()
      this.#refuse('internal_error')
    }
  }

  #whole (headers: ResponseFields): Buffer | Readable | undefined {
    if (this.#chunkBytes === 0) return undefined
    const body = this.#chunks.length === 1 ? this.#chunks[0] as Buffer : Buffer.concat(this.#chunks)
    // Fastify gives a Buffer a type of its own where it cannot read the one that is there; what the upstream said is passed on.
    const type = headers['content-type']
    return typeof type === 'string' && isMediaType(type) ? body : Readable.from([body], { objectMode: false })
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
    this.#deadline.stop()
    if (this.#over) return
    this.#over = true
    if (!this.#reply.raw.writableFinished) this.#exchange.fail('client_cancelled')
    this.#attempt?.cancel('cancelled')
  }

  // ---- others that answer

  giveWay (): boolean {
    if (this.#answer === 'sent') return false
    if (this.#answer === 'working') this.#outrun()
    return true
  }

  /** What stood in the reply before is all that may be left in it: the upstream's fields belong to the upstream's body. */
  takeBack (): void {
    this.#outrun()
    if (this.#answer === 'working') return
    this.#answer = 'working'
    const reply = this.#reply
    if (this.#fields === null || reply.raw.headersSent) return
    removeFields(reply, this.#fields, this.#host.requestIdHeader)
    this.#fields = null
    reply.code(200)
    this.#exchange.bytes = -1
  }

  #outrun (): void {
    this.#deadline.stop()
    if (this.#over) return
    this.#over = true
    this.#attempt?.cancel('ignored')
  }

  // ---- time limits

  get over (): boolean { return this.#over }
  get handingUp (): boolean { return this.#handUpPending }

  phaseLeft (now: number): number {
    const { headersMs, bodyIdleMs } = this.#limits
    const stage = this.#attempt?.stage
    if (stage === 'headers') return headersMs > 0 ? this.#sentAt + headersMs - now : Infinity
    if (bodyIdleMs === 0) return Infinity
    if (stage === 'body' && this.#stream !== null) return this.#lastByteAt + bodyIdleMs - now
    if (stage === 'send' && this.#requestBody !== null) return this.#requestBody.lastActivity + bodyIdleMs - now
    return Infinity
  }

  #waitsForClient (stage: Stage): boolean {
    return stage === 'send' && this.#requestBody?.waitingForClient === true
  }

  /**
   * The answer is whole on our side, and the client is slow to take the last of it, or does not take it at all: from now on the
   * connection's own idle timer watches, which sees the progress of a single write, too.
   */
  watchTail (): void {
    const { raw } = this.#reply
    const { bodyIdleMs } = this.#limits
    if (bodyIdleMs === 0 || raw.writableFinished || raw.destroyed) return
    raw.setTimeout(bodyIdleMs, () => {
      this.#exchange.fail('body_idle_timeout')
      abortConnection(raw)
    })
  }

  expired (total: boolean, stalled: boolean): void {
    const attempt = this.#attempt as Attempt
    const { stage } = attempt
    const outcome = this.#blame(stage, stalled)
    const reason = this.#reasonOf(stage, total)
    attempt.cancel(outcome)
    this.#host.attemptEnded(this.#exchange, attempt, reason, outcome, `time limit reached while the attempt was at: ${stage}`)
    this.#giveUp(reason)
  }

  #reasonOf (stage: Stage, total: boolean): Reason {
    // Waiting for a connection until the time was spent: our capacity; for the client's body: its slowness. Not the upstream's.
    if (stage === 'waiting') return 'upstream_capacity'
    if (this.#waitsForClient(stage)) return 'request_timeout'
    if (total) return 'deadline_exceeded'
    return stage === 'headers' ? 'headers_timeout' : 'body_idle_timeout'
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
    this.#deadline.stop()
    this.#exchange.fail(reason)
    const raw = this.#reply.raw
    if (raw.headersSent) {
      abortConnection(raw)
      this.#stream?.destroy()
    } else if (this.#stream !== null) {
      this.#failInHooks(this.#stream, reason)
    } else {
      this.#refuse(reason)
    }
  }

  #refuse (reason: Reason): void {
    this.#host.refuse(this.#reply, reason)
    this.#answer = 'sent'
  }

  /** Hooks are at work on the answer: it fails where they hand it back, and the error handler answers. */
  #failInHooks (stream: ResponseBody, reason: Reason): void {
    const { raw } = this.#reply
    stream.fail(new ExchangeError(reason))
    const timer = setTimeout(() => { if (!raw.headersSent) abortConnection(raw) }, hooksMs)
    raw.once('close', () => { clearTimeout(timer) })
  }
}

const nameOf = util.headerNameToString

const eventStreamType = /^text\/event-stream[ \t]*(?:;|$)/i

function isEventStream (type: ResponseFields[string] | undefined): boolean {
  return typeof type === 'string' && eventStreamType.test(type)
}

function handUp (forward: Forward): void { forward.handUp() }

function onClose (this: ServerResponse): void {
  const answerer = answererOf(this)
  if (answerer instanceof Forward) answerer.left()
}
