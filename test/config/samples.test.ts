import { deepEqual, equal, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parse } from 'yaml'
import { loadConfig } from '../../config/load.ts'
import { optionSections } from '../../docs/options-table.ts'
import { shipped } from './support.ts'

const sample = (name: string) => shipped(`config/${name}`)

/** The values at an option's path, like `pools.<name>.upstreams[].url`. */
const valuesAt = (value: unknown, path: string): unknown[] => {
  let values: unknown[] = [value]
  for (const part of path.split('.')) {
    const key = part.replace('[]', '')
    const objects = values.filter(each => typeof each === 'object' && each !== null) as Record<string, unknown>[]
    values = objects.flatMap(each => key === '<name>' ? Object.values(each) : Object.hasOwn(each, key) ? [each[key]] : [])
    if (part.endsWith('[]')) values = values.flat()
  }
  return values
}

test('the small sample loads', () => {
  const { config } = loadConfig({ BREAKWATER_CONFIG: sample('breakwater.yaml') })
  deepEqual(config.pools['shop']?.upstreams.map(({ url }) => url), ['http://127.0.0.1:9001', 'http://127.0.0.1:9002'])
  equal(config.admin.token, '')
})

test('the full sample holds every option, with its default', () => {
  const { config } = loadConfig({ BREAKWATER_CONFIG: sample('full.yaml') })
  const text = readFileSync(sample('full.yaml'), 'utf8')
  const written: unknown = parse(text)
  const uncommented: unknown = parse(text.replaceAll(/^# {3}/gm, '    ').replaceAll(/^ {4}( *)tls:/gm, '    $1tls:'))
  for (const row of optionSections().flatMap(section => section.rows)) {
    ok(valuesAt(uncommented, row.path).length > 0, `${row.path} is not in full.yaml`)
    if (row.default === null || row.path === 'routes') continue
    for (const value of valuesAt(uncommented, row.path)) {
      if (row.path !== 'admin.token') equal(JSON.stringify(value), row.default, row.path)
    }
    for (const value of valuesAt(config, row.path)) equal(JSON.stringify(value), row.default, row.path)
  }
  ok(valuesAt(written, 'pools.<name>.tls').length === 0)
})
