import type { FastifyInstance } from 'fastify'
import { read, recordWrite, write } from './define.ts'
import { AdminError } from './replies.ts'
import { DiscoveryList, DiscoveryView, PoolParams, ReasonBody } from './schemas.ts'

/** GET /discovery · POST /discovery/:pool/refresh */
export function discoveryRoutes (app: FastifyInstance, source: FastifyInstance): void {
  read(app, '/discovery', { summary: 'Where the upstreams of pools are found, and how old that is', reply: DiscoveryList }, async () => ({ pools: source.discovery.view() }))

  write(app, '/discovery/:pool/refresh', {
    summary: 'Look for the upstreams of a pool now', params: PoolParams, body: ReasonBody, reply: DiscoveryView
  }, async (request) => {
    const { pool } = request.params
    if (!source.discovery.refresh(pool)) throw new AdminError(404, `there is no pool "${pool}" with discovery`)
    recordWrite(source, request, { action: 'discovery_refresh', pool, reason: request.body.reason ?? null })
    return source.discovery.view().find((each) => each.pool === pool)
  })
}
