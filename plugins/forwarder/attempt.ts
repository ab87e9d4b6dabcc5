import { util, type Dispatcher } from 'undici'
import { reasonOf } from '../../lib/classify.ts'
import { failureOf, type Outcome, type Reason } from '../../lib/failure.ts'
import { isTransferCoded } from '../../lib/http/response-head.ts'
import type { Carried, Carrier } from '../upstream-pools/carrier.ts'
import type { Upstream } from '../upstream-pools/upstream.ts'
import { sendAsterisk } from './asterisk.ts'
import { BodyTooLargeError, ClientGoneError, type RequestBody } from './request-body.ts'

/** What every attempt of an exchange sends. */
export interface Outgoing {
  readonly method: string
  readonly path: string
  /** name, value, name, value, ... with the Host; the framing is undici's. */
  readonly headers: string[]
  readonly body: RequestBody | Buffer | null
}

/** The breaker's side of an attempt. */
export interface PermitHolder {
  settle (permit: number, outcome: Outcome, now: number): void
}

/** Who an attempt works for. */
export interface AttemptOwner {
  /** The request has been sent whole; the wait for the answer begins. */
  requestSent (): void
  /** A final response's head. The body follows through `bodyChunk` and `bodyEnd`. */
  responseHead (status: number, rawFields: Buffer[]): void
  informational (status: number, rawFields: Buffer[]): void
  /** False when the upstream has to wait. */
  bodyChunk (chunk: Buffer): boolean
  bodyEnd (): void
  /** The attempt is over without a whole answer. */
  attemptFailed (reason: Reason, outcome: Outcome, error: Error): void
}

/** waiting: for a connection of the bounded set · connect: handed to undici · send · headers: sent, no head yet · body · done */
export type Stage = 'waiting' | 'connect' | 'send' | 'headers' | 'body' | 'done'

/** The fewest bytes of undici's legacy handler interface: it hands up raw fields and wraps nothing. */
type Handler = Pick<Required<Dispatcher.DispatchHandler>, 'onConnect' | 'onHeaders' | 'onData' | 'onComplete' | 'onError'>

/**
 * One try of an exchange at one upstream: it holds the breaker's permit and the upstream's in-flight place from the pick on, and
 * gives both back exactly once, whatever happens first. The connection's place is given back when undici is done with it.
 */
export class Attempt implements Handler, Carried {
  readonly upstream: Upstream
  carrier: Carrier | null = null
  stage: Stage = 'waiting'
  readonly #owner: AttemptOwner
  readonly #outgoing: Outgoing
  readonly #breaker: PermitHolder | null
  readonly #permit: number
  #settled = false
  #placeHeld = true
  #entered = false
  #responseStarted = false
  #connectsBefore = 0
  #reused = false
  #again = false
  #abort: ((error?: Error) => void) | null = null
  #resume: (() => void) | null = null

  constructor (owner: AttemptOwner, upstream: Upstream, breaker: PermitHolder | null, permit: number, outgoing: Outgoing) {
    this.#owner = owner
    this.upstream = upstream
    this.#breaker = breaker
    this.#permit = permit
    this.#outgoing = outgoing
  }

  /** True once no outcome can be reported any more. */
  get settled (): boolean { return this.#settled }

  get abandoned (): boolean { return this.stage === 'done' }

  /** A connection is free: go. Called once, by the upstream. Never throws. */
  start (): void {
    this.#entered = true
    // undici's pool may make the request later, when nobody puts its target right any more.
    this.#go(this.#outgoing.path === '*')
  }

  #go (onFresh: boolean): void {
    try {
      if (onFresh) this.upstream.dispatchFresh((client) => { this.#dispatch(client) })
      else this.#dispatch(this.upstream.dispatcher)
    } catch (error) {
      this.#leave()
      if (this.stage !== 'done') this.#end('internal_error', 'ignored', error as Error)
    }
  }

  #dispatch (dispatcher: Dispatcher): void {
    this.stage = 'connect'
    this.#connectsBefore = this.upstream.connects
    const { method, path, headers, body } = this.#outgoing
    if (path === '*') sendAsterisk(dispatcher, method, headers, this)
    else dispatcher.dispatch({ method: method as Dispatcher.HttpMethod, path, headers, body }, this)
  }

  /** Reports the outcome to the breaker: the first call counts, the others are no-ops. */
  settle (outcome: Outcome): void {
    if (this.#settled) return
    this.#settled = true
    this.#breaker?.settle(this.#permit, outcome, performance.now())
  }

  /** Ends the attempt from our side. The upstream's request is aborted, or never sent. */
  cancel (outcome: Outcome): void {
    this.settle(outcome)
    if (this.stage === 'done') return
    this.#finish()
    if (!this.#entered) {
      this.upstream.withdraw(this)
      return
    }
    // Before it is about to send the request undici cannot be told: it would go on to connect, for nobody.
    if (this.#abort === null) this.carrier?.giveUp(this)
    else this.#abort()
  }

  resumeBody (): void {
    if (this.stage === 'body') this.#resume?.()
  }

  onConnect (abort: (error?: Error) => void): void {
    this.#abort = abort
    // Cancelled while undici was still connecting or queueing: this is the first moment at which it can be told.
    if (this.stage === 'done') return abort()
    this.#reused = this.upstream.connects === this.#connectsBefore
    this.stage = 'send'
  }

  onRequestSent (): void {
    if (this.stage !== 'send') return
    this.stage = 'headers'
    this.#owner.requestSent()
  }

  onResponseStarted (): void {
    this.#responseStarted = true
  }

  onHeaders (status: number, rawFields: Buffer[], resume: () => void): boolean {
    if (this.stage === 'done') return true
    if (status < 100 || status > 599) {
      this.#fail('response_invalid', new Error(`status ${status}`))
      return true
    }
    if (isTransferCoded(rawFields, util.headerNameToString)) {
      this.#fail('response_invalid', new Error('a transfer coding other than chunked'))
      return true
    }
    if (status < 200) {
      this.#owner.informational(status, rawFields)
      return true
    }
    this.stage = 'body'
    this.#resume = resume
    this.#owner.responseHead(status, rawFields)
    // No body can follow these; undici reports a legal Content-Length on a 304 as a mismatch afterwards.
    if (status === 304 || status === 204 || this.#outgoing.method === 'HEAD') this.#end()
    return true
  }

  onData (chunk: Buffer): boolean {
    if (this.stage !== 'body') return true
    return this.#owner.bodyChunk(chunk)
  }

  onComplete (): void {
    this.#leave()
    if (this.stage !== 'body') return
    // undici takes a body without a length for whole when its connection ends, by a reset too.
    if (this.upstream.connectionBroken) this.#fail('body_truncated', new Error('the connection was reset'))
    else this.#end()
  }

  onError (error: Error): void {
    if (this.#mayGoAgain(error)) return this.#goAgain()
    this.#leave()
    if (this.stage === 'done') return
    if (error instanceof ClientGoneError) return this.#end('client_cancelled', 'cancelled', error)
    if (error instanceof BodyTooLargeError) return this.#end('body_too_large', 'ignored', error)
    const reason = reasonOf(error, this.stage === 'body' ? 'body' : this.stage === 'connect' || this.stage === 'waiting' ? 'connect' : 'headers')
    this.#fail(reason, error)
  }

  #fail (reason: Reason, error: Error): void {
    // A time limit that ran out while our own loop stood still says nothing of the upstream.
    const blamed = failureOf(reason).blames && (error as { stalled?: boolean }).stalled !== true
    const outcome = blamed ? 'failure' : 'ignored'
    this.#end(reason, outcome, error)
    this.#abort?.()
  }

  /** The one end of every attempt that was not cancelled. */
  #end (reason?: Reason, outcome?: Outcome, error?: Error): void {
    this.#finish()
    if (reason === undefined) return this.#owner.bodyEnd()
    this.settle(outcome as Outcome)
    this.#owner.attemptFailed(reason, outcome as Outcome, error as Error)
  }

  #finish (): void {
    this.stage = 'done'
    this.#giveBackPlace()
  }

  #giveBackPlace (): void {
    if (!this.#placeHeld) return
    this.#placeHeld = false
    this.upstream.inFlight--
  }

  #leave (): void {
    if (!this.#entered) return
    this.#entered = false
    this.upstream.leave()
  }

  /**
   * A kept-alive connection may be closed by the upstream in the moment in which we use it again. Where not a byte of an answer
   * came and a repetition is harmless (no body, idempotent method), the request is sent once more on a fresh connection.
   */
  #mayGoAgain (error: Error): boolean {
    return this.stage !== 'done' && this.#reused && !this.#again && !this.#responseStarted && this.#outgoing.body === null && idempotent.has(this.#outgoing.method) &&
      reasonOf(error, 'headers') === 'connection_reset'
  }

  #goAgain (): void {
    this.#again = true
    this.#abort = null
    this.#go(true)
  }
}

const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])
