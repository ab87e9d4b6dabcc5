/** Lists of discovered upstreams as sets: in one order, nobody twice, of a bounded size. */
import ipaddr from 'ipaddr.js'
import type { UpstreamOptions } from '../../config/schema.ts'
import { parseUpstreamUrl } from '../upstream-url.ts'

/** An upstream as a source reports it: like one of a pool's options, all but the URL left out. */
export interface DiscoveredUpstream {
  readonly url: string
  /** IP address to connect to, in place of the URL's host, which stays the Host and the TLS name. The id is then made of it. */
  readonly address?: string
  readonly weight?: number
  readonly priority?: number
  readonly maxInFlight?: number
  readonly health?: NonNullable<UpstreamOptions['health']>
}

/** More upstreams than this are not taken from one source. */
export const maxMembers = 256

/** The one text for an address, without brackets; null for what is none, or is one of a zone, which means something on this machine only. */
export function canonicalAddress (text: string): string | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return text
  if (!text.includes(':') || text.includes('%') || !ipaddr.IPv6.isValid(text)) return null
  return ipaddr.IPv6.parse(text).toRFC5952String()
}

/** An address as it stands in a URL or an id. */
export const bracketed = (address: string): string => address.includes(':') ? `[${address}]` : address

/**
 * The upstream's id, by which it is known in its pool.
 * @throws TypeError for a URL or an address that is none
 */
export function memberId ({ url, address }: DiscoveredUpstream): string {
  const { id, socketPath } = parseUpstreamUrl(url)
  if (address === undefined) return id
  const canonical = canonicalAddress(address)
  if (canonical === null || socketPath !== null) throw new TypeError(`must have an IP address and an http or https URL, got ${JSON.stringify(address.slice(0, 80))}`)
  return bracketed(canonical) + id.slice(id.lastIndexOf(':'))
}

export interface MemberSet {
  readonly members: readonly DiscoveredUpstream[]
  /** Their ids, in the same order. */
  readonly ids: readonly string[]
  /** How many were left out because there are too many. */
  readonly cut: number
}

/**
 * The members in one order, whatever order they were told in; of several with one id the first stays. Where they are too many,
 * those of the foremost tiers are taken.
 * @throws TypeError as `memberId` does
 */
export function toSet (told: readonly DiscoveredUpstream[], limit = maxMembers): MemberSet {
  const byId = new Map<string, DiscoveredUpstream>()
  for (const member of told) {
    const id = memberId(member)
    if (!byId.has(id)) byId.set(id, withCanonicalAddress(member))
  }
  const tier = (member: DiscoveredUpstream): number => member.priority ?? 0
  const sorted = [...byId].toSorted(([a, one], [b, other]) => tier(one) - tier(other) || (a < b ? -1 : 1))
  const taken = sorted.slice(0, limit)
  return { members: taken.map(([, member]) => member), ids: taken.map(([id]) => id), cut: sorted.length - taken.length }
}

function withCanonicalAddress (member: DiscoveredUpstream): DiscoveredUpstream {
  const canonical = member.address === undefined ? undefined : canonicalAddress(member.address) ?? undefined
  return canonical === undefined || canonical === member.address ? member : { ...member, address: canonical }
}

/** True where two sets have the same members with the same options. */
export function isSameSet (one: readonly DiscoveredUpstream[], other: readonly DiscoveredUpstream[]): boolean {
  return one === other || (one.length === other.length && one.every((member, index) => textOf(member) === textOf(other[index]!)))
}

/** Options are data; in which order a source wrote them says nothing. */
function textOf ({ health, ...rest }: DiscoveredUpstream): string {
  return JSON.stringify([sorted(rest), health === undefined ? null : sorted(health)])
}

const sorted = (fields: object): Array<[string, unknown]> =>
  Object.entries(fields).filter(([, value]) => value !== undefined).toSorted(([a], [b]) => a < b ? -1 : 1)
