import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventTypes } from '../../lib/event-types.ts'
import { pageOf, root } from './pages.ts'

test('docs/plugins/event-journal.md: its table has every type of event, with what it tells', () => {
  const [, table = ''] = /## The events\n([^]*?)\n## /.exec(pageOf('docs/plugins/event-journal.md').text) ?? []
  assert.deepEqual([...table.matchAll(/^\| `(\w+)` \| (.*) \|$/gm)].map(([, type, text]) => [type, text]), Object.entries(eventTypes))
})

test('every type of event is made somewhere, and no other', () => {
  const sources = ['plugins', 'routes'].flatMap((folder) => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts')).map((name) => readFileSync(join(root, folder, name), 'utf8'))).join('\n')
  for (const type of Object.keys(eventTypes)) assert.ok(sources.includes(`'${type}'`), `nobody tells ${type}`)
  for (const [, type] of sources.matchAll(/readonly type: '(\w+)'/g)) assert.ok(Object.hasOwn(eventTypes, type as string), `${type} is not in the table`)
})
