/** The options of the two listeners. */
import { Type, type Static } from 'typebox'
import { count, bytesOrNone, flag, ms, msOrNone, object, oneOf, section, tokenPattern } from './schema-kit.ts'

const CertificateOptions = object({
  cert: Type.String({ minLength: 1, description: 'File with the certificate and its chain (PEM). Relative paths start at the working directory.' }),
  key: Type.String({ minLength: 1, description: 'File with its private key (PEM).' }),
  names: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1, description: 'Names that it is for; "*.example.com" for one label below it. Left out: those that the certificate itself has.' }))
})

export const ServerTlsOptions = object({
  certificates: Type.Array(CertificateOptions, { minItems: 1, description: 'Which certificate a client gets goes by the name that it asks for (SNI); the first one is for all others. The files are read again when they change and at every reload; one that is wrong changes nothing.' }),
  minVersion: oneOf(['TLSv1.2', 'TLSv1.3'], 'TLSv1.2', 'The oldest version that is spoken.'),
  clientCertificates: Type.Optional(object({
    ca: Type.String({ minLength: 1, description: 'File with the CA certificates that clients\' certificates must come from (PEM).' }),
    mode: oneOf(['require', 'request'], 'require', 'require: no connection without a valid one. request: one that is shown must be valid.'),
    header: Type.String({ pattern: tokenPattern, default: 'client-cert', description: 'Header in which the upstream is told the certificate, as RFC 9440 says; never accepted from clients.' })
  }, { description: 'Certificates of clients (mutual TLS).' }))
}, { description: 'TLS on the public listener. Left out: none.' })

export const Http2Options = section('HTTP/2 on the public listener.', {
  enabled: flag(true, 'Offered to clients over TLS (ALPN), beside HTTP/1.1.'),
  cleartext: flag(false, 'Also without TLS, to clients that begin with HTTP/2 (prior knowledge), beside HTTP/1.1. Upgrade: h2c is never taken.'),
  maxConcurrentStreams: count(100, 1, 'Requests at the same time on one connection.'),
  maxResetsPerSecond: count(100, 1, 'Streams that a client may reset in one second, and frames without use (settings, pings, empty ones, priorities) in hundreds; a connection with more is closed with ENHANCE_YOUR_CALM.')
})

export const ServerOptions = section('The public listener. Its address and port are fastify-cli\'s: -a, -p, FASTIFY_ADDRESS, FASTIFY_PORT.', {
  headersTimeoutMs: ms(5000, 'Time to receive a request\'s head; the smaller of this and requestTimeoutMs holds. Exceeded: 408.'),
  requestTimeoutMs: msOrNone(30000, 'Time to receive the whole request. 0: none. Exceeded: 408. A pool or a route may set its own (timeouts.requestMs).'),
  keepAliveTimeoutMs: ms(60000, 'How long an idle client connection is kept.'),
  maxHeaderBytes: Type.Integer({ minimum: 1024, maximum: 1048576, default: 65536, description: 'Size of a request\'s head, in bytes. Exceeded: 431.' }),
  maxRequestsPerConnection: count(0, 0, 'After so many requests a client\'s connection is closed; the last answer says so. 0: no limit.'),
  maxConnections: count(0, 0, 'Connections of clients at the same time; further ones are closed at once. 0: no limit.'),
  maxBodyBytes: bytesOrNone('Size of a request body, in bytes. 0: unlimited (bodies stream). Exceeded: 413. A route may set its own.'),
  trustedProxies: Type.Array(Type.String(), { default: [], description: 'Addresses or CIDRs of proxies in front, or unix for whoever connects to a Unix socket, whose X-Forwarded-*, Forwarded and request id are believed.' }),
  proxyProtocolFrom: Type.Array(Type.String(), { default: [], description: 'Addresses or CIDRs of load balancers, or unix, that begin every connection with a PROXY protocol header (version 1 or 2): it must be there, and tells the client\'s address. From anybody else it is refused as bytes that are not HTTP.' }),
  requestIdHeader: Type.String({ pattern: '^[A-Za-z0-9-]+$', minLength: 1, default: 'x-request-id', description: 'The header that carries the request id, in both directions.' }),
  stripRequestHeaders: Type.Array(Type.String({ pattern: '^[A-Za-z0-9_-]+$' }), { default: [], description: 'Headers never accepted from clients, such as x-user-id.' }),
  probes: flag(true, 'Serve GET /livez and /readyz on the public listener.'),
  tls: Type.Optional(ServerTlsOptions),
  http2: Http2Options,
  shutdown: section('The way down after SIGTERM or SIGINT.', {
    delayMs: msOrNone(0, 'How long to keep serving with /readyz at 503 before the listener closes. 0: close at once.'),
    graceMs: msOrNone(10000, 'How long accepted requests may take to finish after the listener closed; then they are cut and the exit code is 1.')
  })
})

export const AdminOptions = section('The admin listener, separate from the public one.', {
  enabled: flag(true, 'Open the admin listener.'),
  host: Type.String({ minLength: 1, default: '127.0.0.1', description: 'Address to listen on. Anything but loopback needs a token.' }),
  port: Type.Integer({ minimum: 0, maximum: 65535, default: 9090, description: 'Port to listen on. 0: any free port, logged as "admin listening". BREAKWATER_ADMIN_PORT overrides it.' }),
  token: Type.String({ default: '', description: 'Bearer token that every admin route but /livez and /readyz wants. Empty: none, which only loopback may have. BREAKWATER_ADMIN_TOKEN overrides it.' })
})

export type ServerOptions = Static<typeof ServerOptions>
export type ServerTlsOptions = Static<typeof ServerTlsOptions>
export type Http2Options = Static<typeof Http2Options>
export type AdminOptions = Static<typeof AdminOptions>
