const mediaType = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*(?:;|$)/

/** True for a Content-Type that begins with a media type (RFC 9110 section 8.3.1), whatever its parameters are. */
export function isMediaType (text: string): boolean {
  return mediaType.test(text)
}
