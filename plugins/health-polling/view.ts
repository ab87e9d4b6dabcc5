import type { CheckCause } from '../../lib/health/cause.ts'
import type { CheckOptions } from '../../lib/health/options.ts'

/** How a check ended. */
export interface CheckResult {
  readonly pool: string
  readonly upstream: string
  /** When it ended, ISO 8601. */
  readonly at: string
  /** null: the check says nothing about the upstream, and its streak stays as it was. */
  readonly passed: boolean | null
  /** The status of the answer, or null where none came. */
  readonly status: number | null
  readonly cause: CheckCause
  /** How long it took, in ms. */
  readonly ms: number
}

/** How an upstream is checked: its pool's options, and its own in their place. */
export interface PollingView {
  readonly type: CheckOptions['type']
  /** The path that is asked for, the upstream's base path included; null where nothing is asked. */
  readonly path: string | null
  /** The port that is checked, where it is not the upstream's own. */
  readonly port: number | null
  readonly intervalMs: number
}

/** What is believed of an upstream, and why. */
export interface HealthView {
  readonly pool: string
  readonly upstream: string
  readonly healthy: boolean
  /** It failed its checks, but counts as healthy: so many members of the pool have fallen lately that it has to wait. */
  readonly held: boolean
  /** Since when it is healthy or not, ISO 8601. */
  readonly since: string
  /** The last check that said something about the upstream. Its age is the age of this view. */
  readonly lastCheck: Readonly<{ at: string, passed: boolean, status: number | null, cause: CheckCause, ms: number }> | null
  /** How many checks in a row ended like the last one. */
  readonly streak: number
  /** null: it is not polled. */
  readonly polling: PollingView | null
}

export function pollingView ({ enabled, type, path, port, intervalMs }: CheckOptions, basePath: string): PollingView | null {
  return enabled ? Object.freeze({ type, path: type === 'http' ? basePath + path : null, port, intervalMs }) : null
}
