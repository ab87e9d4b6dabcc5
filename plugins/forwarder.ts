/**
 * The forwarder: `reply.forward(route)` sends a request to an upstream of a pool and its answer back, through
 * @fastify/reply-from with a requester of our own that owns selection, permits, time limits, retries and outcomes.
 * Decorates `app.forwarding`, `reply.forward` and `reply.refuse`.
 */
import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import replyFrom from '@fastify/reply-from'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import type { MirrorOptions } from '../config/schema.ts'
import type { Evidence, Exchange } from '../lib/exchange.ts'
import { failureOf, type Reason } from '../lib/failure.ts'
import { cookieOf } from '../lib/http/cookie.ts'
import { keptRequestFields } from '../lib/http/field-limit.ts'
import { isGrpc } from '../lib/http/grpc.ts'
import { retryAfter } from '../lib/http/problem.ts'
import type { RequestHead } from '../lib/http/request-head.ts'
import { parseTarget, type Target } from '../lib/http/target.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { mayRepeat, type NoRetry } from '../lib/retry/policy.ts'
import { CompiledRoute } from '../lib/route/compiled.ts'
import { AnswerChanges } from './forwarder/answer-changes.ts'
import type { Answer } from './forwarder/answer.ts'
import { Attempt } from './forwarder/attempt.ts'
import { Attempts } from './forwarder/attempts.ts'
import { Forward, type ForwardHost } from './forwarder/forward.ts'
import { guardAnswers } from './forwarder/guard.ts'
import { bodyOf, isKnownVersion, removeField, tooManyFields, wantsTrailers } from './forwarder/incoming.ts'
import { KeptBody } from './forwarder/kept-body.ts'
import { Mirrors, type MirrorCounts } from './forwarder/mirror.ts'
import { mirrorField, Outgoing, type OutgoingParts } from './forwarder/outgoing.ts'
import { Pace } from './forwarder/pace.ts'
import type { AttemptEnd } from './forwarder/phases.ts'
import type { ClientBody } from './forwarder/request-body.ts'
import { beginForwarding, requester, sendJob } from './forwarder/requester.ts'
import { keyOf, routeOf, TermsBook, type AnyRoute, type ForwardRoute } from './forwarder/route.ts'
import { Succession, type AttemptsContext } from './forwarder/succession.ts'
import type { ForwardCounts, Terms } from './forwarder/terms.ts'
import type { TunnelDoor } from './forwarder/tunnel-door.ts'
import { handshakeOf, watchUpgrades, type Handshake } from './forwarder/upgrades.ts'
import type {} from './edge.ts'
import type {} from './breaker-registry.ts'
import type {} from './load-shedding.ts'
import type {} from './observation.ts'
import { answererOf, refuse } from './refusal.ts'
import type { OpenTunnel } from './tunnels.ts'
import type { UpstreamPool } from './upstream-pools.ts'

export type { ForwardCounts, ForwardRoute, MirrorCounts }

export interface ForwarderOptions {
  /** Size of a request body in bytes, where the route says nothing, or what tells it each time. 0: unlimited. Default: 0. */
  maxBodyBytes?: number | (() => number)
  /** Where jitter, back-off and the share of copies come from. Default: Math.random. */
  random?: Random
  /**
   * Carry WebSockets. False where something else in the app listens to the server's `upgrade`, like @fastify/websocket. Default: true.
   */
  upgrades?: boolean
}

/** What the forwarder has done for a pool beside first attempts. */
export interface ForwardingView extends ForwardCounts {
  /** Copies that the pool got. */
  readonly mirrors: MirrorCounts
}

export interface Forwarding {
  /** WebSockets that are open. */
  readonly tunnels: number
  /** Zeros where nothing has happened yet. */
  view (pool: string): ForwardingView
}

declare module 'fastify' {
  interface FastifyInstance {
    forwarding: Forwarding
  }
  interface FastifyReply {
    /**
     * Forwards the request to an upstream of a pool. What goes wrong is answered as a problem document; nothing is thrown for it.
     * @param target the pool's name, or a route
     * @throws TypeError unless it is one of these
     * @throws Error where there is no such pool, forward() was called before on this reply, or the request has been answered
     */
    forward (target: string | ForwardRoute | CompiledRoute): FastifyReply
    /**
     * Answers with the problem document of a reason, and notes the reason. Only notes it where another answer is on its way.
     * @param evidence the numbers behind it, which the client is not told
     */
    refuse (reason: Reason, evidence?: Evidence): FastifyReply
  }
}

class Forwarder implements ForwardHost, AttemptsContext {
  readonly #app: FastifyInstance
  readonly #maxBodyBytes: () => number
  readonly #mirrors: Mirrors
  readonly #passes: (name: string) => boolean
  readonly tunnels = new Set<OpenTunnel>()
  readonly random: Random
  readonly book: TermsBook
  readonly requestIdHeader: string

  constructor (app: FastifyInstance, options: ForwarderOptions) {
    this.#app = app
    const { maxBodyBytes = 0 } = options
    this.#maxBodyBytes = typeof maxBodyBytes === 'function' ? maxBodyBytes : () => maxBodyBytes
    this.random = options.random ?? systemRandom
    this.#mirrors = new Mirrors(this.random)
    this.book = new TermsBook(app.pools, app.hasDecorator('observers') ? app.observers : null)
    this.requestIdHeader = app.edge.requestIdHeader
    this.#passes = (name) => app.edge.head.passes(name)
  }

  forward (reply: FastifyReply, route: AnyRoute): FastifyReply {
    const { raw, exchange } = reply.request
    const name = route.pool ?? (route as CompiledRoute).poolFor({ clientIp: exchange.clientIp, headers: raw.headers })
    const lane = this.#app.pools.lane(name)
    if (lane === undefined) throw new Error(`there is no pool named "${name}"`)
    if (!beginForwarding(raw)) throw new Error('reply.forward() was called twice for one request')
    if (reply.sent || answererOf(reply.raw) !== undefined) throw new Error('reply.forward() was called for a request that has been answered')
    // Whoever left while hooks were at work is not worth an upstream's while.
    if (reply.raw.destroyed) return refuse(reply, 'client_cancelled')
    const options = optionsOf(route)
    exchange.pool = name
    if (options.path !== undefined) exchange.route = options.path
    const { shedding } = this.#app as { shedding?: FastifyInstance['shedding'] }
    const { priority = 'normal' } = options
    if (shedding?.admits(priority) === false) {
      return refuse(reply, 'shed_priority', retryAfter(shedding.retryAfterMs, this.random), { evidence: { priority, places: shedding.places(priority) } })
    }

    const target = parseTarget(raw.url ?? '', raw.method ?? '')
    const head = target === null || !isKnownVersion(raw) || tooManyFields(raw) ? null : this.#app.edge.head.read(raw.rawHeaders, raw.method ?? '')
    if (target === null || head === null) return refuseHead(reply, target)
    const limit = options.maxBodyBytes ?? this.#maxBodyBytes()
    if (limit > 0 && head.contentLength > limit) return refuse(reply, 'body_too_large', undefined, { evidence: { bytes: head.contentLength, limit } })
    const before = reply.raw.socket === null ? this.#app.edge.before(reply.raw) : null
    if (before === null) return this.#begin(reply, route, lane, target, head, limit)
    before.once('close', () => { this.#beginInTurn(reply, route, target, head, limit) })
    return reply
  }

  /** Of a request that had to wait for those before it on its connection. */
  #beginInTurn (reply: FastifyReply, route: AnyRoute, target: Target, head: RequestHead, limit: number): void {
    if (reply.sent || answererOf(reply.raw) !== undefined) return
    const { raw, exchange } = reply.request
    // The connection broke: those that wait are not closed yet.
    if (raw.socket.destroyed || reply.raw.destroyed) return void refuse(reply, 'client_cancelled')
    try {
      const lane = this.#app.pools.lane(exchange.pool as string)
      if (lane === undefined) refuse(reply, 'no_upstream_healthy')
      else this.#begin(reply, route, lane, target, head, limit)
    } catch (error) {
      reply.send(error)
    }
  }

  #begin (reply: FastifyReply, route: AnyRoute, lane: Terms['lane'], target: Target, head: RequestHead, limit: number): FastifyReply {
    const { raw, exchange } = reply.request
    const options = optionsOf(route)
    const terms = this.book.of(route, lane)
    const handshake = handshakeOf(raw)
    if (cannotCarry(lane.pool, handshake, raw)) {
      const [request, needs] = handshake === null ? ['gRPC', 'HTTP/2'] : ['A WebSocket', 'HTTP/1.1']
      return refuse(reply, 'protocol_mismatch', undefined, { evidence: { request, needs, http2: lane.pool.options.http2 } })
    }
    const mirror = handshake === null ? this.#mirrorOf(options.mirror, raw, head) : null
    const now = performance.now()
    const pace = paceOf(terms, raw, exchange)
    const body = bodyOf(reply, head, limit, keptBytes(terms, mirror === null ? -1 : head.contentLength), now, pace)
    exchange.ownRequestLimit = pace !== null
    if (limit > 0 && body instanceof Buffer && body.length > limit) return refuse(reply, 'body_too_large', undefined, { evidence: { bytes: body.length, limit } })
    return this.#send(reply, route, terms, this.#partsOf(reply, target, head, route, terms, body, handshake !== null), body, mirror, handshake, now)
  }

  #send (reply: FastifyReply, route: AnyRoute, terms: Terms, parts: OutgoingParts, body: ClientBody | Buffer | null, mirror: MirrorOptions | null, handshake: Handshake | null, now: number): FastifyReply {
    const { raw, exchange } = reply.request
    const { lane, limits: { totalMs } } = terms
    const { pool } = lane
    const token = pool.sticky === null ? null : cookieOf(raw.headers.cookie ?? '', pool.options.sticky?.cookie ?? '')
    const key = pool.options.balancer === 'hash' ? keyOf(pool.options.hash, raw, parts.target.path, exchange.clientIp) : -1
    const refusal = lane.select(now, key, token === null ? -1 : pool.sticky?.indexOf(token) ?? -1)
    if (refusal !== null) {
      terms.observers?.pickRefused(exchange, lane, refusal, now)
      return refuse(reply, refusal, retryAfter(lane.expectedMs(refusal, now), this.random))
    }
    const { index, permit } = lane
    let attempt: Attempt | null = null
    try {
      const streamed = body === null || Buffer.isBuffer(body) ? null : body
      const outgoing = new Outgoing(parts, pool, body, totalMs === 0 ? Infinity : exchange.receivedAt + totalMs)
      const forward = new Forward(this, reply, exchange, terms, streamed, AnswerChanges.of(route, terms, token), this.#doorOf(handshake, route))
      const attempts = terms.repeats ? new Attempts(forward, new Succession(forward, this, terms, outgoing, isRepeatable(raw, terms), key), outgoing, streamed) : null
      attempt = new Attempt(attempts ?? forward, terms, index, permit, outgoing, now)
      exchange.upstream = attempt.upstream.id
      exchange.attempts++
      attempt.count('first')
      sendJob(reply, { forward, attempt, attempts, now, raw, fields: raw.headers })
      if (mirror !== null) this.#copy(mirror, exchange, outgoing, body)
    } catch (error) {
      // Nothing may keep the place and the permit, least of all a mistake of our own.
      if (attempt === null) {
        lane.release(index)
        lane.settle(index, permit, 'ignored', false, now)
      } else {
        attempt.cancel('ignored')
      }
      throw error
    }
    return reply
  }

  /** The fields that are sent, in the order of trust: what the client may say, what the route wants, and last what is ours to say. */
  #partsOf (reply: FastifyReply, target: Target, head: RequestHead, route: AnyRoute, { lane }: Terms, body: ClientBody | Buffer | null, upgrade: boolean): OutgoingParts {
    const { raw, exchange } = reply.request
    const { fields } = head
    const host = target.authority ?? head.host
    const { deadlineHeader } = lane.pool.options
    if (deadlineHeader !== undefined) removeField(fields, deadlineHeader)
    if (route instanceof CompiledRoute) route.changeRequest?.(fields)
    const hostAt = fields.push('host', host) - 1
    if (body !== null && !Buffer.isBuffer(body) && head.contentLength > 0) fields.push('content-length', String(head.contentLength))
    this.#app.edge.peerOf(raw).append(fields, head.given, host, exchange.clientIp, optionsOf(route).stripPrefix ?? '')
    fields.push(this.requestIdHeader, exchange.requestId)
    return {
      method: raw.method as string, target, route, fields, hostAt, host, upgrade,
      takesTrailers: !upgrade && wantsTrailers(raw),
      grpc: isGrpc(raw.headers['content-type']),
      mayTrail: head.contentLength === -1 ? this.#passes : null
    }
  }

  #doorOf (handshake: Handshake | null, route: AnyRoute): TunnelDoor | null {
    return handshake === null ? null : { handshake, open: this.tunnels, idleMs: optionsOf(route).upgradeIdleMs ?? 0 }
  }

  /** For an app without breakwater-lifecycle, which would have seen to it before. */
  async endTunnels (): Promise<void> {
    for (const tunnel of this.tunnels) tunnel.goAway()
    for (const end = performance.now() + partingMs; this.tunnels.size > 0 && performance.now() < end;) await sleep(20)
    for (const tunnel of this.tunnels) tunnel.cut()
  }

  // ---- copies

  /** Null where no copy is wanted. What is a copy already is not copied again. */
  #mirrorOf (mirror: MirrorOptions | undefined, { headers }: IncomingMessage, { contentLength }: RequestHead): MirrorOptions | null {
    return mirror !== undefined && headers[mirrorField] === undefined && this.#mirrors.wants(mirror, contentLength) ? mirror : null
  }

  /** Nothing that goes wrong with a copy is the exchange's. */
  #copy (mirror: MirrorOptions, exchange: Exchange, outgoing: Outgoing, body: ClientBody | Buffer | null): void {
    const send = (whole: Buffer | null): void => {
      try {
        const lane = this.#app.pools.lane(mirror.pool)
        if (lane !== undefined) this.#mirrors.send(mirror, this.book.of({ pool: mirror.pool }, lane), this.book.record(mirror.pool).mirrors, exchange, outgoing, whole)
      } catch (error) {
        this.#app.log.error({ err: error, pool: mirror.pool }, 'internal_error')
      }
    }
    if (body === null || Buffer.isBuffer(body)) send(body)
    else if (body instanceof KeptBody) body.whole = send
  }

  // ---- what forwards and their attempts ask and report

  current ({ lane: { pool } }: Terms, route: AnyRoute): Terms | null {
    const lane = this.#app.pools.lane(pool.name)
    return lane === undefined ? null : this.book.of(route, lane)
  }

  refuse (reply: FastifyReply, reason: Reason, evidence?: Evidence): FastifyReply {
    return refuse(reply, reason, failureOf(reason).status === 503 ? retryAfter(1000, this.random) : undefined, evidence && { evidence })
  }

  attemptEnded (exchange: Exchange, { attempt, reason, outcome, error, moved }: AttemptEnd, noRetry: NoRetry | null): void {
    // A client that left or took nothing, whatever the reason's name, or a limit of our own: no upstream's error.
    if ((outcome === 'cancelled' && moved !== true) || failureOf(reason).side !== 'upstream') return
    const { pool, id } = attempt.upstream
    this.#app.log.warn({ request_id: exchange.requestId, pool, upstream: id, reason, outcome, error, ...noRetry !== null && { no_retry: noRetry } }, 'upstream_error')
  }

  answerDropped (exchange: Exchange, { upstream, answer }: Attempt): void {
    const { pool, id } = upstream
    const { status, failed } = answer as Answer
    this.#app.log.warn({ request_id: exchange.requestId, pool, upstream: id, reason: null, outcome: failed ? 'failure' : 'success', error: `answered ${status}` }, 'upstream_error')
  }
}

/** HTTP/1 cannot carry gRPC, and a pool that speaks nothing but HTTP/2 no WebSocket. */
const cannotCarry = ({ options: { http2 } }: UpstreamPool, handshake: Handshake | null, { headers }: IncomingMessage): boolean =>
  (handshake !== null && http2 === 'prior-knowledge') || (http2 === 'off' && isGrpc(headers['content-type']))

/** How long tunnels may take to end when the app closes, in ms. */
const partingMs = 3000

const optionsOf = (route: AnyRoute): Partial<CompiledRoute['options']> => route instanceof CompiledRoute ? route.options : route

/** How much of a body that streams is kept: for another attempt, or for a copy, which is wanted of all of it; -1: nothing. */
const keptBytes = ({ retry }: Terms, copied: number): number => Math.max(retry.retries > 0 ? retry.maxBufferedBodyBytes : -1, copied)

/** Null where the listener's limit for the whole request holds. gRPC has none: its streams may last. */
const paceOf = ({ limits }: Terms, { headers }: IncomingMessage, { receivedAt }: Exchange): Pace | null =>
  limits.requestMs === undefined || isGrpc(headers['content-type']) ? null : new Pace(limits, receivedAt)

/** What of its head is wrong is told to people only. */
function refuseHead (reply: FastifyReply, target: Target | null): FastifyReply {
  const { raw } = reply.request
  if (tooManyFields(raw)) return refuse(reply, 'headers_too_large', undefined, { evidence: { fields: raw.rawHeaders.length / 2 } })
  const wrong = target === null ? 'target' : isKnownVersion(raw) ? 'header fields' : 'HTTP version'
  return refuse(reply, 'bad_request', undefined, { evidence: { wrong } })
}

const isRepeatable = ({ method, headers }: IncomingMessage, { retry }: Terms): boolean =>
  mayRepeat(method ?? '', headers['idempotency-key'] !== undefined, retry.idempotencyKey)

const forwarder: FastifyPluginAsync<ForwarderOptions> = async (app, options) => {
  if (app.hasReplyDecorator('from')) {
    throw new Error('@fastify/reply-from is registered in this scope already: register breakwater-forwarder in a scope of its own')
  }
  await app.register(replyFrom, { base: 'http://upstream.invalid', undici: requester as never, retryMethods: [], disableRequestLogging: true })
  // Node's own limit is half of it.
  app.server.maxHeadersCount ??= keptRequestFields
  guardAnswers(app)
  const instance = new Forwarder(app, options)
  const { book } = instance
  app.decorate('forwarding', {
    get tunnels () { return instance.tunnels.size },
    view (pool: string) {
      const { counts, mirrors } = book.record(pool)
      return { ...counts, notRetried: { ...counts.notRetried }, mirrors: { ...mirrors } }
    }
  })
  app.decorateReply('forward', function (this: FastifyReply, target: string | AnyRoute): FastifyReply {
    return instance.forward(this, routeOf(target))
  })
  app.decorateReply('refuse', function (this: FastifyReply, reason: Reason, evidence?: Evidence): FastifyReply {
    return instance.refuse(this, reason, evidence)
  })

  let unsubscribe = (): void => {}
  app.addHook('onReady', async () => {
    if (!app.hasDecorator('breakers')) return
    // A transition names the requests that it is for, and the breaker knows none.
    if (app.hasDecorator('observers')) {
      app.observers.add({
        attemptFailed: (exchange, { upstream: { pool, id }, permit }) => { if (exchange !== null) app.breakers.find(pool, id)?.blame(exchange.requestId, permit) }
      })
    }
    unsubscribe = app.breakers.on('transition', ({ cause, pool, upstream }) => {
      const breaker = cause === 'stall' ? app.breakers.find(pool, upstream)?.breaker : undefined
      // Where it only observes, nobody is kept from the upstream, and nobody is moved away from it.
      if (breaker?.mode === 'enforce') book.lists.stalled(breaker)
    })
  })
  const unwatch = options.upgrades === false ? () => {} : watchUpgrades(app.server)
  app.addHook('preClose', async () => { await instance.endTunnels() })
  app.addHook('onClose', async () => {
    unsubscribe()
    unwatch()
  })
}

export default fp(forwarder, { name: 'breakwater-forwarder', fastify: '5.x', dependencies: ['breakwater-edge', 'breakwater-upstream-pools'] })
