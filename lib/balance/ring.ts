/**
 * Members in a circle, known by their index in the pool, in the order in which they were last picked: the head is who has waited
 * longest. O(1) a turn, where the head is picked; nothing is allocated after construction.
 */
export class Ring {
  /** The turn at which a member was last picked, the smaller the longer ago. */
  readonly orders: Float64Array
  readonly #next: Int32Array
  /** -1: it is not in. */
  readonly #previous: Int32Array
  readonly #sorted: Int32Array
  #head = -1
  #size = 0

  /** @param orders the caller's, who writes a member's order before it says that the member was picked or given back */
  constructor (orders: Float64Array) {
    this.orders = orders
    this.#next = new Int32Array(orders.length)
    this.#previous = new Int32Array(orders.length).fill(-1)
    this.#sorted = new Int32Array(orders.length)
  }

  get size (): number { return this.#size }
  /** Who has waited longest; -1: nobody is in. */
  get head (): number { return this.#head }
  after (index: number): number { return this.#next[index]! }

  /** From now on `members[0 .. count-1]` are in, by their orders. O(n log n). */
  fill (members: Int32Array, count: number): void {
    this.#previous.fill(-1)
    this.#size = count
    const sorted = this.#sorted.subarray(0, count)
    for (let i = 0; i < count; i++) sorted[i] = members[i]!
    sorted.sort((a, b) => this.orders[a]! - this.orders[b]!)
    this.#head = count === 0 ? -1 : sorted[0]!
    for (let i = 0; i < count; i++) this.#link(sorted[i]!, sorted[i + 1 === count ? 0 : i + 1]!)
  }

  /** It was picked: it is the last now. */
  picked (index: number): void {
    if (index === this.#head) this.#head = this.#next[index]!
    else if (this.#previous[index] !== -1) this.#move(index, this.#head)
  }

  /** Its pick came to nothing: it goes to where its order puts it, which is at the head or near. */
  returned (index: number): void {
    if (this.#previous[index] === -1) return
    const order = this.orders[index]!
    let place = this.#head
    for (let left = this.#size; left > 0 && (place === index || this.orders[place]! < order); left--) place = this.#next[place]!
    if (place === index) return
    const first = this.orders[this.#head]! > order
    this.#move(index, place)
    if (first) this.#head = index
  }

  /** The first among some of the members: `usable[0 .. count-1]`. Looks at each of them. */
  first (usable: Int32Array, count: number): number {
    let best = usable[0]!
    for (let i = 1; i < count; i++) if (this.orders[usable[i]!]! < this.orders[best]!) best = usable[i]!
    return best
  }

  #move (index: number, before: number): void {
    if (before === index) return
    if (index === this.#head) this.#head = this.#next[index]!
    this.#link(this.#previous[index]!, this.#next[index]!)
    this.#link(this.#previous[before]!, index)
    this.#link(index, before)
  }

  #link (first: number, second: number): void {
    this.#next[first] = second
    this.#previous[second] = first
  }
}
