import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { Trailers } from '../../lib/http/trailers.ts'

/** Who feeds a response body. */
export interface BodySource {
  /** The client can take more. */
  resumeBody (): void
  /** The body ended or was given up before its end. */
  bodyClosed (): void
}

/** An upstream's body on its way to the client, when it did not arrive whole with its head, or has trailers behind it. */
export class ResponseBody extends Readable {
  readonly #source: BodySource
  readonly #response: ServerResponse
  #trailers: Trailers | null = null
  /** Listens while trailers may follow. */
  #onTrailed: (() => void) | null = null
  /** It is what the client gets, or what that is made of. */
  #piped = false
  /** True while the client takes no more. */
  blocked = false

  constructor (source: BodySource, response: ServerResponse) {
    super({ highWaterMark: 65536 })
    this.#source = source
    this.#response = response
    // The first byte of a stream may be long in coming: its head must not wait for it. It is complete when the response is given
    // its body, be that this stream or what a hook made of it.
    response.once('pipe', sendHead)
  }

  /**
   * The client takes trailers. They are sent where the response is given a stream and no length.
   * @param announced the names that the upstream has told, or ''
   */
  mayTrail (announced: string): void {
    const response = this.#response
    this.#onTrailed = () => {
      this.#piped = true
      if (announced !== '' && !response.headersSent && !response.hasHeader('content-length')) response.setHeader('trailer', announced)
      this.#sendTrailers()
    }
    response.prependOnceListener('pipe', this.#onTrailed)
  }

  /** What the response is given from now on is not this body. */
  dropTrailers (): void {
    this.#trailers = null
    if (this.#onTrailed !== null) this.#response.off('pipe', this.#onTrailed)
    this.#onTrailed = null
  }

  override _read (): void {
    this.blocked = false
    this.#source.resumeBody()
  }

  /** Returns false when the upstream has to wait for the client. */
  give (chunk: Buffer): boolean {
    if (this.push(chunk)) return true
    this.blocked = true
    return false
  }

  /** All of it has been given. @param trailers what is sent behind it to a client that takes trailers */
  finish (trailers: Trailers | null): void {
    if (this.#onTrailed !== null) {
      this.#trailers = trailers
      this.#sendTrailers()
    }
    this.push(null)
  }

  #sendTrailers (): void {
    if (!this.#piped || this.#trailers === null) return
    this.#response.addTrailers(this.#trailers as ReadonlyArray<[string, string]>)
    this.#trailers = null
  }

  /**
   * Ends the body with an error before its head was sent. Whoever holds it, or what was made of it, learns of the error in the
   * place where it would have been sent.
   */
  fail (error: Error): void {
    this.dropTrailers()
    this.#response.off('pipe', sendHead)
    // What is in it already would still flow, and the head with it.
    this.#response.once('pipe', (source: Readable) => { source.on('error', ignore).unpipe(this.#response).destroy(error) })
    // Maybe nobody holds it now.
    this.on('error', ignore).destroy(error)
  }

  override _destroy (error: Error | null, callback: (error?: Error | null) => void): void {
    this.#source.bodyClosed()
    callback(error)
  }
}

function sendHead (this: ServerResponse): void {
  if (!this.headersSent) this.flushHeaders()
}

function ignore (): void {}
