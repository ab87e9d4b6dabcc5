import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { failureOf, failures, type FailureSpec, type Reason, type Stage } from '../../lib/failure.ts'

const rows = Object.entries(failures) as [Reason, FailureSpec][]

/** The reasons of the contract with their statuses; null where the client's connection is cut, so that no status is promised. */
const contract: Record<string, number | null> = {
  shed_capacity: 503, shed_pressure: 503, shed_priority: 503, upstream_capacity: 503, no_upstream_healthy: 503, breaker_open: 503, no_route: 404, connect_refused: 502, connect_timeout: 504,
  dns_failed: 502, tls_failed: 502, connection_reset: 502, headers_timeout: 504, deadline_exceeded: 504, response_invalid: 502, body_truncated: null, body_idle_timeout: null,
  client_cancelled: 499, request_timeout: 408, body_too_large: 413, headers_too_large: 431, bad_request: 400, draining: 503
}

/** The error types of RFC 9209 section 2.3. */
const errorTypes = new Set([
  'dns_timeout', 'dns_error', 'destination_not_found', 'destination_unavailable', 'destination_ip_prohibited', 'destination_ip_unroutable', 'connection_refused', 'connection_terminated',
  'connection_timeout', 'connection_read_timeout', 'connection_write_timeout', 'connection_limit_reached', 'tls_protocol_error', 'tls_certificate_error', 'tls_alert_received', 'http_request_error',
  'http_request_denied', 'http_response_incomplete', 'http_response_header_section_size', 'http_response_header_size', 'http_response_body_size', 'http_response_trailer_section_size',
  'http_response_trailer_size', 'http_response_transfer_coding', 'http_response_content_coding', 'http_response_timeout', 'http_upgrade_failed', 'http_protocol_error', 'proxy_internal_response',
  'proxy_internal_error', 'proxy_configuration_error', 'proxy_loop_detected'
])

describe('reasons', () => {
  for (const [reason, status] of Object.entries(contract)) {
    it(`${reason} is there${status === null ? '' : ` with ${status}`}`, () => {
      ok(reason in failures)
      if (status !== null) equal(failureOf(reason as Reason).status, status)
    })
  }

  it('beyond the contract only those that we know of', () => {
    deepEqual(rows.map(([reason]) => reason).filter((reason) => !(reason in contract)).toSorted(), ['internal_error', 'method_not_allowed', 'protocol_mismatch', 'rate_limited', 'route_disabled', 'tunnel_idle_timeout'])
  })

  it('failureOf gives the row', () => {
    for (const [reason, row] of rows) equal(failureOf(reason), row)
  })
})

describe('every row', () => {
  const stages: Stage[] = ['request', 'admission', 'route', 'select', 'connect', 'send', 'headers', 'body']
  for (const [reason, { side, stage, blames, retry, status, error, title }] of rows) {
    it(`${reason} is consistent`, () => {
      match(reason, /^[a-z]+(?:_[a-z]+)*$/)
      ok(stages.includes(stage))
      ok(errorTypes.has(error), `${error} is no error type of RFC 9209`)
      match(title, /^[A-Z][^.]*$/)
      equal(blames, side === 'upstream' && ['connect', 'send', 'headers', 'body'].includes(stage), 'an upstream is blamed for what it did after it was asked')
      if (side === 'client') ok(status >= 400 && status < 500)
      else if (reason !== 'no_route') ok(status >= 500)
      if (retry !== 'never') ok(side !== 'client' && stage !== 'body' && stage !== 'admission' && stage !== 'route')
      if (stage === 'connect') equal(retry, 'unsent', 'nothing was sent before there was a connection')
      if (reason.endsWith('_timeout') && side === 'upstream') equal(status, 504)
    })
  }
})
