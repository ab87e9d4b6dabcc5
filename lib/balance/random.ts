import type { Random } from '../random.ts'
import type { Balancer } from './balancer.ts'
import { WeightedDraw } from './weighted-draw.ts'

/** Each member as often as its weight is large, at random: instances that know nothing of each other do not run in step. */
export class RandomDraw implements Balancer {
  readonly #draw: WeightedDraw

  constructor (members: number, random: Random) {
    this.#draw = new WeightedDraw(members, random)
  }

  update (members: Int32Array, count: number, weights: Float64Array): void {
    this.#draw.update(members, count, weights)
  }

  pick (): number {
    return this.#draw.one()
  }

  pickAmong (usable: Int32Array, count: number): number {
    return this.#draw.oneAmong(usable, count)
  }

  giveBack (): void {}

  loadChanged (): void {}
}
