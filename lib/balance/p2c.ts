import type { Random } from '../random.ts'
import type { Balancer, Loaded } from './balancer.ts'
import { WeightedDraw } from './weighted-draw.ts'

/**
 * The power of two choices: of two different members, drawn by weight, the one with the lower (in flight + 1) / weight; of equal
 * ones the first drawn. Almost as even as looking at all of them, and instances that see the same loads do not all run to the
 * same upstream.
 *
 * Two that are both idle are not compared: the first drawn stands. Otherwise the heavier one would take all of a light traffic, and
 * one in slow start nothing.
 *
 * Source: Mitzenmacher, The power of two choices in randomized load balancing (2001). Drawn without replacement: with it, the
 * busier of two upstreams would still get a quarter of the picks.
 */
export class TwoChoices implements Balancer {
  readonly #members: readonly Loaded[]
  readonly #draw: WeightedDraw

  constructor (members: readonly Loaded[], random: Random) {
    this.#members = members
    this.#draw = new WeightedDraw(members.length, random)
  }

  update (members: Int32Array, count: number, weights: Float64Array): void {
    this.#draw.update(members, count, weights)
  }

  pick (): number {
    this.#draw.pair()
    return this.#better()
  }

  pickAmong (usable: Int32Array, count: number): number {
    this.#draw.pairAmong(usable, count)
    return this.#better()
  }

  giveBack (): void {}

  loadChanged (): void {}

  #better (): number {
    const { first, second } = this.#draw
    if (second === -1) return first
    const atFirst = this.#members[first]!.inFlight
    const atSecond = this.#members[second]!.inFlight
    if (atFirst === 0 && atSecond === 0) return first
    return (atSecond + 1) * this.#draw.weightOf(first) < (atFirst + 1) * this.#draw.weightOf(second) ? second : first
  }
}
