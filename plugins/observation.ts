/**
 * Tells those who only look (the access log, metrics, traces, records) what becomes of exchanges and their attempts.
 * Decorates `app.observers`.
 */
import type { Socket } from 'node:net'
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { plainAddress } from '../lib/http/trust.ts'
import type {} from './edge.ts'
import { judgeMalformed } from './malformed.ts'
import { Observers } from './observation/observers.ts'

export type { AttemptKind, ExchangeEnd, ObservedAttempt, Observer, Observers, ReplacedFields, UnparsedRequest } from './observation/observers.ts'

declare module 'fastify' {
  interface FastifyInstance {
    observers: Observers
  }
  interface FastifyContextConfig {
    /** False for a route whose requests nobody is told of: probes and admin routes. */
    accessLog?: boolean
  }
}

const observation: FastifyPluginAsync = async (app) => {
  const observers = new Observers(app.log)

  // Bytes that never became a request. Those of a request's body are told by the request's own end.
  app.server.on('clientError', (error: Error, socket) => {
    const malformed = judgeMalformed(error, socket as Socket)
    if (malformed === null || malformed.reply !== null) return
    observers.unparsed({ ...malformed, clientIp: plainAddress((socket as Socket).remoteAddress) })
  })

  app.addHook('onRequest', (request, reply, done) => {
    if (request.routeOptions.config.accessLog !== false) observers.follow(request, reply)
    done()
  })

  app.decorate('observers', observers)
}

export default fp(observation, { name: 'breakwater-observation', fastify: '5.x', dependencies: ['breakwater-edge'] })
