import type { FastifyInstance } from 'fastify'
import type { Upstream, UpstreamPool } from '../../plugins/upstream-pools.ts'
import { read, recordWrite, write } from './define.ts'
import { AdminError } from './replies.ts'
import { DrainBody, PoolList, PoolParams, PoolView, ReasonBody, UpstreamParams, UpstreamView } from './schemas.ts'

/** GET /pools, /pools/:pool · POST /pools/:pool/upstreams/:upstream/drain, .../ready */
export function poolRoutes (app: FastifyInstance, source: FastifyInstance): void {
  const viewOf = (upstream: Upstream) => {
    const { pool, id, weight, priority, healthy, checked, draining, drain, discovered, inFlight, waiting, busyConnections, connects, ejectedUntil, ejection: { latest }, leaving } = upstream
    const current = source.pools.get(pool)
    const ejected = ejectedUntil > performance.now()
    const index = current?.upstreams.indexOf(upstream) ?? -1
    return {
      pool,
      upstream: id,
      weight,
      weightNow: index === -1 ? 0 : source.pools.lane(pool)?.weightOf(index) ?? 0,
      priority,
      healthy,
      checked,
      draining,
      drain,
      ejectedUntil: ejected ? wallClock(ejectedUntil) : null,
      ejection: latest === null || !ejected ? null : { since: wallClock(latest.until - latest.ms), trigger: latest.trigger, failures: latest.failures, total: latest.total },
      breaker: source.hasDecorator('breakers') ? source.breakers.find(pool, id)?.breaker.state ?? null : null,
      discovered,
      leaving,
      inFlight,
      maxInFlight: upstream.options.maxInFlight ?? current?.options.maxInFlightPerUpstream ?? 0,
      waiting,
      maxConnections: current?.options.connections.max ?? 0,
      busyConnections,
      connects
    }
  }
  const poolOf = ({ name, options, upstreams, budget }: UpstreamPool) => {
    const lane = source.pools.lane(name)
    return {
      pool: name,
      balancer: options.balancer,
      panic: lane?.panic ?? false,
      panicPicks: lane?.panicPicks ?? 0,
      tiers: (lane?.tiers ?? []).map(({ priority, count, load, panic }) => ({ priority, usable: count, load, panic })),
      retryBudget: budget.snapshot(performance.now()),
      upstreams: upstreams.map(viewOf)
    }
  }

  read(app, '/pools', { summary: 'All pools and what is going on at their upstreams', reply: PoolList }, async () => ({ pools: source.pools.list().map(poolOf) }))

  read(app, '/pools/:pool', { summary: 'One pool', params: PoolParams, reply: PoolView }, async (request) => {
    const { pool: name } = request.params
    const pool = source.pools.get(name)
    if (pool === undefined) throw new AdminError(404, `there is no pool "${name}"`)
    return poolOf(pool)
  })

  const found = (pool: string, upstream: string): Upstream => {
    const known = source.pools.find(pool, upstream)
    if (source.pools.get(pool) === undefined) throw new AdminError(404, `there is no pool "${pool}"`)
    if (known === undefined) throw new AdminError(404, `pool "${pool}" has no upstream "${upstream}"`)
    return known
  }

  write(app, '/pools/:pool/upstreams/:upstream/drain', {
    summary: 'Take an upstream out of rotation, for a time or until it is taken back; exchanges at it go on', params: UpstreamParams, body: DrainBody, reply: UpstreamView
  }, async (request) => {
    const { params: { pool, upstream }, body: { ttlMs = 0, reason = null } } = request
    found(pool, upstream)
    source.pools.setDraining(pool, upstream, true, { ttlMs, reason })
    recordWrite(source, request, { action: 'upstream_drain', pool, upstream, reason, ...ttlMs > 0 && { ttlMs } })
    return viewOf(found(pool, upstream))
  })

  write(app, '/pools/:pool/upstreams/:upstream/ready', {
    summary: 'Take a drained upstream back into rotation', params: UpstreamParams, body: ReasonBody, reply: UpstreamView
  }, async (request) => {
    const { params: { pool, upstream }, body: { reason = null } } = request
    found(pool, upstream)
    source.pools.setDraining(pool, upstream, false, { reason })
    recordWrite(source, request, { action: 'upstream_ready', pool, upstream, reason })
    return viewOf(found(pool, upstream))
  })
}

/** A moment of the monotonic clock as ISO 8601. */
const wallClock = (monotonicMs: number): string => new Date(Date.now() + monotonicMs - performance.now()).toISOString()
