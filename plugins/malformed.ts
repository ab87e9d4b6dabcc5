/** What Node's parser refuses of a client's bytes, judged once for the access log and for the answer. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { malformedReason } from '../lib/classify.ts'
import type { Reason } from '../lib/failure.ts'
import { problem } from '../lib/http/problem.ts'
import { abortConnection, closeGently, hearNoMore, reset } from './connection.ts'
import { isClosing, latestReplyOn } from './edge.ts'
import { rawProblem } from './raw-problem.ts'
import { refuse } from './refusal.ts'

/** An error of Node's `clientError` event. */
export interface ParserError extends NodeJS.ErrnoException {
  /** The method of the request, where it was read. */
  method?: string
  /** What the client is told in place of what the reason says. */
  detail?: string
  /** What the parser says. */
  reason?: unknown
}

export interface Malformed {
  readonly reason: Reason
  readonly method: string | null
  /** The request whose body the bytes are; null where no request came to be. */
  readonly reply: FastifyReply | null
  /** Of our answer, where there is no request to have one. */
  readonly requestId: string
  readonly detail: string | undefined
  /** What the parser says is wrong, in words of its own and none of the client's; null: nothing. */
  readonly fault: string | null
  /** Body bytes of our answer. */
  bytes: number
}

const judged = new WeakMap<Error, Malformed | null>()
const refused = new WeakSet<Socket>()

/**
 * The verdict on a parser error; the same one each time it is asked for the same error. Null where there is nothing to tell:
 * nothing came at all, the client just left, the connection was refused before, or it is to be closed anyway.
 */
export function judgeMalformed (error: ParserError, socket: Socket): Malformed | null {
  let verdict = judged.get(error)
  if (verdict === undefined) {
    verdict = refused.has(socket) ? null : verdictOn(error, socket)
    judged.set(error, verdict)
    if (verdict !== null) refused.add(socket)
  }
  return verdict
}

function verdictOn (error: ParserError, socket: Socket): Malformed | null {
  const reason = malformedReason(error)
  if (reason === null || socket.bytesRead === 0 || mayTakeLonger(error, socket) || isBehindClose(error, socket)) return null
  const reply = unfinishedOn(socket)
  // A body that ends in the middle: the client left.
  if (reply !== null && error.code === 'HPE_INVALID_EOF_STATE') return null
  return { reason, method: error.method ?? null, reply, requestId: randomUUID(), detail: error.detail, fault: faultOf(error), bytes: 0 }
}

function faultOf ({ code, reason }: ParserError): string | null {
  if (code === undefined || !code.startsWith('HPE_')) return null
  return typeof reason === 'string' && reason !== '' ? `${reason} (${code})` : code
}

/** The request whose body is still being read, or null. */
function unfinishedOn (socket: Socket): FastifyReply | null {
  const latest = latestReplyOn(socket)
  return latest === null || latest.request.raw.complete ? null : latest
}

/**
 * The time limit of the listener is over, and is not the one that holds: the request's route has its own. Node tells of it once for a
 * request, and watches the next one on the connection anew.
 */
function mayTakeLonger (error: ParserError, socket: Socket): boolean {
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && unfinishedOn(socket)?.request.exchange.ownRequestLimit === true
}

/** Bytes behind the last request of a connection: nobody's, and nothing is answered to them. */
function isBehindClose (error: ParserError, socket: Socket): boolean {
  return malformedReason(error) !== null && isClosing(socket) && unfinishedOn(socket) === null
}

/** Answers malformed bytes, at most once on a connection, and closes it: Fastify's `clientErrorHandler`. */
export function answerMalformed (this: FastifyInstance, error: ParserError, socket: Socket): void {
  // What still arrives on a refused connection is nobody's request.
  if (refused.has(socket) || mayTakeLonger(error, socket)) return
  const verdict = judgeMalformed(error, socket)
  if (verdict === null && isBehindClose(error, socket)) {
    refused.add(socket)
    return hearNoMore(socket)
  }
  if (verdict === null || !socket.writable) {
    socket.destroy()
    return
  }
  if (verdict.reply === null) answerBare(socket, verdict, this.edge?.requestIdHeader)
  else answerRequest(socket, verdict.reply, verdict.reason)
}

/**
 * Refuses CONNECT as malformed: a listener of a server's `connect`. Node has let go of the connection: nobody else listens to its errors
 * any more, nor tells an earlier response that is still being sent when the client can take more of it.
 */
export function refuseConnect (this: Server, { method }: IncomingMessage, stream: Duplex): void {
  const socket = stream as Socket & { _httpMessage?: ServerResponse | null }
  socket.on('error', () => {})
  socket.on('drain', () => { socket['_httpMessage']?.emit('drain') })
  const error: ParserError = Object.assign(new Error('tunnels are not made here'), { code: 'HPE_INVALID_METHOD', method: method as string })
  this.emit('clientError', error, socket)
}

/** There is no request to answer to. Where earlier ones on the connection still wait, theirs come first: no answer is taken for another. */
function answerBare (socket: Socket, verdict: Malformed, requestIdHeader: string | undefined): void {
  hearNoMore(socket)
  const latest = latestReplyOn(socket)
  const { reason, requestId, detail } = verdict
  const end = (): void => {
    if (socket.writable) {
      verdict.bytes = problem(reason, requestId, detail).body.length
      socket.end(rawProblem(reason, requestId, requestIdHeader, detail))
    }
    closeGently(socket, lingerMs)
  }
  if (latest === null || latest.raw.closed) end()
  else latest.raw.once('close', end)
}

/** The body of a request is malformed, or too late: it is answered in its place, if it has no answer yet. */
function answerRequest (socket: Socket, reply: FastifyReply, reason: Reason): void {
  const { raw, request: { exchange } } = reply
  // Hooks may still be at work on an earlier refusal: two answers are none.
  const refusedBefore = exchange.reason !== null
  exchange.fail(reason, reason === 'request_timeout' ? { limit: 'server.requestTimeoutMs' } : null)
  const { writableEnded } = raw
  if (raw.headersSent && !writableEnded) {
    if (raw.socket !== null) return reset(socket)
    // It waits behind another answer, which is not to suffer for it.
    hearNoMore(socket)
    return abortConnection(raw)
  }
  raw.shouldKeepAlive = false
  if (!refusedBefore && !reply.sent) refuse(reply, reason)
  // Behind the refusal, which would wait for an end of the request.
  hearNoMore(socket)
  if (!writableEnded) return
  if (raw.closed) closeGently(socket, lingerMs)
  else raw.once('close', () => { closeGently(socket, lingerMs) })
}

/** How long a client may go on sending behind our answer. */
const lingerMs = 500
