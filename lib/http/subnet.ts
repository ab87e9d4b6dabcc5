const zero = '0'
const plain = (group: string): string => parseInt(group, 16).toString(16)

/**
 * What a client is told from others by: its IPv4 address as it is, or the /64 network of its IPv6 address, all of whose addresses
 * one host may use (RFC 4291, section 2.5.4). Anything else, like the '' of a unix socket, stays as it is.
 */
export function subnetOf (address: string): string {
  if (!address.includes(':') || address.startsWith('::ffff:')) return address
  const zone = address.indexOf('%')
  const text = zone === -1 ? address : address.slice(0, zone)
  const gap = text.indexOf('::')
  const head = gap === -1 ? text.split(':') : gap === 0 ? [] : text.slice(0, gap).split(':')
  if (head.length < 4 && gap !== -1) {
    const tail = gap + 2 === text.length ? [] : text.slice(gap + 2).split(':')
    // An IPv4 address at the end stands for two groups; it is never among the first four.
    const left = 8 - head.length - tail.length - (text.includes('.') ? 1 : 0)
    for (let i = 0; i < left; i++) head.push(zero)
    head.push(...tail)
  }
  return `${head.slice(0, 4).map(plain).join(':')}::`
}
