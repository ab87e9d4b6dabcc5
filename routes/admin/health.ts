import type { FastifyInstance } from 'fastify'
import { read, recordWrite, write } from './define.ts'
import { AdminError } from './replies.ts'
import { CheckView, HealthList, ReasonBody, UpstreamParams } from './schemas.ts'

/** GET /health · POST /health/:pool/:upstream/check */
export function healthRoutes (app: FastifyInstance, source: FastifyInstance): void {
  read(app, '/health', { summary: 'What the health checks believe', reply: HealthList }, async () => ({ upstreams: source.health.list() }))

  write(app, '/health/:pool/:upstream/check', {
    summary: 'Check an upstream now; the result counts', params: UpstreamParams, body: ReasonBody, reply: CheckView
  }, async (request) => {
    const { pool, upstream } = request.params
    if (source.health.get(pool, upstream) === undefined) {
      const known = source.health.list().some((each) => each.pool === pool)
      throw new AdminError(404, known ? `pool "${pool}" has no upstream "${upstream}"` : `no upstream of a pool "${pool}" is checked`)
    }
    const check = await source.health.checkNow(pool, upstream)
    recordWrite(source, request, { action: 'health_check', pool, upstream, reason: request.body.reason ?? null })
    return { ...source.health.get(pool, upstream), check }
  })
}
