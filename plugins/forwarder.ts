/**
 * The forwarder: `reply.forward(pool)` sends a request to an upstream of the pool and its answer back, through
 * @fastify/reply-from with a requester of our own that owns selection, permits, time limits and outcomes.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import replyFrom, { type FastifyReplyFromHooks } from '@fastify/reply-from'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import type { RouteOptions, TimeoutOptions } from '../config/schema.ts'
import { Lane, type SelectBreaker } from '../lib/balance/select.ts'
import { failureOf, type Outcome, type Reason } from '../lib/failure.ts'
import type { Exchange } from '../lib/exchange.ts'
import { keptRequestFields, mayHaveLostFields } from '../lib/http/field-limit.ts'
import { retryAfter } from '../lib/http/problem.ts'
import type { RequestHead } from '../lib/http/request-head.ts'
import { parseTarget, type Target } from '../lib/http/target.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { forwardedPath } from '../lib/route/rewrite.ts'
import { Attempt } from './forwarder/attempt.ts'
import { Forward, type AnswerCallback, type ForwardHost } from './forwarder/forward.ts'
import { guardAnswers } from './forwarder/guard.ts'
import { RequestBody } from './forwarder/request-body.ts'
import type {} from './edge.ts'
import type {} from './breaker-registry.ts'
import { answererOf, refuse } from './refusal.ts'
import type { UpstreamPool } from './upstream-pools.ts'
import type { Upstream } from './upstream-pools/upstream.ts'

export interface ForwarderOptions {
  /** Size of a request body in bytes, where the route says nothing. 0: unlimited. Default: 0. */
  maxBodyBytes?: number
  /** Where jitter comes from. Default: Math.random. */
  random?: Random
}

/** What a route says about its forwarding; all but the pool may be left out. */
export type ForwardRoute = Pick<RouteOptions, 'pool' | 'stripPrefix' | 'prefix' | 'timeouts' | 'maxBodyBytes'> & { path?: string }

declare module 'fastify' {
  interface FastifyReply {
    /**
     * Forwards the request to an upstream of a pool. What goes wrong is answered as a problem document; nothing is thrown for it.
     * @param target the pool's name, or a route
     * @throws Error where there is no such pool, forward() was called before on this reply, or the request has been answered
     */
    forward (target: string | ForwardRoute): FastifyReply
    /** Answers with the problem document of a reason, and notes the reason. Only notes it where another answer is on its way. */
    refuse (reason: Reason): FastifyReply
  }
}

const kJob = Symbol('breakwater.job')

/** What travels through reply-from, in the place of headers, to our requester. */
interface Job {
  forward: Forward
  attempt: Attempt
  now: number
  raw: IncomingMessage
  /** The request's fields, kept from reply-from, which would copy them only for us to throw the copy away. */
  fields: IncomingHttpHeaders
}

const noFields: IncomingHttpHeaders = Object.freeze({})

interface RequesterOptions {
  headers: { [kJob]: Job }
}

/** Null: forwarding began, and ended before there was a job. */
interface TaggedRequest extends IncomingMessage { [kJob]?: Job | null }

/** reply-from's transport: everything that it would look up, we know already. */
const requester = {
  request (options: RequesterOptions, callback: AnswerCallback): void {
    const { forward, attempt, now, raw, fields } = options.headers[kJob]
    raw.headers = fields
    forward.begin(attempt, now, callback)
  }
}

/**
 * What reply-from is told, the same for every request: it does not retry, rewrite or read the body, it hands the job to our
 * requester in the place of headers, and it sends the answer as it is.
 */
const hooks: FastifyReplyFromHooks = {
  queryString: () => '',
  body: null,
  retryDelay: (() => null) as never,
  rewriteRequestHeaders: (request) => ({ [kJob]: (request.raw as TaggedRequest)[kJob] }) as never,
  onResponse: sendAnswer as never
}

function sendAnswer (_request: unknown, reply: FastifyReply, { stream }: { stream: Buffer | Readable | undefined }): void {
  // Somebody answered past Fastify while we waited (a hijacked reply): an unread stream would keep its connection for ever.
  if (reply.sent && stream instanceof Readable) stream.destroy()
  else reply.send(stream)
}

class Forwarder implements ForwardHost {
  readonly #app: FastifyInstance
  readonly #maxBodyBytes: number
  readonly #random: Random
  readonly #lanes = new WeakMap<UpstreamPool, Lane<Upstream>>()
  readonly requestIdHeader: string

  constructor (app: FastifyInstance, options: ForwarderOptions) {
    this.#app = app
    this.#maxBodyBytes = options.maxBodyBytes ?? 0
    this.#random = options.random ?? systemRandom
    this.requestIdHeader = app.edge.requestIdHeader
  }

  forward (reply: FastifyReply, route: ForwardRoute): FastifyReply {
    const { request } = reply
    const { raw, exchange } = request
    const pool = this.#app.pools.get(route.pool)
    if (pool === undefined) throw new Error(`there is no pool named "${route.pool}"`)
    const tagged: TaggedRequest = raw
    if (tagged[kJob] !== undefined) throw new Error('reply.forward() was called twice for one request')
    if (reply.sent || answererOf(reply.raw) !== undefined) throw new Error('reply.forward() was called for a request that has been answered')
    tagged[kJob] = null
    // Whoever left while hooks were at work is not worth an upstream's while.
    if (reply.raw.destroyed) return refuse(reply, 'client_cancelled')
    exchange.pool = pool.name
    if (route.path !== undefined) exchange.route = route.path

    const target = parseTarget(raw.url ?? '', raw.method ?? '')
    const head = target === null || !isKnownVersion(raw) || tooManyFields(raw) ? null : this.#app.edge.head.read(raw.rawHeaders, raw.method ?? '')
    if (target === null || head === null) return refuse(reply, tooManyFields(raw) ? 'headers_too_large' : 'bad_request')
    const limit = route.maxBodyBytes ?? this.#maxBodyBytes
    if (limit > 0 && head.contentLength > limit) return refuse(reply, 'body_too_large')
    const now = performance.now()
    const body = bodyOf(reply, head, limit, now)
    if (limit > 0 && body instanceof Buffer && body.length > limit) return refuse(reply, 'body_too_large')

    const lane = this.#laneOf(pool)
    const refusal = lane.select(now)
    if (refusal !== null) return refuse(reply, refusal, retryAfter(lane.expectedMs(refusal, now), this.#random))
    const upstream = pool.upstreams[lane.index] as Upstream
    const breaker = lane.breakers[lane.index] ?? null
    const permit = lane.permit

    const fields = raw.headers
    let attempt: Attempt | null = null
    try {
      const forward = new Forward(this, reply, exchange, limitsOf(pool, route), body instanceof RequestBody ? body : null)
      const outgoing = {
        method: raw.method as string,
        path: forwardedPath(target.path, route.stripPrefix, route.prefix, upstream.url.basePath) + target.search,
        headers: this.#headersFor(reply, target, head, upstream, pool, route, body),
        body
      }
      attempt = new Attempt(forward, upstream, breaker, permit, outgoing)
      tagged[kJob] = { forward, attempt, now, raw, fields }
      exchange.upstream = upstream.id
      exchange.attempts++
      raw.headers = noFields
      reply.from('/', hooks)
    } catch (error) {
      raw.headers = fields
      // Nothing may keep the place and the permit, least of all a mistake of our own.
      if (attempt === null) {
        upstream.inFlight--
        breaker?.settle(permit, 'ignored', now)
      } else {
        attempt.cancel('ignored')
      }
      throw error
    }
    return reply
  }

  /** Makes the lanes of all pools, so that their breakers are there to be seen before the first request. */
  prepare (): void {
    for (const pool of this.#app.pools.list()) this.#laneOf(pool)
  }

  #laneOf (pool: UpstreamPool): Lane<Upstream> {
    let lane = this.#lanes.get(pool)
    if (lane === undefined) {
      lane = new Lane(pool, ({ id }): SelectBreaker | null =>
        this.#app.hasDecorator('breakers') ? this.#app.breakers.get(pool.name, id, pool.options.breaker).breaker : null)
      this.#lanes.set(pool, lane)
    }
    return lane
  }

  #headersFor (reply: FastifyReply, target: Target, head: RequestHead, upstream: Upstream, pool: UpstreamPool, route: ForwardRoute, body: RequestBody | Buffer | null): string[] {
    const { request } = reply
    const { exchange } = request
    const host = target.authority ?? head.host
    const headers = head.fields
    headers.push('host', pool.options.hostHeader === 'preserve' && host !== '' ? host : upstream.host)
    if (body instanceof RequestBody && head.contentLength > 0) headers.push('content-length', String(head.contentLength))
    this.#app.edge.peerOf(request.raw).append(headers, head.given, host, exchange.clientIp, route.stripPrefix ?? '')
    headers.push(this.requestIdHeader, exchange.requestId)
    return headers
  }

  // ---- what a forward reports

  refuse (reply: FastifyReply, reason: Reason): FastifyReply {
    return refuse(reply, reason, failureOf(reason).status === 503 ? retryAfter(1000, this.#random) : undefined)
  }

  attemptEnded (exchange: Exchange, attempt: Attempt, reason: Reason, outcome: Outcome, error: string): void {
    // A client that left or took nothing, whatever the reason's name, or a limit of our own: no upstream's error.
    if (outcome === 'cancelled' || failureOf(reason).side !== 'upstream') return
    const { pool, id } = attempt.upstream
    this.#app.log.warn({ request_id: exchange.requestId, pool, upstream: id, reason, outcome, error }, 'upstream_error')
  }
}

function isKnownVersion (raw: IncomingMessage): boolean {
  const { httpVersionMajor: major, httpVersionMinor: minor } = raw
  return (major === 1 && (minor === 0 || minor === 1)) || (major === 2 && minor === 0)
}

/** Node drops header fields over its limit silently; a request that lost some is refused. */
function tooManyFields ({ rawHeaders, socket }: IncomingMessage): boolean {
  return mayHaveLostFields(rawHeaders.length, (socket as { server?: { maxHeadersCount?: number | null } }).server?.maxHeadersCount)
}

function limitsOf (pool: UpstreamPool, route: ForwardRoute): TimeoutOptions {
  const { timeouts } = pool.options
  return route.timeouts === undefined ? timeouts : { ...timeouts, ...route.timeouts }
}

/**
 * The body to send: the client's stream untouched, or, in a route whose parser has read it, what the parser made of it.
 * Throws where a body was read by somebody who left nothing of it, or nothing that it could be made of again.
 */
function bodyOf (reply: FastifyReply, head: RequestHead, limit: number, now: number): RequestBody | Buffer | null {
  const { raw, body: parsed } = reply.request
  if (parsed !== undefined && parsed !== null && !(parsed instanceof Readable)) return bodyAgain(parsed, raw, head)
  if (head.contentLength === 0) return null
  if (!raw.readableEnded) return new RequestBody(raw, limit, now)
  if (parsed === null && isJson(raw)) return Buffer.from('null')
  throw new Error('the request body was read before reply.forward() and is not in request.body')
}

function bodyAgain (parsed: NonNullable<unknown>, raw: IncomingMessage, head: RequestHead): Buffer {
  if (Buffer.isBuffer(parsed)) return parsed
  const json = isJson(raw)
  if (typeof parsed === 'string') {
    const bytes = Buffer.from(parsed)
    // A JSON text may be a string; but where a parser left the text as it came, it is as long as it was told to be.
    return json && bytes.length !== head.contentLength ? Buffer.from(JSON.stringify(parsed)) : bytes
  }
  if (json || raw.headers['content-type'] === undefined) return Buffer.from(JSON.stringify(parsed))
  throw new Error('the request body was parsed into something that only JSON could be made of again, and its type is another: register a parser that leaves it as a buffer or a stream')
}

const jsonType = /^[^;]*[/+]json[ \t]*(?:;|$)/i
const isJson = (raw: IncomingMessage): boolean => jsonType.test(raw.headers['content-type'] ?? '')

const forwarder: FastifyPluginAsync<ForwarderOptions> = async (app, options) => {
  if (app.hasReplyDecorator('from')) {
    throw new Error('@fastify/reply-from is registered in this scope already: register breakwater-forwarder in a scope of its own')
  }
  await app.register(replyFrom, { base: 'http://upstream.invalid', undici: requester as never, retryMethods: [], disableRequestLogging: true })
  // Node's own limit is half of it.
  app.server.maxHeadersCount ??= keptRequestFields
  guardAnswers(app)
  const instance = new Forwarder(app, options)
  app.addHook('onReady', async () => { instance.prepare() })
  app.decorateReply('forward', function (this: FastifyReply, target: string | ForwardRoute): FastifyReply {
    return instance.forward(this, typeof target === 'string' ? { pool: target } : target)
  })
  app.decorateReply('refuse', function (this: FastifyReply, reason: Reason): FastifyReply {
    return instance.refuse(this, reason)
  })
}

export default fp(forwarder, { name: 'breakwater-forwarder', fastify: '5.x', dependencies: ['breakwater-edge', 'breakwater-upstream-pools'] })
