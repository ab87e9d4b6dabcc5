import type { HealthOptions, UpstreamOptions } from '../../config/schema.ts'

/** What holds for one upstream: its pool's options, and its own in their place. */
export interface CheckOptions extends HealthOptions {
  /** Port that is checked; null: the upstream's own. */
  readonly port: number | null
}

export const checkOptions = (pool: HealthOptions, own: UpstreamOptions['health']): CheckOptions =>
  ({ ...pool, ...own, port: own?.port ?? null })
