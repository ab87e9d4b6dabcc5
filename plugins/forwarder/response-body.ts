import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

/** Who feeds a response body. */
export interface BodySource {
  /** The client can take more. */
  resumeBody (): void
  /** The body ended or was given up before its end. */
  bodyClosed (): void
}

/** An upstream's body on its way to the client, when it did not arrive whole with its head. */
export class ResponseBody extends Readable {
  readonly #source: BodySource
  readonly #response: ServerResponse
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

  /**
   * Ends the body with an error before its head was sent. Whoever holds it, or what was made of it, learns of the error in the
   * place where it would have been sent.
   */
  fail (error: Error): void {
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
