import type { GivenFields } from './request-head.ts'
import { clientAddress, type Trust } from './trust.ts'

/** Name of this proxy in Via and Proxy-Status. */
export const proxyName = 'breakwater'
const viaEntry = `1.1 ${proxyName}`

/** The nearer end of a connection: known once, used by every request on it. */
export class Peer {
  readonly address: string
  readonly trusted: boolean
  readonly trust: Trust
  readonly #scheme: string
  readonly #port: string
  readonly #forNode: string
  // Nearly every request on a connection has the same Host: its part of the fields is built once.
  #host = ''
  #hostPort = ''
  #element = ''

  /**
   * @param address the peer's address, without the IPv6 mapping of IPv4; '' on a unix socket
   * @param localPort the port that it connected to
   */
  constructor (address: string, trust: Trust, scheme: 'http' | 'https', localPort: number) {
    this.address = address
    this.trusted = trust(address)
    this.trust = trust
    this.#scheme = scheme
    this.#port = String(localPort)
    this.#forNode = address === '' ? 'unknown' : address.includes(':') ? `"[${address}]"` : address
  }

  /** The client's address, given what X-Forwarded-For says; the peer's own where it is not trusted. */
  clientAddress (forwardedFor: string | undefined): string {
    return clientAddress(this.address, forwardedFor, this.trust)
  }

  /** The same, given what Forwarded says: for a peer that sends no X-Forwarded-For. A malformed field says nothing. */
  clientAddressByForwarded (forwarded: string | undefined): string {
    return forwarded === undefined || !this.trusted ? this.address : this.clientAddress(toForwardedFor(forwarded))
  }

  /**
   * Appends the fields that the proxy owns to `fields`: X-Forwarded-*, X-Real-IP, Forwarded (RFC 7239) and Via. What an
   * untrusted peer said is replaced, what a trusted one said is extended.
   * @param prefix the path prefix that the route takes off, or ''
   */
  append (fields: string[], given: GivenFields, host: string, client: string, prefix: string): void {
    if (host !== this.#host || this.#element === '') this.#useHost(host)
    const own = this.#element
    if (!this.trusted) {
      fields.push('x-forwarded-for', this.address, 'x-forwarded-proto', this.#scheme, 'x-forwarded-host', host, 'x-forwarded-port', this.#hostPort,
        'x-real-ip', client, 'forwarded', own, 'via', viaEntry)
      if (prefix !== '') fields.push('x-forwarded-prefix', prefix)
      return
    }
    fields.push(
      'x-forwarded-for', given.forwardedFor === '' ? this.address : `${given.forwardedFor}, ${this.address}`,
      'x-forwarded-proto', given.forwardedProto === '' ? this.#scheme : given.forwardedProto,
      'x-forwarded-host', given.forwardedHost === '' ? host : given.forwardedHost,
      'x-forwarded-port', given.forwardedPort === '' ? this.#hostPort : given.forwardedPort,
      'x-real-ip', client,
      'forwarded', given.forwarded !== '' ? `${given.forwarded}, ${own}` : given.forwardedFor !== '' ? `${fromForwardedFor(given.forwardedFor)}, ${own}` : own,
      'via', given.via === '' ? viaEntry : `${given.via}, ${viaEntry}`)
    const wholePrefix = given.forwardedPrefix + prefix
    if (wholePrefix !== '') fields.push('x-forwarded-prefix', wholePrefix)
  }

  #useHost (host: string): void {
    this.#host = host
    const colon = host.lastIndexOf(':')
    this.#hostPort = colon > host.lastIndexOf(']') && colon !== -1 ? host.slice(colon + 1) : this.#port
    this.#element = host === ''
      ? `for=${this.#forNode};proto=${this.#scheme}`
      : `for=${this.#forNode};host=${quoted(host)};proto=${this.#scheme}`
  }
}

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

// Sticky, and no two neighbouring repetitions take the same characters: a field is read in linear time, whatever stands in it.
const pair = /[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"((?:[^"\\]|\\.)*)")/y
const separator = /[ \t]*([;,]|$)/y

/**
 * The X-Forwarded-For that a Forwarded stands for (RFC 7239 section 4, and spaces around `;`, which many write): an entry for each
 * element, empty where its `for` is missing or no address. Undefined where the field is malformed or an element has two `for`.
 */
function toForwardedFor (field: string): string | undefined {
  const entries: string[] = []
  let node: string | undefined
  for (let at = 0; ;) {
    pair.lastIndex = at
    const found = pair.exec(field)
    if (found !== null) {
      at = pair.lastIndex
      if (found[1]!.toLowerCase() === 'for') {
        if (node !== undefined) return undefined
        node = found[2] ?? found[3]!.replace(/\\(.)/g, '$1')
      }
    }
    separator.lastIndex = at
    const next = separator.exec(field)
    if (next === null) return undefined
    at = separator.lastIndex
    if (next[1] === ';') continue
    entries.push(node === undefined ? '' : nodeAddress(node))
    if (next[1] === '') return entries.join(',')
    node = undefined
  }
}

/**
 * What stands for the address in a node (RFC 7239 section 6), without its port; '' in one that is `unknown`, obfuscated or no node.
 * IPv6 without brackets is none: its end may be a port.
 */
function nodeAddress (node: string): string {
  const found = /^(?:(\d+\.\d+\.\d+\.\d+)|\[([0-9a-f.]*:[0-9a-f:.]*)\])(?::(?:\d{1,5}|_[\w.-]+))?$/i.exec(node)
  return found?.[1] ?? found?.[2] ?? ''
}

/** The Via line of an answer, with ours added. */
export function extendVia (given: string | undefined): string {
  return given === undefined || given === '' ? viaEntry : `${given}, ${viaEntry}`
}
