import { isLoopback } from './address.ts'
import { hostOf } from './target.ts'

/**
 * True for an authority that no name server has a say in: `localhost` or a loopback address, with or without a port. A name that
 * merely resolves to loopback may be an attacker's (DNS rebinding).
 */
export function isLoopbackAuthority (authority: string): boolean {
  const host = hostOf(authority)
  if (host === 'localhost') return true
  return isLoopback(host.startsWith('[') ? host.slice(1, -1) : host)
}
