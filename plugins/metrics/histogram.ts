import { Exemplars, type Traced } from './exemplars.ts'
import type { Labels, Sample } from './family.ts'

/** A number as OpenMetrics wants it in `le`: the same text for the same bucket, wherever it comes from. */
const canonical = (bound: number): string => Number.isInteger(bound) ? `${bound}.0` : String(bound)

/** Durations by bucket, as plain numbers: an observation allocates nothing. */
export class Histogram {
  readonly #bounds: readonly number[]
  /** One for each bound, one for what lies above all of them, and last their sum. */
  readonly #counts: Float64Array
  readonly #exemplars: Exemplars | null

  /** @param bounds upper ones, rising */
  constructor (bounds: readonly number[], exemplars: boolean) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length + 2)
    this.#exemplars = exemplars ? new Exemplars(bounds.length + 1) : null
  }

  /**
   * @param whose null: nobody's who could be shown
   * @param at monotonic milliseconds
   */
  observe (value: number, whose: Traced | null, at: number): void {
    const bounds = this.#bounds
    const counts = this.#counts
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++
    counts[bucket] = (counts[bucket] as number) + 1
    const sum = counts.length - 1
    counts[sum] = (counts[sum] as number) + value
    if (whose !== null) this.#exemplars?.set(bucket, whose, value, at)
  }

  samples (name: string, labels: Labels): Sample[] {
    let count = 0
    const samples: Sample[] = []
    for (const [bucket, bound] of [...this.#bounds, Infinity].entries()) {
      count += this.#counts[bucket] as number
      const le = bound === Infinity ? '+Inf' : canonical(bound)
      samples.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: count, exemplar: this.#exemplars?.at(bucket) ?? null })
    }
    samples.push({ metricName: `${name}_sum`, labels, value: this.#counts.at(-1) as number }, { metricName: `${name}_count`, labels, value: count })
    return samples
  }
}
