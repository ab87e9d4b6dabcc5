/**
 * Edge hygiene: every request gets its exchange, with a request id and the client's address by the rules of trust.
 * What a peer says about the client is believed only where the peer is a trusted proxy. Decorates `app.edge` and `request.exchange`.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Http2Session, ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { Exchange } from '../lib/exchange.ts'
import { Peer, type ReceivedVersion } from '../lib/http/forwarded.ts'
import { RequestHeadReader } from '../lib/http/request-head.ts'
import { isRequestId } from '../lib/http/request-id.ts'
import { compileTrust, plainAddress, type Trust } from '../lib/http/trust.ts'
import { beginNoMore, closeBehind, hearNoMore, onBreak } from './connection.ts'
import { socketOf, type ClientRequest } from './http2/client-request.ts'
import type { Flood } from './http2/client-sessions.ts'
import { isHttp2 } from './http2/is-http2.ts'
import { refuse } from './refusal.ts'
import { Repeats } from './repeats.ts'
import { mayHaveLostFollowers } from './upgrading-message.ts'
import { closeWithConnection } from './waiting-responses.ts'

export interface EdgeOptions {
  /** Addresses or CIDRs of proxies in front, or `unix` for peers on a Unix socket. Default: none is trusted. */
  trustedProxies?: readonly string[]
  /** The field that carries the request id, in both directions. Default: x-request-id. */
  requestIdHeader?: string
  /** Fields never accepted from clients. */
  stripRequestHeaders?: readonly string[]
  /** Size of a request's head over HTTP/2, in bytes; HTTP/1 has the server's own limit. Default: 65536. */
  maxHeaderBytes?: number
  /** After so many requests a connection is closed; the last answer says so, or GOAWAY does (HTTP/2). Default: 0, no limit. */
  maxRequestsPerConnection?: number
  /** Where clients show certificates, upstreams are told them (RFC 9440) in `header`, which is never accepted from clients. Default: they do not. */
  tls?: { readonly clientCertificates?: { readonly header: string } }
}

/** What the other plugins need of the edge. */
export interface Edge {
  /** Lower-case. */
  readonly requestIdHeader: string
  readonly head: RequestHeadReader
  peerOf (raw: IncomingMessage): Peer
  /**
   * Gives the request its exchange, where no hook has run: in Fastify's handler of framework errors. False: the request came
   * behind the last answer of its connection, and nothing may be done for it.
   */
  begin (request: FastifyRequest, reply: FastifyReply): boolean
  /**
   * The response that has to be sent before a pipelined request may be begun: such requests run side by side only where all of them
   * are safe (RFC 9112 section 9.3.2). Null: it may begin.
   */
  before (response: ServerResponse): ServerResponse | null
  /** The exchanges on a connection that have not been answered whole, in their order; pipelined ones wait behind each other. */
  openOn (socket: Socket): Exchange[]
}

declare module 'fastify' {
  interface FastifyInstance {
    edge: Edge
  }
  interface FastifyRequest {
    /** The facts of this request on its way through. */
    exchange: Exchange
  }
}

/**
 * Requests of one HTTP/1 connection that may be without their whole answers at the same time; the last of them closes it. Each costs many times
 * the bytes that it came in, and nobody can make Node's parser wait within what it has read.
 */
const maxPipelined = 128

const kPeer = Symbol('breakwater.peer')
const kRequestId = Symbol('breakwater.requestId')
const kLatest = Symbol('breakwater.latest')
const kCount = Symbol('breakwater.requests')
const kExchange = Symbol('breakwater.exchange')

const kBefore = Symbol('breakwater.before')

interface TaggedResponse extends ServerResponse { [kExchange]?: Exchange, [kBefore]?: ServerResponse }
const kEarlier = Symbol('breakwater.earlier')
const kUnsafe = Symbol('breakwater.unsafeEarlier')

type CountedSession = Http2Session & { [kCount]?: number }
interface TaggedSocket extends Socket {
  [kPeer]?: Peer
  [kUnsafe]?: number
  [kLatest]?: FastifyReply
  [kEarlier]?: Set<FastifyReply>
  /** Requests so far, where they are limited. */
  [kCount]?: number
  encrypted?: boolean
  authorized?: boolean
  getPeerX509Certificate?: TLSSocket['getPeerX509Certificate']
}
interface TaggedRequest extends IncomingMessage { [kRequestId]?: string }

/** @param certificateHeader null: clients show no certificates */
function peerOf (socket: TaggedSocket, trust: Trust, certificateHeader: string | null, version: ReceivedVersion): Peer {
  const known = socket[kPeer]
  if (known !== undefined && known.trust === trust) return known
  const own = certificateHeader === null ? [] : certificateField(socket, certificateHeader)
  const peer = new Peer(addressOf(socket), trust, socket.encrypted === true ? 'https' : 'http', socket.localPort ?? 0, version, own)
  socket[kPeer] = peer
  return peer
}

/** '' on a Unix socket. A peer whom the system has forgotten already could be anybody. */
function addressOf (socket: Socket): string {
  const { remoteAddress } = socket
  if (remoteAddress === undefined && (socket.localAddress !== undefined || socket.destroyed)) return 'unknown'
  return plainAddress(remoteAddress)
}

/** The client's certificate as RFC 9440 section 2.2 has it; nothing where none was shown, or one that nobody vouches for. */
function certificateField (socket: TaggedSocket, header: string): string[] {
  const certificate = socket.authorized === true ? socket.getPeerX509Certificate?.() : undefined
  return certificate === undefined ? [] : [header, `:${certificate.raw.toString('base64')}:`]
}

/** The client that a trusted peer tells of: in X-Forwarded-For where that is there, else in Forwarded. */
function clientOf (peer: Peer, headers: IncomingHttpHeaders): string {
  const forwardedFor = headers['x-forwarded-for']
  return forwardedFor === undefined ? peer.clientAddressByForwarded(headers.forwarded) : peer.clientAddress(String(forwardedFor))
}

/** The id of a request: the trusted peer's where it is well-formed, else a new one; the same one each time it is asked. */
function requestIdOf (raw: TaggedRequest, header: string, trusted: boolean): string {
  const known = raw[kRequestId]
  if (known !== undefined) return known
  const given = trusted ? raw.headers[header] : undefined
  return raw[kRequestId] = isRequestId(given) ? given : randomUUID()
}

/** Fastify's `genReqId` for an app of its own, so that its log lines carry the same id. Throws a RangeError for a bad CIDR. */
export function requestIdSource (options: EdgeOptions): (raw: IncomingMessage) => string {
  const trust = compileTrust(options.trustedProxies ?? [])
  const header = (options.requestIdHeader ?? 'x-request-id').toLowerCase()
  return (raw) => requestIdOf(raw, header, trust(addressOf(raw.socket)))
}

/** The reply to the latest request that began on a connection, or null. */
export function latestReplyOn (socket: Socket): FastifyReply | null {
  return (socket as TaggedSocket)[kLatest] ?? null
}

/** True once it is decided that a connection closes behind an answer that was begun on it, or that it will (HTTP/1). */
export function isClosing (socket: TaggedSocket): boolean {
  const latest = socket[kLatest]
  if (latest === undefined) return false
  if (isLast(latest.raw) || socket.writableEnded) return true
  const earlier = socket[kEarlier]
  if (earlier !== undefined) for (const { raw } of earlier) if (isLast(raw)) return true
  return false
}

/** Node notes in the one what its head says, and in the other what the client wants and what we want before there is a head. */
function isLast (response: ServerResponse & { _last?: boolean }): boolean {
  return response['_last'] === true || !response.shouldKeepAlive
}

/** A connection is broken for the sake of one answer: those that wait with it did not end by their clients' doing. */
function shareReason (socket: TaggedSocket, broken: ServerResponse): void {
  const latest = socket[kLatest]
  const exchange = latest?.raw === broken ? latest.request.exchange : (broken as TaggedResponse)[kExchange]
  const reason = exchange?.reason ?? null
  if (reason !== null) for (const open of openOn(socket)) open.fail(reason)
}

/** Methods that change nothing (RFC 9110 section 9.2.1). */
const safeMethods = new Set<string | undefined>(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/** A pipelined request: the one before it is not the latest any more, and is still to be answered. */
function keepEarlier (socket: TaggedSocket, earlier: FastifyReply, { request, raw }: FastifyReply): void {
  const open = socket[kEarlier] ??= watchBreaks(socket)
  open.add(earlier)
  // Newer Nodes close a response that is destroyed while it waits at once, before its turn to break the connection.
  const response: TaggedResponse = earlier.raw
  response[kExchange] = earlier.request.exchange
  const unsafe = safeMethods.has(earlier.request.raw.method) ? 0 : 1
  socket[kUnsafe] = (socket[kUnsafe] ?? 0) + unsafe
  response.on('close', () => {
    open.delete(earlier)
    socket[kUnsafe] = (socket[kUnsafe] ?? 0) - unsafe
  })
  if (socket[kUnsafe] > 0 || !safeMethods.has(request.raw.method)) (raw as TaggedResponse)[kBefore] = response
}

function before (response: TaggedResponse): ServerResponse | null {
  const earlier = response[kBefore]
  return earlier === undefined || earlier.closed ? null : earlier
}

/** Requests over HTTP/2 wait for nobody, and none is the connection's latest. */
function beginStream (socket: TaggedSocket, { raw }: FastifyRequest, reply: FastifyReply): void {
  const open = socket[kEarlier] ??= new Set()
  open.add(reply)
  reply.raw.on('close', () => { open.delete(reply) })
  ;(raw as Partial<Pick<ClientRequest, 'onLate'>>).onLate = () => { refuseLate(reply) }
}

/** The body of a request is too long in coming. Where its route has limits of its own for that, and once an answer has begun, those count. */
function refuseLate (reply: FastifyReply): void {
  if (!reply.request.exchange.ownRequestLimit && !reply.raw.headersSent && !reply.raw.destroyed) refuse(reply, 'request_timeout', undefined, { evidence: { limit: 'server.requestTimeoutMs' } })
}

function watchBreaks (socket: TaggedSocket): Set<FastifyReply> {
  onBreak(socket, (response) => { shareReason(socket, response) })
  return new Set()
}

function openOn (socket: TaggedSocket): Exchange[] {
  const latest = socket[kLatest]
  return [...socket[kEarlier] ?? [], ...latest === undefined ? [] : [latest]]
    .filter(({ raw }) => !raw.writableFinished && !raw.destroyed)
    .map(({ request }) => request.exchange)
}

const edge: FastifyPluginAsync<EdgeOptions> = async (app, options) => {
  const trust = compileTrust(options.trustedProxies ?? [])
  const requestIdHeader = (options.requestIdHeader ?? 'x-request-id').toLowerCase()
  const { maxRequestsPerConnection = 0, maxHeaderBytes = 65536 } = options
  const certificateHeader = options.tls?.clientCertificates?.header.toLowerCase() ?? null
  const stripped = [...options.stripRequestHeaders ?? [], ...certificateHeader === null ? [] : [certificateHeader]]
  const head = new RequestHeadReader(stripped.map((name) => name.toLowerCase()), requestIdHeader)
  const peerAt = (socket: Socket, version: ReceivedVersion = '1.1'): Peer => peerOf(socket, trust, certificateHeader, version)

  function begin (request: FastifyRequest, reply: FastifyReply): boolean {
    const { raw } = request
    const socket: TaggedSocket = raw.socket
    if (!isHttp2(raw) && isClosing(socket)) {
      // Its bytes were in one packet with the last request's. The parser is not done with them yet.
      beginNoMore(socket)
      process.nextTick(hearNoMore, socket)
      return false
    }
    const peer = peerAt(socket)
    const client = peer.trusted ? clientOf(peer, raw.headers) : peer.address
    const id = requestIdOf(raw, requestIdHeader, peer.trusted)
    request.id = id
    request.exchange = new Exchange(id, client, performance.now())
    reply.header(requestIdHeader, id)
    if (reply.raw.socket === null) {
      closeWithConnection(socket, reply.raw)
      if (socket[kLatest] !== undefined) keepEarlier(socket, socket[kLatest], reply)
    }
    if (isHttp2(raw)) {
      beginStream(socket, request, reply)
    } else {
      if (mayHaveLostFollowers(raw)) closeBehind(raw, reply.raw)
      if ((socket[kEarlier]?.size ?? 0) >= maxPipelined - 1) {
        closeBehind(raw, reply.raw)
        beginNoMore(socket)
      }
      socket[kLatest] = reply
    }
    if (maxRequestsPerConnection > 0) countRequest(socket, raw, reply.raw)
    return true
  }

  function countRequest (socket: TaggedSocket, raw: IncomingMessage, response: ServerResponse): void {
    const session = (raw as { stream?: { session?: CountedSession } }).stream?.session
    const counted = session ?? socket
    const count = counted[kCount] = (counted[kCount] ?? 0) + 1
    if (count < maxRequestsPerConnection) return
    // A session says it with GOAWAY, and ends with its last stream.
    if (session === undefined) closeBehind(raw, response)
    else if (!session.closed) session.close()
  }

  app.decorate('edge', { requestIdHeader, head, peerOf: (raw: IncomingMessage) => peerAt(raw.socket), begin, before, openOn })
  // Asked now, as the system forgets who the peer was when that breaks the connection.
  app.server.on('connection', (socket: Socket) => { peerAt(socket) })
  app.server.on('session', (session: ServerHttp2Session) => { peerAt(socketOf(session), '2.0') })
  const floods = new Repeats<Flood['what'], string>((what, count, client_ip) => { app.log.warn({ what, client_ip, count }, 'http2_flood') })
  app.server.on('flood', ({ what, address }: Flood) => { floods.add(what, address) })
  app.addHook('onClose', async () => { floods.close() })
  app.decorateRequest('exchange', null as unknown as Exchange)
  app.addHook('onRequest', (request, reply, done) => {
    // A request behind the last one stops here: without an answer, a line, or a trace anywhere.
    if (!begin(request, reply)) return
    const fault = isHttp2(request.raw) ? (request.raw as unknown as Partial<ClientRequest>).faultOf?.(maxHeaderBytes) ?? null : null
    if (fault === null) return done()
    const { observers } = app as { observers?: { follow (request: FastifyRequest, reply: FastifyReply): void } }
    observers?.follow(request, reply)
    refuse(reply, fault)
  })
}

export default fp(edge, { name: 'breakwater-edge', fastify: '5.x' })
