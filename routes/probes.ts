import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { problem, retryAfter, sendProblem } from '../lib/http/problem.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import type {} from '../plugins/readiness.ts'

export interface ProbesOptions {
  /** The app whose readiness is told. Default: the one that they are registered in. */
  source?: FastifyInstance
  /** Where jitter comes from. Default: Math.random. */
  random?: Random
}

/** GET /livez: 204 while the process lives. GET /readyz: 204 when this instance should get traffic, else 503 with the reason. */
const probes: FastifyPluginAsync<ProbesOptions> = async (app, { source = app, random = systemRandom }) => {
  const config = { shedExempt: true, accessLog: false }
  const schema = (summary: string, yes: string, refusals: object): object => ({ summary, response: { 204: { type: 'null', description: yes }, ...refusals } })

  app.get('/livez', { config, schema: schema('Whether the process lives', 'It does.', {}) }, (_request, reply) => { reply.code(204).send() })

  app.get('/readyz', { config, schema: schema('Whether this instance should get traffic', 'It should.', { 503: { description: 'It should not; the problem document says why.' } }) }, (request, reply) => {
    const { ready, reason, detail } = source.readiness()
    if (ready || reason === null) return reply.code(204).header('cache-control', 'no-store').send()
    return sendProblem(reply, problem(reason, request.id, detail, retryAfter(1000, random)))
  })
}

export default probes
