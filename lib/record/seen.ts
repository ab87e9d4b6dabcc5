/** One bit for each of 2^23 hashes: one megabyte. */
const bits = 2 ** 23
/** Above so many ids a filter is full: about one in a hundred others would be taken for one of them. */
const most = 400000

/**
 * Remembers ids without keeping them: two Bloom filters with two bits for an id, of which the older one is forgotten when the newer
 * one is full. It never denies one of the last 400000 ids; of others it takes about one in a hundred for one of them. Nothing is
 * allocated but the two filters, of a megabyte each, of which only what is written takes memory.
 * Source: B. H. Bloom, Space/time trade-offs in hash coding with allowable errors, 1970.
 */
export class SeenIds {
  #now = new Uint32Array(bits / 32)
  #before = new Uint32Array(bits / 32)
  #count = 0

  add (id: string): void {
    const hash = hashOf(id)
    const first = hash >>> 9
    const second = againOf(hash)
    if (this.#count >= most) this.#turn()
    this.#count++
    this.#now[first >>> 5]! |= 1 << (first & 31)
    this.#now[second >>> 5]! |= 1 << (second & 31)
  }

  has (id: string): boolean {
    const hash = hashOf(id)
    const first = hash >>> 9
    const second = againOf(hash)
    return [this.#now, this.#before].some((filter) => (filter[first >>> 5]! & 1 << (first & 31)) !== 0 && (filter[second >>> 5]! & 1 << (second & 31)) !== 0)
  }

  #turn (): void {
    const old = this.#before
    this.#before = this.#now
    this.#now = old.fill(0)
    this.#count = 0
  }
}

/** FNV-1a over the last 24 characters at most, which tell ids of one kind apart, and mixed. */
function hashOf (id: string): number {
  let hash = 0x811c9dc5
  for (let i = Math.max(0, id.length - 24); i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193)
  return Math.imul(hash ^ hash >>> 15, 0x2c1b3c6d)
}

/** Another 23 bits of the same hash. */
const againOf = (hash: number): number => Math.imul(hash ^ hash >>> 13, 0x9e3779b1) >>> 9
