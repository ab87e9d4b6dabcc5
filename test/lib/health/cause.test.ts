import assert from 'node:assert/strict'
import { test } from 'node:test'
import { causeOfError, passedBy, stallExcuses, type CheckCause, type CheckError } from '../../../lib/health/cause.ts'

const plain: CheckError = { name: 'Error', code: '', syscall: '', message: '', stage: 'connect', secure: false, unix: false }

const table: Array<[cause: string, ...errors: Array<Partial<CheckError>>]> = [
  ['local_error', { code: 'EMFILE', syscall: 'connect' }, { code: 'EMFILE', syscall: 'getaddrinfo' }, { code: 'ENFILE' }, { code: 'EADDRNOTAVAIL' }, { code: 'EAGAIN' }, { code: 'UND_ERR_INVALID_ARG' }],
  ['connect_refused', { code: 'ECONNREFUSED' }, { code: 'EHOSTUNREACH' }, { code: 'ENOENT', unix: true }, { code: 'EAGAIN', unix: true }, { code: 'ECONNREFUSED', secure: true }],
  ['dns_failed', { code: 'ENOTFOUND', syscall: 'getaddrinfo' }, { code: 'EAI_AGAIN', syscall: 'getaddrinfo' }],
  ['timeout', { code: 'ETIMEDOUT' }, { code: 'UND_ERR_CONNECT_TIMEOUT', secure: true }],
  ['tls_failed', { code: 'DEPTH_ZERO_SELF_SIGNED_CERT', secure: true }, { code: 'EPROTO', secure: true }, { code: 'ERR_TLS_CERT_ALTNAME_INVALID', secure: true }, { code: 'CERT_HAS_EXPIRED', secure: true }],
  ['connection_reset', { code: 'ECONNRESET' }, { code: 'ECONNRESET', secure: true }, { code: 'UND_ERR_SOCKET', message: 'other side closed', stage: 'headers' }, { code: 'EPIPE', stage: 'headers' },
    { name: 'HTTPParserError', message: 'Response does not match the HTTP/1.1 protocol (Invalid EOF state)', stage: 'headers' }],
  ['response_invalid', { name: 'HTTPParserError', stage: 'headers' }, { name: 'HTTPParserError', stage: 'body' }, { code: 'UND_ERR_HEADERS_OVERFLOW', stage: 'headers' }, { code: 'UND_ERR_SOCKET', message: 'bad response', stage: 'headers' }, { code: 'UND_ERR_SOCKET', message: 'bad upgrade', stage: 'headers' },
    { code: 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', stage: 'headers' }],
  ['body_truncated', { code: 'UND_ERR_SOCKET', message: 'other side closed', stage: 'body' }, { code: 'ECONNRESET', stage: 'body' }, { code: 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', stage: 'body' }]
]

for (const [cause, ...errors] of table) {
  test(`${cause}: ${errors.length} kinds of error`, () => {
    for (const error of errors) assert.equal(causeOfError({ ...plain, ...error }), cause, JSON.stringify(error))
  })
}

test('an error that nobody knows is blamed by how far the check had come', () => {
  assert.equal(causeOfError(plain), 'connect_refused')
  assert.equal(causeOfError({ ...plain, secure: true }), 'tls_failed')
  assert.equal(causeOfError({ ...plain, stage: 'headers' }), 'connection_reset')
  assert.equal(causeOfError({ ...plain, stage: 'body' }), 'body_truncated')
})

const meanings: Array<[passed: boolean | null, excused: boolean, ...causes: CheckCause[]]> = [
  [true, false, 'check_passed'],
  [null, false, 'local_error', 'event_loop_stall', 'stopped'],
  [false, true, 'timeout', 'connect_refused', 'connection_reset', 'dns_failed', 'tls_failed', 'response_invalid', 'body_truncated'],
  [false, false, 'status_503', 'body_too_large', 'json_invalid', 'json_mismatch']
]

for (const [passed, excused, ...causes] of meanings) {
  test(`${causes.join(', ')}: ${passed === null ? 'says nothing' : passed ? 'passed' : 'failed'}${excused ? ', but not across a stall of our own' : ''}`, () => {
    for (const cause of causes) assert.deepEqual([passedBy(cause), stallExcuses(cause)], [passed, excused], cause)
  })
}
