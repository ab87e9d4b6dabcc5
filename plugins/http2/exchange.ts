import { constants, type ClientHttp2Stream, type IncomingHttpHeaders } from 'node:http2'
import { Readable } from 'node:stream'
import { cancelStream } from './abort.ts'
import { codeName, GivenUpError, StreamClosedError } from './errors.ts'
import { hasRemoteEnded, watchRemoteEnd } from './remote-end.ts'
import { requestFields } from './request-fields.ts'
import type { Handler, SendOptions } from './sender.ts'
import type { Session } from './session.ts'

const { NGHTTP2_FLAG_END_STREAM, NGHTTP2_PROTOCOL_ERROR, NGHTTP2_REFUSED_STREAM } = constants

/** Size that a response head may have, in bytes, as over HTTP/1; more is an invalid response. */
const maxHeadBytes = 65536

/** An upstream that has not answered for so long, in ms, may be gone. */
const doubtMs = 100

/**
 * One request on a stream of its own. What becomes of the stream becomes of this exchange alone; it ends once, by `onComplete` or by
 * `onError`, and holds its place on the session until the stream is closed on both sides.
 */
export class Http2Exchange {
  readonly options: SendOptions
  readonly handler: Handler
  #session: Session | null = null
  #stream: ClientHttp2Stream | null = null
  #over = false
  #holds = false
  #sentAt = 0
  /** The final head, until it is handed up. */
  #head: readonly string[] | null = null
  #status = 0
  #handedUp = false
  /** What has come of the body and was not taken yet. */
  #queue: Buffer[] = []
  #blocked = false
  /** All that will come has come. */
  #whole = false
  #trailers: Buffer[] | null = null

  constructor (options: SendOptions, handler: Handler) {
    this.options = options
    this.handler = handler
  }

  get over (): boolean { return this.#over }

  /** Sends the request over a session that has room. */
  start (session: Session, origin: URL): void {
    this.#session = session
    this.#holds = true
    session.open++
    this.#sentAt = performance.now()
    this.handler.onConnect((error) => { this.abort(error) })
    if (this.#over) return this.#release()
    try {
      this.#send(session, origin)
    } catch (error) {
      this.#release()
      this.#fail(error as Error)
    }
  }

  #send (session: Session, origin: URL): void {
    const { method, path, headers, trailers = false, requestTrailers = null, body } = this.options
    const fields = requestFields({ method, path, headers: headers as string[], trailers }, origin.protocol.slice(0, -1), origin.host)
    const content = Buffer.isBuffer(body) ? body : body instanceof Readable ? body : null
    if (Buffer.isBuffer(content)) fields['content-length'] ??= String(content.length)
    const stream = session.request(fields, { endStream: content === null, waitForTrailers: content !== null && requestTrailers !== null })
    this.#stream = stream
    watchRemoteEnd(stream)
    stream.on('response', (head, flags, raw?: string[]) => { this.#onResponse(head, flags, raw) })
      .on('headers', (head, _flags, raw?: string[]) => { this.#onInformational(head, raw) })
      .on('trailers', (_fields, _flags, raw?: string[]) => { this.#trailers = rawOf(raw ?? []) })
      .on('end', () => { if (hasRemoteEnded(stream)) this.#onEnd() })
      // What it means is told by the close, which always comes.
      .on('error', ignore)
      .on('close', () => { this.#onClose(stream) })
    if (content === null) {
      this.handler.onRequestSent?.()
      return
    }
    stream.on('finish', () => { if (!this.#over && !stream.closed) this.handler.onRequestSent?.() })
    if (requestTrailers !== null) stream.on('wantTrailers', () => { sendTrailers(stream, requestTrailers() ?? []) })
    if (Buffer.isBuffer(content)) stream.end(content)
    else this.#pump(content, stream)
  }

  #pump (body: Readable, stream: ClientHttp2Stream): void {
    body.on('data', (chunk: Buffer) => { if (!stream.destroyed && !stream.write(chunk)) body.pause() })
      .on('end', () => { if (!stream.destroyed) stream.end() })
      .on('error', (error: Error) => { this.abort(error) })
    stream.on('drain', () => { body.resume() })
  }

  /** Ends it from our side: the stream alone, and with CANCEL. */
  abort (error: Error = new GivenUpError()): void {
    if (this.#over) return
    const unanswered = this.#stream !== null && this.#head === null && !this.#handedUp
    if (unanswered && performance.now() - this.#sentAt >= doubtMs) this.#session?.doubt()
    this.#fail(error)
  }

  /** It was never begun: there is no connection for it. */
  fail (error: Error): void { this.#fail(error) }

  // ---- the answer

  #onInformational (head: IncomingHttpHeaders, raw: readonly string[] = []): void {
    if (this.#over) return
    this.handler.onResponseStarted?.()
    this.handler.onHeaders(Number(head[':status']), rawOf(raw), ignore, '')
  }

  #onResponse (head: IncomingHttpHeaders, flags: number, raw: readonly string[] = []): void {
    if (this.#over) return
    this.handler.onResponseStarted?.()
    if (bytesOf(raw) > maxHeadBytes) return this.#fail(new StreamClosedError('the head of the answer is too large', { invalid: true }))
    this.#head = raw
    this.#status = Number(head[':status'])
    if ((flags & NGHTTP2_FLAG_END_STREAM) !== 0) {
      this.#whole = true
      return this.#handUp()
    }
    this.#stream?.on('data', (chunk: Buffer) => { this.#onData(chunk) })
    // A small answer is whole by then: it is handed up in one piece.
    setImmediate(() => { this.#handUp() })
  }

  #handUp (): void {
    const head = this.#head
    if (this.#over || head === null) return
    this.#head = null
    this.#handedUp = true
    this.handler.onHeaders(this.#status, rawOf(head), () => { this.#resume() }, '')
    // Whole with its head, whether the upstream says so or not: nobody would wait for its end.
    if (this.#status === 204 || this.#status === 304 || this.options.method === 'HEAD') this.#whole = true
    this.#flush()
  }

  #onData (chunk: Buffer): void {
    if (this.#over) return
    this.#queue.push(chunk)
    if (this.#handedUp) this.#flush()
  }

  #resume (): void {
    this.#blocked = false
    this.#flush()
    if (!this.#blocked && !this.#over) this.#stream?.resume()
  }

  #flush (): void {
    while (this.#queue.length > 0 && !this.#blocked && !this.#over) {
      if (this.handler.onData(this.#queue.shift() as Buffer) !== false) continue
      this.#blocked = true
      this.#stream?.pause()
    }
    if (this.#whole && this.#queue.length === 0 && !this.#over) this.#complete()
  }

  #onEnd (): void {
    this.#whole = true
    if (this.#handedUp) this.#flush()
  }

  #complete (): void {
    this.#over = true
    this.#stopSending()
    this.handler.onComplete(this.#trailers as never)
  }

  /** The upstream may answer before it has all of the request: the rest of that is for nobody. Neither is what it sends behind its answer. */
  #stopSending (): void {
    const stream = this.#stream as ClientHttp2Stream
    if (stream.closed || (stream.writableFinished && hasRemoteEnded(stream))) return this.#release()
    cancelStream(stream)
    this.#dropBody()
  }

  // ---- the end

  #onClose (stream: ClientHttp2Stream): void {
    this.#release()
    if (this.#over) return
    if (!hasRemoteEnded(stream)) return this.#fail(this.#causeOf(stream))
    // The connection is gone, but what it brought is whole.
    for (let chunk = stream.read() as Buffer | null; chunk !== null; chunk = stream.read() as Buffer | null) this.#queue.push(chunk)
    this.#onEnd()
  }

  #causeOf (stream: ClientHttp2Stream): Error {
    const { rstCode } = stream
    const session = this.#session as Session
    if (rstCode === NGHTTP2_REFUSED_STREAM) {
      const goingAway = session.goingAway
      return new StreamClosedError(goingAway ? 'the connection was closed before the upstream took the request' : 'the upstream refused the stream', { unprocessed: true, goingAway })
    }
    if (session.error !== null) return session.error
    if (session.isGone) return new StreamClosedError('the upstream closed the connection')
    if (rstCode === NGHTTP2_PROTOCOL_ERROR) return new StreamClosedError('the answer is invalid', { invalid: true })
    return new StreamClosedError(`the upstream reset the stream: ${codeName(rstCode)}`)
  }

  #fail (error: Error): void {
    if (this.#over) return
    // What came before the end is handed up with its head: it tells more than the end alone.
    if (this.#head !== null && !(error instanceof GivenUpError)) this.#handUp()
    if (this.#over) return
    this.#over = true
    this.#queue = []
    if (this.#stream !== null && !this.#stream.destroyed) cancelStream(this.#stream)
    this.#dropBody()
    this.handler.onError(error)
  }

  #dropBody (): void {
    const { body } = this.options
    if (body instanceof Readable) body.destroy()
  }

  #release (): void {
    if (!this.#holds) return
    this.#holds = false
    this.#session?.released()
  }
}

function sendTrailers (stream: ClientHttp2Stream, raw: readonly string[]): void {
  const fields: Record<string, string | string[]> = {}
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    const before = fields[name]
    fields[name] = before === undefined ? raw[i + 1] as string : [...Array.isArray(before) ? before : [before], raw[i + 1] as string]
  }
  try {
    stream.sendTrailers(fields)
  } catch {
    // What is no trailer of HTTP/2 is left out.
    stream.sendTrailers({})
  }
}

/** What undici's parser would hand up: names and values as bytes, without the pseudo fields. */
function rawOf (raw: readonly string[]): Buffer[] {
  const fields: Buffer[] = []
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string
    if (name.charCodeAt(0) !== 58) fields.push(Buffer.from(name, 'latin1'), Buffer.from(raw[i + 1] as string, 'latin1'))
  }
  return fields
}

const bytesOf = (raw: readonly string[]): number => raw.reduce((bytes, text) => bytes + text.length + 2, 0)

function ignore (): void {}
