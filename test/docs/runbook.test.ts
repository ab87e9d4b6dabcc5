/** Every alert has a section of the runbook, and what the sections tell people to run is there. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { commands as ours } from '../../bin/cli/commands.ts'
import { alerts } from '../deploy/alerting.ts'
import { pageOf, root } from './pages.ts'

const { text, blocks, prose } = pageOf('docs/runbook.md')
const sections = [...text.matchAll(/^## (Breakwater\w+)\n([^]*?)(?=^## )/gm)].map(([, name = '', body = '']) => ({ name, body }))
const commands = [...blocks.filter(({ language }) => language === 'sh').map((block) => block.text), ...[...prose.matchAll(/`([^`]+)`/g)].map(([, code]) => code as string)].join('\n')

test('docs/runbook.md has a section for each alert, in their order, and for nothing else', () => {
  assert.deepEqual(sections.map(({ name }) => name), alerts.map(({ alert }) => alert))
})

test('docs/runbook.md says of each alert what it means, where to look, what to do and when it is over', () => {
  for (const { name, body } of sections) {
    assert.deepEqual([...body.matchAll(/^\*\*(\w+)\.?\*\*/gm)].map(([, part]) => part), ['Means', 'Look', 'Do', 'Over'], name)
  }
})

test('docs/runbook.md: every command of ours that it shows is there', () => {
  const shown = [...commands.matchAll(/^(?:systemctl reload )?breakwater(?: ([\w-]+))?/gm)].map(([, name]) => name).filter((name) => name !== undefined)
  assert.ok(shown.length > 10, `only ${shown.length} were found`)
  assert.deepEqual(shown.filter((name) => !ours.some((each) => each.name === name)), [])
})

test('docs/runbook.md: every admin route that it asks is there', () => {
  const { paths } = JSON.parse(readFileSync(join(root, 'docs/openapi.json'), 'utf8')) as { paths: Record<string, Record<string, unknown>> }
  const asked = [...commands.matchAll(/curl ([^\n]*?)(?:\$BREAKWATER_ADMIN_URL|http:\/\/10\.0\.0\.5:9090)(\/[\w/.-]*)/g)]
  assert.ok(asked.length >= 10, `only ${asked.length} were found`)
  for (const [, flags = '', path = ''] of asked) {
    const known = Object.keys(paths).find((each) => new RegExp(`^${each.replace(/\{\w+\}/g, '[^/]+')}$`).test(path))
    assert.ok(known !== undefined && (flags.includes('POST') ? 'post' : 'get') in (paths[known] as object), path)
  }
})

test('docs/runbook.md: every metric that it looks for is exposed', () => {
  const told = [...pageOf('docs/plugins/metrics.md').text.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name as string)
  const patterns = [...commands.matchAll(/\/metrics \| grep -E '([^']+)'/g)]
  assert.ok(patterns.length >= 5, `only ${patterns.length} were found`)
  for (const [, pattern = ''] of patterns) {
    // Each alternative by itself, as it begins.
    const [, before = '', inner = pattern.slice(1)] = /^\^(\w*)\((.*)\)$/.exec(pattern) ?? []
    for (const one of inner.split(/\|(?![^(]*\))/)) {
      const begins = new RegExp(`^${before}${one.replace(/\..*$/, '')}`)
      assert.ok(told.some((name) => begins.test(name) || begins.test(`${name}_sum`)), `${before}${one}`)
    }
  }
})
