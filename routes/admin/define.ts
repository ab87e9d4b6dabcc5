import type { FastifyInstance, FastifyRequest, RouteGenericInterface, RouteHandlerMethod, RawServerDefault, RawRequestDefaultExpression, RawReplyDefaultExpression } from 'fastify'
import type { Static, TSchema } from 'typebox'
import type { EventType } from '../../lib/event-types.ts'
import { parseAddress } from '../../lib/http/address.ts'
import { requireJson } from './guard.ts'
import { Problem } from './schemas.ts'

type Handler<G extends RouteGenericInterface> = RouteHandlerMethod<RawServerDefault, RawRequestDefaultExpression, RawReplyDefaultExpression, G>
type Of<T extends TSchema | undefined> = T extends TSchema ? Static<T> : unknown

interface Schemas<P extends TSchema | undefined, Q extends TSchema | undefined, B extends TSchema | undefined> {
  summary: string
  params?: P
  querystring?: Q
  body?: B
  headers?: TSchema
  reply: TSchema
  /** Answers of other statuses that are no problem documents. */
  replies?: Record<number, TSchema>
  /** Media types of a good answer, for its description. Default: application/json. */
  produces?: readonly string[]
  /** Of the body, in bytes. */
  bodyLimit?: number
}

function schemaOf ({ reply, replies, bodyLimit: _bodyLimit, ...rest }: Schemas<TSchema | undefined, TSchema | undefined, TSchema | undefined>): object {
  return { ...rest, response: { 200: reply, ...replies, '4xx': Problem, '5xx': Problem } }
}

/** A GET route, and the HEAD that goes with it. */
export function read<P extends TSchema | undefined = undefined, Q extends TSchema | undefined = undefined> (
  app: FastifyInstance, url: string, schemas: Schemas<P, Q, undefined>, handler: Handler<{ Params: Of<P>, Querystring: Of<Q> }>
): void {
  app.route<{ Params: Of<P>, Querystring: Of<Q> }>({ method: 'GET', url, exposeHeadRoute: true, schema: schemaOf(schemas), handler })
}

const maxBodyBytes = 65536

/** A POST route: a write. */
export function write<P extends TSchema | undefined, B extends TSchema> (
  app: FastifyInstance, url: string, schemas: Schemas<P, undefined, B>, handler: Handler<{ Params: Of<P>, Body: Static<B> }>
): void {
  app.route<{ Params: Of<P>, Body: Static<B> }>({
    method: 'POST', url, bodyLimit: schemas.bodyLimit ?? maxBodyBytes, onRequest: requireJson, schema: schemaOf(schemas), handler
  })
}

/** What an operator did; recorded once it is done. */
export interface AdminWrite {
  action: 'breaker_reset' | 'breaker_force' | 'health_check' | 'upstream_drain' | 'upstream_ready' | 'config_reload' | 'discovery_refresh'
  pool?: string
  upstream?: string
  reason: string | null
  /** For a force. */
  state?: string
  ttlMs?: number
}

/** Every write leaves a line in the log and, where there is a journal, an event in it, which say where it came from. */
export function recordWrite (source: FastifyInstance, { ip }: Pick<FastifyRequest, 'ip'>, done: AdminWrite): void {
  const target = [done.pool, done.upstream].filter((name) => name !== undefined).join('/')
  // A Unix socket has no address.
  const event = { ...done, ...target !== '' && { target }, client_ip: ip ? parseAddress(ip)?.toString() ?? ip : null }
  source.log.info(event, 'admin_write')
  if (source.hasDecorator('events')) source.events.record('admin_write' satisfies EventType, event)
}
