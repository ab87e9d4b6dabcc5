import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { mayHaveLostFields } from '../../lib/http/field-limit.ts'
import type { RequestHead } from '../../lib/http/request-head.ts'
import { takesTrailers } from '../../lib/http/trailers.ts'
import { isHttp2 } from '../http2/is-http2.ts'
import { KeptBody } from './kept-body.ts'
import type { Pace } from './pace.ts'
import { RequestBody, type ClientBody } from './request-body.ts'

/** A version that is spoken here. A transfer coding in HTTP/1.0 is faulty framing (RFC 9112 section 6.1): such a message is none, either. */
export function isKnownVersion (raw: IncomingMessage): boolean {
  const { httpVersionMajor: major, httpVersionMinor: minor } = raw
  if (major === 1) return minor === 1 || (minor === 0 && raw.headers['transfer-encoding'] === undefined)
  return isHttp2(raw)
}

/** True for a client that takes trailers, and whose protocol has them. */
export function wantsTrailers (raw: IncomingMessage): boolean {
  const { httpVersion, headers: { te } } = raw
  // Over HTTP/2 they are part of every message.
  if (isHttp2(raw)) return true
  return te !== undefined && httpVersion !== '1.0' && takesTrailers(te as string)
}

/** Node drops header fields over its limit silently; a request that lost some is refused. */
export function tooManyFields ({ rawHeaders, socket }: IncomingMessage): boolean {
  return mayHaveLostFields(rawHeaders.length, (socket as { server?: { maxHeadersCount?: number | null } }).server?.maxHeadersCount)
}

/**
 * The body to send: the client's stream untouched, or, in a route whose parser has read it, what the parser made of it.
 * @param limit its size in bytes; 0: unlimited
 * @param pace how it has to come; null: the listener's limits hold
 * @param keep a body that streams is kept up to so many bytes; -1: it goes to one attempt and nowhere else
 * @throws where a body was read by somebody who left nothing of it, or nothing that it could be made of again
 */
export function bodyOf (reply: FastifyReply, head: RequestHead, limit: number, keep: number, now: number, pace: Pace | null = null): ClientBody | Buffer | null {
  const { raw, body: parsed } = reply.request
  if (parsed !== undefined && parsed !== null && !(parsed instanceof Readable)) return bodyAgain(parsed, raw, head)
  const { contentLength } = head
  if (contentLength === 0) return null
  if (!raw.readableEnded) return keep === -1 ? new RequestBody(raw, limit, now, pace) : new KeptBody(raw, { limit, keep, contentLength }, now, pace)
  if (parsed === null && isJson(raw)) return Buffer.from('null')
  throw new Error('the request body was read before reply.forward() and is not in request.body')
}

function bodyAgain (parsed: NonNullable<unknown>, raw: IncomingMessage, head: RequestHead): Buffer {
  if (Buffer.isBuffer(parsed)) return parsed
  const json = isJson(raw)
  if (typeof parsed === 'string') {
    const bytes = Buffer.from(parsed)
    // A JSON text may be a string; but where a parser left the text as it came, it is as long as it was told to be.
    return json && bytes.length !== head.contentLength ? Buffer.from(JSON.stringify(parsed)) : bytes
  }
  if (json || raw.headers['content-type'] === undefined) return Buffer.from(JSON.stringify(parsed))
  throw new Error('the request body was parsed into something that only JSON could be made of again, and its type is another: register a parser that leaves it as a buffer or a stream')
}

const jsonType = /^[^;]*[/+]json[ \t]*(?:;|$)/i
const isJson = (raw: IncomingMessage): boolean => jsonType.test(raw.headers['content-type'] ?? '')

/** Takes every line of a field out, and of its twin with underscores: a CGI-like server cannot tell the two apart. */
export function removeField (fields: string[], name: string): void {
  const wanted = twinOf(name)
  let kept = 0
  for (let i = 0; i < fields.length; i += 2) {
    if (twinOf(fields[i] as string) === wanted) continue
    fields[kept++] = fields[i] as string
    fields[kept++] = fields[i + 1] as string
  }
  fields.length = kept
}

/** The same for several, in one pass. */
export function removeFields (fields: string[], names: readonly string[]): void {
  let kept = 0
  for (let i = 0; i < fields.length; i += 2) {
    if (isAmong(fields[i] as string, names)) continue
    fields[kept++] = fields[i] as string
    fields[kept++] = fields[i + 1] as string
  }
  fields.length = kept
}

/** Most are told apart by their lengths alone. */
function isAmong (name: string, names: readonly string[]): boolean {
  for (const wanted of names) if (wanted.length === name.length && twinOf(wanted) === twinOf(name)) return true
  return false
}

const twinOf = (name: string): string => name.toLowerCase().replaceAll('_', '-')
