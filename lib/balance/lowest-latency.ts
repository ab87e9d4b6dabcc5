import type { Random } from '../random.ts'
import type { Balancer, Loaded } from './balancer.ts'
import { WeightedDraw } from './weighted-draw.ts'

/**
 * By latency: of two different members, drawn by weight, the one whose peak EWMA times (in flight + 1), divided by its weight, is
 * lower; of equal ones the first drawn. See PeakEwma for what the caller records.
 */
export class LowestLatency implements Balancer {
  readonly #members: readonly Loaded[]
  readonly #draw: WeightedDraw

  constructor (members: readonly Loaded[], random: Random) {
    this.#members = members
    this.#draw = new WeightedDraw(members.length, random)
  }

  update (members: Int32Array, count: number, weights: Float64Array): void {
    this.#draw.update(members, count, weights)
  }

  pick (_key: number, now: number): number {
    this.#draw.pair()
    return this.#better(now)
  }

  pickAmong (usable: Int32Array, count: number, _key: number, now: number): number {
    this.#draw.pairAmong(usable, count)
    return this.#better(now)
  }

  giveBack (index: number): void {
    this.#members[index]!.latency.notAsked()
  }

  loadChanged (): void {}

  #better (now: number): number {
    const { first, second } = this.#draw
    if (first === -1) return -1
    const index = second !== -1 && this.#cost(second, now) < this.#cost(first, now) ? second : first
    this.#members[index]!.latency.asked(now)
    return index
  }

  #cost (index: number, now: number): number {
    const { inFlight, latency } = this.#members[index]!
    return latency.cost(inFlight, now) / this.#draw.weightOf(index)
  }
}
