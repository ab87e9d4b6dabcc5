/**
 * Which fields may stand behind a body (RFC 9110 section 6.5.1): none that frames or routes a message, tells who may see it, says how
 * its content is to be read or how long it may be kept. A recipient has acted on those long before they come.
 */
const forbidden = new Set([
  'transfer-encoding', 'content-length', 'trailer', 'connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade', 'host',
  'cache-control', 'expect', 'max-forwards', 'pragma', 'range', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since', 'if-range',
  'age', 'expires', 'date', 'location', 'retry-after', 'vary', 'warning',
  'authorization', 'proxy-authorization', 'proxy-authenticate', 'www-authenticate', 'cookie', 'set-cookie',
  'content-encoding', 'content-type', 'content-range', 'content-location', 'content-disposition',
  // Ours, or what a gateway's users trust its head for.
  'via', 'forwarded', 'strict-transport-security', 'content-security-policy'
])

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// eslint-disable-next-line no-control-regex
const control = /[\u0000-\u0008\u000a-\u001f\u007f]/

/** name, value pairs, in their order. */
export type Trailers = Array<[name: string, value: string]>

/** True for a TE field by which somebody takes trailers (RFC 9110 section 10.1.4). @param te its lines joined by commas */
export function takesTrailers (te: string | undefined): boolean {
  if (te === undefined) return false
  return te === 'trailers' || te.split(',').some((coding) => coding.trim().toLowerCase() === 'trailers')
}

/**
 * What of a message's trailers is passed on.
 * @param raw name, value, name, value, ... as the parser read them
 * @param nameOf decodes a name to lower case; values are latin-1, as they came
 * @param reserved further names that may not, lower-case: fields that are the proxy's to say, and those that Connection has named
 */
export function passedTrailers (raw: readonly Buffer[], nameOf: (name: Buffer) => string, reserved: ReadonlySet<string>): Trailers {
  const trailers: Trailers = []
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = nameOf(raw[i] as Buffer)
    const value = (raw[i + 1] as Buffer).toString('latin1')
    if (!forbidden.has(name) && !reserved.has(name) && token.test(name) && !control.test(value)) trailers.push([name, value])
  }
  return trailers
}

/**
 * What of a request's trailers is passed on, as name, value, name, value, ...
 * @param raw the same, as they came
 * @param passes whether a field of this name would be passed on in the head, too
 */
export function passedRequestTrailers (raw: readonly string[], passes: (name: string) => boolean): string[] {
  const trailers: string[] = []
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    const value = raw[i + 1] as string
    if (!forbidden.has(name) && token.test(name) && !control.test(value) && passes(name)) trailers.push(name, value)
  }
  return trailers
}

/** The Trailer field of a message without the names that are not passed on; '' where nothing is left of it. */
export function passedAnnouncement (trailer: string, reserved: ReadonlySet<string>): string {
  const names = trailer.split(',').map((name) => name.trim())
  return names.filter((name) => token.test(name) && !forbidden.has(name.toLowerCase()) && !reserved.has(name.toLowerCase())).join(', ')
}
