/** Hop-by-hop and framing (RFC 9110), what only the proxy itself says to an upstream, and what a request's meaning hangs on. */
const ownFields: ReadonlySet<string> = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings',
  'host', 'content-length', 'content-type', 'content-encoding', 'expect', 'max-forwards', 'authorization', 'cookie',
  'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-prefix', 'x-real-ip', 'forwarded', 'via'
])

/** True for a request field that no option may give another meaning to. With "_" in the place of "-" it is the same: many servers cannot tell them apart. */
export const isOwnField = (name: string): boolean => ownFields.has(name.toLowerCase().replaceAll('_', '-'))
