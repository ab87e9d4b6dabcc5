import { maxDepth } from './yaml.ts'

/** Own keys of all mappings together. */
const countKeys = (root: unknown): number => {
  let count = 0
  const open = [root]
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value !== 'object' || value === null) continue
    const members: unknown[] = Object.values(value)
    if (!Array.isArray(value)) count += members.length
    for (const member of members) open.push(member)
  }
  return count
}

/** Colons outside of quotes, in a text that is JSON: one for each key that was written. -1 where it is nested too deep. */
const countColons = (text: string): number => {
  let count = 0
  let depth = 0
  let quoted = false
  for (let index = 0; index < text.length; index++) {
    const char = text.charCodeAt(index)
    if (char === 0x22) quoted = !quoted
    else if (quoted) index += char === 0x5c ? 1 : 0
    else if (char === 0x3a) count++
    else if (char === 0x5b || char === 0x7b) depth++
    else if (char === 0x5d || char === 0x7d) depth--
    if (depth > maxDepth) return -1
  }
  return count
}

/**
 * What a text says that is a JSON mapping or list; undefined for any other text, for one that is nested too
 * deep, and for one where a key stands twice in a mapping, of which `JSON.parse` would keep the last and say nothing: the reader of
 * YAML says what is wrong with these, and where. Much faster than that one.
 */
export const parseJson = (text: string): unknown => {
  const start = /^\uFEFF?[ \t\r\n]*([[{])/.exec(text)
  if (start === null) return undefined
  try {
    const value: unknown = JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text)
    return countKeys(value) === countColons(text) ? value : undefined
  } catch {
    return undefined
  }
}
