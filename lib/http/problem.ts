import { failureOf, type Reason } from '../failure.ts'
import type { Random } from '../random.ts'
import { proxyName } from './forwarded.ts'

/** A refusal of our own, ready to be sent. */
export interface Problem {
  status: number
  headers: Record<string, string>
  body: Buffer
}

/** What of a Fastify reply it takes to send a problem. */
export interface ProblemReply<R> {
  code (status: number): ProblemReply<R>
  headers (fields: Record<string, string>): ProblemReply<R>
  send (body: Buffer): R
}

/** Sends a problem as it is, and returns what `send` does. */
export function sendProblem<R> (reply: ProblemReply<R>, { status, headers, body }: Problem): R {
  return reply.code(status).headers(headers).send(body)
}

/**
 * The answer to a refused or failed exchange: a problem document (RFC 9457), Proxy-Status (RFC 9209), and Retry-After where the
 * status allows it. Never names an upstream.
 * @param retryAfterSeconds whole seconds, at least 1; left out where a retry would not help
 * @param status in place of the reason's own
 */
export function problem (reason: Reason, requestId: string, detail?: string, retryAfterSeconds?: number, status: number = failureOf(reason).status): Problem {
  const failure = failureOf(reason)
  const headers: Record<string, string> = {
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
    'proxy-status': `${proxyName}; error=${failure.error}; details="${reason}"`
  }
  if (retryAfterSeconds !== undefined && (status === 503 || status === 429)) headers['retry-after'] = String(retryAfterSeconds)
  const document = { type: `urn:breakwater:reason:${reason}`, title: failure.title, status, detail: detail ?? failure.title, reason, requestId }
  return { status, headers, body: Buffer.from(JSON.stringify(document)) }
}

/**
 * Whole seconds for Retry-After: when we expect to admit again, and up to a fifth (at least a second) more, so that the refused
 * do not all come back together.
 */
export function retryAfter (expectedMs: number, random: Random): number {
  const seconds = Math.max(1, Math.ceil(Math.min(expectedMs, 3600000) / 1000))
  return seconds + Math.round(random() * Math.max(1, seconds * 0.2))
}
