/** What every HTTP/2 client sends first (RFC 9113, section 3.4). No HTTP/1 request begins so. */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/**
 * Whether a connection begins as HTTP/2 does.
 * @param bytes all that has come so far
 * @returns `more`: not to be told yet
 */
export function parsePreface (bytes: Buffer): boolean | 'more' {
  const length = Math.min(bytes.length, preface.length)
  if (bytes.compare(preface, 0, length, 0, length) !== 0) return false
  return length === preface.length ? true : 'more'
}
