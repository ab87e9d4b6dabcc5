import { Http2ServerRequest, type Http2Session, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { Socket } from 'node:net'
import type { ReadableOptions } from 'node:stream'
import type { Reason } from '../../lib/failure.ts'
import { readHttp2Head, type Http2Head } from '../../lib/http/http2-head.ts'
import { hasRemoteEnded, watchRemoteEnd } from './remote-end.ts'

/** What Node's class has, without what is another here. */
type Plain = Omit<Http2ServerRequest, 'headers' | 'rawHeaders' | 'complete' | 'url' | 'socket' | 'connection' | 'push' | 'emit'>
const Base = Http2ServerRequest as unknown as new (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, options: ReadableOptions | undefined, rawHeaders: string[]) => Plain & { push (chunk: unknown, encoding?: BufferEncoding): boolean, emit (event: string | symbol, ...args: unknown[]): boolean }

const sockets = new WeakMap<Http2Session, Socket>()

/** Notes which connection a session of a client runs on; Node itself only shows a stand-in of it. */
export function setSocket (session: Http2Session, socket: Socket): void { sockets.set(session, socket) }

/** What the connection was of a stream that ended before anybody knew of it. */
const noSocket = new Socket().destroy()

/** The connection of a client's session. */
export function socketOf (session: Http2Session | undefined): Socket { return session === undefined ? noSocket : sockets.get(session) ?? noSocket }

/**
 * A client's request over HTTP/2 as the rest of the proxy knows requests, as HTTP/1 would have brought it: with a Host, without pseudo
 * fields, with its body announced, and with `complete` and an end only where the client itself has ended it.
 */
export class ClientRequest extends Base {
  readonly #stream: ServerHttp2Stream
  readonly #socket: Socket
  readonly #head: Http2Head
  #headers: IncomingHttpHeaders
  #url: string
  #closed = false
  /** Called when the client has not sent all of it in time. */
  onLate: (() => void) | null = null
  readonly receivedAt = performance.now()

  constructor (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, options: ReadableOptions | undefined, rawHeaders: string[]) {
    super(stream, headers, options, rawHeaders)
    this.#stream = stream
    this.#socket = socketOf(stream.session)
    watchRemoteEnd(stream)
    this.#head = readHttp2Head(rawHeaders, stream.endAfterHeaders)
    this.#url = headers[':path'] ?? '*'
    this.#headers = fieldsOf(headers, this.#head)
  }

  /** Why it is refused; null: it is not. @param maxBytes that a head may have */
  faultOf (maxBytes: number): Reason | null {
    return this.#head.bytes > maxBytes ? 'headers_too_large' : this.#head.fault
  }

  /** CONNECT has none: what stands for it is no target of any other method. */
  get url (): string { return this.#url }
  set url (url: string) { this.#url = url }
  get headers (): IncomingHttpHeaders { return this.#headers }
  set headers (headers: IncomingHttpHeaders) { this.#headers = headers }
  get rawHeaders (): string[] { return this.#head.rawHeaders }
  get complete (): boolean { return hasRemoteEnded(this.#stream) }
  get socket (): Socket { return this.#socket }
  get connection (): Socket { return this.#socket }

  override push (chunk: unknown, encoding?: BufferEncoding): boolean {
    if (chunk !== null || hasRemoteEnded(this.#stream)) return super.push(chunk, encoding)
    // The stream was cut: this is no end.
    this.destroy()
    return false
  }

  override emit (event: string | symbol, ...args: unknown[]): boolean {
    if (event === 'close') {
      if (this.#closed) return false
      this.#closed = true
    }
    return super.emit(event, ...args)
  }
}

function fieldsOf (headers: IncomingHttpHeaders, { host, announcesBody }: Http2Head): IncomingHttpHeaders {
  const fields: IncomingHttpHeaders = Object.create(null) as IncomingHttpHeaders
  for (const name in headers) if (name.charCodeAt(0) !== 58) fields[name] = headers[name]
  if (host !== '') fields['host'] = host
  if (announcesBody) fields['transfer-encoding'] = 'chunked'
  return fields
}
