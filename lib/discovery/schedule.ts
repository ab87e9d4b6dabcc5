/**
 * When a name is resolved again. Times are milliseconds; jitter keeps the proxies of a fleet, and the pools of one, out of step.
 */
import type { Random } from '../random.ts'

export interface Bounds {
  readonly minTtlMs: number
  /** Wins over `minTtlMs`. */
  readonly maxTtlMs: number
}

/** The life of an answer that says nothing about it: those of a hosts file and of the system's own look-up. */
const unknownTtlMs = 10_000

/** Share of a time that is drawn at random. */
const jitter = 0.1

/** 2^30 times any least time is above every cap. */
const maxDoublings = 30

/**
 * How long to wait after a good answer: its TTL within the bounds, and up to a tenth longer, as a resolver that has cached the
 * answer would only give it again before. At the cap up to a tenth shorter.
 * @param ttlMs null: the answer did not say
 */
export function delayAfterAnswer (ttlMs: number | null, { minTtlMs, maxTtlMs }: Bounds, random: Random): number {
  const least = Math.min(minTtlMs, maxTtlMs)
  const base = Math.min(Math.max(ttlMs ?? unknownTtlMs, least), maxTtlMs)
  const spread = base * jitter
  const from = Math.max(least, Math.min(base, maxTtlMs - spread))
  return Math.min(from + spread * random(), maxTtlMs)
}

/**
 * How long to wait after failures: the least time, doubled with each further failure in a row up to the cap, and up to a tenth
 * shorter.
 * @param failures in a row, at least 1
 */
export function delayAfterFailure (failures: number, { minTtlMs, maxTtlMs }: Bounds, random: Random): number {
  const least = Math.min(minTtlMs, maxTtlMs)
  const grown = Math.min(least * 2 ** Math.min(failures - 1, maxDoublings), maxTtlMs)
  return Math.max(least, grown * (1 - jitter * random()))
}
