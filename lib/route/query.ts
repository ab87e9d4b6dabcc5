const ampersand = 38
const equals = 61
const plus = /\+/g

/** The text that an escaped one stands for, as forms write it; where the escapes are broken, the text as it came. */
function decoded (text: string): string {
  const spaced = text.includes('+') ? text.replace(plus, ' ') : text
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch {
    return spaced
  }
}

/**
 * The parameters of these names in a query, the first one where a name stands twice; one without "=" is empty. Percent escapes and
 * "+" for a space are read in names and values. O(length), whatever is in it.
 * @param search the query with its question mark, or ''
 */
export function queryOf (search: string, wanted: ReadonlySet<string>): Map<string, string> {
  const found = new Map<string, string>()
  let start = 1
  let equalsAt = -1
  for (let i = 1; i <= search.length && found.size < wanted.size; i++) {
    const code = i === search.length ? ampersand : search.charCodeAt(i)
    if (code === equals && equalsAt === -1) equalsAt = i
    if (code !== ampersand) continue
    const name = decoded(search.slice(start, equalsAt === -1 ? i : equalsAt))
    if (wanted.has(name) && !found.has(name)) found.set(name, equalsAt === -1 ? '' : decoded(search.slice(equalsAt + 1, i)))
    start = i + 1
    equalsAt = -1
  }
  return found
}
