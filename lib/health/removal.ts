/**
 * How fast checks may take members out of a pool. A check that is wrong itself (a bad roll-out of its path, a network that loses
 * probes) fails everywhere at once, and would leave nobody to serve; one that is right loses a little time.
 * Times are milliseconds on the caller's monotonic clock.
 */
import type { HealthOptions } from '../../config/schema.ts'
import type { CheckCause } from './cause.ts'

export type RemovalOptions = HealthOptions['removal']

/** How many members of `count` may turn unhealthy within the time: at least one, and any number where the share is 1. */
export const removalLimit = (count: number, { share }: Pick<RemovalOptions, 'share'>): number =>
  share >= 1 ? Infinity : Math.max(1, Math.floor(share * count + rounding))

/** So much a product may lack of a whole number that it is: 0.29 x 100 is 28.999999999999996. */
const rounding = 1e-9

/**
 * Whether nobody could be served anyway, so that holding the member back would help no one: it accepts no connections where
 * exchanges go.
 * @param own the check goes to the port that exchanges use
 */
export const servesNobody = (cause: CheckCause, own: boolean): boolean => own && cause === 'connect_refused'

/** The falls of one pool's members within the time. A member counts once, however often it fell. */
export class RemovalLimit {
  /** When each member fell last. */
  readonly #fell = new Map<string, number>()

  /** Counts the fall of a member, if it may fall now; false: it is to be held back. */
  admit (member: string, count: number, now: number, options: RemovalOptions): boolean {
    const others = this.removed(now, options) - (this.#fell.has(member) ? 1 : 0)
    if (others >= removalLimit(count, options)) return false
    this.record(member, now)
    return true
  }

  /** Counts the fall of a member that is not held back, whatever the limit is. */
  record (member: string, now: number): void {
    this.#fell.set(member, now)
  }

  /** How many members fell within the time before `now`. */
  removed (now: number, { seconds }: Pick<RemovalOptions, 'seconds'>): number {
    for (const [member, at] of this.#fell) if (now - at >= seconds * 1000) this.#fell.delete(member)
    return this.#fell.size
  }

  /** Forgets a member that has left the pool: the limit is one of those that are in it. */
  forget (member: string): void {
    this.#fell.delete(member)
  }
}
