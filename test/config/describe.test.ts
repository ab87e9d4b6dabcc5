import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { describe, type JsonSchema } from '../../config/describe.ts'

test('what a value must be, in words', () => {
  const table: [JsonSchema, string][] = [
    [{ type: 'integer' }, 'a whole number'],
    [{ type: 'integer', minimum: 1 }, 'a whole number of at least 1'],
    [{ type: 'number', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }, 'a number of at least 0'],
    [{ type: 'number', minimum: 1, maximum: 10 }, 'a number from 1 to 10'],
    [{ type: 'number', exclusiveMinimum: 0, maximum: 1 }, 'a number above 0 and at most 1'],
    [{ type: 'number', exclusiveMinimum: 0 }, 'a number above 0'],
    [{ type: 'string' }, 'text'],
    [{ type: 'string', minLength: 1 }, 'text that is not empty'],
    [{ type: 'string', minLength: 16 }, 'text of at least 16 characters'],
    [{ type: 'string', maxLength: 512 }, 'text of at most 512 characters'],
    [{ type: 'string', pattern: '^/', minLength: 1 }, 'text that starts with "/"'],
    [{ type: 'string', pattern: '^/', maxLength: 9 }, 'text that starts with "/", of at most 9 characters'],
    [{ type: 'null' }, 'null'],
    [{ const: 'auto' }, '"auto"'],
    [{ enum: ['a'] }, '"a"'],
    [{ enum: ['a', 'b'] }, 'one of "a", "b"'],
    [{ anyOf: [{ const: 'auto' }, { type: 'integer', minimum: 1, maximum: 32 }] }, '"auto" or a whole number from 1 to 32'],
    [{ anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }, { type: 'null' }] }, 'text, a number, true or false or null'],
    [{ type: 'array', items: { type: 'string' } }, 'a list, each text'],
    [{ type: 'array', items: { type: 'integer' }, minItems: 2, maxItems: 2 }, 'a list of 2, each a whole number'],
    [{ type: 'object', properties: {} }, 'a mapping'],
    [{ type: 'object', patternProperties: { '^.+$': { type: 'string' } } }, 'a mapping, each text'],
    [{ type: 'object', patternProperties: { '^.+$': { type: 'string' } }, minProperties: 1 }, 'a mapping with at least 1 entry, each text'],
    [{ type: 'object', patternProperties: { '^.+$': { type: 'object', properties: {} } }, minProperties: 1 }, 'a mapping with at least 1 entry']
  ]
  for (const [schema, words] of table) equal(describe(schema), words)
})
