/** The longest method that is looked for. */
const maxMethodBytes = 32

/**
 * Whether a connection begins as a request of HTTP does: with a method and a space. TLS never does.
 * @param bytes all that has come so far
 * @returns `more`: not to be told yet
 */
export function beginsAsHttp (bytes: Buffer): boolean | 'more' {
  for (const [at, byte] of bytes.subarray(0, maxMethodBytes).entries()) {
    if (byte === 0x20) return at > 0
    if ((byte < 0x41 || byte > 0x5a) && byte !== 0x2d) return false
  }
  return bytes.length < maxMethodBytes ? 'more' : false
}
