/**
 * The access log: one line for every request, written when its response closes, which is the only event that always comes, and
 * comes once. It covers refused, aborted, malformed and timed-out requests too.
 */
import type { Socket } from 'node:net'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { accessLine, malformedLine } from '../lib/access-line.ts'
import { plainAddress } from '../lib/http/trust.ts'
import { lineWriter } from './access-log/line-writer.ts'
import { judgeMalformed } from './malformed.ts'

export interface AccessLogOptions {
  /** Called for each line instead of `app.log.info`. */
  write?: (line: object) => void
}

declare module 'fastify' {
  interface FastifyInstance {
    accessLog: AccessLog
  }
  interface FastifyContextConfig {
    /** False for a route whose requests are not access-logged: probes and admin routes. */
    accessLog?: boolean
  }
}

export interface AccessLog {
  /** Writes the line of the request's exchange when its response closes. */
  follow (request: FastifyRequest, reply: FastifyReply): void
}

const accessLog: FastifyPluginAsync<AccessLogOptions> = async (app, options) => {
  const write = options.write ?? lineWriter(app.log)

  function follow (request: FastifyRequest, reply: FastifyReply): void {
    const { raw, exchange } = request
    const response = reply.raw
    response.on('close', () => {
      if (!response.writableFinished) exchange.fail('client_cancelled')
      // A head that still waits behind another answer has not been sent, whatever Node says.
      const waited = response.socket === null && !response.writableFinished
      const sent = response.headersSent && !waited ? response.statusCode : 0
      write(accessLine(exchange, raw.method ?? '', raw.url ?? '', sent, sentBytes(reply), performance.now()))
    })
  }

  app.decorate('accessLog', { follow })

  // Bytes that never became a request. Those of a request's body are told by its own line.
  app.server.on('clientError', (error: Error, socket) => {
    const malformed = judgeMalformed(error, socket as Socket)
    if (malformed === null || malformed.reply !== null) return
    write(malformedLine(malformed.reason, plainAddress((socket as Socket).remoteAddress), malformed))
  })

  app.addHook('onRequest', (request, reply, done) => {
    if (request.routeOptions.config.accessLog !== false) follow(request, reply)
    done()
  })
}

/** Body bytes of an answer that did not come through the forwarder. */
function sentBytes (reply: FastifyReply): number {
  if (reply.request.method === 'HEAD' || !reply.raw.headersSent) return 0
  return Number(reply.getHeader('content-length') ?? 0)
}

export default fp(accessLog, { name: 'breakwater-access-log', fastify: '5.x', dependencies: ['breakwater-edge'] })
