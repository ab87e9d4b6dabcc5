import { isLoopback, parseAddress, parseRange } from '../lib/http/address.ts'
import type { Report } from './checks.ts'
import { indexPath } from './path.ts'
import { given, listOf, objectOf } from './values.ts'

/** Without these, or with another value in them, no request can be framed, routed or forwarded. */
const framing = new Set(['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade', 'te', 'trailer', 'expect', 'keep-alive'])

/** True for loopback addresses and the name `localhost`. Any other name may resolve to anything. */
const isLocal = (host: string): boolean => host.toLowerCase() === 'localhost' || isLoopback(host)

export const checkServer = (server: Record<string, unknown>, report: Report): void => {
  for (const option of ['trustedProxies', 'proxyProtocolFrom']) {
    for (const [index, proxy] of listOf(server[option]).entries()) {
      const path = indexPath(`server.${option}`, index)
      if (typeof proxy === 'string' && proxy !== 'unix' && parseRange(proxy) === null) report(path, `must be an IP address, a CIDR like 10.0.0.0/8 or unix, got ${given(proxy, path)}`)
    }
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
  if ((host.includes('%') || parseAddress(host) === null) && !/^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$/.test(host)) {
    report('admin.host', `must be an IP address (without brackets and port) or a host name, got ${given(host, 'admin.host')}`)
  } else if (enabled === true && token === '' && !isLocal(host)) {
    report('admin.token', `is required when admin.host is not loopback; it is ${given(host, 'admin.host')}`)
  }
}

export const checkShedding = (shedding: Record<string, unknown>, report: Report): void => {
  const { normal, low } = objectOf(shedding['priorities'])
  if (typeof normal === 'number' && typeof low === 'number' && low > normal) {
    report('shedding.priorities.low', `must be at most shedding.priorities.normal (${normal}), got ${low}`)
  }
}

/** Names and numbers of a list that occur twice, by their index. */
export const repeated = (names: readonly unknown[], parent: string, report: Report): void => {
  for (const [index, name] of names.entries()) {
    const first = names.indexOf(name)
    if ((typeof name === 'string' || typeof name === 'number') && first < index) report(indexPath(parent, index), `is the same as ${indexPath(parent, first)}: ${given(name, '')}`)
  }
}
