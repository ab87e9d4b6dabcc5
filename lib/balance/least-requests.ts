import type { Random } from '../random.ts'
import type { Balancer, Loaded } from './balancer.ts'
import { EarliestDeadline } from './edf.ts'
import { IndexedHeap } from './indexed-heap.ts'
import { shuffled } from './shuffled.ts'

/**
 * The member with the lowest (in flight + 1) / weight; among equal ones, whoever was picked longest ago.
 *
 * While nothing is in flight there is nothing to compare, and turns by weight are taken: otherwise the heaviest member would take
 * all of a light traffic, and one in slow start nothing. A member that comes empty is filled up first, as the rule says: where it
 * should not be, slow start gives it less weight.
 */
export class LeastRequests implements Balancer {
  readonly #members: readonly Loaded[]
  /** Keys: (in flight + 1) / weight. Orders: the turn at which a member was last picked. */
  readonly #heap: IndexedHeap
  readonly #idle: EarliestDeadline
  readonly #weights: Float64Array
  /** What is in flight at each member, as far as we were told, and together. */
  readonly #loads: Float64Array
  #inFlight = 0
  #turn: number
  /** The turn that the latest pick had before, and whether it was one of the idle. */
  #turnBefore = 0
  #wasIdle = false

  constructor (members: readonly Loaded[], random: Random) {
    this.#members = members
    this.#heap = new IndexedHeap(members.length)
    this.#idle = new EarliestDeadline(members.length, random)
    this.#weights = new Float64Array(members.length)
    this.#loads = new Float64Array(members.length)
    this.#turn = members.length
    this.#heap.orders.set(shuffled(members.length, random))
  }

  update (members: Int32Array, count: number, weights: Float64Array): void {
    this.#inFlight = 0
    for (let i = 0; i < count; i++) {
      const index = members[i]!
      const load = this.#members[index]!.inFlight
      this.#weights[index] = weights[index]!
      this.#loads[index] = load
      this.#heap.keys[index] = (load + 1) / weights[index]!
      this.#inFlight += load
    }
    this.#heap.fill(members, count)
    this.#idle.update(members, count, weights)
  }

  pick (): number {
    this.#wasIdle = this.#inFlight === 0
    const index = this.#wasIdle ? this.#idle.pick() : this.#heap.top()
    if (index !== -1) this.#take(index)
    return index
  }

  pickAmong (usable: Int32Array, count: number): number {
    this.#wasIdle = this.#inFlight === 0
    const index = this.#wasIdle ? this.#idle.pickAmong(usable, count) : this.#heap.first(usable, count)
    this.#take(index)
    return index
  }

  giveBack (index: number): void {
    if (this.#wasIdle) this.#idle.giveBack(index)
    this.#heap.orders[index] = this.#turnBefore
    this.#heap.moved(index)
  }

  /** One that is not in is read when it comes in. */
  loadChanged (index: number): void {
    if (!this.#heap.has(index)) return
    const load = this.#members[index]!.inFlight
    this.#inFlight += load - this.#loads[index]!
    this.#loads[index] = load
    this.#heap.keys[index] = (load + 1) / this.#weights[index]!
    this.#heap.moved(index)
  }

  #take (index: number): void {
    const { orders } = this.#heap
    this.#turnBefore = orders[index]!
    orders[index] = this.#turn++
    this.#heap.moved(index)
  }
}
