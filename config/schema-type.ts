/**
 * Builds schemas as TypeBox does, with its types. TypeBox itself is nearly four hundred files, which took a quarter of a start to load;
 * the few kinds that we use are plain JSON schemas with one hidden mark each.
 */
import type { TProperties, TSchema, Type as TypeBox } from 'typebox'

type Body = object | undefined

/** The marks are hidden, so that a schema is written and compared as the JSON that it is; TypeBox's own functions find them. */
const marked = (schema: object, mark: string, value: unknown): object =>
  Object.defineProperty(schema, mark, { value, configurable: true, writable: true, enumerable: false })

const make = (kind: string, body: object, options: Body): object => marked({ ...body, ...options }, '~kind', kind)

const typed = (kind: string, type: string) => (options?: Body) => make(kind, { type }, options)

const isOptional = (schema: TSchema): boolean => Object.hasOwn(schema, '~optional')

function object (properties: TProperties, options?: Body): object {
  const required = Object.keys(properties).filter(name => !isOptional(properties[name] as TSchema))
  return make('Object', { type: 'object', ...(required.length > 0 ? { required } : {}), properties }, options)
}

/** The schema that was given stays as it is: it may be another property, which is required. */
const optional = (schema: TSchema): object =>
  marked(Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema)), '~optional', true)

const builders = {
  Array: (items: TSchema, options?: Body) => make('Array', { type: 'array', items }, options),
  Boolean: typed('Boolean', 'boolean'),
  Enum: (values: readonly unknown[], options?: Body) => make('Enum', { enum: values }, options),
  Integer: typed('Integer', 'integer'),
  Literal: (value: unknown, options?: Body) => make('Literal', { type: typeof value, const: value }, options),
  Null: typed('Null', 'null'),
  Number: typed('Number', 'number'),
  Object: object,
  Optional: optional,
  Record: (key: { pattern?: string }, value: TSchema, options?: Body) =>
    make('Record', { type: 'object', patternProperties: { [key.pattern ?? '^.*$']: value } }, options),
  String: typed('String', 'string'),
  Union: (anyOf: readonly TSchema[], options?: Body) => make('Union', { anyOf }, options),
  Unknown: (options?: Body) => make('Unknown', {}, options)
}

/** The kinds of `typebox` that are used here: `Enum` of a list, `Record` with any string or one with a pattern for its keys. */
export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>
