import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { ByteReader, ConnectionEnded } from './byte-reader.ts'
import type { End } from './byte-reader.ts'
import { readBody, readHead, toBytes, valueOf } from './http-bytes.ts'
import type { FieldList, RawBody, RawHead } from './http-bytes.ts'

/** One response as it came over the wire. `status` is 0 and `head` empty where none came. */
export interface RawResponse extends RawBody {
  status: number
  reason: string
  /** As in `HTTP/1.1`. */
  version: string
  head: string
  headers: FieldList
  /** The 1xx answers that came before it, 101 excepted, which is an answer of its own. */
  interim: Array<{ status: number, headers: FieldList }>
  /** A field's values joined with a comma. */
  header (name: string): string | undefined
  text (): string
  json (): unknown
}

export interface RawResult extends RawResponse {
  /** Every byte received. */
  raw: Buffer
  /** `open`: all answers were complete and the peer kept the connection; we closed it. */
  ended: 'fin' | 'reset' | 'timeout' | 'open'
  /** All final responses, in order; the result's own fields are the first one's. */
  responses: RawResponse[]
}

/** Bytes to send (text is latin1), a pause in milliseconds, or something to wait for before going on. */
export type Part = string | Buffer | number | (() => unknown)

export interface RawOptions {
  /** 127.0.0.1 */
  host?: string
  /** The address to come from; the system's choice by default. */
  localAddress?: string
  /** Bounds the whole request, or each single wait of an interactive connection. 5000 */
  timeoutMs?: number
  /** Keep our half open when the peer ends its half. false */
  allowHalfOpen?: boolean
}

export interface RawRequestOptions extends RawOptions {
  /** The methods of pipelined requests: as many answers are awaited. By default the one that the bytes start with. */
  methods?: string[]
  /** End our half (FIN) once all is sent. false */
  end?: boolean
  /** `close`: read on after the answers, until the peer closes or the time is over. By default only where the answer says that it will close. */
  until?: 'answers' | 'close'
}

/** @throws ConnectionEnded when the head does not come whole; a cut body is told by `complete` instead */
async function readResponse (reader: ByteReader, method: string): Promise<RawResponse> {
  const interim: RawResponse['interim'] = []
  for (;;) {
    const head = await readHead(reader)
    const [, version = '', code = '0', reason = ''] = /^(\S+) ([0-9]{3}) ?(.*)$/s.exec(head.startLine) ?? []
    const status = Number(code)
    if (status >= 100 && status < 200 && status !== 101) {
      interim.push({ status, headers: head.headers })
      continue
    }
    const empty = method === 'HEAD' || status === 204 || status === 304
    const body = await readBody(reader, empty ? [] : head.headers, !empty)
    return toResponse({ status, reason, version, head: head.text, headers: head.headers, interim, ...body })
  }
}

function toResponse (fields: Omit<RawResponse, 'header' | 'text' | 'json'>): RawResponse {
  return {
    ...fields,
    header: name => valueOf(fields.headers, name),
    text: () => fields.body.toString(),
    json: () => JSON.parse(fields.body.toString()) as unknown
  }
}

const noResponse = toResponse({
  status: 0, reason: '', version: '', head: '', headers: [], interim: [], body: Buffer.alloc(0), trailers: [], complete: false
})

function open (port: number, { host = '127.0.0.1', allowHalfOpen = false, localAddress }: RawOptions): Promise<{ socket: Socket, reader: ByteReader }> {
  return new Promise((resolve, reject) => {
    // Half open at first in any case: the reader wants to tell how the peer ended before our half follows.
    const socket = connect({ port, host, allowHalfOpen: true, noDelay: true, ...localAddress !== undefined && { localAddress } })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      const reader = new ByteReader(socket, true)
      if (!allowHalfOpen) reader.ended.then(() => socket.end(), reject)
      resolve({ socket, reader })
    })
  })
}

function write (socket: Socket, data: string | Buffer): Promise<void> {
  return new Promise(resolve => {
    if (socket.destroyed || socket.writableEnded) return resolve()
    // A failed write is the reader's to tell: the answer may have come before the connection broke.
    socket.write(toBytes(data), () => resolve())
  })
}

async function drain (reader: ByteReader): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (let piece = await reader.some(); piece.length > 0; piece = await reader.some()) pieces.push(piece)
  return Buffer.concat(pieces)
}

function willClose (response: RawResponse): boolean {
  const connection = (response.header('connection') ?? '').toLowerCase()
  return connection.includes('close') || (response.version === 'HTTP/1.0' && !connection.includes('keep-alive'))
}

/**
 * Sends exactly these bytes over a fresh connection and collects what comes back, however broken. Resolves when the awaited
 * answers are complete (and closed, where they say so), when the connection ends, or after `timeoutMs`.
 * @throws only when no connection could be made
 */
export async function rawRequest (port: number, parts: Part | Part[], options: RawRequestOptions = {}): Promise<RawResult> {
  const list = Array.isArray(parts) ? parts : [parts]
  const first = list.find(part => typeof part === 'string' || Buffer.isBuffer(part))
  const { timeoutMs = 5000, methods = [toBytes(first ?? '').toString('latin1').split(' ', 1)[0] ?? ''] } = options
  const opened = await open(port, options).catch((error: unknown) => {
    // An accepted connection that is reset at once: the system may tell it before it tells that it was made.
    if ((error as NodeJS.ErrnoException).code === 'ECONNRESET') return undefined
    throw error
  })
  if (opened === undefined) return { ...noResponse, raw: Buffer.alloc(0), ended: 'reset', responses: [] }
  const { socket, reader } = opened
  const timer = setTimeout(() => reader.finish('timeout'), timeoutMs)
  const sending = send(socket, list, options.end === true)
  // What a part throws is the test's own failure; it is rethrown below, once the connection is gone.
  sending.catch(() => socket.destroy())
  const responses: RawResponse[] = []
  let ended: End | 'open' = 'open'
  try {
    try {
      for (const method of methods) responses.push(await readResponse(reader, method))
    } catch (error) {
      if (!(error instanceof ConnectionEnded)) throw error
    }
    const last = responses.at(-1)
    const whole = responses.length === methods.length && last?.complete === true
    if (!whole || options.until === 'close' || willClose(last)) {
      // What follows the answers is read as well, so that `raw` shows it and the end is seen.
      await drain(reader)
    }
    ended = reader.end ?? 'open'
  } finally {
    clearTimeout(timer)
    socket.destroy()
  }
  if (ended === 'closed') await sending
  return {
    ...noResponse,
    ...responses[0],
    raw: reader.received,
    ended: ended === 'closed' ? 'reset' : ended,
    responses
  }
}

async function send (socket: Socket, parts: Part[], end: boolean): Promise<void> {
  for (const part of parts) {
    if (socket.destroyed) return
    if (typeof part === 'number') await delay(part)
    else if (typeof part === 'function') await part()
    else await write(socket, part)
  }
  if (end) socket.end()
}

/** A connection in the hands of a test. Every wait is bounded by `timeoutMs` and then throws. */
export interface RawConnection {
  readonly socket: Socket
  readonly reader: ByteReader
  /** How the peer's half ended. With more than 64 KiB unread this waits for a read, as the socket is then paused. */
  readonly closed: Promise<End>
  /** Resolves when the bytes are handed to the system (text is latin1). */
  write (data: string | Buffer): Promise<void>
  /** The next head, 1xx included. */
  readHead (): Promise<RawHead & { status: number }>
  /** The next final response. Heads read before must not be its own. */
  readResponse (method?: string): Promise<RawResponse>
  readBytes (count: number): Promise<Buffer>
  /** All that still comes, until the peer closes. */
  readAll (): Promise<Buffer>
  /** Ends our half (FIN). */
  end (): void
  /** Cuts the connection with a RST. */
  reset (): void
  /** Closes the connection without more ado. */
  destroy (): void
}

/** Opens a connection to talk over by hand. @throws the system's error when it cannot be made */
export async function rawConnect (port: number, options: RawOptions = {}): Promise<RawConnection> {
  const { timeoutMs = 5000 } = options
  const { socket, reader } = await open(port, options)
  const bounded = async <T> (work: Promise<T>, what: string): Promise<T> => {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`no ${what} within ${timeoutMs} ms; so far: ${JSON.stringify(reader.received.toString('latin1').slice(0, 500))}`)), timeoutMs)
    })
    return Promise.race([work, late]).finally(() => clearTimeout(timer))
  }
  return {
    socket,
    reader,
    closed: reader.ended,
    write: data => write(socket, data),
    readHead: () => bounded(readHead(reader).then(head => ({ ...head, status: Number(head.startLine.split(' ')[1]) })), 'head'),
    readResponse: (method = 'GET') => bounded(readResponse(reader, method), 'response'),
    readBytes: count => bounded(reader.exactly(count), `${count} bytes`),
    readAll: () => bounded(drain(reader), 'end'),
    end: () => { socket.end() },
    reset: () => { socket.resetAndDestroy() },
    destroy: () => { socket.destroy() }
  }
}
