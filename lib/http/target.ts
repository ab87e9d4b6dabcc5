/** A request target, split but not changed: what was routed is what is forwarded. */
export interface Target {
  /** The path as it came, without the query; `*` for OPTIONS *. */
  path: string
  /** The query with its question mark, or ''. */
  search: string
  /** Host and port of an absolute-form target, which wins over the Host field; else null. */
  authority: string | null
}

// What needs a closer look: an escape, or anything that no path may hold.
// eslint-disable-next-line no-control-regex
const unusual = /[%\\#\u0000-\u0020\u007f-\uffff]|\/\./
// eslint-disable-next-line no-control-regex
const forbidden = /[\\#\u0000-\u0020\u007f]/
const badEscape = /%(?![0-9a-fA-F]{2})/
const dot = '(?:\\.|%2e)'
const separator = '(?:/|%2f|%5c)'
// Servers that know path parameters take them off first: behind one, "..;x" is "..".
const dotSegment = new RegExp(`${separator}${dot}{1,2}(?:${separator}|;|$)`, 'i')
const absolute = /^https?:\/\/([^/?#]*)(.*)$/i

/**
 * Splits a request target as it stood in the request line. Returns null where it must be refused with 400: dot segments in any
 * spelling (they would let a path escape its prefix at the next server, also between escaped slashes and backslashes, or with path
 * parameters as in `/..;/`), backslashes, fragments, control bytes and bad escapes. Any other `%2F`, `//`, `;` and the query pass
 * untouched.
 */
export function parseTarget (url: string, method: string): Target | null {
  if (url.charCodeAt(0) === 47) return originForm(url, null)
  if (url === '*') return method === 'OPTIONS' ? { path: '*', search: '', authority: null } : null
  const match = absolute.exec(url)
  if (match === null) return null
  const authority = match[1] as string
  const rest = match[2] as string
  if (!isAuthority(authority)) return null
  if (rest === '') {
    return { path: method === 'OPTIONS' ? '*' : '/', search: '', authority }
  }
  return originForm(rest.charCodeAt(0) === 47 ? rest : '/' + rest, authority)
}

function originForm (url: string, authority: string | null): Target | null {
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  const search = query === -1 ? '' : url.slice(query)
  if (search !== '' && search.includes('#')) return null
  if (unusual.test(path)) {
    if (forbidden.test(path) || badEscape.test(path)) return null
    if (dotSegment.test(path)) return null
  }
  return { path, search, authority }
}

const authorityPattern = /^(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]+)(?::\d{0,5})?$/

/** True for a host with an optional port, as the Host field may carry it (RFC 9110 section 7.2); user information is refused. */
export function isAuthority (text: string): boolean {
  return authorityPattern.test(text)
}

/** The host of an authority, lower-cased and without its port. */
export function hostOf (authority: string): string {
  const end = authority.charCodeAt(0) === 91 ? authority.indexOf(']') + 1 : authority.indexOf(':')
  return (end > 0 ? authority.slice(0, end) : authority).toLowerCase()
}
