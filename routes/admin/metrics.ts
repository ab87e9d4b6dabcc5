import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { acceptQuality } from '../../lib/http/accept.ts'
import type {} from '../../plugins/metrics.ts'
import { read } from './define.ts'

/** GET /metrics */
export function metricsRoutes (app: FastifyInstance, source: FastifyInstance): void {
  read(app, '/metrics', {
    summary: 'Metrics for Prometheus',
    produces: ['text/plain', 'application/openmetrics-text'],
    reply: Type.String({ description: 'As OpenMetrics (application/openmetrics-text) where Accept prefers it, else as Prometheus text 0.0.4.' })
  }, async (request, reply) => {
    const { contentType, text } = await source.edgeMetrics.expose(prefersOpenMetrics(request.raw.headers.accept ?? '') ? 'openmetrics' : 'text')
    reply.header('content-type', contentType).header('vary', 'accept')
    return text
  })
}

function prefersOpenMetrics (accept: string): boolean {
  const wanted = acceptQuality(accept, 'application/openmetrics-text', ['1.0.0', '0.0.1'])
  return wanted > 0 && wanted > acceptQuality(accept, 'text/plain', ['0.0.4', '1.0.0'])
}
