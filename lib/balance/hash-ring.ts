import { hashText, mix32 } from '../hash.ts'

/** Points of a member of the unit weight: its share of the keys is right within about 1 / sqrt(points). */
const pointsEach = 512
/** No ring has many more points than this, whatever its members are. */
const maxPoints = 131072
/** Points are sorted as hash * this + their number. */
const numbers = 2 ** 20

/**
 * A ring for consistent hashing: each member has points on it, by its weight, and a key belongs to the first point at or after it.
 *
 * The points of a member follow from its id alone, and how many of them there are from its weight; those of all members are laid
 * out once. Who is in at the moment only says which of them are looked at. So a member that leaves gives its keys to the others and
 * gets exactly these back, a new one takes only what becomes its own, and all instances with the same members agree.
 *
 * Source: Karger et al., Consistent hashing and random trees (1997), with the points by weight as in ketama.
 */
export class HashRing {
  /** All points, ascending by hash: whose it is, and how many of the same member's were made before it. */
  readonly #allHashes: Uint32Array
  readonly #allOwners: Int32Array
  readonly #allRanks: Int32Array
  /** So many points has each member in all. */
  readonly #points: Int32Array
  readonly #weights: Float64Array
  /** The points that are looked at. */
  readonly #hashes: Uint32Array
  readonly #owners: Int32Array
  readonly #wanted: Int32Array
  #size = 0
  /** The range of keys is cut into about as many equal parts as there are points: the first place of each, and the size. */
  readonly #parts: Int32Array
  readonly #shift: number

  /** @param ids stable names of all members @param weights their full weights; one of weight 0 has a single point */
  constructor (ids: readonly string[], weights: readonly number[]) {
    this.#weights = Float64Array.from(weights)
    this.#points = pointCounts(weights)
    this.#wanted = new Int32Array(ids.length)
    const total = this.#points.reduce((sum, points) => sum + points, 0)
    const sorted = new Float64Array(total)
    const owners = new Int32Array(total)
    const ranks = new Int32Array(total)
    let number = 0
    // By id, so that not even points that meet depend on the order in which members are listed.
    for (const owner of ids.map((_id, index) => index).toSorted((a, b) => ids[a]! < ids[b]! ? -1 : 1)) {
      const id = ids[owner]!
      const start = hashText(id, 1)
      const own = hashText(id, 2)
      for (let rank = 0; rank < this.#points[owner]!; rank++) {
        sorted[number] = mix32(mix32(start + rank) ^ own) * numbers + number
        owners[number] = owner
        ranks[number++] = rank
      }
    }
    sorted.sort()
    this.#allHashes = new Uint32Array(total)
    this.#allOwners = new Int32Array(total)
    this.#allRanks = new Int32Array(total)
    for (let place = 0; place < total; place++) {
      const hash = Math.floor(sorted[place]! / numbers)
      const made = sorted[place]! - hash * numbers
      this.#allHashes[place] = hash
      this.#allOwners[place] = owners[made]!
      this.#allRanks[place] = ranks[made]!
    }
    this.#hashes = new Uint32Array(total)
    this.#owners = new Int32Array(total)
    // At least two parts: a shift by 32 would be none.
    this.#shift = Math.min(31, Math.clz32(total))
    this.#parts = new Int32Array(2 ** (32 - this.#shift) + 1)
  }

  /** Points that are looked at. */
  get size (): number { return this.#size }

  /**
   * From now on only `members[0 .. count-1]` are looked at; one with less than its full weight has only the first ones of its points.
   * O(points).
   */
  select (members: Int32Array, count: number, weights: Float64Array): void {
    this.#wanted.fill(0)
    for (let i = 0; i < count; i++) {
      const index = members[i]!
      const share = Math.min(1, weights[index]! / this.#weights[index]!)
      this.#wanted[index] = Math.ceil(this.#points[index]! * share)
    }
    let size = 0
    let part = 0
    for (let point = 0; point < this.#allOwners.length; point++) {
      const owner = this.#allOwners[point]!
      if (this.#allRanks[point]! >= this.#wanted[owner]!) continue
      const hash = this.#allHashes[point]!
      while (part <= hash >>> this.#shift) this.#parts[part++] = size
      this.#hashes[size] = hash
      this.#owners[size++] = owner
    }
    this.#parts.fill(size, part)
    this.#size = size
  }

  /** The place of the first point at or after the key, which is a whole number in 0 .. 2^32-1. O(log points), mostly O(1). */
  placeOf (key: number): number {
    const part = key >>> this.#shift
    let low = this.#parts[part]!
    let high = this.#parts[part + 1]!
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#hashes[middle]! < key) low = middle + 1
      else high = middle
    }
    return low === this.#size ? 0 : low
  }

  /** The next place, round the ring. */
  after (place: number): number { return place + 1 === this.#size ? 0 : place + 1 }

  ownerAt (place: number): number { return this.#owners[place]! }
}

/**
 * By weight relative to the power of two that the heaviest one reaches: relative to their sum, every new member would change the
 * points of all others, and so move keys between them.
 */
function pointCounts (weights: readonly number[]): Int32Array {
  const unit = 2 ** Math.floor(Math.log2(Math.max(...weights)))
  const wanted = weights.map((weight) => weight > 0 ? pointsEach * weight / unit : 1)
  const scale = Math.min(1, maxPoints / wanted.reduce((sum, points) => sum + points, 0))
  return Int32Array.from(wanted, (points) => Math.max(1, Math.round(points * scale)))
}
