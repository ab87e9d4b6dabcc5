/** What spans say, by OpenTelemetry's stable conventions for HTTP. Never a query, a field's value but User-Agent, or a body. */
import type { IncomingMessage } from 'node:http'
import { SpanStatusCode, type Attributes, type Span } from '@opentelemetry/api'
import type { FastifyRequest } from 'fastify'
import { loggedPath, toldStatus } from '../../lib/access-line.ts'
import type { Exchange } from '../../lib/exchange.ts'
import type { Peer } from '../../lib/http/forwarded.ts'
import { isAuthority } from '../../lib/http/target.ts'
import type { ExchangeEnd, ObservedAttempt } from '../observation.ts'
import type { Upstream } from '../upstream-pools.ts'

/** Methods that the conventions name; any other is `_OTHER`, and its span `HTTP`. */
const known = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY'])

function methodAttributes (method: string): Attributes {
  return known.has(method) ? { 'http.request.method': method } : { 'http.request.method': '_OTHER', 'http.request.method_original': method }
}

export function exchangeName (method = '', route: string | null): string {
  const verb = known.has(method) ? method : 'HTTP'
  return route === null ? verb : `${verb} ${route}`
}

/** What is known when the head has been read, by which a sampler may decide. */
export function exchangeAttributes ({ raw, exchange }: FastifyRequest, peer: Peer): Attributes {
  const { method = '', url = '', headers, httpVersion } = raw
  const scheme = schemeOf(raw, peer)
  const agent = headers['user-agent']
  return {
    ...methodAttributes(method),
    'url.path': loggedPath(url),
    'url.scheme': scheme,
    ...serverOf(raw, peer, scheme),
    'client.address': exchange.clientIp,
    'network.protocol.version': httpVersion === '2.0' ? '2' : httpVersion,
    ...agent !== undefined && { 'user_agent.original': agent }
  }
}

const first = (field: string | string[] | undefined): string => String(field ?? '').split(',', 1)[0]?.trim() ?? ''

function schemeOf ({ headers }: IncomingMessage, peer: Peer): string {
  const told = peer.trusted ? first(headers['x-forwarded-proto']).toLowerCase() : ''
  return told === 'http' || told === 'https' ? told : peer.scheme
}

/** Where the client meant to go. */
function serverOf ({ headers }: IncomingMessage, peer: Peer, scheme: string): Attributes {
  const told = peer.trusted ? first(headers['x-forwarded-host']) : ''
  const authority = told !== '' ? told : headers.host ?? ''
  if (authority === '' || !isAuthority(authority)) return {}
  const [, host = authority, port = ''] = /^(.*?)(?::(\d*))?$/.exec(authority) ?? []
  return { 'server.address': host.replace(/^\[(.*)\]$/, '$1'), 'server.port': port === '' ? scheme === 'https' ? 443 : 80 : Number(port) }
}

/** A server has failed where it answered with 5xx, or where what it began to answer could not be ended. */
export function endExchange (span: Span, exchange: Exchange, method: string | undefined, { status }: ExchangeEnd): void {
  if (span.isRecording()) {
    const { reason, route, pool, attempts } = exchange
    const code = toldStatus(reason, status)
    if (route !== null) span.updateName(exchangeName(method, route)).setAttribute('http.route', route)
    if (pool !== null) span.setAttributes({ 'breakwater.pool': pool, 'breakwater.attempts': attempts })
    if (status > 0) span.setAttribute('http.response.status_code', status)
    const failed = code >= 500 || (reason !== null && code < 400)
    if (failed || reason !== null) span.setAttribute('error.type', reason ?? String(code))
    if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
  }
  span.end()
}

export function attemptName ({ method }: ObservedAttempt): string {
  return exchangeName(method, null)
}

export function attemptAttributes ({ attempts }: Exchange, { kind, method, path, upstream }: ObservedAttempt): Attributes {
  const { pool, id, url } = upstream as Upstream
  const bare = loggedPath(path)
  const address = url.socketPath ?? id.slice(0, id.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1')
  return {
    ...methodAttributes(method),
    'url.full': `${url.origin}${bare === '*' ? '' : bare}`,
    'server.address': address,
    ...url.socketPath === null && { 'server.port': Number(id.slice(id.lastIndexOf(':') + 1)) },
    'breakwater.pool': pool,
    'breakwater.attempt.kind': kind,
    ...attempts > 1 && kind !== 'copy' && { 'http.request.resend_count': attempts - 1 }
  }
}

/** For a client an answer of 4xx is an error, too. That nobody wanted the answer any more is none. */
export function endAttempt (span: Span, { outcome, reason, status }: ObservedAttempt): void {
  if (span.isRecording()) {
    if (status > 0) span.setAttribute('http.response.status_code', status)
    if (outcome !== null) span.setAttribute('breakwater.outcome', outcome)
    const type = reason ?? (status >= 400 ? String(status) : null)
    if (type !== null) span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR })
  }
  span.end()
}
