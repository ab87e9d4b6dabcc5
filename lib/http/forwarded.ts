import { clientElement, forwardedForOf, parseForwarded, type ForwardedElement } from './forwarded-elements.ts'
import type { GivenFields } from './request-head.ts'
import { isAuthority } from './target.ts'
import { clientAddress, type Trust } from './trust.ts'

/** Name of this proxy in Via and Proxy-Status. */
export const proxyName = 'breakwater'
const viaOf = { '1.1': `1.1 ${proxyName}`, '2.0': `2.0 ${proxyName}` }

/** The version of HTTP in which a message was received, as Via tells it. */
export type ReceivedVersion = keyof typeof viaOf

const defaultPort = { http: 80, https: 443 }

/** The nearer end of a connection: known once, used by every request on it. */
export class Peer {
  readonly address: string
  readonly trusted: boolean
  readonly trust: Trust
  readonly scheme: 'http' | 'https'
  readonly #port: string
  readonly #forNode: string
  readonly #via: string
  readonly #own: readonly string[]
  // Nearly every request on a connection has the same Host: its part of the fields is built once.
  #host = ''
  #hostPort = ''
  #element = ''

  /**
   * @param address the peer's address, without the IPv6 mapping of IPv4; '' on a unix socket
   * @param localPort the port that it connected to; 0 on a unix socket
   * @param version what is spoken on the connection
   * @param own name, value, ... of fields that the proxy itself says about this connection, in every request of it
   */
  constructor (address: string, trust: Trust, scheme: 'http' | 'https', localPort: number, version: ReceivedVersion = '1.1', own: readonly string[] = []) {
    this.address = address
    this.trusted = trust(address)
    this.trust = trust
    this.scheme = scheme
    this.#via = viaOf[version]
    this.#port = String(localPort === 0 ? defaultPort[scheme] : localPort)
    this.#own = own
    this.#forNode = address === '' ? 'unknown' : address.includes(':') ? `"[${address}]"` : address
  }

  /** The client's address, given what X-Forwarded-For says; the peer's own where it is not trusted. */
  clientAddress (forwardedFor: string | undefined): string {
    return clientAddress(this.address, forwardedFor, this.trust)
  }

  /** The same, given what Forwarded says: for a peer that sends no X-Forwarded-For. A malformed field says nothing. */
  clientAddressByForwarded (forwarded: string | undefined): string {
    if (forwarded === undefined || !this.trusted) return this.address
    const elements = parseForwarded(forwarded)
    return elements === null ? this.address : this.clientAddress(forwardedForOf(elements))
  }

  /**
   * Appends the fields that the proxy owns to `fields`: X-Forwarded-*, X-Real-IP, Forwarded (RFC 7239) and Via. What an
   * untrusted peer said is replaced, what a trusted one said is extended.
   * @param prefix the path prefix that the route takes off, or ''
   */
  append (fields: string[], given: GivenFields, host: string, client: string, prefix: string): void {
    if (host !== this.#host || this.#element === '') this.#useHost(host)
    const element = this.#element
    if (this.#own.length > 0) fields.push(...this.#own)
    if (!this.trusted) {
      fields.push('x-forwarded-for', this.address, 'x-forwarded-proto', this.scheme, 'x-forwarded-host', host, 'x-forwarded-port', this.#hostPort,
        'x-real-ip', client, 'forwarded', element, 'via', this.#via)
      if (prefix !== '') fields.push('x-forwarded-prefix', prefix)
      return
    }
    const told = given.forwarded === '' ? given : this.#fromForwarded(given)
    fields.push(
      'x-forwarded-for', this.#extended(told.forwardedFor, this.address),
      'x-forwarded-proto', told.forwardedProto === '' ? this.scheme : told.forwardedProto,
      'x-forwarded-host', told.forwardedHost === '' ? host : told.forwardedHost,
      'x-forwarded-port', given.forwardedPort === '' ? this.#hostPort : given.forwardedPort,
      'x-real-ip', client,
      'forwarded', this.#extended(given.forwarded !== '' || given.forwardedFor === '' ? given.forwarded : fromForwardedFor(given.forwardedFor), element),
      'via', given.via === '' ? this.#via : `${given.via}, ${this.#via}`)
    const wholePrefix = given.forwardedPrefix + prefix
    if (wholePrefix !== '') fields.push('x-forwarded-prefix', wholePrefix)
  }

  /** What a proxy in front that knows only Forwarded would have said in the other fields: both have to tell the same chain. */
  #fromForwarded (given: GivenFields): Pick<GivenFields, 'forwardedFor' | 'forwardedProto' | 'forwardedHost'> {
    const { forwardedFor, forwardedProto, forwardedHost, forwarded } = given
    // A proxy that writes the older fields says in them what it wants to be read.
    if (forwardedFor !== '') return given
    const elements = parseForwarded(forwarded)
    if (elements === null) return given
    const { proto, host } = clientElement(elements, this.trust) as ForwardedElement
    return {
      forwardedFor: forwardedForOf(elements),
      forwardedProto: forwardedProto !== '' ? forwardedProto : scheme.test(proto) ? proto.toLowerCase() : '',
      forwardedHost: forwardedHost !== '' ? forwardedHost : isAuthority(host) ? host : ''
    }
  }

  /** A chain and the peer itself. One on a Unix socket has no address to add: it would hide those before it. */
  #extended (chain: string, own: string): string {
    return chain === '' ? own : this.address === '' ? chain : `${chain}, ${own}`
  }

  #useHost (host: string): void {
    this.#host = host
    const colon = host.lastIndexOf(':')
    this.#hostPort = colon > host.lastIndexOf(']') && colon !== -1 ? host.slice(colon + 1) : this.#port
    this.#element = host === ''
      ? `for=${this.#forNode};proto=${this.scheme}`
      : `for=${this.#forNode};host=${quoted(host)};proto=${this.scheme}`
  }
}

const scheme = /^https?$/i
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** A value as RFC 7239 wants it: a token, or a quoted string. */
function quoted (value: string): string {
  return token.test(value) ? value : `"${value.replace(/["\\]/g, '\\$&')}"`
}

/** The elements that an X-Forwarded-For stands for, where a proxy in front knows no Forwarded: both have to tell the same chain. */
function fromForwardedFor (list: string): string {
  return list.split(',').map((entry) => `for=${forNode(entry.trim())}`).join(', ')
}

/** A node as RFC 7239 section 6 wants it: IPv6 in brackets and quotes; what is no address becomes `unknown`. */
function forNode (entry: string): string {
  if (/^\d{1,3}(?:\.\d{1,3}){3}$/.test(entry)) return entry
  return /^\[?[0-9a-fA-F:.]+\]?$/.test(entry) && entry.includes(':') ? `"[${entry.replace(/^\[|\]$/g, '')}]"` : 'unknown'
}

/** The Via line of an answer, with ours added. */
export function extendVia (given: string | undefined, version: ReceivedVersion = '1.1'): string {
  const viaEntry = viaOf[version]
  return given === undefined || given === '' ? viaEntry : `${given}, ${viaEntry}`
}
