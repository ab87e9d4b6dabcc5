/** A source of numbers in [0, 1). */
export type Random = () => number

/** The process's own source. */
export const systemRandom: Random = Math.random

/**
 * A seeded source for tests and drills (mulberry32): the same seed gives the same sequence on every machine.
 * Not for secrets.
 */
export function seededRandom (seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
