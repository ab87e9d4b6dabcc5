/** Linux's tables of TCP connections, /proc/net/tcp and tcp6, as text (proc(5)). */
import ipaddr from 'ipaddr.js'

/** The ends of a connection, as a socket tells them. */
export interface Ends {
  readonly localAddress: string
  readonly localPort: number
  readonly remoteAddress: string
  readonly remotePort: number
}

/**
 * How the table names a connection.
 * @param littleEndian the machine's byte order: the table has addresses as numbers of it
 * @throws Error where an address is none
 */
export function connectionName ({ localAddress, localPort, remoteAddress, remotePort }: Ends, littleEndian: boolean): string {
  return `${nameOf(localAddress, localPort, littleEndian)} ${nameOf(remoteAddress, remotePort, littleEndian)} `
}

function nameOf (address: string, port: number, littleEndian: boolean): string {
  const zone = address.indexOf('%')
  const bytes = ipaddr.parse(zone === -1 ? address : address.slice(0, zone)).toByteArray()
  let name = ''
  for (let word = 0; word < bytes.length; word += 4) {
    for (let i = 0; i < 4; i++) name += hex(bytes[word + (littleEndian ? 3 - i : i)] as number, 2)
  }
  return `${name}:${hex(port, 4)}`
}

const hex = (value: number, digits: number): string => value.toString(16).toUpperCase().padStart(digits, '0')

/** Bytes that were sent on a connection and that its other end has not acknowledged; -1: it is not in the table. */
export function unacknowledged (table: string, name: string): number {
  const at = table.indexOf(name)
  // state, then the two queues: "01 0000A3F0:00000000"
  return at === -1 ? -1 : parseInt(table.slice(at + name.length + 3, at + name.length + 11), 16)
}
