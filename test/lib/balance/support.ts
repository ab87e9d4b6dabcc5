import type { Balancer } from '../../../lib/balance/balancer.ts'
import type { Placed } from '../../../lib/balance/hash.ts'
import { PeakEwma } from '../../../lib/balance/peak-ewma.ts'

export interface Fake extends Placed {
  inFlight: number
}

/** Members of these weights, named a-0, a-1, ... */
export function poolOf (weights: readonly number[], name = 'a'): Fake[] {
  return weights.map((weight, index) => ({ id: `${name}-${index}`, weight, inFlight: 0, latency: new PeakEwma() }))
}

export const equals = (members: number): number[] => new Array<number>(members).fill(1)

/** The indexes that are set in a mask, as a balancer gets them: a longer array than count says, with rubbish behind. */
export function listOf (mask: readonly boolean[]): { list: Int32Array, count: number } {
  const list = new Int32Array(mask.length + 1).fill(-1)
  let count = 0
  for (const [index, isIn] of mask.entries()) if (isIn) list[count++] = index
  return { list, count }
}

/** Tells the balancer who is in: the members whose weight is not 0. */
export function admit (balancer: Balancer, weights: readonly number[], now = 0): void {
  const { list, count } = listOf(weights.map((weight) => weight > 0))
  const given = Float64Array.from(weights)
  balancer.update(list, count, given, now)
  // They are the caller's, who uses them for something else next.
  list.fill(-7)
  given.fill(NaN)
}

/** A caller of a balancer who counts loads as the proxy does: a pick begins an exchange, which ends later. */
export class Caller {
  readonly balancer: Balancer
  readonly members: readonly Fake[]
  now = 0
  /** What an answer takes, in ms. */
  answerMs = 20
  readonly #open: number[] = []

  constructor (balancer: Balancer, members: readonly Fake[]) {
    this.balancer = balancer
    this.members = members
  }

  begin (key = -1): number {
    return this.#begun(this.balancer.pick(key, this.now))
  }

  beginAmong (mask: readonly boolean[], key = -1): number {
    const { list, count } = listOf(mask)
    return this.#begun(this.balancer.pickAmong(list, count, key, this.now))
  }

  end (index: number): void {
    this.#load(index, -1)
    this.members[index]!.latency.record(this.answerMs, this.now)
  }

  /** Takes the latest pick back. */
  giveBack (index: number): void {
    this.#load(index, -1)
    this.balancer.giveBack(index)
  }

  /** One exchange after the other. */
  sequence (picks: number, key = -1): number[] {
    return Array.from({ length: picks }, () => {
      const index = this.begin(key)
      this.now++
      if (index !== -1) this.end(index)
      return index
    })
  }

  /** Exchanges that last until so many later ones have begun. */
  stream (picks: number, held: number): number[] {
    return Array.from({ length: picks }, () => {
      this.now += 0.01
      if (this.#open.length >= held) this.end(this.#open.shift()!)
      const index = this.begin()
      this.#open.push(index)
      return index
    })
  }

  #begun (index: number): number {
    if (index !== -1) this.#load(index, 1)
    return index
  }

  #load (index: number, change: number): void {
    this.members[index]!.inFlight += change
    this.balancer.loadChanged(index)
  }
}

export function countsOf (picks: Iterable<number>, members: number): number[] {
  const counts = new Array<number>(members).fill(0)
  for (const pick of picks) counts[pick]!++
  return counts
}

export interface Answer {
  ms: number
  failed: boolean
}

/**
 * Requests that arrive at random, at a mean rate, for so long; `answer` says what the member does with one. Failed answers are
 * penalised. Returns how many each member got.
 */
export function simulate (balancer: Balancer, members: readonly Fake[], random: () => number, perSecond: number, durationMs: number, answer: (index: number, now: number) => Answer): number[] {
  const caller = new Caller(balancer, members)
  const counts = new Array<number>(members.length).fill(0)
  let open: { ends: number, index: number, answer: Answer }[] = []
  for (let now = 0; now < durationMs; now += -Math.log(1 - random()) * 1000 / perSecond) {
    const done = open.filter(({ ends }) => ends <= now).toSorted((a, b) => a.ends - b.ends)
    open = open.filter(({ ends }) => ends > now)
    for (const { ends, index, answer: { ms, failed } } of done) {
      members[index]!.inFlight--
      balancer.loadChanged(index)
      if (failed) members[index]!.latency.penalise(0, ends)
      else members[index]!.latency.record(ms, ends)
    }
    caller.now = now
    const index = caller.begin()
    counts[index]!++
    const given = answer(index, now)
    open.push({ ends: now + given.ms, index, answer: given })
  }
  return counts
}
