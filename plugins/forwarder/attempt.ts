import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { util, type Dispatcher } from 'undici'
import type { Waiter } from '../../lib/breaker/silence.ts'
import { errorText, reasonOf } from '../../lib/classify.ts'
import { failureOf, type Outcome, type Reason } from '../../lib/failure.ts'
import { switchesToWebSocket, tunnelledProtocol } from '../../lib/http/upgrade.ts'
import { isTransferCoded } from '../../lib/http/response-head.ts'
import type { BodyState } from '../../lib/retry/policy.ts'
import { parseRetryAfter } from '../../lib/retry/retry-after.ts'
import { ProtocolError, type StreamClosedError } from '../http2/errors.ts'
import type { Sender } from '../http2/sender.ts'
import type { Carried } from '../upstream-pools/carrier.ts'
import type { UsualLatency } from '../../lib/latency.ts'
import { Answer } from './answer.ts'
import { AttemptRecord } from './attempt-record.ts'
import { dispatchChanged, takingTrailers, toAsterisk } from './created.ts'
import { http2Options } from './http2-options.ts'
import { learn } from './lessons.ts'
import type { Outgoing } from './outgoing.ts'
import type { AttemptOwner } from './owner.ts'
import { BodyTooLargeError, ClientGoneError } from './request-body.ts'
import type { StallWatch, Terms } from './terms.ts'
import type { Uptake } from './uptake.ts'

/** waiting: for a connection of the bounded set · connect: handed to undici · send · headers: sent, no head yet · body · tunnel: switched · done */
export type Stage = 'waiting' | 'connect' | 'send' | 'headers' | 'body' | 'tunnel' | 'done'

/** The fewest bytes of undici's legacy handler interface: it hands up raw fields and wraps nothing. */
type Handler = Pick<Required<Dispatcher.DispatchHandler>, 'onConnect' | 'onHeaders' | 'onData' | 'onUpgrade' | 'onComplete' | 'onError'>

/**
 * One try of an exchange at one upstream: it gives back what its record holds exactly once, whatever happens first. The connection's place is given back when undici is done with it.
 */
export class Attempt extends AttemptRecord implements Handler, Carried, Waiter {
  carrier: Carried['carrier'] = null
  stage: Stage = 'waiting'
  /** Who it works for now. */
  owner: AttemptOwner
  /** The upstream's connection, once it has switched protocols: it belongs to who takes the answer. */
  upgraded: Socket | null = null
  /** Watches an upstream that is slow to take the request; null: nobody had to. */
  uptake: Uptake | null = null
  /** How long it may wait for its connection, and for its head from the moment of sending, in ms; 0: no limit of its own. */
  startMs = 0
  headersMs: number
  readonly path: string
  readonly #outgoing: Outgoing
  readonly #fields: string[]
  readonly #breaker: StallWatch | null
  /** The breaker's watch over the wait for the head; 0: nobody watches. */
  #watch = 0
  waitsSince = 0
  waitsBefore: Waiter | null = null
  waitsAfter: Waiter | null = null
  #entered = false
  #onWire = false
  #responseStarted = false
  #connectsBefore = 0
  #reused = false
  #again = false
  #abort: ((error?: Error) => void) | null = null
  #resume: (() => void) | null = null

  /** @param now when `terms.lane` picked `index` and gave this permit */
  constructor (owner: AttemptOwner, terms: Terms, index: number, permit: number, outgoing: Outgoing, now: number) {
    super(owner.exchange, terms, index, permit, now)
    this.owner = owner
    this.headersMs = terms.limits.headersMs
    this.#outgoing = outgoing
    this.path = outgoing.pathFor(this.upstream)
    this.#fields = outgoing.fieldsFor(this.upstream)
    this.#breaker = terms.lane.breakers[index] as StallWatch | null
  }

  get method (): string { return this.#outgoing.method }

  get abandoned (): boolean { return this.stage === 'done' }

  /** A byte of the request may have reached the upstream. */
  get written (): boolean {
    const { body } = this.#outgoing
    return this.#onWire && (body === null || Buffer.isBuffer(body) || body.given)
  }

  get bodyState (): BodyState {
    const { body } = this.#outgoing
    return body === null ? 'none' : Buffer.isBuffer(body) ? 'whole' : body.state
  }

  /** The limit of its present phase is its share of the exchange's time, as another attempt may follow. */
  get hasShare (): boolean {
    if (this.stage === 'waiting' || this.stage === 'connect') return this.startMs > 0
    return this.stage === 'headers' && this.headersMs !== this.terms.limits.headersMs
  }

  /** No other attempt will follow: it has all of the time. */
  takeAll (): void {
    this.startMs = 0
    this.headersMs = this.terms.limits.headersMs
  }

  /** What its answer's Retry-After asks for, in ms; null: nothing. */
  get retryAfterMs (): number | null {
    const value = this.answer?.field('retry-after') ?? null
    return value === null ? null : parseRetryAfter(value, Date.now())
  }

  /** A connection is free: go. Called once, by the upstream. Never throws. */
  start (): void {
    this.#entered = true
    // undici's pool may make the request later, when nobody puts its target right any more.
    // A connection that is handed over is no connection of the pool's.
    this.#go(this.#needsHttp1)
  }

  get #needsHttp1 (): boolean {
    return this.#outgoing.upgrade || (this.path === '*' && this.upstream.http2 !== 'prior-knowledge')
  }

  #go (onFresh: boolean): void {
    try {
      if (onFresh) this.upstream.dispatchFresh(this.#needsHttp1, (sender) => { this.#dispatch(sender) })
      else this.#dispatch(this.upstream.dispatcher)
    } catch (error) {
      this.#leave()
      if (this.stage !== 'done') this.#end('internal_error', 'ignored', error as Error)
    }
  }

  #dispatch (sender: Pick<Sender, 'dispatch'>): void {
    this.stage = 'connect'
    this.#connectsBefore = this.upstream.connects
    const { method, body } = this.#outgoing
    const { path } = this
    // The same for every request, or undici would make a new connection for each other Host; the connector knows the real one.
    const servername = this.upstream.host
    const headers = this.#outgoing.stamped(this.#fields, this.replaced)
    if (path === '*' && this.#needsHttp1) {
      const options = { method: method as Dispatcher.HttpMethod, path: '/', headers, body: null, servername }
      return dispatchChanged(sender, options, this, toAsterisk)
    }
    const content = body === null || Buffer.isBuffer(body) ? body : body.stream()
    const upgrade = this.#outgoing.upgrade ? tunnelledProtocol : null
    if (this.#outgoing.grpc && this.upstream.http2 === 'off') return this.onError(new ProtocolError())
    const options = { method: method as Dispatcher.HttpMethod, path, headers, body: content, upgrade, servername }
    if (this.upstream.http2 !== 'off' && upgrade === null) sender.dispatch(http2Options(options, this.#outgoing), this)
    else if (this.#outgoing.takesTrailers) dispatchChanged(sender, options, this, takingTrailers)
    else sender.dispatch(options, this)
  }

  /** Ends the attempt from our side. The upstream's request is aborted, or never sent. */
  cancel (outcome: Outcome, reason: Reason | null = null): void {
    this.reason ??= reason
    this.settle(outcome, performance.now())
    if (this.stage === 'done') return
    if (this.upgraded !== null) return this.tunnelEnded()
    this.#stopWaiting()
    this.#finish()
    if (!this.#entered) {
      this.upstream.withdraw(this)
      return
    }
    // Before it is about to send the request undici cannot be told: it would go on to connect, for nobody.
    if (this.#abort === null) this.carrier?.giveUp(this)
    else this.#abort()
  }

  /** By which the breaker's transition names it: nobody asks for a mirrored copy. */
  get name (): string { return this.exchange === null ? '' : this.exchange.requestId }

  resumeBody (): void {
    if (this.stage === 'body') this.#resume?.()
  }

  onConnect (abort: (error?: Error) => void): void {
    this.#abort = abort
    // Cancelled while undici was still connecting or queueing: this is the first moment at which it can be told.
    if (this.stage === 'done') return abort()
    this.#reused = this.upstream.connects === this.#connectsBefore
    if (!this.#reused) this.connectMs = Math.round(performance.now() - this.begunAt)
    this.#onWire = true
    this.carrier?.begin()
    this.stage = 'send'
  }

  onRequestSent (): void {
    if (this.stage !== 'send') return
    this.stage = 'headers'
    const now = performance.now()
    this.sentAt = now
    const { usual } = this.terms
    if (this.#breaker !== null && usual !== null) this.#watch = this.#breaker.waits(this.permit, (usual[this.index] as UsualLatency).value, this.exchange === null ? null : this)
  }

  onResponseStarted (): void {
    this.#responseStarted = true
  }

  onHeaders (status: number, rawFields: Buffer[], resume: () => void): boolean {
    if (this.stage === 'done') return true
    // 101 without an upgrade is none that anybody has asked for.
    if (status < 100 || status > 599 || status === 101) {
      this.#fail('response_invalid', new Error(`status ${status}`))
      return true
    }
    if (isTransferCoded(rawFields, util.headerNameToString)) {
      this.#fail('response_invalid', new Error('a transfer coding other than chunked'))
      return true
    }
    if (status < 200) {
      this.#heard()
      this.owner.informational(status, rawFields)
      return true
    }
    this.stage = 'body'
    this.#resume = resume
    this.answer = new Answer(status, rawFields, this.carrier?.http2 === true)
    this.#answered(status)
    this.owner.responseHead(this)
    // No body can follow these; undici reports a legal Content-Length on a 304 as a mismatch afterwards.
    if ((status === 304 || status === 204 || this.#outgoing.method === 'HEAD') && !this.abandoned) this.#complete(this.headAt)
    return true
  }

  /** The connection is not undici's any more. For the breaker the exchange has ended well; its places are kept as long as the tunnel is open. */
  onUpgrade (status: number, fields: Buffer[] | string[] | null, socket: Duplex): void {
    const rawFields = fields as Buffer[]
    const upgraded = socket as Socket
    // Whatever becomes of it, an error that nobody listens to would end the process.
    upgraded.on('error', ignore)
    this.carrier = null
    if (this.stage === 'done' || !switchesToWebSocket(rawFields, util.headerNameToString)) {
      upgraded.destroy()
      this.#leave()
      if (this.stage !== 'done') this.#fail('response_invalid', new Error('switched to another protocol than asked'))
      return
    }
    // That it sends nothing more will not mean that it takes nothing more.
    upgraded.allowHalfOpen = true
    this.upgraded = upgraded
    this.stage = 'tunnel'
    this.answer = new Answer(status, rawFields)
    this.answer.complete = true
    this.#answered(status)
    this.settle('success', this.headAt)
    this.owner.responseHead(this)
  }

  /** There is no tunnel any more, or there will not be one. Gives the places back, exactly once. */
  tunnelEnded (): void {
    this.upgraded?.destroy()
    this.#finish()
    this.#leave()
  }

  onData (chunk: Buffer): boolean {
    if (this.stage !== 'body') return true
    return this.owner.bodyChunk(this, chunk)
  }

  onComplete (trailers: Buffer[] | string[] | null): void {
    // In the tick of its head an answer is as late as its head.
    const now = this.answer?.handedUp === true ? performance.now() : this.headAt
    this.carrier?.end(now)
    this.#leave()
    if (this.stage !== 'body') return
    // undici takes a body without a length for whole when its connection ends, by a reset too.
    if (this.upstream.connectionBroken) this.#fail('body_truncated', new Error('the connection was reset'))
    else {
      if (trailers !== null && trailers.length > 0) (this.answer as Answer).rawTrailers = trailers as Buffer[]
      this.#complete(now)
    }
  }

  onError (error: Error): void {
    // The upstream itself says that it has done nothing of it.
    const { unprocessed = false, goingAway = false } = error as Partial<StreamClosedError>
    if (unprocessed) this.#onWire = false
    if (this.#mayGoAgain(error, goingAway)) return this.#goAgain(!goingAway)
    this.#leave()
    if (this.stage === 'done') return
    if (error instanceof ClientGoneError) return this.#end('client_cancelled', 'cancelled', error)
    if (error instanceof BodyTooLargeError) return this.#end('body_too_large', 'ignored', error)
    const reason = reasonOf(error, this.stage === 'body' ? 'body' : this.stage === 'connect' || this.stage === 'waiting' ? 'connect' : 'headers')
    this.#fail(reason, error)
  }

  /** The final head is there: what is learnt from it, and a 5xx settles at once. */
  #answered (status: number): void {
    const now = performance.now()
    this.headAt = now
    // Before all was sent, the time tells of the client's upload.
    const ms = this.sentAt > 0 ? now - this.sentAt : -1
    if (ms < 0) this.#breaker?.heard()
    else this.#breaker?.answered(this.permit, this.#watch, ms)
    this.#watch = 0
    learn(this, this.permit >= 0, ms, now)
    if (status >= 500) this.settle('failure', now)
  }

  #fail (reason: Reason, error: Error): void {
    // A time limit that ran out while our own loop stood still says nothing of the upstream.
    const blamed = failureOf(reason).blames && (error as { stalled?: boolean }).stalled !== true
    const outcome = blamed ? 'failure' : 'ignored'
    this.#end(reason, outcome, error)
    this.#abort?.()
  }

  #complete (now: number): void {
    const answer = this.answer as Answer
    answer.complete = true
    this.settle(answer.failed ? 'failure' : 'success', now)
    this.#finish()
    this.owner.bodyEnd(this)
  }

  /** The end of every attempt that has no whole answer and was not cancelled. */
  #end (reason: Reason, outcome: Outcome, error: Error): void {
    this.reason ??= reason
    this.error ??= errorText(error)
    if (heardOf.has(reason)) this.#heard()
    this.#stopWaiting()
    this.settle(outcome, performance.now())
    this.#finish()
    this.owner.attemptFailed(this, reason, outcome, error)
  }

  /** The upstream is not silent, though it has not answered. */
  #heard (): void {
    this.#watch = 0
    this.#breaker?.heard()
  }

  /** It waits no longer, though nothing came: which says nothing. */
  #stopWaiting (): void {
    if (this.#watch !== 0) this.#breaker?.gaveUp(this.#watch, this)
    this.#watch = 0
  }

  #finish (): void {
    this.stage = 'done'
    this.givePlaceBack()
  }

  #leave (): void {
    if (!this.#entered) return
    this.#entered = false
    this.upstream.leave()
  }

  /**
   * A kept-alive connection may be closed by the upstream in the moment in which we use it again. Where not a byte of an answer
   * came and a repetition is harmless (an idempotent method, and a body that is whole in memory or none), the request is sent once
   * more on a fresh connection. Where an HTTP/2 connection was closed in order and the upstream says that the request came too late
   * for it, any method may go to the next one.
   */
  #mayGoAgain (error: Error, tooLate: boolean): boolean {
    if (this.stage === 'done' || this.#again || this.#responseStarted || !this.#bodyInMemory()) return false
    return tooLate || (this.#reused && idempotent.has(this.#outgoing.method) && reasonOf(error, 'headers') === 'connection_reset')
  }

  #bodyInMemory (): boolean {
    const { body } = this.#outgoing
    return body === null || Buffer.isBuffer(body) || body.inMemory
  }

  #goAgain (onFresh: boolean): void {
    this.#heard()
    this.carrier?.stale(performance.now())
    this.terms.counts.repeats++
    this.#again = true
    this.#onWire = false
    this.#abort = null
    this.#go(onFresh)
  }
}

function ignore (): void {}

const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

/** The upstream itself ended what was waited for. */
const heardOf = new Set<Reason>(['connect_refused', 'connection_reset', 'response_invalid', 'tls_failed'])
