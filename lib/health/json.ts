/** The check of a field in a JSON body. */
import type { HealthOptions } from '../../config/schema.ts'

export type ExpectedField = NonNullable<HealthOptions['json']>

/** What the body of a check says: it is read as UTF-8 JSON, whatever type the answer names; the value must be the same, and of the same type. */
export function judgeJson (body: Uint8Array, { pointer, equals }: ExpectedField): 'check_passed' | 'json_invalid' | 'json_mismatch' {
  let document: unknown
  try {
    document = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return 'json_invalid'
  }
  return valueAt(document, pointer) === equals ? 'check_passed' : 'json_mismatch'
}

/**
 * The value that a JSON pointer (RFC 6901) names in a parsed document, or undefined where there is none: a missing member, an index
 * out of range or with a leading zero, `-`, and a `~` that is neither `~0` nor `~1`.
 */
export function valueAt (document: unknown, pointer: string): unknown {
  if (pointer === '') return document
  let value = document
  for (const part of pointer.split('/').slice(1)) {
    if (typeof value !== 'object' || value === null || /~(?![01])/.test(part)) return undefined
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(value) && !/^(?:0|[1-9][0-9]*)$/.test(key)) return undefined
    // What is inherited, and the length of an array, are no members.
    if (!Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}
