import type { PeakEwma } from './peak-ewma.ts'

/** A member of a pool as a balancer sees it: the running state of an upstream, which outlives a reload. */
export interface Loaded {
  /** Exchanges at it now; the pick in question counts only once it is taken. */
  readonly inFlight: number
  /** Its usual time to a response's head. */
  readonly latency: PeakEwma
}

/**
 * A balancer picks among the members that may take a request now: members are known by their index in the pool. `update` tells
 * who they are, and is rare; `pick` is on the way of every request: O(1) or O(log n), and it allocates nothing.
 */
export interface Balancer {
  /**
   * From now on these are the members: `members[0 .. count-1]`, ascending, of whom each has `weights[member] > 0`. The arrays are the
   * caller's and are valid only during the call. A member that stays keeps what it has earned; one that comes (back) starts level
   * with the others: it gets neither a burst nor a penalty for the time in which it was out.
   */
  update (members: Int32Array, count: number, weights: Float64Array, now: number): void
  /**
   * One of the members; -1 if there is none.
   * @param key hash of the request's key, a whole number in 0 .. 2^32-1; -1: it has none. Only hashing looks at it.
   */
  pick (key: number, now: number): number
  /**
   * One of `usable[0 .. count-1]`, all of them members: where others were refused by their breaker or limits, or have been tried.
   * O(count), or better. Allocates nothing and leaves the list as it is. `count` is at least 1.
   */
  pickAmong (usable: Int32Array, count: number, key: number, now: number): number
  /** The latest pick, of this member, came to nothing: its turn is not used up. At most once for each pick. */
  giveBack (index: number): void
  /** `inFlight` of this member has changed. */
  loadChanged (index: number): void
}
