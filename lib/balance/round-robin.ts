import type { Random } from '../random.ts'
import type { Balancer } from './balancer.ts'

/**
 * Round-robin as "whoever waited longest": each member remembers the turn at which it was last picked. A member that is passed
 * over for a while therefore leaves no double share to its neighbour, as a moving cursor would, and one that comes back is next.
 */
export class RoundRobin implements Balancer {
  readonly #lastTurn: Float64Array
  #turn: number
  /** The turn that the latest pick had before. */
  #turnBefore = 0

  /** The first turns are in random order, so that many instances do not all begin with the same upstream. */
  constructor (members: number, random: Random) {
    this.#lastTurn = new Float64Array(members)
    this.#turn = members
    for (let i = 0; i < members; i++) this.#lastTurn[i] = i
    for (let i = members - 1; i > 0; i--) {
      const other = Math.floor(random() * (i + 1))
      const held = this.#lastTurn[i] as number
      this.#lastTurn[i] = this.#lastTurn[other] as number
      this.#lastTurn[other] = held
    }
  }

  pick (usable: Int32Array, count: number): number {
    const lastTurn = this.#lastTurn
    let best = usable[0] as number
    for (let i = 1; i < count; i++) {
      const index = usable[i] as number
      if ((lastTurn[index] as number) < (lastTurn[best] as number)) best = index
    }
    this.#turnBefore = lastTurn[best] as number
    lastTurn[best] = this.#turn++
    return best
  }

  giveBack (index: number): void {
    this.#lastTurn[index] = this.#turnBefore
  }
}
