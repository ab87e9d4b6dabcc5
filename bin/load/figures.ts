import type { Sample } from './load.ts'

/** The value that the share `q` (0 .. 1) of the values does not exceed; NaN of nothing. */
export function quantile (values: readonly number[], q: number): number {
  const sorted = Float64Array.from(values).toSorted()
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))] ?? NaN
}

export const isLost = ({ status, failure }: Sample): boolean => failure !== '' || status >= 400

/** How many there are of each: a status, or why there was no answer. */
export function tally (samples: readonly Sample[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { status, failure } of samples) {
    const key = failure === '' ? String(status) : failure
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

/** `1200 x 200, 3 x 502`, the most frequent one first. */
export const tallyText = (samples: readonly Sample[]): string =>
  [...tally(samples)].toSorted(([, a], [, b]) => b - a).map(([key, count]) => `${count} x ${key}`).join(', ') || 'none'

/** The greatest number of `times` (ms, ascending) within any `spanMs`. */
export function densest (times: readonly number[], spanMs: number): number {
  let first = 0
  let most = 0
  for (let last = 0; last < times.length; last++) {
    while ((times[last] as number) - (times[first] as number) >= spanMs) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}
