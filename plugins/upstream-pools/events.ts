import type { FastifyBaseLogger } from 'fastify'
import type { LaneObserver } from '../../lib/balance/lane.ts'
import type { EpisodeView } from '../../lib/episode.ts'
import type { Emitter } from '../../lib/emitter.ts'
import type { Ejection } from '../../lib/health/ejection.ts'
import type { BudgetSnapshot } from '../../lib/retry/budget.ts'
import type { Drain } from './state.ts'
import type { Upstream } from './upstream.ts'

interface Occurrence {
  readonly pool: string
  /** ISO 8601. */
  readonly at: string
}

/** What happens to the members of a pool; frozen, emitted once, in order, after it is so. */
export type PoolEvent = Occurrence & (
  | { readonly type: 'upstream_draining', readonly upstream: string, readonly until: string | null, readonly reason: string | null }
  | { readonly type: 'upstream_ready', readonly upstream: string, readonly cause: 'operator' | 'ttl', readonly reason: string | null }
  | ({ readonly type: 'upstream_ejected' | 'ejection_held', readonly upstream: string, readonly until: string | null } & Omit<Ejection, 'until'>)
  | { readonly type: 'ejection_ended', readonly upstream: string, readonly earlyMs: number }
  /** `lastedMs`: at its end, how long it was so. */
  | { readonly type: 'pool_panic', readonly panic: boolean, readonly usable: number, readonly members: number, readonly lastedMs?: number }
  /** The first further attempt that the budget refused after a quiet time, and when none was for ten seconds. */
  | ({ readonly type: 'retry_budget_spent' } & Pick<BudgetSnapshot, 'requests' | 'taken' | 'allowed'>)
  | { readonly type: 'retry_budget_recovered', readonly refused: number, readonly lastedMs: number }
  | { readonly type: 'members_changed', readonly added: readonly string[], readonly removed: readonly string[] }
)

/** Tells of what happens, in the log and to listeners. */
export class PoolEvents {
  readonly #log: FastifyBaseLogger
  readonly #emitter: Emitter<PoolEvent>
  /** Monotonic ms since which a pool is in panic. */
  readonly #panics = new Map<string, number>()

  constructor (log: FastifyBaseLogger, emitter: Emitter<PoolEvent>) {
    this.#log = log
    this.#emitter = emitter
  }

  #tell (level: 'info' | 'warn', type: PoolEvent['type'], fields: object): void {
    this.#log[level](fields, type)
    this.#emitter.emit(Object.freeze({ type, at: new Date().toISOString(), ...fields }) as PoolEvent)
  }

  /** What the lane of a pool finds out by itself. */
  of (pool: string): LaneObserver<Upstream> {
    return {
      panicChanged: (panic, usable, members) => {
        const since = this.#panics.get(pool)
        if (panic) this.#panics.set(pool, performance.now())
        else this.#panics.delete(pool)
        this.#tell(panic ? 'warn' : 'info', 'pool_panic', { pool, panic, usable, members, ...!panic && since !== undefined && { lastedMs: Math.round(performance.now() - since) } })
      },
      ejection: ({ id }, { until: _monotonic, ...ejection }) => {
        const until = ejection.held !== null ? null : new Date(Date.now() + ejection.ms).toISOString()
        this.#tell('warn', ejection.held !== null ? 'ejection_held' : 'upstream_ejected', { pool, upstream: id, ...ejection, until })
      },
      ejectionEnded: ({ id }, earlyMs) => { this.#tell('info', 'ejection_ended', { pool, upstream: id, earlyMs: Math.round(earlyMs) }) }
    }
  }

  draining (pool: string, upstream: string, { until, reason }: Drain): void {
    this.#tell('info', 'upstream_draining', { pool, upstream, until, reason })
  }

  ready (pool: string, upstream: string, cause: 'operator' | 'ttl', reason: string | null): void {
    this.#tell('info', 'upstream_ready', { pool, upstream, cause, reason })
  }

  budgetSpent (pool: string, { requests, taken, allowed }: BudgetSnapshot): void {
    this.#tell('warn', 'retry_budget_spent', { pool, requests, taken, allowed })
  }

  budgetRecovered (pool: string, { total, startedAt, lastAt }: EpisodeView): void {
    this.#tell('info', 'retry_budget_recovered', { pool, refused: total, lastedMs: Math.round(lastAt - startedAt) })
  }

  members (pool: string, added: readonly string[], removed: readonly string[]): void {
    this.#tell('info', 'members_changed', { pool, added, removed })
  }
}
