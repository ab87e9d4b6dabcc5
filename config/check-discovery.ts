import { isIP } from 'node:net'
import { checkOrder } from './check-order.ts'
import { repeated } from './check-server.ts'
import type { Report } from './checks.ts'
import { indexPath, keyPath } from './path.ts'
import { given, listOf, objectOf } from './values.ts'

const kinds = ['dns', 'file', 'source']

/** Up to 253 characters, and 63 between the dots; "_" as in `_http._tcp.shop.internal`. */
const isDnsName = (name: string): boolean =>
  name.length <= 253 && name.split('.').every(label => /^[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$/.test(label))

/** An address, or one with a port as `10.0.0.2:53` and `[fd00::2]:53`. */
const isResolver = (text: string): boolean => {
  if (isIP(text) !== 0) return true
  const [, six = '', four = '', port = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? []
  return (isIP(six) === 6 || isIP(four) === 4) && (port === '' || (Number(port) >= 1 && Number(port) <= 65535))
}

const checkDns = (dns: Record<string, unknown>, path: string, report: Report): void => {
  const { name, type, port, servers } = dns
  if (typeof name === 'string' && name !== '') {
    if (isIP(name) !== 0) report(keyPath(path, 'name'), `must be a name, got ${given(name, '')}; an address is written as one of the upstreams`)
    else if (!isDnsName(name)) report(keyPath(path, 'name'), `must be a host name, got ${given(name, '')}`)
  }
  if (type === 'srv' && port !== undefined) report(keyPath(path, 'port'), 'is not for type: srv, whose records bring their own')
  checkOrder(dns, path, 'minTtlMs', 'maxTtlMs', report)
  const serversPath = keyPath(path, 'servers')
  for (const [index, server] of listOf(servers).entries()) {
    if (typeof server === 'string' && server !== '' && !isResolver(server)) report(indexPath(serversPath, index), `must be an IP address, with or without a port, got ${given(server, '')}`)
  }
  repeated(listOf(servers), serversPath, report)
}

export const checkDiscovery = (discovery: Record<string, unknown>, path: string, report: Report): void => {
  const found = kinds.filter(kind => discovery[kind] !== undefined)
  if (found.length !== 1) report(path, `must have exactly one of dns, file and source, got ${found.length === 0 ? 'none' : found.join(' and ')}`)
  checkDns(objectOf(discovery['dns']), keyPath(path, 'dns'), report)
}

/** False where whatever comes from there is spoken to without TLS. */
export const mayBringTls = (discovery: unknown): boolean => {
  if (discovery === undefined) return false
  const { dns } = objectOf(discovery)
  return dns === undefined || objectOf(dns)['scheme'] !== 'http'
}
