import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askedBy, matches } from './promql.ts'

test('what an expression asks for is read: metrics with their matchers, and labels of groups, but no functions and numbers', () => {
  const { selectors, groupedBy } = askedBy(`
    histogram_quantile(0.95, sum by (route, le) (rate(a_bucket{x="1", y=~"b|{c}"}[5m]))) > 14.4 * 0.001
      and on (job) absent(up{job!="x"}) or sum without (z) (job:b:rate5m) unless c == 1 and d / e offset 5m > bool 2`)
  assert.deepEqual(selectors, [
    { metric: 'a_bucket', matchers: [{ label: 'x', op: '=', value: '1' }, { label: 'y', op: '=~', value: 'b|{c}' }] },
    { metric: 'up', matchers: [{ label: 'job', op: '!=', value: 'x' }] },
    ...['job:b:rate5m', 'c', 'd', 'e'].map((metric) => ({ metric, matchers: [] }))
  ])
  assert.deepEqual(groupedBy, ['route', 'le', 'job', 'z'])
  assert.throws(() => askedBy('a{x="1"'), /no }/)
})

test('matchers match as those of Prometheus do: patterns the whole value, and a label that is not there as an empty one', () => {
  const labels = { code: '503' }
  const cases: Array<[string, '=' | '!=' | '=~' | '!~', string, boolean]> = [
    ['code', '=', '503', true], ['code', '=', '50', false], ['code', '!=', '50', true],
    ['code', '=~', '5..', true], ['code', '=~', '5', false], ['code', '!~', '5..', false], ['none', '=', '', true], ['none', '=~', '.+', false]
  ]
  for (const [label, op, value, expected] of cases) assert.equal(matches(labels, { label, op, value }), expected, `${label}${op}${value}`)
})
