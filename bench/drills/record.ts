import type { Seen } from './upstream.ts'

export const requestsOf = (seen: readonly Seen[]): Seen[] => seen.filter(({ what }) => what === 'request')

/** How often each request arrived, over all upstreams. */
export function deliveries (records: ReadonlyArray<readonly Seen[]>): Map<string, number> {
  const counts = new Map<string, number>()
  for (const seen of records) for (const { what, id } of seen) if (what === 'request') counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

/** Counts the requests that an upstream has at the same time, event by event; a start ends those that a kill left behind. */
function follow (seen: readonly Seen[], each: (at: number, count: number) => boolean): void {
  const open = new Set<string>()
  for (const { what, at, id } of seen) {
    if (what === 'start') open.clear()
    else if (what === 'request') open.add(id)
    else if (what === 'end') open.delete(id)
    if (!each(at, open.size)) return
  }
}

/** The most requests that an upstream had at the same time within [from, to). One that was never answered counts to the end. */
export function peakConcurrency (seen: readonly Seen[], from: number, to: number): number {
  let peak = 0
  let before = 0
  follow(seen, (at, count) => {
    if (at < from) before = count
    else if (at < to) peak = Math.max(peak, count)
    return at < to
  })
  return Math.max(peak, before)
}
