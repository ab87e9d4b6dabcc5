import ipaddr from 'ipaddr.js'

/** An IP address; one mapped from IPv4 into IPv6 counts as IPv4. */
export type Address = ReturnType<typeof ipaddr.process>

/** Only what is plainly an address: "1", "0x7f.1" and "010.0.0.1" mean different addresses to different readers. */
export function parseAddress (text: string): Address | null {
  const plain = text.includes(':') ? ipaddr.IPv6.isValid(text) : ipaddr.IPv4.isValidFourPartDecimal(text)
  return plain ? ipaddr.process(text) : null
}

const mappingBits = 96

/** An address or a CIDR, as a network and the bits that count; null where it is neither. An address of a zone is no network. */
export function parseRange (entry: string): [network: Address, bits: number] | null {
  const slash = entry.indexOf('/')
  const text = slash === -1 ? entry : entry.slice(0, slash)
  const address = text.includes('%') ? null : parseAddress(text)
  if (address === null) return null
  const widest = text.includes(':') ? 128 : 32
  const written = slash === -1 ? String(widest) : entry.slice(slash + 1)
  const bits = /^\d{1,3}$/.test(written) ? Number(written) : Infinity
  if (bits > widest) return null
  if (widest === 32 || address.kind() === 'ipv6') return [address, bits]
  // A mapped IPv4 network, whose bits count from the beginning of the IPv6 address.
  return bits < mappingBits ? [ipaddr.IPv6.parse(text), bits] : [address, bits - mappingBits]
}

/** True for the addresses that only this machine itself can come from and reach: 127.0.0.0/8, ::1, and the former mapped into IPv6. */
export function isLoopback (address: string): boolean {
  return parseAddress(address)?.range() === 'loopback'
}
