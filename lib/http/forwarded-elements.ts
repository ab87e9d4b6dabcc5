import { parseAddress } from './address.ts'
import type { Trust } from './trust.ts'

/** What one proxy says of the connection over which a request came to it (RFC 7239 section 4). */
export interface ForwardedElement {
  /** The address in `for`, without its port; `unknown` where there is none. */
  readonly address: string
  /** As written; '' where it is missing. */
  readonly proto: string
  readonly host: string
}

// Sticky, and no two neighbouring repetitions take the same characters: a field is read in linear time, whatever stands in it.
const pair = /[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"((?:[^"\\]|\\.)*)")/y
const separator = /[ \t]*([;,]|$)/y

/**
 * The elements of a Forwarded field, at least one, with spaces around `;` allowed, which many write. Null where the field is malformed
 * or an element says something twice.
 */
export function parseForwarded (field: string): ForwardedElement[] | null {
  const elements: ForwardedElement[] = []
  let said = new Map<string, string>()
  for (let at = 0; ;) {
    pair.lastIndex = at
    const found = pair.exec(field)
    if (found !== null) {
      at = pair.lastIndex
      const name = (found[1] as string).toLowerCase()
      if (said.has(name)) return null
      said.set(name, found[2] ?? (found[3] as string).replace(/\\(.)/g, '$1'))
    }
    separator.lastIndex = at
    const next = separator.exec(field)
    if (next === null) return null
    at = separator.lastIndex
    if (next[1] === ';') continue
    const node = said.get('for')
    elements.push({ address: node === undefined ? nobody : nodeAddress(node), proto: said.get('proto') ?? '', host: said.get('host') ?? '' })
    if (next[1] === '') return elements
    said = new Map()
  }
}

const nobody = 'unknown'

/**
 * What stands for the address in a node (RFC 7239 section 6); `unknown` in one that is that, obfuscated or no node. IPv6 without
 * brackets is none: its end may be a port.
 */
function nodeAddress (node: string): string {
  const found = /^(?:(\d+\.\d+\.\d+\.\d+)|\[([0-9a-f.]*:[0-9a-f:.]*)\])(?::(?:\d{1,5}|_[\w.-]+))?$/i.exec(node)
  return found?.[1] ?? found?.[2] ?? nobody
}

/** The X-Forwarded-For that says the same. */
export function forwardedForOf (elements: readonly ForwardedElement[]): string {
  return elements.map(({ address }) => address).join(', ')
}

const maxHops = 32

/**
 * The element that tells of the client's own connection: from the right, the first one whose address is not a trusted proxy's, which
 * the outermost proxy that we trust has written. What stands left of it anybody may have written.
 */
export function clientElement (elements: readonly ForwardedElement[], trust: Trust): ForwardedElement | undefined {
  let at = elements.length - 1
  for (let hop = 0; hop < maxHops && at > 0; hop++, at--) {
    const address = parseAddress((elements[at] as ForwardedElement).address)
    if (address === null || !trust(address.toString())) break
  }
  return elements[at]
}
