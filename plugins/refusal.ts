import type { FastifyReply } from 'fastify'
import type { Reason } from '../lib/failure.ts'
import { problem } from '../lib/http/problem.ts'
import { bodyPending, linger } from './connection.ts'

/**
 * Refuses a request with the problem document of a reason, which is noted in its exchange. What the client may still be sending
 * is not read, so the connection is closed behind the answer.
 */
export function refuse (reply: FastifyReply, reason: Reason, retryAfterSeconds?: number): FastifyReply {
  const { request } = reply
  request.exchange?.fail(reason)
  const { status, headers, body } = problem(reason, request.id, undefined, retryAfterSeconds)
  if (bodyPending(request.raw)) {
    headers['connection'] = 'close'
    linger(request.raw, reply.raw)
  }
  return reply.code(status).headers(headers).send(body)
}
