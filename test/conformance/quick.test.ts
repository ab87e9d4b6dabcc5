/** The suites that take seconds, and their rows in docs/conformance.md. All of them: `npm run conformance`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pageOf } from '../docs/pages.ts'
import { tolerances } from '../support/strict-http.ts'
import { skipWithout } from '../support/tools.ts'
import { explanations } from './differential/explained.ts'
import { missing, play } from './suite.ts'
import { suites } from './table.ts'
import { otherwise } from './tools/h2spec.ts'

const page = pageOf('docs/conformance.md').text

/** The cells of the row that begins with this name. */
function rowOf (name: string): string[] {
  const line = page.split('\n').find((each) => each.startsWith(`| ${name} |`))
  assert.ok(line !== undefined, `docs/conformance.md has no row for ${name}`)
  return line.split('|').slice(2, -1).map((cell) => cell.trim())
}

for (const suite of suites.filter(({ quick }) => quick)) {
  test(`conformance, ${suite.name}: ${suite.about}`, async (t) => {
    const lacking = missing(suite.needs)
    if (lacking !== undefined) return skipWithout(lacking, t)
    const report = await play(suite)
    assert.deepEqual(report.failures, [])
    const [, cases, explained] = rowOf(suite.name)
    assert.equal(String(report.cases), cases, 'the cases of the row in docs/conformance.md')
    assert.ok(report.explained.length <= Number(explained), `${report.explained.length} cases are explained, and docs/conformance.md tells of ${explained}`)
  })
}

test('docs/conformance.md has a row for each suite, and every reason that explains a difference', () => {
  for (const { name, needs } of suites) assert.equal(rowOf(name)[3], needs.length === 0 ? 'nothing' : needs.map((program) => `\`${program}\``).join(', '), name)
  for (const { name, why } of explanations) assert.deepEqual(rowOf(name), [why])
  for (const { name, why } of otherwise) assert.deepEqual(rowOf(name), [why])
  for (const [name, why] of Object.entries(tolerances)) assert.deepEqual(rowOf(name), [why])
})
