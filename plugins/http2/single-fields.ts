/** Fields that Node refuses to send in several lines. */
const single = new Set([
  'access-control-allow-credentials', 'access-control-max-age', 'access-control-request-method', 'age', 'authorization', 'content-encoding', 'content-language',
  'content-length', 'content-location', 'content-md5', 'content-range', 'content-type', 'date', 'dnt', 'etag', 'expires', 'from', 'if-match',
  'if-modified-since', 'if-none-match', 'if-range', 'if-unmodified-since', 'last-modified', 'location', 'max-forwards', 'proxy-authorization', 'range',
  'referer', 'retry-after', 'tk', 'upgrade-insecure-requests', 'user-agent', 'x-content-type-options'
])

/** The connection's own fields have no place in HTTP/2 (RFC 9113 section 8.2.2). */
const ofConnection = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'http2-settings', 'te'])

/** True for a field that may stand in one line only. @param name lower-case */
export const isSingle = (name: string): boolean => single.has(name)

/** True for a field that concerns the connection alone. @param name lower-case */
export const isOfConnection = (name: string): boolean => ofConnection.has(name)
