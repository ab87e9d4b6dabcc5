/** SRV records (RFC 2782) as targets with our tiers and weights. */

export interface SrvRecord {
  readonly name: string
  readonly port: number
  /** 0 .. 65535; the lowest is asked first. */
  readonly priority: number
  /** 0 .. 65535. */
  readonly weight: number
}

export interface SrvTarget {
  readonly name: string
  readonly port: number
  /** 0 .. 9 */
  readonly priority: number
  /** 1 .. 1000 */
  readonly weight: number
}

const lastTier = 9
const maxWeight = 1000

/** A name as names are compared: small letters, no dot at the end. */
export const plainName = (name: string): string => name.toLowerCase().replace(/\.$/, '')

/** The name that a service is asked for: `_http._tcp.shop.internal` is the service of `shop.internal`. */
export const serviceHost = (name: string): string => plainName(name).replace(/^(?:_[^.]+\.)+(?=[^.])/, '')

/**
 * The targets, by tier, weight and name. Distinct priorities become the tiers 0, 1, ..., from the tenth on all the last one.
 * Weights are scaled so that the largest of a tier is 1000; equal ones are 1 each. A weight of 0 is not "none" in RFC 2782 but the
 * least, so it becomes 1 beside larger ones. A target of "." says that there is no such service.
 */
export function rankTargets (records: readonly SrvRecord[]): SrvTarget[] {
  const there = records.map((record) => ({ ...record, name: plainName(record.name) })).filter(({ name, port }) => name !== '' && port > 0)
  const priorities = [...new Set(there.map(({ priority }) => priority))].toSorted((a, b) => a - b)
  const targets = priorities.flatMap((priority, rank) => {
    const tier = there.filter((record) => record.priority === priority)
    const weights = tier.map(({ weight }) => weight)
    const most = Math.max(...weights)
    const even = Math.min(...weights) === most
    return tier.map(({ name, port, weight }) =>
      ({ name, port, priority: Math.min(rank, lastTier), weight: even ? 1 : Math.max(1, Math.round(weight * maxWeight / most)) }))
  })
  return targets.toSorted((a, b) => a.priority - b.priority || b.weight - a.weight || (a.name === b.name ? a.port - b.port : a.name < b.name ? -1 : 1))
}
