import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { ByteReader, ConnectionEnded } from './byte-reader.ts'
import { readBody, readHead, toBytes, valueOf } from './http-bytes.ts'
import type { FieldList, RawBody, RawHead } from './http-bytes.ts'

export interface RawUpstreamRequest extends RawHead {
  method: string
  target: string
  /** As in `HTTP/1.1`. */
  version: string
  /** Which connection it came over: 1, 2, ... */
  connection: number
  /** Which request on that connection: 1, 2, ... */
  index: number
  /** Which request of all: 1, 2, ... */
  total: number
  /** A field's values joined with a comma. */
  header (name: string): string | undefined
  /** Reads the body; the handler runs as soon as the head is there. Not `complete` when the peer cut it. */
  body (): Promise<RawBody>
}

/**
 * Acts on one request with the bare socket. When it returns, what was not read of the body is read and dropped, and the next
 * request on the connection is awaited; a handler that must not read on returns `stall(socket)`.
 */
export type RawHandler = (socket: Socket, request: RawUpstreamRequest) => unknown

export interface RawUpstreamOptions {
  host?: string
  /** Called for each connection before anything is read; the number counts from 1. */
  onConnection?: (socket: Socket, connection: number) => void
  /** Keep our half open when the peer ends its half. false */
  allowHalfOpen?: boolean
}

export interface RawUpstream {
  readonly port: number
  readonly url: string
  /** Connections accepted so far. */
  readonly connections: number
  /** The connections that are open now. */
  readonly open: ReadonlySet<Socket>
  /** Every request whose head has arrived, in order. */
  readonly requests: readonly RawUpstreamRequest[]
  /** Replaces the handler, from the next request on. */
  handle (handler: RawHandler): void
  /** Stops listening and destroys every connection. @throws what a handler threw, if one did */
  close (): Promise<void>
}

/** Starts a TCP server on a free loopback port that reads request heads and leaves every answer to `handler`, byte by byte. */
export async function rawUpstream (handler: RawHandler, options: RawUpstreamOptions = {}): Promise<RawUpstream> {
  const { host = '127.0.0.1', onConnection, allowHalfOpen = false } = options
  const open = new Set<Socket>()
  const requests: RawUpstreamRequest[] = []
  const faults: unknown[] = []
  let connections = 0
  let handle = handler

  async function converse (socket: Socket, connection: number): Promise<void> {
    const reader = new ByteReader(socket)
    for (let index = 1; await reader.hasMore(); index++) {
      const head = await readHead(reader)
      const [method = '', target = '', version = ''] = head.startLine.split(' ')
      let body: Promise<RawBody> | undefined
      const request: RawUpstreamRequest = {
        ...head,
        method,
        target,
        version,
        connection,
        index,
        total: requests.length + 1,
        header: name => valueOf(head.headers, name),
        body: () => body ??= readBody(reader, head.headers, false)
      }
      requests.push(request)
      await handle(socket, request)
      if (!(await request.body()).complete) return
    }
  }

  const server = createServer({ allowHalfOpen, noDelay: true }, socket => {
    connections++
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => socket.destroy())
    onConnection?.(socket, connections)
    if (socket.destroyed) return
    converse(socket, connections).catch((error: unknown) => {
      // A peer that leaves in the middle is ordinary here; anything else is the test's own failure.
      if (!(error instanceof ConnectionEnded)) faults.push(error)
      socket.destroy()
    })
  })
  await new Promise<void>(resolve => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  const closed = new Promise<void>(resolve => server.once('close', () => resolve()))
  return {
    port,
    url: `http://${host}:${port}`,
    open,
    requests,
    get connections () { return connections },
    handle: next => { handle = next },
    async close () {
      if (server.listening) server.close()
      for (const socket of open) socket.destroy()
      await closed
      if (faults.length > 0) throw faults[0]
    }
  }
}

/** Writes bytes (text is latin1); resolves when they are handed to the system or the connection is gone. */
export function send (socket: Socket, ...parts: Array<string | Buffer>): Promise<void> {
  return new Promise(resolve => {
    if (socket.destroyed || socket.writableEnded) return resolve()
    socket.write(Buffer.concat(parts.map(toBytes)), () => resolve())
  })
}

export interface AnswerOptions {
  status?: number
  reason?: string
  headers?: FieldList
  body?: string | Buffer
  /** `length` (the default) adds Content-Length, `none` adds no framing field. */
  framing?: 'length' | 'none'
}

/** The bytes of a plain answer. */
export function answer ({ status = 200, reason = 'OK', headers = [], body = '', framing = 'length' }: AnswerOptions = {}): Buffer {
  const bytes = toBytes(body)
  const fields: FieldList = framing === 'length' ? [...headers, ['Content-Length', String(bytes.length)]] : headers
  return Buffer.concat([toBytes(`HTTP/1.1 ${status} ${reason}\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`), bytes])
}

/** A handler that gives this answer to every request and keeps the connection. */
export function answering (options: AnswerOptions | Buffer = {}): RawHandler {
  const bytes = Buffer.isBuffer(options) ? options : answer(options)
  return socket => send(socket, bytes)
}

/** Cuts the connection with a RST; one that is ending already is just destroyed, as Node fails to reset it and never lets go of it. */
export function reset (socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}

/** Does nothing until the connection is gone. */
export function stall (socket: Socket): Promise<void> {
  return new Promise(resolve => {
    if (socket.destroyed) return resolve()
    socket.once('close', () => resolve())
  })
}

/** Declares `declared` bytes, sends only `sent` of them, then ends, resets or stalls. */
export async function partOfBody (socket: Socket, { declared = 100, sent = 50, ending = 'fin' as 'fin' | 'reset' | 'stall', headers = [] as FieldList } = {}): Promise<void> {
  await send(socket, answer({ headers: [...headers, ['Content-Length', String(declared)]], body: 'x'.repeat(sent), framing: 'none' }))
  if (ending === 'fin') socket.end()
  else if (ending === 'reset') reset(socket)
  else await stall(socket)
}

/** Answers as if the connection were kept, then ends it: the race that a proxy's idle connections must survive. */
export async function answerThenFin (socket: Socket, options: AnswerOptions = {}): Promise<void> {
  await send(socket, answer(options))
  socket.end()
}

/** Hands the first `count` requests of each connection to `handler`, and resets the connection at the next one without a byte. */
export function resetAfter (count: number, handler: RawHandler = answering()): RawHandler {
  return (socket, request) => request.index <= count ? handler(socket, request) : reset(socket)
}

/** Hands `count` requests of each connection to `handler`, then ends the connection. */
export function finAfter (count: number, handler: RawHandler = answering()): RawHandler {
  return async (socket, request) => {
    await handler(socket, request)
    if (request.index >= count) socket.end()
  }
}

/** The first request of all goes to the first handler, and so on; the last one keeps the rest. */
export function inTurn (...handlers: [RawHandler, ...RawHandler[]]): RawHandler {
  return (socket, request) => (handlers[request.total - 1] ?? handlers.at(-1) ?? handlers[0])(socket, request)
}
