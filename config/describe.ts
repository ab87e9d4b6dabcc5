/** The schema in words, for error messages and for docs/options.md: what a value must be. */
import { Config } from './schema.ts'

/** The part of JSON Schema that config/schema.ts uses. */
export interface JsonSchema {
  type?: string
  description?: string
  default?: unknown
  const?: unknown
  enum?: unknown[]
  anyOf?: JsonSchema[]
  properties?: Record<string, JsonSchema>
  patternProperties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  minimum?: number
  exclusiveMinimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  minItems?: number
  maxItems?: number
  minProperties?: number
}

/** The whole schema, seen as the JSON Schema that it is. */
export const configSchema = Config as unknown as JsonSchema

/** Patterns of texts, and of the names in a mapping. */
const patternWords: Record<string, string> = {
  '^/': 'that starts with "/"',
  '^/.': 'that starts with "/" and goes on',
  '^(/.*)?$': 'that is empty or starts with "/"',
  '^.+$': 'that is not empty',
  '^[A-Za-z0-9-]+$': 'of letters, digits and "-"',
  '^[A-Za-z0-9_-]+$': 'of letters, digits, "-" and "_"',
  '^[A-Z][A-Z-]*$': 'in capitals, like "GET"',
  "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$": 'that a header or cookie may be called, like "x-user-id"',
  '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$': 'of 1 to 63 letters, digits, ".", "_" and "-" that starts with a letter or digit',
  '^[\\t\\x20-\\x7e\\x80-\\xff]*$': 'that a header field may hold'
}

/** What a text of this pattern is, or a name in a mapping whose names have it; to follow a noun. */
export const describePattern = (pattern: string): string => patternWords[pattern] ?? `matching ${pattern}`

const numberWords = (noun: string, { minimum, exclusiveMinimum, maximum = Number.MAX_SAFE_INTEGER }: JsonSchema): string => {
  const open = maximum === Number.MAX_SAFE_INTEGER
  if (exclusiveMinimum !== undefined) return `${noun} above ${exclusiveMinimum}${open ? '' : ` and at most ${maximum}`}`
  if (minimum === undefined) return noun
  return open ? `${noun} of at least ${minimum}` : `${noun} from ${minimum} to ${maximum}`
}

const textWords = ({ pattern, minLength = 0, maxLength }: JsonSchema): string => {
  const most = maxLength === undefined ? '' : `of at most ${maxLength} characters`
  if (pattern !== undefined) return `text ${describePattern(pattern)}${most === '' ? '' : `, ${most}`}`
  if (minLength > 1) return `text of at least ${minLength} characters`
  return most !== '' ? `text ${most}` : minLength === 1 ? 'text that is not empty' : 'text'
}

const listWords = ({ items, minItems, maxItems }: JsonSchema): string => {
  const each = items === undefined ? '' : `, each ${describe(items)}`
  if (minItems === undefined) return `a list${each}`
  if (minItems === maxItems) return `a list of ${minItems}${each}`
  return maxItems === undefined ? `a list of at least ${minItems}${each}` : `a list of ${minItems} to ${maxItems}${each}`
}

const mappingWords = ({ minProperties, patternProperties = {} }: JsonSchema): string => {
  const value = Object.values(patternProperties)[0]
  const each = value === undefined || value.properties !== undefined ? '' : `, each ${describe(value)}`
  return minProperties === undefined ? `a mapping${each}` : `a mapping with at least ${minProperties} entry${each}`
}

/** `a`, `a or b`, `a, b or c`. */
const orWords = (parts: readonly string[]): string =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} or ${parts.at(-1)}`

/** What a value of the schema must be, to follow "must be". */
export const describe = (schema: JsonSchema): string => {
  if (schema.anyOf !== undefined) return orWords(schema.anyOf.map(describe))
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) {
    const values = schema.enum.map(value => JSON.stringify(value))
    return values.length === 1 ? values.join('') : `one of ${values.join(', ')}`
  }
  switch (schema.type) {
    case 'integer': return numberWords('a whole number', schema)
    case 'number': return numberWords('a number', schema)
    case 'boolean': return 'true or false'
    case 'string': return textWords(schema)
    case 'array': return listWords(schema)
    case 'null': return 'null'
    default: return mappingWords(schema)
  }
}

/** The schema of a key of a mapping; undefined for a key that it does not know. */
export const schemaOfKey = (schema: JsonSchema | undefined, key: string): JsonSchema | undefined => {
  if (schema === undefined) return undefined
  if (schema.properties !== undefined && Object.hasOwn(schema.properties, key)) return schema.properties[key]
  for (const [pattern, value] of Object.entries(schema.patternProperties ?? {})) {
    if (new RegExp(pattern).test(key)) return value
  }
  return undefined
}
