import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { Type as TypeBox } from 'typebox'
import { Value } from 'typebox/value'
import { Type } from '../../config/schema-type.ts'

/** What is there, hidden marks too, and the order of what shows: it is that of the documents that are made from schemas. */
function whole (value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(Object.getOwnPropertyDescriptors(value)).map(([key, { value: member, ...how }]) => ({ key, how, member: whole(member) }))
  return members.toSorted((a, b) => Number(b.how.enumerable) - Number(a.how.enumerable))
}

const samples: Record<string, (builder: typeof Type) => object> = {
  Array: ({ Array: list, String: text }) => list(text({ minLength: 1 }), { minItems: 1, description: 'texts' }),
  Boolean: ({ Boolean: flag }) => flag({ default: true }),
  Enum: ({ Enum: one }) => one(['a', 'b'], { default: 'a' }),
  Integer: ({ Integer: integer }) => integer({ minimum: 0 }),
  Literal: ({ Array: list, Literal: literal, Union: union }) => list(union([literal('auto'), literal(1), literal(false, { description: 'no' })])),
  Null: ({ Null: none }) => none(),
  Number: ({ Number: number }) => number({ exclusiveMinimum: 0, description: 'ratio' }),
  Object: ({ Object: object, Integer: integer, Optional: optional, String: text }) =>
    object({ a: text(), b: optional(integer()), c: object({}), d: object({ e: optional(text()) }, { additionalProperties: false }) }, { default: {} }),
  Optional: ({ Object: object, Optional: optional, String: text }) => {
    const name = text({ pattern: '^a$' })
    return object({ maybe: optional(name), twice: optional(optional(name)), sure: name })
  },
  Record: ({ Object: object, Record: record, Integer: integer, String: text }) =>
    object({ any: record(text(), integer()), named: record(text({ pattern: '^[a-z]+$' }), integer(), { additionalProperties: false, minProperties: 1 }) }),
  String: ({ String: text }) => text(),
  Union: ({ Null: none, String: text, Union: union }) => union([text(), none()], { description: 'text or nothing' }),
  Unknown: ({ Unknown: unknown }) => unknown({ description: 'anything' })
}

for (const [kind, build] of Object.entries(samples)) {
  test(`${kind} is built as TypeBox builds it`, () => {
    deepEqual(whole(build(Type)), whole(build(TypeBox as unknown as typeof Type)))
  })
}

test('every kind that there is is compared', () => {
  deepEqual(Object.keys(samples), Object.keys(Type))
})

test('TypeBox\'s own functions take the schemas', () => {
  const schema = Type.Object({ name: Type.String(), count: Type.Optional(Type.Integer({ default: 3 })) })
  deepEqual(Value.Default(schema, { name: 'a' }), { name: 'a', count: 3 })
  equal(Value.Check(schema, { name: 'a' }), true)
  equal(Value.Check(schema, { count: 1 }), false)
})
