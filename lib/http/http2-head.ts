import type { Reason } from '../failure.ts'
import { maxRequestFields } from './field-limit.ts'
import { isAuthority } from './target.ts'

/** The head of a request over HTTP/2, as HTTP/1 would have brought it. */
export interface Http2Head {
  /** name, value, name, value, ...: Host first, without pseudo fields, cookies in one line (RFC 9113 section 8.2.3). */
  rawHeaders: string[]
  host: string
  /** A body follows whose length is not told: `Transfer-Encoding: chunked` stands for it. */
  announcesBody: boolean
  /** As HTTP/1 would have written it. */
  bytes: number
  /** Why it is refused; null: it is not. */
  fault: Reason | null
}

/**
 * Reads a head as it came. What HTTP/2 itself forbids (names in upper case, fields of the connection, missing pseudo fields) has been
 * refused before. Refused here: CONNECT, schemes that are not http, targets that are neither a path nor `*`, a Host beside another
 * authority, and too many fields.
 * @param ended no body follows
 */
export function readHttp2Head (raw: readonly string[], ended: boolean): Http2Head {
  const fields: string[] = ['host', '']
  const pseudo: Record<string, string> = Object.create(null) as Record<string, string>
  let cookieAt = -1
  let host: string | null = null
  let sameHost = true
  let hasLength = false
  let bytes = 0
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string
    const value = raw[i + 1] as string
    bytes += name.length + value.length + 4
    if (name.charCodeAt(0) === 58) {
      pseudo[name] = value
    } else if (name === 'host') {
      sameHost &&= host === null || host === value
      host = value
    } else if (name === 'cookie' && cookieAt !== -1) {
      fields[cookieAt] += `; ${value}`
    } else {
      if (name === 'cookie') cookieAt = fields.length + 1
      hasLength ||= name === 'content-length'
      fields.push(name, value)
    }
  }
  const authority = pseudo[':authority'] ?? host ?? ''
  fields[1] = authority
  const announcesBody = !ended && !hasLength
  if (announcesBody) fields.push('transfer-encoding', 'chunked')
  const fault = !sameHost || (host !== null && host.toLowerCase() !== authority.toLowerCase()) ? 'bad_request' : faultOf(pseudo, authority, fields.length)
  return { rawHeaders: fields, host: authority, announcesBody, bytes, fault }
}

function faultOf (pseudo: Readonly<Record<string, string>>, authority: string, entries: number): Reason | null {
  const { ':method': method = '', ':scheme': scheme = '', ':path': path = '' } = pseudo
  if (method === 'CONNECT' || !isAuthority(authority) || (scheme !== 'http' && scheme !== 'https')) return 'bad_request'
  if (path.charCodeAt(0) !== 47 && path !== '*') return 'bad_request'
  return entries > 2 * maxRequestFields ? 'headers_too_large' : null
}
