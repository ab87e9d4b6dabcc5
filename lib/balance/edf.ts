import type { Random } from '../random.ts'
import type { Balancer } from './balancer.ts'
import { IndexedHeap } from './indexed-heap.ts'
import { Ring } from './ring.ts'
import { shuffled } from './shuffled.ts'

/**
 * Turns by weight, spread evenly: weighted round-robin, and with equal weights plain round-robin. Each member has a deadline, the
 * earliest is picked, and its next one is a period (1 / weight) later. Weights are any positive numbers.
 *
 * The clock of the deadlines is that of the latest one picked. A member that was passed over until long after its deadline is
 * next, once, and its next period begins now: it has no arrears, and leaves no double share to a neighbour. Over any stretch of time with the same members and weights, each gets its share of the
 * deadlines' time within one pick.
 *
 * Among equal weights this is "whoever waited longest", which needs no deadlines, no rounding and no heap, but a ring. When weights
 * become equal, or cease to be, the order of the turns goes over from one to the other.
 *
 * Source: earliest deadline first as in Envoy's EDF scheduler. Here the first deadlines are spread evenly over a period, from a
 * random start and in random order: 5, 1, 1 does not begin with a burst, and many instances do not all begin with the same upstream.
 */
export class EarliestDeadline implements Balancer {
  /** Keys: the deadlines. Orders: the turn at which a member was last picked, the smaller the longer ago. */
  readonly #heap: IndexedHeap
  /** In the place of the heap while all weights are equal. */
  readonly #ring: Ring
  #inRing = false
  /** The latest weight of each member; 0 until it has had one. */
  readonly #weights: Float64Array
  /** The share of its first period after which a new member is due: [0, 1). */
  readonly #phases: Float64Array
  /** The deadlines' clock. Born as a fraction, because V8 then keeps the field a double. */
  #clock = 0.5
  /** By how much a turn of the ring moves it. */
  #ringStep = 0.5
  #turn: number
  /** What the latest pick has changed. */
  #deadlineBefore = 0.5
  #clockBefore = 0.5
  #turnBefore = 0

  constructor (members: number, random: Random) {
    this.#heap = new IndexedHeap(members)
    this.#ring = new Ring(this.#heap.orders)
    this.#weights = new Float64Array(members)
    this.#phases = new Float64Array(members)
    this.#clock = 0
    this.#ringStep = 0
    this.#turn = members
    const start = random()
    for (const [rank, index] of shuffled(members, random).entries()) {
      this.#phases[index] = (rank + start) / members
      this.#heap.orders[index] = rank
    }
  }

  /** The clock is set back to 0, so that numbers stay small. Who has waited for a part of its period has waited for that part of the new one. */
  update (members: Int32Array, count: number, weights: Float64Array): void {
    this.#setBack()
    if (this.#inRing) this.#leaveRing()
    const deadlines = this.#heap.keys
    let equal = true
    for (let i = 0; i < count; i++) {
      const index = members[i]!
      const weight = weights[index]!
      const before = this.#weights[index]!
      deadlines[index] = before === 0 ? this.#phases[index]! / weight : deadlines[index]! * before / weight
      this.#weights[index] = weight
      equal &&= weight === weights[members[0]!]
    }
    this.#inRing = equal
    if (equal) {
      this.#ringStep = count === 0 ? 0 : 1 / (count * weights[members[0]!]!)
      this.#ring.fill(members, count)
    } else {
      this.#heap.fill(members, count)
    }
  }

  pick (): number {
    if (this.#inRing) {
      const index = this.#ring.head
      if (index !== -1) this.#turned(index)
      return index
    }
    const index = this.#heap.top()
    if (index !== -1) this.#take(index)
    return index
  }

  pickAmong (usable: Int32Array, count: number): number {
    if (this.#inRing) {
      const index = this.#ring.first(usable, count)
      this.#turned(index)
      return index
    }
    const index = this.#heap.first(usable, count)
    this.#take(index)
    return index
  }

  giveBack (index: number): void {
    this.#clock = this.#clockBefore
    this.#heap.orders[index] = this.#turnBefore
    if (this.#inRing) {
      this.#ring.returned(index)
    } else {
      this.#heap.keys[index] = this.#deadlineBefore
      this.#heap.moved(index)
    }
  }

  loadChanged (): void {}

  #turned (index: number): void {
    const { orders } = this.#ring
    this.#clockBefore = this.#clock
    this.#turnBefore = orders[index]!
    this.#clock += this.#ringStep
    this.#deadlineBefore = this.#clock
    orders[index] = this.#turn++
    this.#ring.picked(index)
  }

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

  #setBack (): void {
    const deadlines = this.#heap.keys
    const clock = this.#clock
    for (let index = 0; index < deadlines.length; index++) deadlines[index]! -= clock
    this.#deadlineBefore -= clock
    this.#clockBefore -= clock
    this.#clock = 0
  }

  /** A member of the ring is due when those before it have had their turn. */
  #leaveRing (): void {
    let index = this.#ring.head
    for (let rank = 1; rank <= this.#ring.size; rank++) {
      this.#heap.keys[index] = rank * this.#ringStep
      index = this.#ring.after(index)
    }
  }
}
