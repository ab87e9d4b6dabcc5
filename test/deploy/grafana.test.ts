import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertAnswered, seriesOf } from './alerting.ts'
import { asked, dashboard, panels, variables } from './dashboard.ts'

test('deploy/grafana/breakwater.json: every metric, label and value that it asks for is exposed by a running gateway', async (t) => {
  const series = await seriesOf(t)
  for (const { targets = [] } of panels) for (const { expr, legendFormat } of targets) assertAnswered(asked(expr), [legendFormat], series)
  for (const { expr, textFormat } of dashboard.annotations.list) assertAnswered(asked(expr), [textFormat], series)
  for (const { name, type, definition = '' } of variables.filter((each) => each.type === 'query')) {
    const [, query = '', label] = /^label_values\((.*), (\w+)\)$/.exec(definition) ?? []
    assert.equal(label, name, `${type} ${definition}`)
    assertAnswered(asked(query), [`{{${label}}}`], series)
  }
})

test('deploy/grafana/breakwater.json: no data source is built in, and it can be imported anywhere', () => {
  assert.equal(dashboard.id, undefined)
  assert.ok(dashboard.schemaVersion >= 39)
  assert.deepEqual(variables.map(({ name, type }) => [name, type]), [['datasource', 'datasource'], ['instance', 'query'], ['pool', 'query'], ['upstream', 'query']])
  const sources = [...panels, ...panels.flatMap(({ targets = [] }) => targets), ...variables.slice(1), ...dashboard.annotations.list].map(({ datasource }) => datasource)
  for (const source of sources) assert.deepEqual(source, { type: 'prometheus', uid: '${datasource}' })
})

test('deploy/grafana/breakwater.json: every panel says what it shows, has a place of its own, and follows the variables', () => {
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
  const taken = new Set<string>()
  for (const { title, gridPos: { x, y, w, h } } of dashboard.panels) {
    assert.ok(x + w <= 24, title)
    for (let column = x; column < x + w; column++) {
      for (let line = y; line < y + h; line++) {
        assert.ok(!taken.has(`${column},${line}`), `${title} lies over another panel`)
        taken.add(`${column},${line}`)
      }
    }
  }
  for (const { title, description = '', targets = [] } of panels) {
    assert.ok(description.length > 0, `${title} has no description`)
    assert.ok(targets.length > 0, `${title} shows nothing`)
    for (const { expr } of targets) assert.ok(expr.includes('instance=~"$instance"'), `${title} does not follow $instance`)
  }
})
