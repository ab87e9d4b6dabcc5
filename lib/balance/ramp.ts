/** Since when a member takes its full part in the traffic: what its slow start counts from. It outlives a reload. */
export class Ramp {
  #in = false
  #since = Number.NEGATIVE_INFINITY
  #joins: boolean

  /** @param joins it comes to a pool that runs already: it begins slowly. Members that are there from the start do not. */
  constructor (joins: boolean) {
    this.#joins = joins
  }

  /**
   * It takes no traffic, or only probes.
   * @param known it has been looked at: one that is only not known yet is no less there from the start
   */
  leave (known: boolean): void {
    if (this.#in || known) this.#joins = true
    this.#in = false
  }

  /** It takes part; a new slow start begins unless it did already. Returns how long it has, in ms. */
  enter (now: number): number {
    if (!this.#in) {
      this.#in = true
      this.#since = this.#joins ? now : Number.NEGATIVE_INFINITY
    }
    return Math.max(0, now - this.#since)
  }
}
