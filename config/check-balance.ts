import { checkReadField, type FieldNames } from './check-route-fields.ts'
import type { Report } from './checks.ts'
import { keyPath } from './path.ts'
import { given, listOf, objectOf } from './values.ts'

export const checkHash = (pool: Record<string, unknown>, poolPath: string, names: FieldNames, report: Report): void => {
  const { balancer } = pool
  const path = keyPath(poolPath, 'hash')
  const { by, name, boundedLoad } = objectOf(pool['hash'])
  if ((by === 'header' || by === 'cookie') && name === undefined) report(keyPath(path, 'name'), `is required with by: ${by}`)
  if ((by === 'client-address' || by === 'path') && name !== undefined) report(keyPath(path, 'name'), `is only for by: header and by: cookie, and this is by: ${by}`)
  // A host is as good a key as any.
  if (by === 'header' && String(name).toLowerCase() !== 'host') checkReadField(name, keyPath(path, 'name'), names, report)
  if (typeof boundedLoad === 'number' && boundedLoad > 0 && boundedLoad <= 1) report(keyPath(path, 'boundedLoad'), `must be 0 or above 1, got ${boundedLoad}`)
  // What has its default may have been written or not: only the rest is known to be meant.
  const meant = name !== undefined || (typeof by === 'string' && by !== 'client-address') || (typeof boundedLoad === 'number' && boundedLoad !== 0)
  if (meant && typeof balancer === 'string' && balancer !== 'hash') report(path, `is only for balancer: hash, and this one is ${given(balancer, '')}`)
}

/** What people write where they mean to put a secret later, and what is no secret for want of variety. */
const isPlaceholder = (secret: string): boolean =>
  /change[-_ ]?(?:me|this)|replace[-_ ]?(?:me|this)|placeholder|your[-_ ]?secret|example/i.test(secret) || new Set(secret).size < 6

export const checkSticky = (sticky: Record<string, unknown>, path: string, report: Report): void => {
  const { cookie, secret, path: cookiePath, secure, sameSite } = sticky
  if (sameSite === 'none' && secure === false) report(keyPath(path, 'secure'), 'must be true with sameSite: none, or browsers refuse the cookie')
  if (typeof secret === 'string' && secret.length >= 16 && isPlaceholder(secret)) {
    report(keyPath(path, 'secret'), 'must be random, like the output of "openssl rand -hex 32" (the value is not shown)')
  }
  if (typeof cookiePath === 'string' && !/^[\x21-\x3a\x3c-\x7e]*$/.test(cookiePath)) {
    report(keyPath(path, 'path'), `must be of visible ASCII characters without ";", got ${given(cookiePath, '')}`)
  }
  if (typeof cookie !== 'string') return
  // What browsers take such a name for, they hold to: RFC 6265bis, section 4.1.3.
  if (/^__(?:Host|Secure)-/i.test(cookie) && secure === false) report(keyPath(path, 'secure'), `must be true for a cookie named ${given(cookie, '')}`)
  if (/^__Host-/i.test(cookie) && typeof cookiePath === 'string' && cookiePath !== '/') report(keyPath(path, 'path'), `must be "/" for a cookie named ${given(cookie, '')}, got ${given(cookiePath, '')}`)
}

/** Hosts that each pool is reached by; "*" stands for any. */
const hostsByPool = (routes: readonly Record<string, unknown>[]): ReadonlyMap<string, ReadonlySet<string>> => {
  const hosts = new Map<string, Set<string>>()
  for (const { host, pool, split } of routes) {
    for (const name of [pool, ...Object.keys(objectOf(objectOf(split)['pools']))]) {
      if (typeof name !== 'string') continue
      const known = hosts.get(name) ?? new Set()
      hosts.set(name, known.add(typeof host === 'string' ? host.toLowerCase() : '*'))
    }
  }
  return hosts
}

/** True where a host of the one, like "shop.example" or "*.example", may be one of the other. */
const meet = (one: string, other: string): boolean =>
  one === other || (one.startsWith('*') && other.endsWith(one.slice(1))) || (other.startsWith('*') && one.endsWith(other.slice(1)))

const overlap = (one: unknown, other: unknown): boolean =>
  typeof one === 'string' && typeof other === 'string' && (one.startsWith(other) || other.startsWith(one))

/** Two pools behind one host with one cookie: each would take the other's place in it, and neither kept its clients. */
export const checkStickyCookies = (pools: Record<string, unknown>, routes: unknown, report: Report): void => {
  const hosts = hostsByPool(listOf(routes).map(objectOf))
  const earlier = new Map<string, { name: string, path: unknown, hosts: readonly string[] }[]>()
  for (const [name, pool] of Object.entries(pools)) {
    const { cookie, path } = objectOf(objectOf(pool)['sticky'])
    if (typeof cookie !== 'string') continue
    const own = { name, path, hosts: [...hosts.get(name) ?? []] }
    const others = earlier.get(cookie) ?? []
    const other = others.find(each => overlap(each.path, path) && each.hosts.some(host => own.hosts.some(mine => meet(host, mine))))
    if (other !== undefined) {
      report(`${keyPath('pools', name)}.sticky.cookie`, `must be another than that of ${keyPath('pools', other.name)}, which has the same host and path, got ${given(cookie, '')}`)
    }
    others.push(own)
    earlier.set(cookie, others)
  }
}
