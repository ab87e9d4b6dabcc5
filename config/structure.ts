import { Ajv, type ErrorObject } from 'ajv'
import { configSchema, describe, describePattern, type JsonSchema } from './describe.ts'
import { maxProblems, type Problem } from './error.ts'
import { indexPath, keyPath } from './path.ts'
import { nearest } from './suggest.ts'
import { given, quoted } from './values.ts'

// ownProperties: what an input inherits was not written by anybody. The code that judges runs a few times in the life of a process:
// to make it quick takes longer than it ever saves.
const ajv = new Ajv({ allErrors: true, strict: true, useDefaults: true, verbose: true, ownProperties: true, code: { optimize: false } })

const roots = new WeakMap<object, JsonSchema>()

/** A section's schema as that of a whole document, which has no default. The same one each time, as it is compiled only once. */
export const rootOf = (section: object): JsonSchema => {
  const known = roots.get(section)
  if (known !== undefined) return known
  const { default: _, ...root } = section as JsonSchema
  roots.set(section, root)
  return root
}

/** A JSON pointer as a path of ours; whether a part is an index can only be seen in the data. */
const pathOf = (pointer: string, root: unknown): string => {
  let path = ''
  let value = root
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    path = Array.isArray(value) ? indexPath(path, Number(key)) : keyPath(path, key)
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
  }
  return path
}

const unknownKey = (key: string, schema: JsonSchema): string => {
  const pattern = Object.keys(schema.patternProperties ?? {})[0]
  if (pattern !== undefined) return `must have a name ${describePattern(pattern)}`
  const known = Object.keys(schema.properties ?? {})
  const meant = nearest(key, known)
  return `is not a known option; ${meant === null ? 'known' : `did you mean ${JSON.stringify(meant)}? Known`} here: ${quoted(known)}`
}

const toProblem = (error: ErrorObject, root: unknown): Problem => {
  const schema = (error.parentSchema ?? {}) as JsonSchema
  const path = pathOf(error.instancePath, root)
  if (error.keyword === 'additionalProperties') {
    const key = String(error.params['additionalProperty'])
    return { path: keyPath(path, key), message: unknownKey(key, schema) }
  }
  if (error.keyword === 'required') {
    const key = String(error.params['missingProperty'])
    const wanted = schema.properties?.[key]
    return { path: keyPath(path, key), message: `is required${wanted === undefined ? '' : `: ${describe(wanted)}`}` }
  }
  // Somebody gave the one thing that matters in place of a mapping that has it, such as a URL for an upstream.
  const needed = schema.required?.filter((name) => schema.properties?.[name]?.default === undefined) ?? []
  const within = schema.type === 'object' && typeof error.data === 'string' && needed.length > 0 ? ` with ${quoted(needed)}` : ''
  return { path, message: `must be ${describe(schema)}${within}, got ${given(error.data, path)}` }
}

/** Judges types, bounds and names against the schema, and fills the defaults into `value` where the types allow it. Tells one problem more than are shown, if there are so many. */
export const checkStructure = (value: unknown, schema: JsonSchema = configSchema): Problem[] => {
  const validate = ajv.compile(schema)
  if (validate(value)) return []
  // The branches of an anyOf each complain; the anyOf itself says it all.
  const errors = (validate.errors ?? []).filter(error => !error.schemaPath.includes('/anyOf/'))
  return errors.slice(0, maxProblems + 1).map(error => toProblem(error, value))
}
