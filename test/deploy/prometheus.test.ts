import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse, stringify } from 'yaml'
import { shipped } from '../config/support.ts'
import { skipWithout } from '../support/tools.ts'
import { alerts, assertAnswered, rules, rulesFile, seriesOf } from './alerting.ts'
import { asked, panels } from './dashboard.ts'

const testsFile = shipped('deploy/prometheus/rules.test.yaml')
const samples = parse(readFileSync(testsFile, 'utf8')) as { tests: Array<{ alert_rule_test: Array<{ alertname: string, exp_alerts: unknown[] }> }> }

/** What promtool says, or null where there is none. */
function promtool (...args: string[]): { status: number | null, output: string } | null {
  const { error, status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8', timeout: 120_000 })
  return error === undefined ? { status, output: stdout + stderr } : null
}

test('deploy/prometheus/rules.yaml: every metric, label and value that a rule asks for is exposed by a running gateway', async (t) => {
  const series = await seriesOf(t)
  for (const { expr, annotations = {} } of rules) assertAnswered(expr, Object.values(annotations), series)
})

test('deploy/prometheus/rules.yaml: every alert says what is wrong, how bad, and where to read on', () => {
  assert.equal(new Set(alerts.map(({ alert }) => alert)).size, alerts.length)
  for (const { alert, labels, annotations } of alerts) {
    assert.match(alert, /^Breakwater[A-Z]\w+$/)
    assert.ok(['critical', 'warning'].includes(labels['severity'] ?? ''), alert)
    assert.deepEqual(Object.keys(annotations), ['summary', 'description', 'runbook_url'], alert)
    assert.equal(annotations['runbook_url'], `docs/runbook.md#${alert.toLowerCase()}`)
  }
})

test('deploy/prometheus/rules.test.yaml: every alert has samples with which it fires, and others with which it does not', () => {
  const cases = samples.tests.flatMap((each) => each.alert_rule_test)
  for (const { alert } of alerts) {
    const own = cases.filter(({ alertname }) => alertname === alert)
    assert.ok(own.some(({ exp_alerts: expected }) => expected.length > 0), `${alert} is never seen to fire`)
    assert.ok(own.some(({ exp_alerts: expected }) => expected.length === 0), `${alert} is never seen not to fire`)
  }
  assert.deepEqual(cases.filter(({ alertname }) => !alerts.some(({ alert }) => alert === alertname)), [])
})

test('deploy/prometheus: promtool takes the rules, and they fire on the samples exactly when they should', (t) => {
  const checked = promtool('check', 'rules', rulesFile)
  if (checked === null) return skipWithout('promtool', t)
  assert.equal(checked.status, 0, checked.output)
  const tested = promtool('test', 'rules', testsFile)
  assert.equal(tested?.status, 0, tested?.output)
})

test('deploy/grafana/breakwater.json: promtool takes every query', (t) => {
  const work = mkdtempSync(join(tmpdir(), 'breakwater-queries-'))
  t.after(() => { rmSync(work, { recursive: true, force: true }) })
  const file = join(work, 'queries.yaml')
  const queries = panels.flatMap(({ targets = [] }) => targets).map(({ expr }) => asked(expr))
  writeFileSync(file, stringify({ groups: [{ name: 'queries', rules: queries.map((expr, at) => ({ record: `query:${at}`, expr })) }] }))
  const checked = promtool('check', 'rules', file)
  if (checked === null) return skipWithout('promtool', t)
  assert.equal(checked.status, 0, checked.output)
  assert.match(checked.output, new RegExp(`${queries.length} rules found`))
})
