import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { failures, type Reason } from '../../../lib/failure.ts'
import { grpcMessage, grpcRefusal, grpcStatusOf, isGrpc } from '../../../lib/http/grpc.ts'

test('gRPC is known by its content type, and gRPC-Web is none', () => {
  for (const type of ['application/grpc', 'application/grpc+proto', 'Application/GRPC;x=1', 'application/grpc ']) equal(isGrpc(type), true, type)
  for (const type of [undefined, 'application/grpc-web', 'application/grpc-web+proto', 'application/grpcx', 'text/plain']) equal(isGrpc(type), false, type)
})

test('each reason has a status of gRPC, and none is OK', () => {
  const expected: Partial<Record<Reason, number>> = {
    breaker_open: 14, shed_capacity: 14, draining: 14, connection_reset: 14, no_route: 12, protocol_mismatch: 12, deadline_exceeded: 4, headers_timeout: 14,
    body_too_large: 8, headers_too_large: 8, bad_request: 13, rate_limited: 14, internal_error: 2, request_timeout: 2
  }
  for (const [reason, status] of Object.entries(expected)) equal(grpcStatusOf(reason as Reason), status, reason)
  for (const reason of Object.keys(failures)) equal(grpcStatusOf(reason as Reason) > 0, true)
})

test('a message is percent-encoded UTF-8', () => {
  equal(grpcMessage('50% of caf\u00e9\n'), '50%25 of caf%C3%A9%0A')
  equal(grpcMessage('plain ~text'), 'plain ~text')
  equal(grpcMessage('\ud800'), '%EF%BF%BD')
})

test('a refusal is an answer of trailers alone', () => {
  const { status, headers, body } = grpcRefusal('breaker_open')
  equal(status, 200)
  equal(body.length, 0)
  deepEqual(headers, {
    'content-type': 'application/grpc',
    'grpc-status': '14',
    'grpc-message': failures.breaker_open.title,
    'proxy-status': 'breakwater; error=destination_unavailable; details="breaker_open"'
  })
})
