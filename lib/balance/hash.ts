import type { Random } from '../random.ts'
import type { Balancer, Loaded } from './balancer.ts'
import { HashRing } from './hash-ring.ts'
import { WeightedDraw } from './weighted-draw.ts'

/** A member that has a place on a ring. */
export interface Placed extends Loaded {
  /** Stable name: its keys follow from it. */
  readonly id: string
  /** Its full weight, whatever it may take at the moment. */
  readonly weight: number
}

/**
 * Consistent hashing: a request goes where its key belongs, and requests without a key are spread at random, by weight. Where the
 * key's home is not in, or is full, it goes on along the ring.
 *
 * Bounded load: a member is full with ceil(factor * (all in flight + 1) * its share of the weights) exchanges. With a factor of at
 * least 1 there is always one that is not; if all of those that may be asked are full, the home takes it.
 * Source: Mirrokni, Thorup and Zadimoghaddam, Consistent hashing with bounded loads (2018).
 */
export class ConsistentHash implements Balancer {
  readonly #members: readonly Placed[]
  readonly #factor: number
  readonly #random: Random
  readonly #ring: HashRing
  readonly #draw: WeightedDraw
  /** In flight at each of those that are in (0 for the others), as far as we were told, and together. */
  readonly #loads: Float64Array
  #inFlight = 0
  readonly #isIn: Uint8Array
  #count = 0
  #totalWeight = 0.5
  /** Of the latest walk along the ring: the members with its number are those that may be asked, or those that were found full. */
  readonly #marks: Float64Array
  #walk = 0

  /** @param boundedLoad the factor; 0: loads are not looked at */
  constructor (members: readonly Placed[], boundedLoad: number, random: Random) {
    this.#members = members
    this.#factor = boundedLoad
    this.#random = random
    this.#ring = new HashRing(members.map(({ id }) => id), members.map(({ weight }) => weight))
    this.#draw = new WeightedDraw(members.length, random)
    this.#loads = new Float64Array(members.length)
    this.#isIn = new Uint8Array(members.length)
    this.#marks = new Float64Array(members.length)
  }

  update (members: Int32Array, count: number, weights: Float64Array): void {
    this.#ring.select(members, count, weights)
    this.#draw.update(members, count, weights)
    this.#isIn.fill(0)
    this.#count = count
    this.#totalWeight = 0
    this.#inFlight = 0
    for (let i = 0; i < count; i++) {
      const index = members[i]!
      this.#isIn[index] = 1
      this.#totalWeight += weights[index]!
      this.#loads[index] = this.#members[index]!.inFlight
      this.#inFlight += this.#loads[index]!
    }
  }

  pick (key: number): number {
    if (this.#count === 0) return -1
    if (key < 0) {
      const drawn = this.#draw.one()
      return this.#isFull(drawn) ? this.#along(this.#anyKey(), this.#count, false) : drawn
    }
    const home = this.#ring.ownerAt(this.#ring.placeOf(key))
    return this.#isFull(home) ? this.#along(key, this.#count, false) : home
  }

  pickAmong (usable: Int32Array, count: number, key: number): number {
    if (count === 1) return usable[0]!
    if (key < 0) {
      const drawn = this.#draw.oneAmong(usable, count)
      if (!this.#isFull(drawn)) return drawn
    }
    this.#walk++
    for (let i = 0; i < count; i++) this.#marks[usable[i]!] = this.#walk
    return this.#along(key < 0 ? this.#anyKey() : key, count, true)
  }

  giveBack (): void {}

  /** One that is not in is read when it comes in. */
  loadChanged (index: number): void {
    if (this.#isIn[index] === 0) return
    const load = this.#members[index]!.inFlight
    this.#inFlight += load - this.#loads[index]!
    this.#loads[index] = load
  }

  #anyKey (): number {
    return Math.floor(this.#random() * 4294967296)
  }

  #isFull (index: number): boolean {
    if (this.#factor === 0) return false
    const share = this.#draw.weightOf(index) / this.#totalWeight
    return this.#loads[index]! >= Math.ceil(this.#factor * (this.#inFlight + 1) * share)
  }

  /**
   * The first one along the ring that is not full, of `count` members: those that are marked, or else all. It ends with the last of
   * them: on average after as many points as there are members for each that may be asked.
   */
  #along (key: number, count: number, marked: boolean): number {
    const mark = marked ? this.#walk : ++this.#walk
    let first = -1
    let left = count
    for (let place = this.#ring.placeOf(key), points = this.#ring.size; points > 0 && left > 0; points--, place = this.#ring.after(place)) {
      const owner = this.#ring.ownerAt(place)
      if ((this.#marks[owner] === mark) !== marked) continue
      if (!this.#isFull(owner)) return owner
      this.#marks[owner] = marked ? 0 : mark
      if (first === -1) first = owner
      left--
    }
    return first
  }
}
