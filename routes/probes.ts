import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { problem } from '../lib/http/problem.ts'
import type {} from '../plugins/readiness.ts'

export interface ProbesOptions {
  /** The app whose readiness is told. Default: the one that they are registered in. */
  source?: FastifyInstance
}

/** GET /livez: 204 while the process lives. GET /readyz: 204 when this instance should get traffic, else 503 with the reason. */
const probes: FastifyPluginAsync<ProbesOptions> = async (app, { source = app }) => {
  const config = { shedExempt: true, accessLog: false }

  app.get('/livez', { config }, (_request, reply) => { reply.code(204).send() })

  app.get('/readyz', { config }, (request, reply) => {
    const { ready, reason, detail } = source.readiness()
    if (ready || reason === null) return reply.code(204).header('cache-control', 'no-store').send()
    const { headers, body } = problem(reason, request.id, detail, 1)
    return reply.code(503).headers(headers).send(body)
  })
}

export default probes
