import type { Random } from '../random.ts'
import type { Balancer } from './balancer.ts'
import { IndexedHeap } from './indexed-heap.ts'
import { shuffled } from './shuffled.ts'

/**
 * Turns by weight, spread evenly: weighted round-robin, and with equal weights plain round-robin. Each member has a deadline, the
 * earliest is picked, and its next one is a period (1 / weight) later. Weights are any positive numbers.
 *
 * The clock of the deadlines is that of the latest one picked. A member that was passed over until long after its deadline is
 * next, once, and its next period begins now: it has no arrears, and leaves no double share to a neighbour. Among equal weights
 * this is exactly "whoever waited longest". Over any stretch of time with the same members and weights, each gets its share of the
 * deadlines' time within one pick.
 *
 * Source: earliest deadline first as in Envoy's EDF scheduler. Here the first deadlines are spread evenly over a period, from a
 * random start and in random order: 5, 1, 1 does not begin with a burst, and many instances do not all begin with the same upstream.
 */
export class EarliestDeadline implements Balancer {
  /** Keys: the deadlines. Orders: the turn at which a member was last picked, the smaller the longer ago. */
  readonly #heap: IndexedHeap
  /** The latest weight of each member; 0 until it has had one. */
  readonly #weights: Float64Array
  /** The share of its first period after which a new member is due: [0, 1). */
  readonly #phases: Float64Array
  /** The deadlines' clock. Born as a fraction, because V8 then keeps the field a double. */
  #clock = 0.5
  #turn: number
  /** What the latest pick has changed. */
  #deadlineBefore = 0.5
  #clockBefore = 0.5
  #turnBefore = 0

  constructor (members: number, random: Random) {
    this.#heap = new IndexedHeap(members)
    this.#weights = new Float64Array(members)
    this.#phases = new Float64Array(members)
    this.#clock = 0
    this.#turn = members
    const start = random()
    for (const [rank, index] of shuffled(members, random).entries()) {
      this.#phases[index] = (rank + start) / members
      this.#heap.orders[index] = rank
    }
  }

  /** The clock is set back to 0, so that numbers stay small. Who has waited for a part of its period has waited for that part of the new one. */
  update (members: Int32Array, count: number, weights: Float64Array): void {
    const deadlines = this.#heap.keys
    const clock = this.#clock
    for (let index = 0; index < deadlines.length; index++) deadlines[index]! -= clock
    for (let i = 0; i < count; i++) {
      const index = members[i]!
      const weight = weights[index]!
      const before = this.#weights[index]!
      deadlines[index] = before === 0 ? this.#phases[index]! / weight : deadlines[index]! * before / weight
      this.#weights[index] = weight
    }
    this.#deadlineBefore -= clock
    this.#clockBefore -= clock
    this.#clock = 0
    this.#heap.fill(members, count)
  }

  pick (): number {
    const index = this.#heap.top()
    if (index !== -1) this.#take(index)
    return index
  }

  pickAmong (usable: Int32Array, count: number): number {
    const index = this.#heap.first(usable, count)
    this.#take(index)
    return index
  }

  giveBack (index: number): void {
    this.#clock = this.#clockBefore
    this.#heap.keys[index] = this.#deadlineBefore
    this.#heap.orders[index] = this.#turnBefore
    this.#heap.moved(index)
  }

  loadChanged (): void {}

  #take (index: number): void {
    const { keys: deadlines, orders } = this.#heap
    const deadline = deadlines[index]!
    this.#deadlineBefore = deadline
    this.#clockBefore = this.#clock
    this.#turnBefore = orders[index]!
    if (deadline > this.#clock) this.#clock = deadline
    deadlines[index] = this.#clock + 1 / this.#weights[index]!
    orders[index] = this.#turn++
    this.#heap.moved(index)
  }
}
