import type { FastifyInstance } from 'fastify'
import type { Upstream, UpstreamPool } from '../../plugins/upstream-pools.ts'
import { read, recordWrite, write } from './define.ts'
import { AdminError } from './replies.ts'
import { PoolList, PoolParams, PoolView, ReasonBody, UpstreamParams, UpstreamView } from './schemas.ts'

/** GET /pools, /pools/:pool · POST /pools/:pool/upstreams/:upstream/drain, .../ready */
export function poolRoutes (app: FastifyInstance, source: FastifyInstance): void {
  const viewOf = ({ pool, id, weight, healthy, draining, inFlight, waiting, busyConnections, connects }: Upstream) => ({
    pool,
    upstream: id,
    weight,
    healthy,
    draining,
    breaker: source.hasDecorator('breakers') ? source.breakers.find(pool, id)?.breaker.state ?? null : null,
    inFlight,
    waiting,
    busyConnections,
    connects
  })
  const poolOf = ({ name, options, upstreams }: UpstreamPool) => ({ pool: name, balancer: options.balancer, upstreams: upstreams.map(viewOf) })

  read(app, '/pools', { summary: 'All pools and what is going on at their upstreams', reply: PoolList }, async () => ({ pools: source.pools.list().map(poolOf) }))

  read(app, '/pools/:pool', { summary: 'One pool', params: PoolParams, reply: PoolView }, async (request) => {
    const { pool: name } = request.params
    const pool = source.pools.get(name)
    if (pool === undefined) throw new AdminError(404, `there is no pool "${name}"`)
    return poolOf(pool)
  })

  for (const [verb, draining, summary] of [
    ['drain', true, 'Take an upstream out of rotation; exchanges at it go on'],
    ['ready', false, 'Take a drained upstream back into rotation']
  ] as const) {
    write(app, `/pools/:pool/upstreams/:upstream/${verb}`, { summary, params: UpstreamParams, body: ReasonBody, reply: UpstreamView }, async (request) => {
      const { pool, upstream } = request.params
      if (!source.pools.setDraining(pool, upstream, draining)) throw new AdminError(404, `pool "${pool}" has no upstream "${upstream}"`)
      recordWrite(source, { action: `upstream_${verb}`, pool, upstream, reason: request.body.reason ?? null })
      return viewOf(source.pools.find(pool, upstream) as Upstream)
    })
  }
}
