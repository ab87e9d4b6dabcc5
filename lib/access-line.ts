import type { Exchange } from './exchange.ts'
import { failureOf, type Reason } from './failure.ts'

/** The fields of an access line, as DESIGN names them. Never headers, queries or bodies. */
export interface AccessLine {
  request_id: string | null
  method: string | null
  path: string | null
  status: number
  bytes: number
  duration_ms: number
  client_ip: string
  route: string | null
  pool: string | null
  upstream: string | null
  attempts: number
  reason: Reason | null
  /** Of a tunnel only: bytes from the client. */
  bytes_in?: number
  /** Of a traced request only. */
  trace_id?: string
}

const maxPath = 2048

/** What stands before the path of an absolute-form target; it may hold credentials. */
const beforePath = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i

const behindPath = /[?#]/

/** The path of a request target without its query and fragment, cut at 2048 characters. */
export function loggedPath (url: string): string {
  const end = url.search(behindPath)
  const whole = end === -1 ? url : url.slice(0, end)
  if (whole.charCodeAt(0) === 47) return whole.slice(0, maxPath)
  return whole.replace(beforePath, '').slice(0, maxPath) || '/'
}

/**
 * The line of an exchange.
 * @param sent the status that was sent to the client, or 0 where nothing was
 * @param bytes body bytes, where the forwarder did not count them itself
 */
export function accessLine (exchange: Exchange, method: string, url: string, sent: number, bytes: number, now: number): AccessLine {
  const line: AccessLine = {
    request_id: exchange.requestId,
    method,
    path: loggedPath(url),
    status: toldStatus(exchange.reason, sent),
    bytes: exchange.bytes === -1 ? bytes : exchange.bytes,
    duration_ms: Math.round((now - exchange.receivedAt) * 1000) / 1000,
    client_ip: exchange.clientIp,
    route: exchange.route,
    pool: exchange.pool,
    upstream: exchange.upstream,
    attempts: exchange.attempts,
    reason: exchange.reason
  }
  if (exchange.bytesIn !== -1) line.bytes_in = exchange.bytesIn
  if (exchange.traceId !== null) line.trace_id = exchange.traceId
  return line
}

/**
 * The status that an exchange is told under. A client that left is told apart from those that were answered, even when its head had
 * been sent.
 * @param sent the status that was sent to the client, or 0 where nothing was
 */
export function toldStatus (reason: Reason | null, sent: number): number {
  // A tunnel was answered, however it ended.
  if (sent === 101) return sent
  if (reason === 'client_cancelled' || sent === 0) return failureOf(reason ?? 'client_cancelled').status
  return sent
}

/** What may be known of a request that could not be parsed. */
export interface Unparsed {
  requestId?: string
  method?: string | null
  /** Body bytes of the answer. */
  bytes?: number
}

/** The line of a request that could not be parsed. */
export function malformedLine (reason: Reason, clientIp: string, { requestId, method = null, bytes = 0 }: Unparsed = {}): AccessLine {
  return {
    request_id: requestId ?? null, method, path: null, status: failureOf(reason).status, bytes, duration_ms: 0, client_ip: clientIp,
    route: null, pool: null, upstream: null, attempts: 0, reason
  }
}
