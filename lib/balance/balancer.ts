/**
 * A balancer picks among the members that may take a request now. It never sees an excluded one, and allocates nothing.
 * `usable[0 .. count-1]` holds the indexes of those members; the answer is one of them.
 */
export interface Balancer {
  pick (usable: Int32Array, count: number): number
  /** The latest pick, of this member, came to nothing: its turn is not used up. At most once for each pick. */
  giveBack (index: number): void
}
