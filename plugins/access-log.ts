/** The access log: one line for every request, whatever became of it: refused, aborted, malformed and timed-out requests too. */
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { accessLine, malformedLine } from '../lib/access-line.ts'
import { lineWriter } from './access-log/line-writer.ts'
import type {} from './observation.ts'

export interface AccessLogOptions {
  /** Called for each line instead of `app.log.info`. */
  write?: (line: object) => void
}

const accessLog: FastifyPluginAsync<AccessLogOptions> = async (app, options) => {
  const write = options.write ?? lineWriter(app.log)
  app.observers.add({
    exchangeEnded: ({ raw, exchange }, _reply, { status, bytes, at }) => { write(accessLine(exchange, raw.method ?? '', raw.url ?? '', status, bytes, at)) },
    unparsed: (request) => { write(malformedLine(request.reason, request.clientIp, request)) }
  })
}

export default fp(accessLog, { name: 'breakwater-access-log', fastify: '5.x', dependencies: ['breakwater-observation'] })
