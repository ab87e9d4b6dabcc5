import { constants, Http2ServerResponse, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { socketOf } from './client-request.ts'
import { hasRemoteEnded } from './remote-end.ts'
import { isOfConnection, isSingle } from './single-fields.ts'

type Fields = Record<string, number | string | readonly string[] | undefined>

type Plain = Omit<Http2ServerResponse, 'socket' | 'connection' | 'writableFinished' | 'destroyed' | 'writeHead' | 'setHeader' | 'addTrailers' | 'emit'>
interface Members {
  writeHead (status: number, reason?: string | Fields, fields?: Fields): unknown
  setTrailer (name: string, value: string | string[]): void
  setHeader (name: string, value: unknown): void
  emit (event: string | symbol, ...args: unknown[]): boolean
}
const Base = Http2ServerResponse as unknown as new (stream: ServerHttp2Stream) => Plain & Members

/**
 * The response to a client's request over HTTP/2 as the rest of the proxy knows responses: it closes once, whatever becomes of its
 * stream; it has finished only where all of it was sent; and fields of the connection are left out.
 */
export class ClientResponse extends Base {
  readonly #stream: ServerHttp2Stream
  readonly #socket: Socket
  #closed = false
  /** It ends with its head. */
  #empty = false
  shouldKeepAlive = true

  constructor (stream: ServerHttp2Stream) {
    super(stream)
    this.#stream = stream
    this.#socket = socketOf(stream.session)
    // Node's class misses the close of a HEAD that is reset before its answer.
    stream.on('close', () => { this.emit('close') })
    // A reset without an error only ends it for Node, which waits for what can never be sent.
    stream.on('aborted', () => { setImmediate(() => { stream.destroy() }) })
    stream.on('finish', () => { setImmediate(endUpload, this, stream) }).on('wantTrailers', () => { setImmediate(endUpload, this, stream) })
  }

  /** All of it was sent, trailers too. */
  get sentWhole (): boolean { return this.writableFinished && (this.#empty || this.#stream.sentTrailers !== undefined) }

  get socket (): Socket { return this.#socket }
  get connection (): Socket { return this.#socket }
  get destroyed (): boolean { return this.#closed || this.#stream.destroyed || this.#stream.closed }
  get writableFinished (): boolean { return this.writableEnded && this.headersSent && this.#stream.writableFinished }

  override writeHead (status: number, reason?: string | Fields, fields?: Fields): this {
    this.#empty = this.writableEnded
    const given = typeof reason === 'object' ? reason : fields
    if (given === undefined) {
      super.writeHead(status)
      return this
    }
    const sent: Fields = Object.create(null) as Fields
    for (const [name, value] of Object.entries(given)) if (!isOfConnection(name.toLowerCase())) sent[name] = lineOf(name, value)
    if (this.req.method === 'HEAD' || !(status === 204 || status === 304 || String(sent['content-length']) === '0')) {
      super.writeHead(status, sent)
      return this
    }
    // It ends with its head: gRPC takes an answer of trailers alone only so.
    this.statusCode = status
    for (const [name, value] of Object.entries(sent)) super.setHeader(name, value)
    this.end()
    return this
  }

  override setHeader (name: string, value: Fields[string]): this {
    if (!isOfConnection(name.toLowerCase())) super.setHeader(name, lineOf(name, value))
    return this
  }

  addTrailers (trailers: ReadonlyArray<readonly [string, string]> | Record<string, string>): void {
    const fields = new Map<string, string | string[]>()
    for (const [name, value] of Array.isArray(trailers) ? trailers as Array<[string, string]> : Object.entries(trailers as Record<string, string>)) {
      const before = fields.get(name)
      fields.set(name, before === undefined ? value : isSingle(name.toLowerCase()) ? `${String(before)}, ${value}` : [...Array.isArray(before) ? before : [before], value])
    }
    for (const [name, value] of fields) this.setTrailer(name, value)
  }

  override emit (event: string | symbol, ...args: unknown[]): boolean {
    if (event === 'finish' && !this.writableFinished) return false
    if (event === 'close') {
      if (this.#closed) return false
      this.#closed = true
    }
    return super.emit(event, ...args)
  }
}

/** Several lines of a field that has one only: as a list. */
const lineOf = (name: string, value: Fields[string]): Fields[string] => Array.isArray(value) && isSingle(name.toLowerCase()) ? value.join(', ') : value

/** An answer is whole, and its request is not: what still comes of that is for nobody, and the client is told so (RFC 9113 section 8.1). */
function endUpload (response: ClientResponse, stream: ServerHttp2Stream): void {
  if (response.sentWhole && !hasRemoteEnded(stream) && !stream.closed) stream.close(constants.NGHTTP2_NO_ERROR)
}
