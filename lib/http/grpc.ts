import { failureOf, type Reason } from '../failure.ts'
import { proxyName } from './forwarded.ts'
import type { Problem } from './problem.ts'

const grpcType = /^application\/grpc(?:[+;]|[ \t]*$)/i

/** True for the content type of gRPC over HTTP/2; gRPC-Web is none: any HTTP carries it. */
export const isGrpc = (contentType: string | undefined): boolean => contentType !== undefined && grpcType.test(contentType)

/** Codes of gRPC (grpc/doc/statuscodes.md). */
const unknown = 2
const deadlineExceeded = 4
const permissionDenied = 7
const resourceExhausted = 8
const unimplemented = 12
const internal = 13
const unavailable = 14
const unauthenticated = 16

const byReason: Partial<Record<Reason, number>> = {
  deadline_exceeded: deadlineExceeded,
  body_too_large: resourceExhausted,
  headers_too_large: resourceExhausted,
  protocol_mismatch: unimplemented,
  route_disabled: unavailable
}

const byStatus: Readonly<Record<number, number>> = {
  400: internal, 401: unauthenticated, 403: permissionDenied, 404: unimplemented, 429: unavailable, 502: unavailable, 503: unavailable, 504: unavailable
}

/**
 * The gRPC status of a refusal of our own. Where the reason says no more than its HTTP status, it is what a client would make of that
 * (grpc/doc/http-grpc-status-mapping.md), as Envoy answers too.
 */
export const grpcStatusOf = (reason: Reason): number => byReason[reason] ?? byStatus[failureOf(reason).status] ?? unknown

const percentEncoded = (text: string): string => Buffer.from(text).toString('hex').toUpperCase().replace(/../g, '%$&')

/** A text as `grpc-message` carries it: UTF-8, percent-encoded but for printable ASCII (grpc/doc/PROTOCOL-HTTP2.md). */
export const grpcMessage = (text: string): string => text.replace(/[^\x20-\x24\x26-\x7e]+/g, percentEncoded)

/** A refusal as a client of gRPC understands it: an answer of trailers alone, with the HTTP status 200 (grpc/doc/PROTOCOL-HTTP2.md). */
export function grpcRefusal (reason: Reason, detail: string = failureOf(reason).title): Problem {
  return {
    status: 200,
    headers: {
      'content-type': 'application/grpc',
      'grpc-status': String(grpcStatusOf(reason)),
      'grpc-message': grpcMessage(detail),
      'proxy-status': `${proxyName}; error=${failureOf(reason).error}; details="${reason}"`
    },
    body: Buffer.alloc(0)
  }
}
