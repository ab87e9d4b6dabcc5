import type { FastifyInstance } from 'fastify'
import type { RegisteredBreaker } from '../../plugins/breaker-registry.ts'
import { read, recordWrite, write } from './define.ts'
import { AdminError } from './replies.ts'
import { BreakerList, BreakerView, ForceBody, ReasonBody, UpstreamParams } from './schemas.ts'

/** GET /breakers, /breakers/:pool/:upstream · POST /breakers/:pool/:upstream/reset, .../force */
export function breakerRoutes (app: FastifyInstance, source: FastifyInstance): void {
  function find ({ pool, upstream }: { pool: string, upstream: string }): RegisteredBreaker {
    const breaker = source.breakers.find(pool, upstream)
    if (breaker === undefined) throw new AdminError(404, `there is no breaker for upstream "${upstream}" of pool "${pool}"`)
    return breaker
  }

  read(app, '/breakers', { summary: 'All breakers: what they believe and why', reply: BreakerList }, async () => ({ breakers: source.breakers.snapshots() }))

  read(app, '/breakers/:pool/:upstream', { summary: 'One breaker', params: UpstreamParams, reply: BreakerView }, async (request) => find(request.params).snapshot())

  write(app, '/breakers/:pool/:upstream/reset', {
    summary: 'Close the circuit with a clean record and end a force', params: UpstreamParams, body: ReasonBody, reply: BreakerView
  }, async (request) => {
    const breaker = find(request.params)
    const reason = request.body.reason ?? null
    breaker.reset(reason)
    recordWrite(source, request, { action: 'breaker_reset', ...request.params, reason })
    return breaker.snapshot()
  })

  write(app, '/breakers/:pool/:upstream/force', {
    summary: 'Impose a state for a time, or end that', params: UpstreamParams, body: ForceBody, reply: BreakerView
  }, async (request) => {
    const breaker = find(request.params)
    const { state, ttlMs, reason = null } = request.body
    if (state !== 'auto' && breaker.breaker.mode === 'off') throw new AdminError(409, 'this breaker is off: there is nothing to force')
    breaker.force(state, ttlMs, reason)
    recordWrite(source, request, { action: 'breaker_force', ...request.params, reason, state, ...(ttlMs !== undefined && { ttlMs }) })
    return breaker.snapshot()
  })
}
