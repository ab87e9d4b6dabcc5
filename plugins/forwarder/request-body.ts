import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { BodyState } from '../../lib/retry/policy.ts'
import type { Pace } from './pace.ts'

/** The client's connection ended before the body did. */
export class ClientGoneError extends Error {
  readonly code = 'BREAKWATER_CLIENT_GONE'
  constructor () { super('the client left before its request was complete') }
}

/** The body has more bytes than allowed. */
export class BodyTooLargeError extends Error {
  readonly code = 'BREAKWATER_BODY_TOO_LARGE'
  constructor (limit: number) { super(`the request body is larger than ${limit} bytes`) }
}

/** A client's body that streams, as attempts and time limits see it. */
export interface ClientBody {
  /** True while bytes are wanted and the client has not sent them. */
  readonly waitingForClient: boolean
  /** Monotonic time of the last byte in or out; the idle limit counts from it. */
  readonly lastActivity: number
  /** All of it has come, whether it was read or not. */
  readonly received: boolean
  /** How it has to come; null: the listener's limits are those that hold. */
  readonly pace: Pace | null
  /** What of it there is for another attempt. */
  readonly state: BodyState
  /** Something of it, or its end, was given to an attempt, which may have written it. */
  readonly given: boolean
  /** All of it has come and is kept. */
  readonly inMemory: boolean
  /** What the client sent behind it, once it has ended: name, value, name, value, ... */
  readonly rawTrailers: readonly string[]
  /** A stream of the whole body, for one attempt. */
  stream (): Readable
  /** There will be no further attempt. */
  forget (): void
}

/**
 * A client's body on its way to the upstream. It stands between the two because undici destroys the stream that it sends when an
 * attempt fails, and destroying an IncomingMessage would take the client's connection away before it was answered.
 */
export class RequestBody extends Readable implements ClientBody {
  readonly #source: IncomingMessage
  readonly #limit: number
  #received = 0
  #started = false
  given = false
  waitingForClient = false
  lastActivity: number
  readonly pace: Pace | null

  /** @param limit bytes; 0: none */
  constructor (source: IncomingMessage, limit: number, now: number, pace: Pace | null = null) {
    super({ highWaterMark: 65536 })
    this.#source = source
    this.#limit = limit
    this.lastActivity = now
    this.pace = pace
    // undici listens only while it is about to send; an error after that must not end the process.
    this.on('error', ignore)
  }

  get state (): BodyState { return this.given || this.destroyed ? 'touched' : 'untouched' }
  get inMemory (): boolean { return false }
  get received (): boolean { return this.#source.complete }
  get rawTrailers (): readonly string[] { return this.#source.rawTrailers }
  stream (): Readable { return this }
  forget (): void {}

  override _read (): void {
    this.waitingForClient = true
    this.lastActivity = performance.now()
    this.pace?.waits(this.lastActivity)
    if (this.#started) {
      this.#source.resume()
      return
    }
    this.#started = true
    this.#source.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose).on('error', this.#onClose)
    if (this.#source.destroyed || this.#source.readableEnded) this.#onClose()
  }

  override _destroy (error: Error | null, callback: (error?: Error | null) => void): void {
    this.#source.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose)
    callback(error)
  }

  readonly #onData = (chunk: Buffer): void => {
    this.waitingForClient = false
    this.given = true
    this.lastActivity = performance.now()
    this.pace?.came(chunk.length, this.lastActivity)
    this.#received += chunk.length
    if (this.#limit > 0 && this.#received > this.#limit) {
      this.destroy(new BodyTooLargeError(this.#limit))
    } else if (!this.push(chunk)) {
      this.#source.pause()
    }
  }

  readonly #onEnd = (): void => {
    this.waitingForClient = false
    this.given = true
    this.push(null)
  }

  readonly #onClose = (): void => {
    if (!this.#source.complete || !this.readableEnded) {
      if (this.#source.complete && this.#source.readableEnded) this.push(null)
      else this.destroy(new ClientGoneError())
    }
  }
}

function ignore (): void {}
