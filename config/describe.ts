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
  maximum?: number
  minLength?: number
  pattern?: string
  minItems?: number
  maxItems?: number
  minProperties?: number
}

/** The whole schema, seen as the JSON Schema that it is. */
export const configSchema = Config as unknown as JsonSchema

const patternWords: Record<string, string> = {
  '^/': 'that starts with "/"',
  '^/.': 'that starts with "/" and goes on',
  '^[A-Za-z0-9-]+$': 'of letters, digits and "-"',
  '^[A-Za-z0-9_-]+$': 'of letters, digits, "-" and "_"',
  '^[A-Z][A-Z-]*$': 'in capitals, like "GET"'
}

const numberWords = (noun: string, { minimum, maximum }: JsonSchema): string => {
  if (minimum === undefined) return noun
  if (maximum === undefined || maximum === Number.MAX_SAFE_INTEGER) return `${noun} of at least ${minimum}`
  return `${noun} from ${minimum} to ${maximum}`
}

const textWords = ({ pattern, minLength }: JsonSchema): string => {
  if (pattern !== undefined) return `text ${patternWords[pattern] ?? `matching ${pattern}`}`
  return minLength === undefined ? 'text' : 'text that is not empty'
}

const listWords = ({ items, minItems, maxItems }: JsonSchema): string => {
  const each = items === undefined ? '' : `, each ${describe(items)}`
  if (minItems === undefined) return `a list${each}`
  return minItems === maxItems ? `a list of ${minItems}${each}` : `a list of at least ${minItems}${each}`
}

/** What a value of the schema must be, to follow "must be". */
export const describe = (schema: JsonSchema): string => {
  if (schema.anyOf !== undefined) return schema.anyOf.map(describe).join(' or ')
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
    default: return schema.minProperties === undefined ? 'a mapping' : `a mapping with at least ${schema.minProperties} entry`
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
