/** Why a check ended as it did: a closed set, where a status that does not pass stands as `status_` and its three digits. */
export type FailedCause =
  | 'timeout' | 'connect_refused' | 'connection_reset' | 'dns_failed' | 'tls_failed' | 'response_invalid' | 'body_truncated'
  | 'body_too_large' | 'json_invalid' | 'json_mismatch' | `status_${number}`

/** Why a check says nothing about the upstream: our own resources or options, our own stall, or we stopped it. */
export type InconclusiveCause = 'local_error' | 'event_loop_stall' | 'stopped'

export type CheckCause = 'check_passed' | FailedCause | InconclusiveCause

/** Why a belief changed: by a check, or because the checks were switched off. */
export type HealthCause = 'check_passed' | FailedCause | 'checks_off'

/** Whether a check with this cause passed; null: it says nothing about the upstream. */
export function passedBy (cause: CheckCause): boolean | null {
  if (cause === 'check_passed') return true
  return cause === 'local_error' || cause === 'event_loop_stall' || cause === 'stopped' ? null : false
}

/** Whether the failure may be our own doing where our event loop stood still: not where an answer was judged by what it says. */
export const stallExcuses = (cause: CheckCause): boolean =>
  passedBy(cause) === false && cause !== 'body_too_large' && !cause.startsWith('json_') && !cause.startsWith('status_')

/** How far a check had come when its error arose. */
export type CheckStage = 'connect' | 'headers' | 'body'

export interface CheckError {
  /** The error's name: undici's parser errors have no other sign. */
  name: string
  /** The error's code, such as ECONNREFUSED; empty where it has none. */
  code: string
  /** The system call that failed, such as getaddrinfo; empty where there is none. */
  syscall: string
  message: string
  stage: CheckStage
  /** The upstream is spoken to with TLS. */
  secure: boolean
  /** The upstream is a unix socket. */
  unix: boolean
}

/** Descriptors, memory, buffers, local ports, and an option that no request can be made of. */
const ownFault = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EADDRNOTAVAIL', 'ERR_MEMORY_ALLOCATION_FAILED', 'UND_ERR_INVALID_ARG'])
const unreachable = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN', 'ENOENT', 'EACCES', 'EPERM'])
const cut = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'UND_ERR_SOCKET'])

/** undici tells an unasked 100 or 101, and an answer that ends before its end, by the text alone. */
const unasked = /^bad (response|upgrade)/
const endedEarly = /EOF state/

/** The cause that an error stands for. */
export function causeOfError ({ name, code, syscall, message, stage, secure, unix }: CheckError): FailedCause | 'local_error' {
  if (ownFault.has(code)) return 'local_error'
  // A unix socket says EAGAIN when its backlog is full, TCP when we have run out of routes or ports.
  if (code === 'EAGAIN') return unix ? 'connect_refused' : 'local_error'
  if (syscall === 'getaddrinfo' || code === 'ENOTFOUND' || code.startsWith('EAI_')) return 'dns_failed'
  if (code === 'ETIMEDOUT' || code.endsWith('_TIMEOUT')) return 'timeout'
  if (code === 'UND_ERR_HEADERS_OVERFLOW' || code === 'BREAKWATER_H2_INVALID' || code === 'ERR_HTTP2_ERROR' || unasked.test(message)) return 'response_invalid'
  if (name === 'HTTPParserError' && !endedEarly.test(message)) return 'response_invalid'
  // Two lengths that differ; in the body's stage it is a body of another length.
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' && stage === 'headers') return 'response_invalid'
  if (stage === 'body') return 'body_truncated'
  if (stage === 'headers' || cut.has(code)) return 'connection_reset'
  return secure && !unreachable.has(code) ? 'tls_failed' : 'connect_refused'
}
