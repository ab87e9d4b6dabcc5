import ipaddr from 'ipaddr.js'

/** One end of a connection, as a load balancer tells of it. */
export interface ProxyEnd {
  readonly address: string
  readonly port: number
}

/** A whole PROXY protocol header. */
export interface ProxyHeader {
  /** Bytes that it took; what stands behind it is the client's own. */
  readonly length: number
  /** Who the client is; null: the header does not tell (LOCAL, UNKNOWN, another family), and the connection's own peer counts. */
  readonly source: ProxyEnd | null
  /** What the client connected to; null along with `source`. */
  readonly destination: ProxyEnd | null
}

/** Longest header that is taken, in bytes. Version 1 has at most 107; version 2 has a length of its own, for what else is told in it. */
export const maxProxyHeaderBytes = 4096

const maxLineBytes = 107
const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const word = Buffer.from('PROXY ', 'latin1')

/**
 * Reads the PROXY protocol header, version 1 or 2, at the beginning of a connection
 * (haproxy.org/download/3.0/doc/proxy-protocol.txt, sections 2.1 and 2.2). What version 2 tells beside the addresses is passed over.
 * @param bytes all that has come so far
 * @returns `more`: it may become one; `invalid`: whatever comes, it never will
 */
export function parseProxyHeader (bytes: Buffer): ProxyHeader | 'more' | 'invalid' {
  if (bytes.length === 0) return 'more'
  if (bytes[0] === signature[0]) return beginsWith(bytes, signature) ? parseBinary(bytes) : 'invalid'
  return beginsWith(bytes, word) ? parseLine(bytes) : 'invalid'
}

/** True when neither contradicts the other, as far as both go. */
function beginsWith (bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length)
  return bytes.compare(start, 0, length, 0, length) === 0
}

function unknown (length: number): ProxyHeader {
  return { length, source: null, destination: null }
}

// ---- version 1: a line of text

function parseLine (bytes: Buffer): ProxyHeader | 'more' | 'invalid' {
  const end = bytes.subarray(0, maxLineBytes).indexOf('\r\n')
  if (end === -1) return bytes.length < maxLineBytes ? 'more' : 'invalid'
  const length = end + 2
  const [, family, ...parts] = bytes.toString('latin1', 0, end).split(' ')
  if (family === 'UNKNOWN') return unknown(length)
  if ((family !== 'TCP4' && family !== 'TCP6') || parts.length !== 4) return 'invalid'
  const [from, to, fromPort, toPort] = parts as [string, string, string, string]
  const isAddress = family === 'TCP4' ? isIPv4 : isIPv6
  if (!isAddress(from) || !isAddress(to) || !isPort(fromPort) || !isPort(toPort)) return 'invalid'
  return { length, source: { address: from, port: Number(fromPort) }, destination: { address: to, port: Number(toPort) } }
}

const isPort = (text: string): boolean => /^(?:0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65535
const isIPv4 = (text: string): boolean => /^(?:(?:0|[1-9]\d{0,2})\.){3}(?:0|[1-9]\d{0,2})$/.test(text) && ipaddr.IPv4.isValidFourPartDecimal(text)
const isIPv6 = (text: string): boolean => text.includes(':') && !text.includes('%') && ipaddr.IPv6.isValid(text)

// ---- version 2: binary

const prefixBytes = 16
const local = 0
const proxied = 1
/** Bytes of the addresses, by the address family in the upper half of the family byte: unspecified, IPv4, IPv6, Unix. */
const addressBytes = [0, 12, 36, 216]
const stream = 1
const dgram = 2

function parseBinary (bytes: Buffer): ProxyHeader | 'more' | 'invalid' {
  if (bytes.length > 12) {
    const byte = bytes[12] as number
    if (byte >> 4 !== 2 || (byte & 15) > proxied) return 'invalid'
  }
  if (bytes.length < prefixBytes) return 'more'
  const command = (bytes[12] as number) & 15
  const family = (bytes[13] as number) >> 4
  const transport = (bytes[13] as number) & 15
  const rest = bytes.readUInt16BE(14)
  const length = prefixBytes + rest
  if (length > maxProxyHeaderBytes) return 'invalid'
  // A load balancer's own connection, such as a health check: the family means nothing.
  if (command === local) return bytes.length < length ? 'more' : unknown(length)
  const needed = addressBytes[family]
  if (needed === undefined || transport > dgram || rest < needed) return 'invalid'
  if (bytes.length < length) return 'more'
  if (transport !== stream || (family !== 1 && family !== 2)) return unknown(length)
  const size = family === 1 ? 4 : 16
  const ports = prefixBytes + 2 * size
  return {
    length,
    source: { address: addressAt(bytes, prefixBytes, size), port: bytes.readUInt16BE(ports) },
    destination: { address: addressAt(bytes, prefixBytes + size, size), port: bytes.readUInt16BE(ports + 2) }
  }
}

function addressAt (bytes: Buffer, at: number, size: number): string {
  return ipaddr.fromByteArray([...bytes.subarray(at, at + size)]).toString()
}
