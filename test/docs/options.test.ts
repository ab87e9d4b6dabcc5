import { equal, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { configSchema, describe, describePattern, type JsonSchema } from '../../config/describe.ts'
import { optionSections, optionsPage } from '../../docs/options-table.ts'
import { shipped } from '../config/support.ts'

test('docs/options.md is what npm run docs would write', () => {
  equal(readFileSync(shipped('docs/options.md'), 'utf8'), optionsPage(), 'docs/options.md is stale: npm run docs')
})

test('every option has a description, and one default or none', () => {
  const rows = optionSections().flatMap(section => section.rows)
  ok(rows.length > 60)
  for (const row of rows) {
    ok(row.description.length > 0, `${row.path} has no description`)
    ok(!(row.required && row.default !== null), row.path)
  }
  equal(new Set(rows.map(row => row.path)).size, rows.length)
})

test('no pattern of the schema is left without words', () => {
  const visit = (schema: JsonSchema): void => {
    if (schema.type === 'string') ok(!describe(schema).includes('matching'), `config/describe.ts has no words for ${schema.pattern}`)
    for (const pattern of Object.keys(schema.patternProperties ?? {})) ok(!describePattern(pattern).includes('matching'), `config/describe.ts has no words for ${pattern}`)
    for (const inner of [...Object.values(schema.properties ?? {}), ...Object.values(schema.patternProperties ?? {}), ...schema.anyOf ?? []]) visit(inner)
    if (schema.items !== undefined) visit(schema.items)
  }
  visit(configSchema)
})
