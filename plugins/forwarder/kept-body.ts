import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { BodyState } from '../../lib/retry/policy.ts'
import type { Pace } from './pace.ts'
import { BodyTooLargeError, ClientGoneError, type ClientBody } from './request-body.ts'

export interface KeptBodyOptions {
  /** More than so many bytes are an error; 0: no limit. */
  limit: number
  /** So many bytes are kept; of a larger body none. */
  keep: number
  /** As the request's head tells it; -1: unknown. */
  contentLength: number
}

const pieceBytes = 65536
/** The copy begins with so many bytes at most and doubles as it fills: a length that is only claimed takes no memory. */
const firstBytes = 4096
const nothing = Buffer.alloc(0)

/**
 * A client's body that may be sent more than once: while it streams to an attempt, it is copied, and the next attempt begins with
 * the copy. The whole body or none: as soon as it has grown beyond what may be kept, the copy is given up, and what has been taken
 * is gone. One attempt reads at a time.
 */
export class KeptBody implements ClientBody {
  readonly #source: IncomingMessage
  readonly #limit: number
  /** `copy[0 .. size-1]` is all that has come; null: no copy is kept any more. */
  #copy: Buffer | null = nothing
  #size = 0
  #keep: number
  /** What came while nobody was reading and has no place in the copy. */
  #over: Buffer | null = null
  #received = 0
  #listening = false
  #ended = false
  #failure: Error | null = null
  #forgotten = false
  #reader: BodyReader | null = null
  /** Called once all of it is there, if it could be kept. */
  whole: ((body: Buffer) => void) | null = null
  given = false
  waitingForClient = false
  lastActivity: number
  readonly pace: Pace | null

  constructor (source: IncomingMessage, { limit, keep, contentLength }: KeptBodyOptions, now: number, pace: Pace | null = null) {
    this.#source = source
    this.#limit = limit
    this.#keep = contentLength > keep ? 0 : contentLength > 0 ? contentLength : keep
    this.lastActivity = now
    this.pace = pace
  }

  get state (): BodyState { return this.#copy === null ? 'touched' : this.given ? 'whole' : 'untouched' }
  get inMemory (): boolean { return this.#ended && this.#copy !== null }
  get received (): boolean { return this.#source.complete }
  get rawTrailers (): readonly string[] { return this.#source.rawTrailers }

  stream (): Readable {
    this.#reader?.destroy()
    const reader = new BodyReader(this)
    this.#reader = reader
    return reader
  }

  forget (): void {
    this.#forgotten = true
    this.#keep = 0
    if (this.#reader === null) this.#hearNoMore()
  }

  // ---- the reader's side

  /** The reader wants more. */
  more (reader: BodyReader): void {
    this.lastActivity = performance.now()
    if (this.#copy !== null && reader.at < this.#size) return this.#giveCopied(reader, this.#copy)
    if (this.#over !== null) {
      const chunk = this.#over
      this.#over = null
      this.#pass(reader, chunk)
    } else if (this.#failure !== null) {
      reader.destroy(this.#failure)
    } else if (this.#ended) {
      this.#end(reader)
    } else {
      this.waitingForClient = true
      this.pace?.waits(this.lastActivity)
      this.#listen()
      this.#source.resume()
    }
  }

  /** The reader is destroyed: its attempt is over, or has sent all. */
  readerClosed (reader: BodyReader): void {
    if (this.#reader !== reader) return
    this.#reader = null
    this.waitingForClient = false
    this.pace?.rests(performance.now())
    if (this.#forgotten) this.#hearNoMore()
    else if (this.#copy === null) this.#source.pause()
    // What comes until the next attempt goes into the copy: so it is noticed, too, when the client leaves.
    else if (this.#listening && this.#over === null) this.#source.resume()
  }

  #giveCopied (reader: BodyReader, copy: Buffer): void {
    this.given = true
    const end = Math.min(reader.at + pieceBytes, this.#size)
    const piece = copy.subarray(reader.at, end)
    reader.at = end
    reader.push(piece)
  }

  #end (reader: BodyReader): void {
    this.given = true
    reader.push(null)
  }

  // ---- the client's side

  #listen (): void {
    if (this.#listening) return
    this.#listening = true
    this.#source.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose).on('error', this.#onClose)
    if (this.#source.destroyed || this.#source.readableEnded) this.#onClose()
  }

  #hearNoMore (): void {
    if (!this.#listening) return
    this.#listening = false
    this.#source.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose)
    this.#copy = null
    this.#over = null
  }

  readonly #onData = (chunk: Buffer): void => {
    this.waitingForClient = false
    this.lastActivity = performance.now()
    this.pace?.came(chunk.length, this.lastActivity)
    this.#received += chunk.length
    if (this.#limit > 0 && this.#received > this.#limit) {
      this.#failure = new BodyTooLargeError(this.#limit)
      this.#reader?.destroy(this.#failure)
    } else if (this.#reader !== null) {
      this.#pass(this.#reader, chunk)
    } else if (this.#over !== null || !this.#append(chunk)) {
      this.#over = this.#over === null ? chunk : Buffer.concat([this.#over, chunk])
      this.#source.pause()
    }
  }

  /** Gives a chunk to the reader, by way of the copy where there is room. */
  #pass (reader: BodyReader, chunk: Buffer): void {
    this.given = true
    const behind = this.#copy === null ? null : this.#copy.subarray(reader.at, this.#size)
    let wanted = true
    if (this.#append(chunk)) {
      // A reader that is behind comes for it by itself.
      if (behind === null || behind.length > 0) {
        this.#source.pause()
        return
      }
      reader.at = this.#size
    } else {
      if (behind !== null && behind.length > 0) wanted = reader.push(behind)
      this.#copy = null
    }
    wanted = reader.push(chunk) && wanted
    if (!wanted) this.#source.pause()
  }

  #append (chunk: Buffer): boolean {
    const copy = this.#copy
    const size = this.#size + chunk.length
    if (copy === null || size > this.#keep) return false
    if (size > copy.length) {
      this.#copy = Buffer.allocUnsafe(Math.min(this.#keep, Math.max(size, copy.length * 2, firstBytes)))
      copy.copy(this.#copy, 0, 0, this.#size)
    }
    chunk.copy(this.#copy as Buffer, this.#size)
    this.#size = size
    return true
  }

  readonly #onEnd = (): void => {
    this.#ended = true
    this.waitingForClient = false
    const copy = this.#copy
    const reader = this.#reader
    if (reader !== null && (copy === null || reader.at === this.#size) && this.#over === null) this.#end(reader)
    if (copy !== null && this.#over === null && this.#keep > 0) this.whole?.(copy.subarray(0, this.#size))
  }

  readonly #onClose = (): void => {
    if (this.#ended) return
    if (this.#source.complete && this.#source.readableEnded) return this.#onEnd()
    this.#failure = new ClientGoneError()
    this.#reader?.destroy(this.#failure)
  }
}

/** The body as one attempt reads it, from its first byte on. */
class BodyReader extends Readable {
  readonly #body: KeptBody
  /** So many bytes of the copy were given to it. */
  at = 0

  constructor (body: KeptBody) {
    super({ highWaterMark: pieceBytes })
    this.#body = body
    // undici listens only while it is about to send; an error after that must not end the process.
    this.on('error', ignore)
  }

  override _read (): void { this.#body.more(this) }

  override _destroy (error: Error | null, callback: (error?: Error | null) => void): void {
    this.#body.readerClosed(this)
    callback(error)
  }
}

function ignore (): void {}
