import type { Reason } from './failure.ts'

/** The parts of an error that tell what happened. */
export interface ErrorLike {
  name?: unknown
  code?: unknown
  message?: unknown
}

/** How far an attempt had come when the error struck. */
export type AttemptStage = 'connect' | 'headers' | 'body'

const dnsCodes = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'EAI_NODATA', 'EAI_NONAME', 'ESERVFAIL', 'ENODATA', 'EREFUSED', 'ECANCELLED'])
const refusedCodes = new Set(['ECONNREFUSED', 'ENOENT', 'EACCES', 'EPERM', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN'])
/** Our own host is out of something: nothing that an upstream could help. */
const localCodes = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EADDRNOTAVAIL', 'EAGAIN'])
const clientFaultCodes = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH', 'BREAKWATER_H2_FIELDS'])
const closedCodes = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED'])
const tlsCode = /^(?:ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|INVALID_CA|EPROTO$|ERR_OSSL_)/

/** Names the reason of an error that ended an attempt. */
export function reasonOf (error: ErrorLike, stage: AttemptStage): Reason {
  const code = typeof error.code === 'string' ? error.code : ''
  if (clientFaultCodes.has(code)) return 'bad_request'
  if (code === 'BREAKWATER_PROTOCOL') return 'protocol_mismatch'
  if (closedCodes.has(code)) return 'draining'
  if (stage === 'body') return 'body_truncated'
  if (localCodes.has(code)) return 'upstream_capacity'
  if (stage === 'connect') {
    if (dnsCodes.has(code)) return 'dns_failed'
    if (refusedCodes.has(code)) return 'connect_refused'
    if (code === 'ETIMEDOUT' || code === 'UND_ERR_CONNECT_TIMEOUT') return 'connect_timeout'
    if (tlsCode.test(code)) return 'tls_failed'
    const first = aggregated(error)
    if (code === '' && first !== undefined && first !== error) return reasonOf(first, stage)
  }
  if (isInvalidResponse(error, code)) return 'response_invalid'
  return 'connection_reset'
}

/** Node reports a failed attempt at several addresses of one name as an AggregateError. */
function aggregated (error: ErrorLike): ErrorLike | undefined {
  const errors = (error as { errors?: unknown }).errors
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined
  return typeof first === 'object' && first !== null ? first : undefined
}

const invalidCodes = new Set(['ERR_ASSERTION', 'UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'UND_ERR_RES_EXCEEDED_MAX_SIZE', 'BREAKWATER_H2_INVALID', 'ERR_HTTP2_ERROR'])

function isInvalidResponse ({ name, message }: ErrorLike, code: string): boolean {
  // undici leaves its parser errors without a code; a connection that ended too early is one of them.
  if (name === 'HTTPParserError') return !String(message).includes('Invalid EOF state')
  return invalidCodes.has(code) || (code === 'UND_ERR_SOCKET' && (message === 'bad response' || message === 'bad upgrade'))
}

/** Names what Node's parser refused of a client's bytes; null where the connection just broke. */
export function malformedReason (error: ErrorLike): Reason | null {
  const code = typeof error.code === 'string' ? error.code : ''
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 'body_too_large'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  return code.startsWith('HPE_') ? 'bad_request' : null
}

/**
 * What an error says, for people. OpenSSL's own texts are a memory address, a number and a place in its sources around the one thing that
 * tells, which Node gives as `reason`.
 */
export function errorText (error: Error): string {
  const { library, reason, code } = error as { library?: unknown, reason?: unknown, code?: unknown }
  return typeof library === 'string' && typeof reason === 'string' && reason !== '' ? `${reason}${typeof code === 'string' ? ` (${code})` : ''}` : error.message
}
