import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { codingQuality } from '../../lib/http/accept.ts'
import { read } from './define.ts'
import { HistoryQuery, HistoryView } from './schemas.ts'

const compress = promisify(gzip)
/** Less is not worth the time. */
const leastBytes = 16384

/** GET /history: megabytes of small numbers where there are hundreds of upstreams, so that it is compressed for whoever takes that. */
export function historyRoutes (app: FastifyInstance, source: FastifyInstance): void {
  read(app, '/history', { summary: 'The last 15 minutes in steps of 5 seconds', querystring: HistoryQuery, reply: HistoryView }, async (request, reply) => {
    const text = JSON.stringify(source.history.since(request.query.since))
    reply.type('application/json; charset=utf-8').header('vary', 'accept-encoding')
    if (text.length < leastBytes || codingQuality(request.headers['accept-encoding'] ?? '', 'gzip') === 0) return reply.send(Buffer.from(text))
    return reply.header('content-encoding', 'gzip').send(await compress(text, { level: constants.Z_BEST_SPEED }))
  })
}
