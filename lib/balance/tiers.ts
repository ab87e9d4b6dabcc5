/**
 * How the traffic of a pool is spread over its tiers: Envoy's priority levels. A tier carries `spillOver` times its usable share, so
 * that it need not be whole to take everything; what it cannot carry goes to the next one.
 */
export interface TierCount {
  /** Members that may take traffic at all: not drained, weight above 0. */
  readonly standing: number
  /** Those of them that are well. */
  readonly usable: number
}

export interface TierLoads {
  /** The share of the traffic of each tier; together 1, or all 0 where nobody is usable. */
  readonly loads: readonly number[]
  /** What the tiers can carry together, 1 at most: below 1 the usable ones are overloaded, and panic is a question. */
  readonly capacity: number
}

/** @param spillOver at least 1 */
export function tierLoads (tiers: readonly TierCount[], spillOver: number): TierLoads {
  const healths = tiers.map(({ standing, usable }) => standing === 0 ? 0 : Math.min(1, spillOver * usable / standing))
  const sum = healths.reduce((total, health) => total + health, 0)
  const capacity = Math.min(1, sum)
  let left = 1
  const loads = healths.map((health) => {
    const load = capacity === 0 ? 0 : Math.min(left, health / capacity)
    left -= load
    return load
  })
  return { loads, capacity }
}
