import type { Random } from '../random.ts'

/**
 * Draws members at random, each as likely as its weight is large: one, or two different ones. A draw is O(log n), by running sums
 * of the weights and a binary search, and O(1) where all weights are equal; nothing is allocated after construction.
 */
export class WeightedDraw {
  readonly #random: Random
  readonly #weights: Float64Array
  readonly #members: Int32Array
  /** Of the members in their order: the weight of this one and of those before it. */
  readonly #sums: Float64Array
  #count = 0
  /** 1 / the weight that all have; 0 where they differ. Born as a fraction, because V8 then keeps the field a double. */
  #even = 0.5
  /** The latest pair. `second` is -1 where there was only one to draw. */
  first = -1
  second = -1

  /** @param capacity members of the pool */
  constructor (capacity: number, random: Random) {
    this.#random = random
    this.#weights = new Float64Array(capacity)
    this.#members = new Int32Array(capacity)
    this.#sums = new Float64Array(capacity)
  }

  /** From now on `members[0 .. count-1]` are drawn, by these weights. */
  update (members: Int32Array, count: number, weights: Float64Array): void {
    let sum = 0
    let isEven = count > 0
    for (let i = 0; i < count; i++) {
      const index = members[i]!
      this.#members[i] = index
      this.#weights[index] = weights[index]!
      isEven &&= weights[index] === weights[members[0]!]
      sum += weights[index]!
      this.#sums[i] = sum
    }
    this.#even = isEven ? 1 / weights[members[0]!]! : 0
    this.#count = count
  }

  weightOf (index: number): number { return this.#weights[index]! }

  /** A member; -1 if there is none. */
  one (): number {
    const count = this.#count
    if (count < 2) return count === 0 ? -1 : this.#members[0]!
    return this.#members[this.#placeOf(this.#random() * this.#sums[count - 1]!)]!
  }

  /** Draws a member, and another one from the rest. -1 where there is none. */
  pair (): void {
    const count = this.#count
    this.second = -1
    if (count < 2) {
      this.first = count === 0 ? -1 : this.#members[0]!
      return
    }
    const total = this.#sums[count - 1]!
    const place = this.#placeOf(this.#random() * total)
    this.first = this.#members[place]!
    const weight = this.#weights[this.first]!
    const before = place === 0 ? 0 : this.#sums[place - 1]!
    // The rest, as if the first were not there: what lies behind it moves up by its weight.
    const target = this.#random() * (total - weight)
    let other = this.#placeOf(target < before ? target : target + weight)
    // Rounding may lead to its edge.
    if (other === place) other = place + 1 < count ? place + 1 : place - 1
    this.second = this.#members[other]!
  }

  /** One of `usable[0 .. count-1]`, which are members; O(count). */
  oneAmong (usable: Int32Array, count: number): number {
    return count === 1 ? usable[0]! : this.#scan(usable, count, -1)
  }

  /** As `pair`, of `usable[0 .. count-1]`, which are members; O(count). */
  pairAmong (usable: Int32Array, count: number): void {
    this.first = this.oneAmong(usable, count)
    this.second = count === 1 ? -1 : this.#scan(usable, count, this.first)
  }

  #placeOf (target: number): number {
    let low = 0
    // The last one takes what rounding leaves over.
    let high = this.#count - 1
    if (this.#even > 0) return Math.min(high, Math.floor(target * this.#even))
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#sums[middle]! > target) high = middle
      else low = middle + 1
    }
    return low
  }

  #scan (usable: Int32Array, count: number, but: number): number {
    let left = 0
    for (let i = 0; i < count; i++) if (usable[i] !== but) left += this.#weights[usable[i]!]!
    left *= this.#random()
    let latest = -1
    for (let i = 0; i < count; i++) {
      const index = usable[i]!
      if (index === but) continue
      latest = index
      left -= this.#weights[index]!
      if (left < 0) break
    }
    return latest
  }
}
