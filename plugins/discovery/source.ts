import type { DiscoveredUpstream } from '../../lib/discovery/members.ts'

/**
 * Where the upstreams of a pool come from. Between `start` and `stop` it reports whole lists, as often as it likes; nothing is
 * taken of it before or after. It may be started again.
 */
export interface DiscoverySource {
  /**
   * Begins to look.
   * @param report takes all upstreams that there are now, in any order, the same ones again as well. Where the list is known in
   * part only and completed by earlier answers, `incomplete` tells why.
   * @param fail tells that the upstreams are not known now, and why; what is in use stays, unless the pool's `keep` is off
   */
  start (report: (members: readonly DiscoveredUpstream[], incomplete?: Error) => void, fail: (error: Error) => void): void
  /** Ends all that it does, a look under way too. */
  stop (): void | Promise<void>
  /** Looks again now. */
  refresh? (): void
  /** When it will look next, as `Date.now()` counts; null or left out where it cannot tell. */
  readonly nextAt?: number | null
}
