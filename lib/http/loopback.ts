import ipaddr from 'ipaddr.js'
import { hostOf } from './target.ts'

/** True for the addresses that only this machine itself can come from and reach: 127.0.0.0/8, ::1, and the former mapped into IPv6. */
export function isLoopback (address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback'
}

/**
 * True for an authority that no name server has a say in: `localhost` or a loopback address, with or without a port. A name that
 * merely resolves to loopback may be an attacker's (DNS rebinding).
 */
export function isLoopbackAuthority (authority: string): boolean {
  const host = hostOf(authority)
  if (host === 'localhost') return true
  return isLoopback(host.startsWith('[') ? host.slice(1, -1) : host)
}
