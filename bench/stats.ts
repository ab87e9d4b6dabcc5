/** The middle value; the mean of the two middle ones where their number is even. NaN of nothing. */
export function median (values: readonly number[]): number {
  if (values.length === 0) return NaN
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] as number
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2
}

export interface Spread {
  median: number
  min: number
  max: number
}

/** Median, least and greatest; each NaN of nothing. */
export function spread (values: readonly number[]): Spread {
  if (values.length === 0) return { median: NaN, min: NaN, max: NaN }
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

/**
 * `ours[i] / theirs[i]` of the rounds in which both are numbers. A machine that slows down for one round slows both of a
 * pair, so the spread of these ratios is narrower than the ratio of two separate spreads.
 */
export function pairedRatios (ours: readonly number[], theirs: readonly number[]): number[] {
  const ratios: number[] = []
  for (let i = 0; i < Math.min(ours.length, theirs.length); i++) {
    const ratio = (ours[i] as number) / (theirs[i] as number)
    if (Number.isFinite(ratio)) ratios.push(ratio)
  }
  return ratios
}

/** `values` turned left by `by` places, so that no peer always runs first. */
export function rotate<T> (values: readonly T[], by: number): T[] {
  if (values.length === 0) return []
  const at = by % values.length
  return [...values.slice(at), ...values.slice(0, at)]
}
