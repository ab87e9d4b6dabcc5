/** How often `tick` is to be called, in ms. */
export const tickMs = 100

/** A power of 2, so that a serial finds its slot by a mask. */
const slots = 8
const slotMask = slots - 1
/** Serials stay small integers; an attempt would have to wait for 2^29 slots to be taken for another. */
const serialMask = 2 ** 29 - 1
/** So many ticks after its last answer, a minute, an upstream is not known to be quick any more: the first answers after a quiet time may be slow. */
const freshTicks = 60000 / tickMs
/** So many of those that wait in vain are named. */
const mostNamed = 10

/** An attempt that can be named: it is a link of the chain of those that wait, so that none of them needs memory of ours. */
export interface Waiter {
  readonly name: string
  /** Of the silence alone, as the two below. */
  waitsSince: number
  waitsBefore: Waiter | null
  waitsAfter: Waiter | null
}

/**
 * How many attempts wait for an upstream, and for how long, since it was last heard: counted in a few slots by age, in bounded memory
 * however many wait. Whatever the upstream does ends the silence and with it the count.
 *
 * Time is counted in ticks of a timer. While our own event loop stands still it does not tick, so that such a time is nobody's
 * silence, and no clock can jump. An attempt's age is counted from the tick after it began: never too much, and at most one slot
 * too little, which is one tick or a seventh of the limit, whichever is more.
 */
export class Silence {
  /** Attempts by the slot in which they began, the newest one at the serial's place. */
  readonly #slots = [0, 0, 0, 0, 0, 0, 0, 0]
  /** Attempts that began to wait since the upstream was last heard, and still do. */
  #waiting = 0
  /** Those among them that are older than the limit: their slot is out of the ring. */
  #overdue = 0
  /** The newest slot. */
  #serial = 0
  /** How many slots have passed since the first one of this silence. */
  #turns = 0
  /** How many had passed when one of the overdue ones began, the oldest as far as is known. */
  #oldestTurn = 0
  /** Ticks in the newest slot. */
  #ticks = 0
  /** The limit in ticks; 0 until the first tick of this silence. */
  #limitTicks = 0
  /** Ticks since the upstream was last heard. */
  #quiet = 0
  /** The newest one of this silence that can be named: the end of their chain. */
  #newest: Waiter | null = null

  /** How many of them were older than the limit at the last tick. */
  get overdue (): number {
    return this.#overdue
  }

  /** How many wait; the overdue ones are among them. */
  get waiting (): number {
    return this.#waiting
  }

  /** How long the oldest of them has waited, in ms, in whole ticks and without stalls of our own; null when none waits. */
  get oldestMs (): number | null {
    if (this.#waiting === 0) return null
    let age = this.#overdue > 0 ? this.#turns - this.#oldestTurn : Math.min(this.#turns, slotMask)
    if (this.#overdue === 0) while (age > 0 && this.#slots[(this.#serial - age) & slotMask] === 0) age--
    return age === 0 ? 0 : this.#ticksOf(age) * tickMs
  }

  /** The names of the overdue ones that have one, the oldest first, at most ten; frozen. */
  overdueNames (): readonly string[] {
    const names: string[] = []
    for (let each = this.#newest; each !== null; each = each.waitsBefore) if (this.#isOverdue(this.#ageOf(each.waitsSince))) names.push(each.name)
    return Object.freeze(names.slice(-mostNamed).toReversed())
  }

  /**
   * An attempt begins to wait. Returns what `leaves` takes (> 0); 0 where it would begin a silence after a quiet time.
   * @param who for `overdueNames`; null: nobody asks for it
   */
  waits (who: Waiter | null = null): number {
    if (this.#waiting === 0) {
      if (this.#quiet > freshTicks) return 0
      this.#begin()
    }
    this.#waiting++
    this.#slots[this.#serial & slotMask]!++
    const watch = this.#serial + 1
    if (who !== null) this.#link(who, watch)
    return watch
  }

  /** An attempt waits no longer, though nothing came. No effect for one that began before the upstream was last heard, and for 0. */
  leaves (watch: number, who: Waiter | null = null): void {
    if (who !== null) this.#unlink(who)
    const age = this.#ageOf(watch)
    if (watch === 0 || this.#waiting === 0 || age > this.#turns) return
    if (this.#isOverdue(age)) {
      if (this.#overdue === 0) return
      this.#overdue--
    } else {
      const slot = (this.#serial - age) & slotMask
      if (this.#slots[slot] === 0) return
      this.#slots[slot]!--
    }
    this.#waiting--
  }

  /** The upstream was heard, or all is to begin anew: nobody waits in silence. */
  end (): void {
    this.#quiet = 0
    if (this.#waiting === 0) return
    while (this.#newest !== null) this.#unlink(this.#newest)
    if (this.#turns === 0) this.#slots[this.#serial & slotMask] = 0
    else this.#slots.fill(0)
    this.#waiting = 0
    this.#overdue = 0
  }

  /** A tick has passed in which an answer would have been heard. `limitMs` must stay the same through a silence. */
  tick (limitMs: number): void {
    if (this.#quiet <= freshTicks) this.#quiet++
    if (this.#waiting === 0) return
    if (this.#limitTicks === 0) this.#limitTicks = Math.max(1, Math.ceil(limitMs / tickMs))
    const slotTicks = this.#slotTicks
    if (++this.#ticks === slotTicks) {
      this.#ticks = 0
      this.#turns++
      this.#serial = (this.#serial + 1) & serialMask
    }
    // slots begin at whole multiples, so that at most one reaches the limit at a tick
    const age = (this.#limitTicks - this.#ticks) / slotTicks + 1
    if (Number.isInteger(age) && age <= this.#turns) this.#expire(age)
  }

  /** How many ticks a slot lasts: the slots of a whole limit fit into the ring, beside the newest one, which is not over. */
  get #slotTicks (): number {
    return Math.ceil(this.#limitTicks / (slots - 1))
  }

  /** The first one of a silence: what came before it is forgotten. */
  #begin (): void {
    this.#serial = (this.#serial + 1) & serialMask
    this.#turns = 0
    this.#ticks = 0
    this.#limitTicks = 0
  }

  #expire (age: number): void {
    const slot = (this.#serial - age) & slotMask
    if (this.#overdue === 0) this.#oldestTurn = this.#turns - age
    this.#overdue += this.#slots[slot]!
    this.#slots[slot] = 0
  }

  #link (who: Waiter, watch: number): void {
    who.waitsSince = watch
    who.waitsBefore = this.#newest
    if (this.#newest !== null) this.#newest.waitsAfter = who
    this.#newest = who
  }

  /** No effect for one that is not in the chain. A link that stayed would keep all that came after it. */
  #unlink (who: Waiter): void {
    const { waitsBefore: before, waitsAfter: after } = who
    if (after === null && this.#newest !== who) return
    if (before !== null) before.waitsAfter = after
    if (after === null) this.#newest = before
    else after.waitsBefore = before
    who.waitsBefore = null
    who.waitsAfter = null
  }

  /** How many slots ago the attempt with this watch began. */
  #ageOf (watch: number): number {
    return (this.#serial + 1 - watch) & serialMask
  }

  #isOverdue (age: number): boolean {
    return age > 0 && this.#ticksOf(age) >= this.#limitTicks
  }

  /** How many ticks an attempt has waited for certain, by the age (> 0) of its slot. */
  #ticksOf (age: number): number {
    return (age - 1) * this.#slotTicks + this.#ticks
  }
}
