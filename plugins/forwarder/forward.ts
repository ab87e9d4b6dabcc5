import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { errorText } from '../../lib/classify.ts'
import type { Evidence, Exchange } from '../../lib/exchange.ts'
import type { Outcome, Reason } from '../../lib/failure.ts'
import type { ResponseFields } from '../../lib/http/response-head.ts'
import { tunnelledProtocol } from '../../lib/http/upgrade.ts'
import type { NoRetry } from '../../lib/retry/policy.ts'
import { abortConnection, linger } from '../connection.ts'
import { answererOf, setAnswerer, type Answerer } from '../refusal.ts'
import type { AnswerChanges } from './answer-changes.ts'
import type { Answer } from './answer.ts'
import type { Attempt } from './attempt.ts'
import type { AttemptOwner } from './owner.ts'
import type { Attempts } from './attempts.ts'
import { Deadline, type Limited } from './deadline.ts'
import { wantsTrailers } from './incoming.ts'
import { informational } from './informational.ts'
import { earlyMs } from './pace.ts'
import { endByLimit, phaseLeft, type AttemptEnd } from './phases.ts'
import type { ClientBody } from './request-body.ts'
import { ResponseBody, type BodySource } from './response-body.ts'
import type { Terms } from './terms.ts'
import { failInHooks } from './tail.ts'
import { openTunnel, type TunnelDoor } from './tunnel-door.ts'
import { Uptake } from './uptake.ts'
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
  /** @param noRetry why no other attempt follows; null: one does, or nobody asked */
  attemptEnded (exchange: Exchange, end: AttemptEnd, noRetry: NoRetry | null): void
  /** The answer of an attempt is given up in favour of a further one. */
  answerDropped (exchange: Exchange, attempt: Attempt): void
}

/**
 * One exchange on its way through: it knows the time limits, hands an attempt's answer up to reply-from and decides what the client
 * sees when something breaks. Where there may be more attempts than one, `attempts` decides which of them has the answer; until
 * then they are its own. Exactly one of `answered`, `cut`, `refused`, `left` or `outrun` ends it.
 */
export class Forward implements AttemptOwner, BodySource, Answerer, Limited {
  readonly host: ForwardHost
  readonly reply: FastifyReply
  readonly exchange: Exchange
  readonly deadline: Deadline
  readonly #terms: Terms
  readonly #body: ClientBody | null
  readonly #changes: AnswerChanges | null
  /** What a tunnel would take; null: none was asked for. */
  readonly #door: TunnelDoor | null
  /** Decides among attempts, until the answer is found; null: there is one attempt. */
  #attempts: Attempts | null = null
  #attempt: Attempt | null = null
  #callback: AnswerCallback | null = null
  #over = false
  /** working: no answer yet · sending: it is being given to Fastify · sent: Fastify has it, and hooks may be at work on it. */
  #state: 'working' | 'sending' | 'sent' = 'working'
  /** The upstream's fields in the reply. */
  #fields: ResponseFields | null = null
  #handUpPending = false
  #stream: ResponseBody | null = null
  #wantsTrailers = false
  /** Monotonic time since which nothing has come from the upstream, which could have sent. */
  #lastByteAt = 0
  /** Monotonic time since which the client is not known to have taken anything of what was there for it. */
  #tookAt = 0
  /** Watches a client that is slow to take the answer; null: nobody had to. */
  #uptake: Uptake | null = null

  constructor (host: ForwardHost, reply: FastifyReply, exchange: Exchange, terms: Terms, body: ClientBody | null, changes: AnswerChanges | null, door: TunnelDoor | null) {
    this.host = host
    this.reply = reply
    this.exchange = exchange
    this.#terms = terms
    this.#body = body
    this.#changes = changes
    this.#door = door
    this.deadline = new Deadline(this, terms.limits, exchange.receivedAt)
    setAnswerer(reply.raw, this)
    reply.raw.on('close', onClose)
  }

  /** Begins with the first attempt; the answer goes to `callback`, at most once. */
  begin (attempt: Attempt, attempts: Attempts | null, now: number, callback: AnswerCallback): void {
    this.#attempt = attempt
    this.#attempts = attempts
    this.#callback = callback
    if (this.#over) return attempt.cancel('cancelled')
    this.deadline.start(now)
    if (attempts === null) attempt.upstream.enter(attempt)
    else attempts.start(attempt, now)
  }

  /** The answer of this attempt is the exchange's: what is there of it is handed up on the next tick. */
  take (attempt: Attempt): void {
    this.#attempts = null
    this.#attempt = attempt
    attempt.owner = this
    // A small response arrives with its head in one read of the socket: it is whole before the next tick.
    this.#handUpPending = true
    process.nextTick(handUp, this)
  }

  // ---- the attempt's side

  responseHead (attempt: Attempt): void { this.take(attempt) }

  informational (status: number, rawFields: Buffer[]): void {
    if (!this.#over) informational(this.reply, status, rawFields)
  }

  bodyChunk (attempt: Attempt, chunk: Buffer): boolean {
    if (this.#stream === null) return (attempt.answer as Answer).keep(chunk)
    this.#lastByteAt = performance.now()
    if (this.reply.raw.writableLength === 0) this.#tookAt = this.#lastByteAt
    this.exchange.bytes += chunk.length
    return this.#stream.give(chunk)
  }

  bodyEnd (): void {
    if (this.#stream === null) return
    this.#over = true
    const { answer } = this.#attempt as Attempt
    this.#stream.finish(this.#wantsTrailers ? (answer as Answer).trailers(this.host.requestIdHeader) : null)
  }

  attemptFailed (attempt: Attempt, reason: Reason, outcome: Outcome, error: Error): void {
    if (this.#over) return
    if (reason === 'internal_error') this.reply.log.error({ err: error }, 'internal_error')
    this.host.attemptEnded(this.exchange, { attempt, reason, outcome, error: errorText(error) }, null)
    this.giveUp(reason)
  }

  // ---- handing up

  /** Called on the tick after the answer was found. */
  handUp (): void {
    this.#handUpPending = false
    if (this.#over || this.#callback === null) return
    const { reply, exchange } = this
    const request = reply.request.raw
    // A FIN counts as leaving, before the response's own close tells of it.
    if (request.aborted) return this.left()
    linger(request, reply.raw)
    this.#body?.forget()
    const attempt = this.#attempt as Attempt
    const answer = attempt.answer as Answer
    answer.handedUp = true
    const headers = answer.fields()
    this.#changes?.change(headers, attempt)
    headers[this.host.requestIdHeader] = exchange.requestId
    this.#fields = headers
    exchange.bytes = answer.bytes
    const callback = this.#callback
    this.#callback = null
    this.#wantsTrailers = wantsTrailers(request)
    if (answer.complete && !(this.#wantsTrailers && answer.rawTrailers !== null)) {
      this.#over = true
      if (attempt.upgraded !== null) this.#switch(attempt, headers)
      return this.#hand(callback, { statusCode: answer.status, headers, body: answer.whole(headers['content-type']) })
    }
    const stream = new ResponseBody(this, reply.raw)
    this.#stream = stream
    this.#lastByteAt = this.#tookAt = performance.now()
    if (isEventStream(headers['content-type'])) {
      this.deadline.endless()
      attempt.settle('success', this.#lastByteAt)
    }
    if (this.#wantsTrailers) stream.mayTrail(answer.announced(this.host.requestIdHeader))
    answer.pour(stream)
    if (answer.complete) this.bodyEnd()
    this.#hand(callback, { statusCode: answer.status, headers, body: stream })
  }

  /** The time limits end here; the tunnel begins once the answer has been sent. */
  #switch (attempt: Attempt, headers: ResponseFields): void {
    this.deadline.stop()
    headers['connection'] = 'upgrade'
    headers['upgrade'] = tunnelledProtocol
    openTunnel(this.#door as TunnelDoor, this.reply.raw, attempt, this.exchange)
  }

  /** No throw may leave this tick: there is nobody above to catch it. */
  #hand (callback: AnswerCallback, answer: UpstreamAnswer): void {
    this.#state = 'sending'
    try {
      callback(null, answer)
      this.#state = 'sent'
    } catch (error) {
      this.reply.log.error({ err: error }, 'internal_error')
      this.takeBack()
      this.#refuse('internal_error')
    }
  }

  // ---- the stream's side

  resumeBody (): void {
    this.#lastByteAt = this.#tookAt = performance.now()
    this.#attempt?.resumeBody()
  }

  bodyClosed (): void {
    if (!this.#over) this.left()
  }

  // ---- the client's side

  /** The response closed: the client is gone, or somebody else has answered it. */
  left (): void {
    this.deadline.stop()
    if (this.#over) return
    if (!this.reply.raw.writableFinished) this.exchange.fail('client_cancelled')
    this.#end('cancelled')
  }

  // ---- others that answer

  giveWay (): boolean {
    if (this.#state === 'sent') return false
    if (this.#state === 'working') this.#outrun()
    return true
  }

  /** What stood in the reply before is all that may be left in it: the upstream's fields belong to the upstream's body. */
  takeBack (): void {
    this.#outrun()
    if (this.#state === 'working') return
    this.#state = 'working'
    this.#stream?.dropTrailers()
    const { reply } = this
    if (this.#fields === null || reply.raw.headersSent) return
    removeFields(reply, this.#fields, this.host.requestIdHeader)
    this.#fields = null
    reply.code(200)
    this.exchange.bytes = -1
  }

  #outrun (): void {
    this.deadline.stop()
    if (!this.#over) this.#end('ignored')
  }

  /** All that is under way ends, with this outcome. */
  #end (outcome: Outcome): void {
    this.#over = true
    this.#body?.forget()
    if (this.#attempts === null) this.#attempt?.cancel(outcome)
    else this.#attempts.stop(outcome)
  }

  // ---- time limits

  get over (): boolean { return this.#over }
  get handingUp (): boolean { return this.#handUpPending }

  phaseLeft (now: number): number {
    if (this.#attempts !== null) return this.#attempts.phaseLeft(now)
    return this.#stream === null ? this.#upstreamLeft(now) : Math.min(this.#upstreamLeft(now), this.#clientLeft(now))
  }

  /** A body that has to wait for the client is not waited for. */
  #upstreamLeft (now: number): number {
    const since = this.#stream === null || this.#stream.blocked ? 0 : this.#lastByteAt
    return phaseLeft(this.#attempt as Attempt, this.#body, since, this.#terms.limits.bodyIdleMs, now)
  }

  /** Milliseconds until a client that takes nothing of what is there for it is due to be cut. */
  #clientLeft (now: number): number {
    const { bodyIdleMs } = this.#terms.limits
    const { raw, request } = this.reply
    // What waits behind another answer is not in the client's hands yet.
    if (raw.socket === null || (raw.writableLength === 0 && this.#stream?.blocked !== true)) this.#tookAt = now
    if (bodyIdleMs === 0 || this.#tookAt === now) return Infinity
    this.#uptake ??= new Uptake()
    // The connection of HTTP/2 tells nothing of one of its streams.
    return this.#uptake.left(request.raw.httpVersionMajor === 1 ? raw.socket : null, bodyIdleMs, this.#tookAt, now)
  }

  expired (total: boolean, stalled: boolean): void {
    if (this.#attempts !== null) return this.#attempts.expired(total, stalled)
    const attempt = this.#attempt as Attempt
    const end = endByLimit(attempt, this.#body, total, stalled)
    const now = performance.now()
    const client = this.#stream !== null && (total ? this.#stream.blocked : this.#upstreamLeft(now) >= earlyMs && this.#clientLeft(now) < earlyMs)
    const outcome = client ? 'cancelled' : end.outcome
    attempt.cancel(outcome, end.reason)
    this.host.attemptEnded(this.exchange, { ...end, outcome }, null)
    this.giveUp(end.reason)
  }

  tailLeft (now: number): number {
    const { raw } = this.reply
    if (raw.writableFinished || raw.destroyed) return Infinity
    if (this.#tookAt === 0) this.#tookAt = now
    return Math.min(this.#clientLeft(now), this.#terms.limits.bodyIdleMs || Infinity)
  }

  tailExpired (): void {
    this.exchange.fail('body_idle_timeout')
    abortConnection(this.reply.raw)
  }

  // ---- giving up

  /** No whole answer will come: refuse, or, when the client has a part of one already, break its connection off. */
  giveUp (reason: Reason): void {
    this.#over = true
    this.#attempts = null
    this.deadline.stop()
    this.#body?.forget()
    this.exchange.fail(reason, reason === 'request_timeout' ? this.#lateBy() : null)
    const { raw } = this.reply
    if (raw.headersSent) {
      abortConnection(raw)
      this.#stream?.destroy()
    } else if (this.#stream !== null) {
      failInHooks(raw, this.#stream, reason)
    } else {
      this.#refuse(reason)
      this.deadline.rest()
    }
  }

  /** By which limit a client is late with its body; null: by `bodyIdleMs`. */
  #lateBy (): Evidence | null {
    const now = performance.now()
    if (this.deadline.left(now) < earlyMs) return { limit: 'timeouts.totalMs' }
    const pace = this.#body?.pace ?? null
    return pace !== null && pace.left(now) < earlyMs ? pace.evidence(now) : null
  }

  #refuse (reason: Reason): void {
    this.host.refuse(this.reply, reason)
    this.#state = 'sent'
  }
}

const eventStreamType = /^text\/event-stream[ \t]*(?:;|$)/i

function isEventStream (type: ResponseFields[string] | undefined): boolean {
  return typeof type === 'string' && eventStreamType.test(type)
}

function handUp (forward: Forward): void { forward.handUp() }

function onClose (this: ServerResponse): void {
  const answerer = answererOf(this)
  if (answerer instanceof Forward) answerer.left()
}
