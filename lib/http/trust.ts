import { parseAddress, parseRange } from './address.ts'

/** Says whether an address belongs to a proxy that we trust; '' stands for whoever is at the other end of a Unix socket. */
export type Trust = (address: string) => boolean

const nobody: Trust = () => false

/** The entry that stands for peers on a Unix socket. */
export const unixPeer = 'unix'

/**
 * Compiles addresses, CIDRs and `unix` into a predicate. IPv4 addresses mapped into IPv6 count as IPv4.
 * Throws a RangeError that names the first entry which is none of them.
 */
export function compileTrust (entries: readonly string[]): Trust {
  if (entries.length === 0) return nobody
  const unix = entries.includes(unixPeer)
  const ranges = entries.filter((entry) => entry !== unixPeer).map(rangeOf)
  return (address) => {
    if (address === '') return unix
    const parsed = parseAddress(address)
    return parsed !== null && ranges.some(([network, bits]) => parsed.kind() === network.kind() && parsed.match(network, bits))
  }
}

function rangeOf (entry: string): NonNullable<ReturnType<typeof parseRange>> {
  const range = parseRange(entry)
  if (range === null) throw new RangeError(`"${entry}" is neither an IP address nor a CIDR`)
  return range
}

/** An address without the IPv6 mapping that a dual-stack socket puts before IPv4 addresses. */
export function plainAddress (address: string | undefined): string {
  if (address === undefined) return ''
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

const maxHops = 32

/**
 * The client's address: the peer, or, walking an X-Forwarded-For of trusted peers from the right, the first address that is not
 * a trusted proxy's; where all are trusted, the leftmost. An entry that is no address ends the walk, since nobody vouches for what
 * stands left of it, and so does the 32nd hop.
 */
export function clientAddress (peer: string, forwardedFor: string | undefined, trust: Trust): string {
  if (forwardedFor === undefined || !trust(peer)) return peer
  let client = peer
  let end = forwardedFor.length
  for (let hop = 0; hop < maxHops && end > 0; hop++) {
    const comma = forwardedFor.lastIndexOf(',', end - 1)
    const address = parseAddress(withoutPort(forwardedFor.slice(comma + 1, end).trim()))
    if (address === null) return client
    client = address.toString()
    if (!trust(client)) return client
    end = comma
  }
  return client
}

/** `[::1]:80` and `1.2.3.4:80` as some proxies write them, without brackets and port. */
function withoutPort (entry: string): string {
  if (entry.charCodeAt(0) === 91) return /^\[([^\]]*)\](?::\d+)?$/.exec(entry)?.[1] ?? ''
  return /^\d+\.\d+\.\d+\.\d+:\d+$/.test(entry) ? entry.slice(0, entry.indexOf(':')) : entry
}
