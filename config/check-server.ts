import ipaddr from 'ipaddr.js'
import type { Report } from './checks.ts'
import { indexPath } from './path.ts'
import { given, listOf } from './values.ts'

/** Without these, or with another value in them, no request can be framed, routed or forwarded. */
const framing = new Set(['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade', 'te', 'trailer', 'expect', 'keep-alive'])

const isAddress = (text: string): boolean =>
  ipaddr.IPv4.isValidFourPartDecimal(text) || (text.includes(':') && !text.includes('%') && ipaddr.IPv6.isValid(text))

const isRange = (text: string): boolean => {
  const [address, bits, ...rest] = text.split('/')
  if (address === undefined || !isAddress(address) || rest.length > 0) return false
  if (bits === undefined) return true
  return /^\d{1,3}$/.test(bits) && Number(bits) <= (address.includes(':') ? 128 : 32)
}

/** True for 127.0.0.0/8, ::1 (mapped IPv4 too) and the name `localhost`. Any other name may resolve to anything. */
export const isLoopback = (host: string): boolean => {
  if (host.toLowerCase() === 'localhost') return true
  return isAddress(host) && ipaddr.process(host).range() === 'loopback'
}

export const checkServer = (server: Record<string, unknown>, report: Report): void => {
  for (const [index, proxy] of listOf(server['trustedProxies']).entries()) {
    const path = indexPath('server.trustedProxies', index)
    if (typeof proxy === 'string' && !isRange(proxy)) report(path, `must be an IP address or a CIDR like 10.0.0.0/8, got ${given(proxy, path)}`)
  }
  for (const [index, name] of listOf(server['stripRequestHeaders']).entries()) {
    const path = indexPath('server.stripRequestHeaders', index)
    if (typeof name === 'string' && framing.has(name.toLowerCase())) report(path, `must not be a header that HTTP itself needs, got ${given(name, path)}`)
  }
  const idHeader = server['requestIdHeader']
  if (typeof idHeader === 'string' && framing.has(idHeader.toLowerCase())) report('server.requestIdHeader', `must not be a header that HTTP itself needs, got ${given(idHeader, '')}`)
}

export const checkAdmin = (admin: Record<string, unknown>, report: Report): void => {
  const { enabled, host, token } = admin
  if (typeof token === 'string' && !/^[\x21-\x7e]*$/.test(token)) report('admin.token', 'must be of visible ASCII characters without spaces, as it travels in a header (the value is not shown)')
  if (typeof host !== 'string') return
  if (!isAddress(host) && !/^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$/.test(host)) {
    report('admin.host', `must be an IP address (without brackets and port) or a host name, got ${given(host, 'admin.host')}`)
  } else if (enabled === true && token === '' && !isLoopback(host)) {
    report('admin.token', `is required when admin.host is not loopback; it is ${given(host, 'admin.host')}`)
  }
}

/** Names of a list that occur twice, by their index. */
export const repeated = (names: readonly unknown[], parent: string, report: Report): void => {
  for (const [index, name] of names.entries()) {
    const first = names.indexOf(name)
    if (typeof name === 'string' && first < index) report(indexPath(parent, index), `is the same as ${indexPath(parent, first)}: ${given(name, '')}`)
  }
}
