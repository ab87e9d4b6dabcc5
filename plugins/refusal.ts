/** How a request is refused, and that it gets one answer: Fastify's `reply.sent` stays false while onSend hooks are at work. */
import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { Evidence } from '../lib/exchange.ts'
import type { Reason } from '../lib/failure.ts'
import { grpcRefusal, isGrpc } from '../lib/http/grpc.ts'
import { problem, sendProblem } from '../lib/http/problem.ts'
import { bodyPending, closeBehind, linger } from './connection.ts'

/** Who is at work on the answer to a request. */
export interface Answerer {
  /** Somebody else is about to answer. True: it ended, or had; false: its own answer is on its way to the client. */
  giveWay (): boolean
  /** Its answer will not be sent: something threw on the way. */
  takeBack (): void
}

const kAnswerer = Symbol('breakwater.answerer')
interface TaggedResponse extends ServerResponse { [kAnswerer]?: Answerer | undefined }

export function answererOf (response: ServerResponse): Answerer | undefined {
  return (response as TaggedResponse)[kAnswerer]
}

export function setAnswerer (response: ServerResponse, answerer: Answerer | undefined): void {
  ;(response as TaggedResponse)[kAnswerer] = answerer
}

/** A client that has sent such a head may mean other bytes by what follows than we would read there. */
const endsConnection = new Set<Reason>(['bad_request', 'headers_too_large'])

/**
 * Refuses a request with the problem document of a reason, which is noted in its exchange. What the client may still be sending
 * is not read, so the connection is closed behind the answer; and so it is behind a malformed head. Does nothing where another answer is on its way.
 * @param retryAfterSeconds whole seconds, at least 1; left out where a retry would not help
 * @param told what the client is told in place of what the reason says; and, for people, the numbers behind it
 */
export function refuse (reply: FastifyReply, reason: Reason, retryAfterSeconds?: number, told: { status?: number, detail?: string, evidence?: Evidence } = {}): FastifyReply {
  const { request, raw } = reply
  request.exchange?.fail(reason, told.evidence)
  if (answererOf(raw)?.giveWay() === false) return reply
  const refusal = isGrpc(request.raw.headers['content-type']) ? grpcRefusal(reason, told.detail) : problem(reason, request.id, told.detail, retryAfterSeconds, told.status)
  const last = endsConnection.has(reason)
  if (last || bodyPending(request.raw)) refusal.headers['connection'] = 'close'
  linger(request.raw, raw)
  if (last) closeBehind(request.raw, raw)
  return sendProblem(reply, refusal)
}
