/**
 * A binary heap of members, known by their index in the pool: the one with the smallest key is on top, and among equal keys the
 * one with the smallest order. The caller writes `keys` and `orders` and then says which member has moved. O(log n) a move;
 * nothing is allocated after construction.
 */
export class IndexedHeap {
  readonly keys: Float64Array
  readonly orders: Float64Array
  readonly #heap: Int32Array
  /** Where in the heap a member is; -1: it is not in. */
  readonly #places: Int32Array
  #size = 0

  /** @param capacity members of the pool, in the heap or not */
  constructor (capacity: number) {
    this.keys = new Float64Array(capacity)
    this.orders = new Float64Array(capacity)
    this.#heap = new Int32Array(capacity)
    this.#places = new Int32Array(capacity).fill(-1)
  }

  has (index: number): boolean { return this.#places[index]! >= 0 }

  /** The first of the members; -1 if the heap is empty. */
  top (): number { return this.#size === 0 ? -1 : this.#heap[0]! }

  /** From now on `members[0 .. count-1]` are in the heap, with the keys and orders that they have now. */
  fill (members: Int32Array, count: number): void {
    this.#places.fill(-1)
    this.#size = count
    for (let i = 0; i < count; i++) this.#put(i, members[i]!)
    for (let i = (count >> 1) - 1; i >= 0; i--) this.#sink(i)
  }

  /** The key or the order of this member has changed. A member that is not in stays out. */
  moved (index: number): void {
    const place = this.#places[index]!
    if (place >= 0 && !this.#rise(place)) this.#sink(place)
  }

  /** The first among some of the members: `usable[0 .. count-1]`. Looks at each of them. */
  first (usable: Int32Array, count: number): number {
    let best = usable[0]!
    for (let i = 1; i < count; i++) {
      const index = usable[i]!
      if (this.#before(index, best)) best = index
    }
    return best
  }

  #before (a: number, b: number): boolean {
    const keyA = this.keys[a]!
    const keyB = this.keys[b]!
    return keyA < keyB || (keyA === keyB && this.orders[a]! < this.orders[b]!)
  }

  #put (place: number, index: number): void {
    this.#heap[place] = index
    this.#places[index] = place
  }

  #rise (from: number): boolean {
    const index = this.#heap[from]!
    let place = from
    while (place > 0) {
      const parent = (place - 1) >> 1
      const above = this.#heap[parent]!
      if (!this.#before(index, above)) break
      this.#put(place, above)
      place = parent
    }
    this.#put(place, index)
    return place !== from
  }

  #sink (from: number): void {
    const index = this.#heap[from]!
    let place = from
    for (let child = 2 * place + 1; child < this.#size; child = 2 * place + 1) {
      if (child + 1 < this.#size && this.#before(this.#heap[child + 1]!, this.#heap[child]!)) child++
      const below = this.#heap[child]!
      if (!this.#before(below, index)) break
      this.#put(place, below)
      place = child
    }
    this.#put(place, index)
  }
}
