import { Exemplars, type Traced } from './exemplars.ts'
import type { ExemplarSample } from './family.ts'

/** A count that can be told by a request that it counted. */
class Tally {
  value = 0
  readonly exemplars = new Exemplars(1)
}

/** Counts by reason, made as the reasons come. */
export class ReasonTallies<K extends string = string> {
  readonly #tallies = new Map<K, Tally>()
  readonly #exemplars: boolean

  constructor (exemplars: boolean) {
    this.#exemplars = exemplars
  }

  /** @param at monotonic milliseconds */
  count (reason: K, whose: Traced | null, at: number): void {
    let tally = this.#tallies.get(reason)
    if (tally === undefined) this.#tallies.set(reason, tally = new Tally())
    tally.value++
    if (this.#exemplars && whose !== null) tally.exemplars.set(0, whose, 1, at)
  }

  * entries (): IterableIterator<{ reason: K, value: number, exemplar: ExemplarSample | null }> {
    for (const [reason, { value, exemplars }] of this.#tallies) yield { reason, value, exemplar: exemplars.at(0) }
  }
}
