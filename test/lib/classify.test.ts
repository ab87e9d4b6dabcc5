import { equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { malformedReason, reasonOf, type AttemptStage, type ErrorLike } from '../../lib/classify.ts'
import { failureOf, failures, type Reason } from '../../lib/failure.ts'

const stages: AttemptStage[] = ['connect', 'headers', 'body']
const coded = (code: string, rest: ErrorLike = {}): ErrorLike => ({ name: 'Error', code, message: 'x', ...rest })

/** Error codes while a connection is made. */
const connecting: [string, Reason][] = [
  ['ECONNREFUSED', 'connect_refused'], ['ENOENT', 'connect_refused'], ['EACCES', 'connect_refused'], ['EHOSTUNREACH', 'connect_refused'], ['ENETUNREACH', 'connect_refused'],
  ['ETIMEDOUT', 'connect_timeout'], ['UND_ERR_CONNECT_TIMEOUT', 'connect_timeout'],
  ['ENOTFOUND', 'dns_failed'], ['EAI_AGAIN', 'dns_failed'], ['ESERVFAIL', 'dns_failed'],
  ['CERT_HAS_EXPIRED', 'tls_failed'], ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_failed'], ['SELF_SIGNED_CERT_IN_CHAIN', 'tls_failed'], ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls_failed'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_failed'], ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_failed'], ['EPROTO', 'tls_failed'],
  ['ECONNRESET', 'connection_reset'], ['EPIPE', 'connection_reset'], ['UND_ERR_SOCKET', 'connection_reset'], ['SOMETHING_NEW', 'connection_reset']
]

describe('reason of an error', () => {
  for (const [code, reason] of connecting) it(`${code} while connecting: ${reason}`, () => { equal(reasonOf(coded(code), 'connect'), reason) })

  it('several addresses of one name: the first one\'s', () => {
    equal(reasonOf(new AggregateError([coded('ECONNREFUSED'), coded('ETIMEDOUT')]), 'connect'), 'connect_refused')
    equal(reasonOf(Object.assign(new AggregateError([coded('ECONNREFUSED')]), { code: 'ETIMEDOUT' }), 'connect'), 'connect_timeout')
    equal(reasonOf(new AggregateError([]), 'connect'), 'connection_reset')
    equal(reasonOf(new AggregateError([null]), 'connect'), 'connection_reset')
  })

  for (const code of ['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EADDRNOTAVAIL']) {
    it(`${code} is our own want, which no upstream is blamed for`, () => {
      for (const stage of ['connect', 'headers'] as const) {
        equal(reasonOf(coded(code), stage), 'upstream_capacity')
        equal(failureOf(reasonOf(coded(code), stage)).blames, false)
      }
    })
  }

  it('a request that undici refuses is the client\'s fault at any stage', () => {
    for (const code of ['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH']) for (const stage of stages) equal(reasonOf(coded(code), stage), 'bad_request')
  })

  it('a connection that we closed ourselves is our draining at any stage', () => {
    for (const code of ['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']) for (const stage of stages) equal(reasonOf(coded(code), stage), 'draining')
  })

  it('whatever else ends a body cuts it off', () => {
    for (const code of ['ECONNRESET', 'UND_ERR_SOCKET', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'EMFILE', 'SOMETHING_NEW']) equal(reasonOf(coded(code), 'body'), 'body_truncated')
    equal(reasonOf({ name: 'HTTPParserError', message: 'Invalid character in chunk size' }, 'body'), 'body_truncated')
  })

  const heads: [ErrorLike, Reason][] = [
    [{ name: 'HTTPParserError', message: 'Expected HTTP/' }, 'response_invalid'],
    [{ name: 'HTTPParserError', message: 'Invalid EOF state' }, 'connection_reset'],
    [coded('UND_ERR_HEADERS_OVERFLOW'), 'response_invalid'],
    [coded('UND_ERR_RES_CONTENT_LENGTH_MISMATCH'), 'response_invalid'],
    [coded('ERR_ASSERTION'), 'response_invalid'],
    [coded('UND_ERR_SOCKET', { message: 'bad response' }), 'response_invalid'],
    [coded('UND_ERR_SOCKET', { message: 'bad upgrade' }), 'response_invalid'],
    [coded('UND_ERR_SOCKET', { message: 'other side closed' }), 'connection_reset'],
    [coded('ECONNRESET'), 'connection_reset'],
    [coded('ECONNREFUSED'), 'connection_reset'],
    [coded('EPIPE'), 'connection_reset'],
    [coded('ETIMEDOUT'), 'connection_reset'],
    [{}, 'connection_reset']
  ]
  for (const [error, reason] of heads) {
    it(`${String(error.code ?? error.name)} (${String(error.message)}) before the head: ${reason}`, () => { equal(reasonOf(error, 'headers'), reason) })
  }

  it('is always one of the table, for any error at any stage', () => {
    const leaf = fc.record({ name: fc.anything(), code: fc.oneof(fc.anything(), fc.constantFrom(...connecting.map(([code]) => code))), message: fc.anything() }, { requiredKeys: [] })
    const error = fc.oneof(leaf, fc.record({ errors: fc.array(fc.oneof(leaf, fc.anything())) }))
    fc.assert(fc.property(error, fc.constantFrom(...stages), (each, stage) => { ok(reasonOf(each as ErrorLike, stage) in failures) }))
  })
})

describe('reason of what Node\'s parser refused', () => {
  const table: [string | undefined, Reason | null][] = [
    ['HPE_HEADER_OVERFLOW', 'headers_too_large'], ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 'body_too_large'], ['ERR_HTTP_REQUEST_TIMEOUT', 'request_timeout'],
    ['HPE_INVALID_METHOD', 'bad_request'], ['HPE_INVALID_EOF_STATE', 'bad_request'], ['HPE_INVALID_CONTENT_LENGTH', 'bad_request'],
    ['ECONNRESET', null], ['EPIPE', null], [undefined, null]
  ]
  for (const [code, reason] of table) it(`${code}: ${reason}`, () => { equal(malformedReason({ code }), reason) })
})
