import { Readable } from 'node:stream'
import { util } from 'undici'
import { isMediaType } from '../../lib/http/media-type.ts'
import { nominatedNames, responseFields, type ResponseFields } from '../../lib/http/response-head.ts'
import { passedAnnouncement, passedTrailers, type Trailers } from '../../lib/http/trailers.ts'
import type { ResponseBody } from './response-body.ts'

/** What may pile up before a response counts as streamed, in bytes. */
const wholeLimit = 65536

/** The answer of an upstream to one attempt: its head, and what has come of its body until it is handed up, or given up. */
export class Answer {
  readonly status: number
  readonly #rawFields: Buffer[]
  readonly #http2: boolean
  /** Bytes of the body so far. */
  bytes = 0
  /** All of the body has come. */
  complete = false
  /** What came behind the body; null: nothing did, or it is not complete. */
  rawTrailers: Buffer[] | null = null
  /** It is on its way to the client. */
  handedUp = false
  #first: Buffer | null = null
  #more: Buffer[] | null = null

  /** @param http2 the upstream speaks HTTP/2 */
  constructor (status: number, rawFields: Buffer[], http2 = false) {
    this.status = status
    this.#http2 = http2
    this.#rawFields = rawFields
  }

  /** It counts against its upstream. */
  get failed (): boolean { return this.status >= 500 }

  /** Keeps a piece of the body. False: that is as much as is kept, the upstream has to wait. */
  keep (chunk: Buffer): boolean {
    this.bytes += chunk.length
    if (this.#first === null) this.#first = chunk
    else if (this.#more === null) this.#more = [this.#first, chunk]
    else this.#more.push(chunk)
    return this.bytes <= wholeLimit
  }

  /** The end-to-end fields. A new object for each call. */
  fields (): ResponseFields {
    const fields = responseFields(this.#rawFields, nameOf, this.#http2 ? '2.0' : '1.1')
    if (this.status === 204) delete fields['content-length']
    return fields
  }

  /** The first line of a field, before anything is done to the head; null: there is none. */
  field (name: string): string | null {
    const raw = this.#rawFields
    for (let i = 0; i + 1 < raw.length; i += 2) {
      const each = raw[i] as Buffer
      if (each.length === name.length && nameOf(each) === name) return (raw[i + 1] as Buffer).toString('latin1').trim()
    }
    return null
  }

  /** What of its trailers goes to the client; null: there were none. @param own the name of a field that is ours, lower-case */
  trailers (own: string): Trailers | null {
    return this.rawTrailers === null ? null : passedTrailers(this.rawTrailers, nameOf, this.#reserved(own))
  }

  /** The names of the trailers that it says will come, and that go to the client; '' for none. */
  announced (own: string): string {
    const trailer = this.field('trailer')
    return trailer === null ? '' : passedAnnouncement(trailer, this.#reserved(own))
  }

  #reserved (own: string): Set<string> {
    return nominatedNames(this.#rawFields, nameOf).add(own)
  }

  /** The body in one piece, once it is complete; undefined where it is empty. */
  whole (type: ResponseFields[string] | undefined): Buffer | Readable | undefined {
    if (this.#first === null || this.bytes === 0) return undefined
    const body = this.#more === null ? this.#first : Buffer.concat(this.#more)
    // Fastify gives a Buffer a type of its own where it cannot read the one that is there; what the upstream said is passed on.
    return typeof type === 'string' && isMediaType(type) ? body : Readable.from([body], { objectMode: false })
  }

  /** Gives what was kept to the stream that will take the rest. */
  pour (stream: ResponseBody): void {
    if (this.#more !== null) for (const chunk of this.#more) stream.give(chunk)
    else if (this.#first !== null) stream.give(this.#first)
    this.#first = this.#more = null
  }
}

const nameOf = util.headerNameToString
