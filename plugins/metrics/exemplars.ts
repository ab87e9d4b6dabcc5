import type { ExemplarSample } from './family.ts'

/** What an exemplar may take in names and values together (OpenMetrics 1.0). */
const maxCharacters = 128

/** Whose request it was: the part of an exchange that exemplars want. */
export interface Traced {
  readonly requestId: string
  readonly traceId: string | null
}

/** The latest request that each of a number of places has counted: written over and over, and put into words only when asked for. */
export class Exemplars {
  readonly #requestIds: Array<string | null>
  readonly #traceIds: Array<string | null>
  readonly #values: Float64Array
  readonly #times: Float64Array

  constructor (places: number) {
    this.#requestIds = new Array<string | null>(places).fill(null)
    this.#traceIds = new Array<string | null>(places).fill(null)
    this.#values = new Float64Array(places)
    this.#times = new Float64Array(places)
  }

  /** @param at monotonic milliseconds */
  set (place: number, { requestId, traceId }: Traced, value: number, at: number): void {
    this.#requestIds[place] = requestId
    this.#traceIds[place] = traceId
    this.#values[place] = value
    this.#times[place] = at
  }

  at (place: number): ExemplarSample | null {
    const requestId = this.#requestIds[place] ?? null
    const traceId = this.#traceIds[place] ?? null
    if (requestId === null) return null
    const traced = traceId === null ? {} : { trace_id: traceId }
    const fits = 'request_id'.length + requestId.length + (traceId === null ? 0 : 'trace_id'.length + traceId.length) <= maxCharacters
    const labelSet = fits ? { request_id: requestId, ...traced } : traced
    if (Object.keys(labelSet).length === 0) return null
    return { labelSet, value: this.#values[place] as number, timestamp: Math.round(performance.timeOrigin + (this.#times[place] as number)) / 1000 }
  }
}
