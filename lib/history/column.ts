/** How many steps are kept, beside the one that runs. */
export const stepCount = 180
/** The length of a step, in ms: with 180 of them 15 minutes. */
export const stepMs = 5000
const places = stepCount + 1

type Numbers = Uint8Array | Uint16Array | Uint32Array | Float32Array

/** The place of a step in every column. */
const placeOf = (step: number): number => step % places

/** One figure of each of the last steps. The one that runs is written in its place; before a step begins, its place is cleared. */
export class Column<N extends Numbers = Numbers> {
  readonly #values: N

  constructor (values: N) {
    this.#values = values
  }

  clear (step: number): void { this.#values[placeOf(step)] = 0 }
  add (step: number): void { this.#values[placeOf(step)]!++ }
  at (step: number): number { return this.#values[placeOf(step)]! }
  put (step: number, value: number): void { this.#values[placeOf(step)] = value }
  raise (step: number, value: number): void { if (value > this.at(step)) this.put(step, value) }

  /** The figures of the steps from `first` to `last`, at most `stepCount` of them. */
  slice (first: number, last: number): number[] {
    // Of hundreds of upstreams it is asked at once, on the one thread that there is.
    const figures: number[] = []
    for (let step = first, place = placeOf(first); step <= last; step++) {
      figures.push(this.#values[place]!)
      if (++place === places) place = 0
    }
    return figures
  }
}

export const counts = (): Column<Uint32Array> => new Column(new Uint32Array(places))
export const smallCounts = (): Column<Uint16Array> => new Column(new Uint16Array(places))
export const codes = (): Column<Uint8Array> => new Column(new Uint8Array(places))
export const times = (): Column<Float32Array> => new Column(new Float32Array(places))
