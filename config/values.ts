/**
 * Values of unknown shape. The checks of meaning run on whatever the schema complained about, so that all errors come at once:
 * each of them looks only at the parts that have the right type.
 */
import { showUrl } from '../lib/upstream-url.ts'
import { isSecret } from './secrets.ts'

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value if it is an object, else an empty one. */
export const objectOf = (value: unknown): Record<string, unknown> => isObject(value) ? value : {}

/** The value if it is a list, else an empty one. */
export const listOf = (value: unknown): unknown[] => Array.isArray(value) ? value : []

/** The value as an error may show it: short, without secrets. */
export const given = (value: unknown, path: string): string => {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object') return Object.keys(value).length === 0 ? 'an empty mapping' : 'a mapping'
  if (isSecret(path)) return `a ${typeof value} (not shown)`
  if (typeof value !== 'string') return String(value)
  if (value.includes('://')) return showUrl(value)
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}...` : value)
}

/** More names than this are no help to anybody. */
const maxQuoted = 50

/** Quotes names for a list in a sentence. */
export const quoted = (names: readonly string[]): string =>
  [...names.slice(0, maxQuoted).map(name => JSON.stringify(name)), ...names.length > maxQuoted ? [`and ${names.length - maxQuoted} more`] : []].join(', ')
