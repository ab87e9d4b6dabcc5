/** How an attempt ended, as the breaker counts it. Only `success` and `failure` count; the others are neutral. */
export type Outcome = 'success' | 'failure' | 'cancelled' | 'ignored'

/** Whose doing a refusal or failure was. */
export type Side = 'client' | 'proxy' | 'upstream'

/** How far the exchange had come. */
export type Stage = 'request' | 'admission' | 'route' | 'select' | 'connect' | 'send' | 'headers' | 'body'

/** When a failed attempt may be tried elsewhere: `unsent` only if no byte of the request was written. */
export type Retry = 'never' | 'unsent' | 'replayable'

export interface FailureSpec {
  side: Side
  stage: Stage
  /** True when the breaker counts it against the upstream. */
  blames: boolean
  retry: Retry
  /** The status that we answer, if nothing of an answer has been sent yet; else the client's connection is aborted. */
  status: number
  /** The RFC 9209 error type of the `Proxy-Status` field. */
  error: string
  /** The problem's title: what a client may be told. Never names an upstream. */
  title: string
}

/**
 * Every reason for which Breakwater refuses or fails an exchange. The same code stands in the access line, the metric label,
 * the problem document and the explain record; nothing else is ever used there.
 */
export const failures = {
  shed_capacity: { side: 'proxy', stage: 'admission', blames: false, retry: 'never', status: 503, error: 'connection_limit_reached', title: 'The proxy is at its limit of concurrent requests' },
  shed_pressure: { side: 'proxy', stage: 'admission', blames: false, retry: 'never', status: 503, error: 'proxy_internal_response', title: 'The proxy is under pressure' },
  shed_priority: { side: 'proxy', stage: 'admission', blames: false, retry: 'never', status: 503, error: 'proxy_internal_response', title: 'The proxy admits only more important requests now' },
  draining: { side: 'proxy', stage: 'admission', blames: false, retry: 'never', status: 503, error: 'proxy_internal_response', title: 'The proxy is shutting down' },
  no_route: { side: 'proxy', stage: 'route', blames: false, retry: 'never', status: 404, error: 'destination_not_found', title: 'No route matches this request' },
  route_disabled: { side: 'proxy', stage: 'route', blames: false, retry: 'never', status: 503, error: 'http_request_denied', title: 'This route is switched off' },
  rate_limited: { side: 'client', stage: 'route', blames: false, retry: 'never', status: 429, error: 'http_request_denied', title: 'Too many requests' },
  upstream_capacity: { side: 'proxy', stage: 'select', blames: false, retry: 'unsent', status: 503, error: 'connection_limit_reached', title: 'The service is at its limit of concurrent requests' },
  no_upstream_healthy: { side: 'upstream', stage: 'select', blames: false, retry: 'never', status: 503, error: 'destination_unavailable', title: 'No server of this service is healthy' },
  breaker_open: { side: 'upstream', stage: 'select', blames: false, retry: 'never', status: 503, error: 'destination_unavailable', title: 'The circuit of this service is open: nothing is sent to it for now' },
  protocol_mismatch: { side: 'proxy', stage: 'select', blames: false, retry: 'never', status: 502, error: 'proxy_configuration_error', title: 'The service does not speak the protocol that this request needs' },
  connect_refused: { side: 'upstream', stage: 'connect', blames: true, retry: 'unsent', status: 502, error: 'connection_refused', title: 'The service refused the connection' },
  connect_timeout: { side: 'upstream', stage: 'connect', blames: true, retry: 'unsent', status: 504, error: 'connection_timeout', title: 'The service did not accept a connection in time' },
  dns_failed: { side: 'upstream', stage: 'connect', blames: true, retry: 'unsent', status: 502, error: 'dns_error', title: 'The name of the service could not be resolved' },
  tls_failed: { side: 'upstream', stage: 'connect', blames: true, retry: 'unsent', status: 502, error: 'tls_protocol_error', title: 'No trusted connection to the service could be made' },
  connection_reset: { side: 'upstream', stage: 'headers', blames: true, retry: 'replayable', status: 502, error: 'connection_terminated', title: 'The service closed the connection before it answered' },
  headers_timeout: { side: 'upstream', stage: 'headers', blames: true, retry: 'replayable', status: 504, error: 'http_response_timeout', title: 'The service did not answer in time' },
  deadline_exceeded: { side: 'upstream', stage: 'headers', blames: true, retry: 'never', status: 504, error: 'http_response_timeout', title: 'The time for this request is spent' },
  response_invalid: { side: 'upstream', stage: 'headers', blames: true, retry: 'replayable', status: 502, error: 'http_protocol_error', title: 'The service sent an invalid answer' },
  body_truncated: { side: 'upstream', stage: 'body', blames: true, retry: 'never', status: 502, error: 'http_response_incomplete', title: 'The answer was cut off' },
  body_idle_timeout: { side: 'upstream', stage: 'body', blames: true, retry: 'never', status: 504, error: 'http_response_timeout', title: 'The answer stalled' },
  tunnel_idle_timeout: { side: 'proxy', stage: 'body', blames: false, retry: 'never', status: 504, error: 'connection_read_timeout', title: 'Nothing passed through the connection for too long' },
  client_cancelled: { side: 'client', stage: 'request', blames: false, retry: 'never', status: 499, error: 'http_request_error', title: 'The client left before it was answered' },
  request_timeout: { side: 'client', stage: 'request', blames: false, retry: 'never', status: 408, error: 'http_request_error', title: 'The request was not received in time' },
  body_too_large: { side: 'client', stage: 'request', blames: false, retry: 'never', status: 413, error: 'http_request_error', title: 'The request body is larger than allowed' },
  headers_too_large: { side: 'client', stage: 'request', blames: false, retry: 'never', status: 431, error: 'http_request_error', title: 'The request head is larger than allowed' },
  bad_request: { side: 'client', stage: 'request', blames: false, retry: 'never', status: 400, error: 'http_request_error', title: 'The request is malformed' },
  method_not_allowed: { side: 'client', stage: 'request', blames: false, retry: 'never', status: 405, error: 'http_request_denied', title: 'This method is not allowed here' },
  internal_error: { side: 'proxy', stage: 'request', blames: false, retry: 'never', status: 500, error: 'proxy_internal_error', title: 'The proxy failed' }
} as const satisfies Record<string, FailureSpec>

/** A code of the closed set above. */
export type Reason = keyof typeof failures

/** The row of a reason, with the general type. */
export const failureOf = (reason: Reason): FailureSpec => failures[reason]
