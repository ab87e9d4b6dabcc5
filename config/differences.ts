import { keyPath } from './path.ts'
import { isObject } from './values.ts'

/** True for equal plain data; the order of a mapping's keys does not count. */
const equal = (one: unknown, other: unknown): boolean => {
  if (Array.isArray(one) && Array.isArray(other)) return one.length === other.length && one.every((member, index) => equal(member, other[index]))
  if (isObject(one) && isObject(other)) return differences(one, other).length === 0
  return Object.is(one, other)
}

/**
 * The paths at which two trees of plain data differ, like `timeouts.headersMs`, in alphabetical order. A list, and a mapping that
 * only one of them has, differ as a whole.
 * @param parent what the paths begin with
 */
export const differences = (before: Record<string, unknown>, after: Record<string, unknown>, parent = ''): string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted().flatMap(key => {
    const path = keyPath(parent, key)
    const one = before[key]
    const other = after[key]
    if (isObject(one) && isObject(other)) return differences(one, other, path)
    return equal(one, other) ? [] : [path]
  })
