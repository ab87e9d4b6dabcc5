const equals = 0x3d
const quote = 0x22

const isSpace = (code: number): boolean => code === 0x20 || code === 0x09

/**
 * The value of a cookie in a Cookie field (RFC 6265, section 4.2.1), without the quotes around it; null where it is not there. Names
 * are compared exactly. Of two with one name the first counts: browsers put the one of the more specific path first (section 5.4).
 * Nothing else of the field is taken apart.
 * @param field several Cookie lines are joined by "; ", as Node does it
 */
export function cookieOf (field: string | undefined, name: string): string | null {
  if (field === undefined) return null
  const { length } = field
  for (let start = 0; start < length;) {
    const semicolon = field.indexOf(';', start)
    const end = semicolon === -1 ? length : semicolon
    while (start < end && isSpace(field.charCodeAt(start))) start++
    if (field.startsWith(name, start)) {
      let at = start + name.length
      while (isSpace(field.charCodeAt(at))) at++
      if (field.charCodeAt(at) === equals) return valueOf(field, at + 1, end)
    }
    start = end + 1
  }
  return null
}

function valueOf (field: string, from: number, to: number): string {
  let start = from
  let end = to
  while (start < end && isSpace(field.charCodeAt(start))) start++
  while (end > start && isSpace(field.charCodeAt(end - 1))) end--
  const quoted = end - start > 1 && field.charCodeAt(start) === quote && field.charCodeAt(end - 1) === quote
  return quoted ? field.slice(start + 1, end - 1) : field.slice(start, end)
}
