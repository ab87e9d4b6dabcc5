import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReplyFromHooks } from '@fastify/reply-from'
import type { FastifyReply } from 'fastify'
import type { Attempt } from './attempt.ts'
import type { Attempts } from './attempts.ts'
import type { AnswerCallback, Forward } from './forward.ts'

const kJob = Symbol('breakwater.job')

/** What travels through reply-from, in the place of headers, to our requester. */
export interface Job {
  forward: Forward
  attempt: Attempt
  attempts: Attempts | null
  now: number
  raw: IncomingMessage
  /** The request's fields, kept from reply-from, which would copy them only for us to throw the copy away. */
  fields: IncomingHttpHeaders
}

const noFields: IncomingHttpHeaders = Object.freeze({})

interface RequesterOptions {
  headers: { [kJob]: Job }
}

/** Null: forwarding began, and ended before there was a job. */
interface TaggedRequest extends IncomingMessage { [kJob]?: Job | null }

/** Notes that a request is being forwarded. False: it was before. */
export function beginForwarding (raw: IncomingMessage): boolean {
  const tagged: TaggedRequest = raw
  if (tagged[kJob] !== undefined) return false
  tagged[kJob] = null
  return true
}

/** Sends a job on its way through reply-from. What this throws leaves the request as it was. */
export function sendJob (reply: FastifyReply, job: Job): void {
  const raw: TaggedRequest = job.raw
  raw[kJob] = job
  raw.headers = noFields
  try {
    reply.from('/', hooks)
  } catch (error) {
    raw.headers = job.fields
    throw error
  }
}

/** reply-from's transport: everything that it would look up, we know already. */
export const requester = {
  request (options: RequesterOptions, callback: AnswerCallback): void {
    const { forward, attempt, attempts, now, raw, fields } = options.headers[kJob]
    raw.headers = fields
    forward.begin(attempt, attempts, now, callback)
  }
}

/**
 * What reply-from is told, the same for every request: it does not retry, rewrite or read the body, it hands the job to our
 * requester in the place of headers, and it sends the answer as it is.
 */
const hooks: FastifyReplyFromHooks = {
  queryString: () => '',
  body: null,
  retryDelay: (() => null) as never,
  rewriteRequestHeaders: (request) => ({ [kJob]: (request.raw as TaggedRequest)[kJob] }) as never,
  onResponse: sendAnswer as never
}

function sendAnswer (_request: unknown, reply: FastifyReply, { stream }: { stream: Buffer | Readable | undefined }): void {
  // Somebody answered past Fastify while we waited (a hijacked reply): an unread stream would keep its connection for ever.
  if (reply.sent && stream instanceof Readable) stream.destroy()
  else reply.send(stream)
}
