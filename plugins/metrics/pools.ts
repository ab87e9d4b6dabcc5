import type { FastifyInstance } from 'fastify'
import type {} from '../forwarder.ts'
import type { UpstreamPool } from '../upstream-pools.ts'
import { Family, type Labels, type Sample } from './family.ts'

type Read = (pool: UpstreamPool, labels: Labels) => Iterable<Sample>

/** What pools know and count by themselves. */
export function poolFamilies (app: FastifyInstance): Family[] {
  function * each (read: Read): IterableIterator<Sample> {
    for (const pool of app.pools.list()) yield * read(pool, { pool: pool.name })
  }
  const of = (type: 'counter' | 'gauge', name: string, help: string, value: (pool: UpstreamPool) => number): Family =>
    new Family(type, name, help, () => each((pool, labels) => [{ labels, value: value(pool) }]))

  return [
    of('gauge', 'edge_pool_panic', '1 while so few members are usable that the checks are overruled, else 0.', ({ signal }) => Number(signal.panic)),
    of('counter', 'edge_pool_panic_picks_total', 'Picks that were made in panic.', ({ signal }) => signal.panicPicks),
    of('gauge', 'edge_pool_usable', 'Upstreams that may be picked now; the breakers of some may still refuse.', ({ name }) =>
      app.pools.lane(name)?.tiers.reduce((sum, { count }) => sum + count, 0) ?? 0),
    of('gauge', 'edge_retry_budget_remaining', 'Further attempts that the budget would grant now.', ({ budget }) => budget.snapshot(performance.now()).remaining)
  ]
}

/** What the forwarder has done for pools beside first attempts. */
export function forwardingFamilies (app: FastifyInstance): Family[] {
  const view = (pool: string): ReturnType<FastifyInstance['forwarding']['view']> => app.forwarding.view(pool)
  function * each (read: Read): IterableIterator<Sample> {
    for (const pool of app.pools.list()) yield * read(pool, { pool: pool.name })
  }
  const counter = (name: string, help: string, value: (pool: string) => number): Family =>
    new Family('counter', name, help, () => each((pool, labels) => [{ labels, value: value(pool.name) }]))

  return [
    new Family('counter', 'edge_not_retried_total', 'Failures that no further attempt followed, by why, where retries are configured; budget: it was exhausted.', () =>
      each(({ name }, labels) => Object.entries(view(name).notRetried).filter(([cause]) => cause !== 'off').map(([cause, value]) => ({ labels: { ...labels, cause }, value })))),
    counter('edge_moves_total', 'Attempts that were moved away from an upstream that answers nobody, or took more than its share of the time.', (pool) => view(pool).moves),
    counter('edge_hedges_total', 'Second attempts beside a slow first one.', (pool) => view(pool).hedges),
    counter('edge_hedges_won_total', 'Second attempts whose answer was the one.', (pool) => view(pool).hedgesWon),
    counter('edge_stale_connections_total', 'Requests that were repeated on a fresh connection, because the kept one had been closed.', (pool) => view(pool).repeats),
    counter('edge_mirrors_sent_total', 'Copies that the pool got.', (pool) => view(pool).mirrors.sent),
    counter('edge_mirrors_failed_total', 'Of the copies that were sent, those without a whole answer.', (pool) => view(pool).mirrors.failed),
    counter('edge_mirrors_dropped_total', 'Copies that were not made.', (pool) => view(pool).mirrors.dropped),
    new Family('gauge', 'edge_tunnels', 'WebSockets that are open.', () => [{ labels: {}, value: app.forwarding.tunnels }])
  ]
}
