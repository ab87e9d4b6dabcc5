import type { FastifyInstance } from 'fastify'
import type { ConfigEvent } from '../configuration.ts'
import type { DiscoveryEvent, DiscoveryView } from '../discovery.ts'
import type {} from '../listener.ts'
import type { UpstreamPool } from '../upstream-pools.ts'
import { Family, single, type Sample } from './family.ts'

/** Reloads of the configuration, and what is in force. */
export class ConfigMetrics {
  readonly #app: FastifyInstance
  readonly #reloads = { ok: 0, rejected: 0 }

  constructor (app: FastifyInstance) {
    this.#app = app
  }

  event ({ type }: ConfigEvent): void {
    this.#reloads[type === 'config_reloaded' ? 'ok' : 'rejected']++
  }

  families (): Family[] {
    const { configuration } = this.#app
    return [
      new Family('counter', 'edge_config_reloads_total', 'Reloads of the configuration.', () =>
        Object.entries(this.#reloads).map(([result, value]) => ({ labels: { result }, value }))),
      new Family('gauge', 'edge_config_version', 'Counts the configurations that were in force.', () => single(configuration.view().version)),
      new Family('gauge', 'edge_config_last_reload_timestamp_seconds', 'Since when the configuration is in force.', () => single(Date.parse(configuration.view().loadedAt) / 1000)),
      new Family('gauge', 'edge_config_last_reload_successful', '0 while the latest configuration that was read is not the one in force, because it was refused; else 1.', () =>
        single(Number(configuration.view().rejected === null)))
    ]
  }
}

/** How fresh the members of pools with discovery are. */
export class DiscoveryMetrics {
  readonly #app: FastifyInstance
  /** By the pool's signal, which is the pool's own. */
  readonly #failures = new WeakMap<object, number>()

  constructor (app: FastifyInstance) {
    this.#app = app
  }

  event ({ type, pool }: DiscoveryEvent): void {
    const known = this.#app.pools.get(pool)
    if (known !== undefined && (type === 'discovery_failed' || type === 'discovery_refused')) this.#failures.set(known.signal, this.#of(known) + 1)
  }

  #of ({ signal }: UpstreamPool): number { return this.#failures.get(signal) ?? 0 }

  #each (value: (view: DiscoveryView) => number): Sample[] {
    return this.#app.discovery.view().map((view) => ({ labels: { pool: view.pool }, value: value(view) }))
  }

  families (): Family[] {
    return [
      new Family('counter', 'edge_discovery_failures_total', 'How often a source ceased to know its upstreams, or its pool to take what it gave.', () => this.#each(({ pool }) => {
        const known = this.#app.pools.get(pool)
        return known === undefined ? 0 : this.#of(known)
      })),
      new Family('gauge', 'edge_discovery_stale', '1 where the members are those of an earlier list, or none have ever come; else 0.', () => this.#each(({ stale }) => Number(stale))),
      new Family('gauge', 'edge_discovery_age_seconds', 'How long ago a source last gave a whole list; left out where it never has.', () =>
        this.#app.discovery.view().flatMap(({ pool, ageMs }) => ageMs === null ? [] : [{ labels: { pool }, value: ageMs / 1000 }])),
      new Family('gauge', 'edge_discovery_members', 'Members of the pool that were discovered.', () => this.#each(({ members }) => members.length))
    ]
  }
}

/** The certificates of the public listener. */
export function certificateFamilies (app: FastifyInstance): Family[] {
  return [new Family('gauge', 'edge_certificate_not_after_timestamp_seconds', 'When a certificate of the public listener ends to be valid.', () =>
    app.listener.certificates().map(({ file, notAfter }) => ({ labels: { file }, value: Date.parse(notAfter) / 1000 })))]
}
