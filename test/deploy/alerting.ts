/** What the alerts and the dashboard say, and what a gateway exposes that has everything they ask for. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { parse } from 'yaml'
import { shipped } from '../config/support.ts'
import { request } from '../e2e/forwarder/support.ts'
import { named, refuses, row } from '../e2e/retries/support.ts'
import { scrape } from '../plugins/metrics/support.ts'
import type { ReadSample } from '../support/exposition.ts'
import { rawRequest } from '../support/raw-client.ts'
import { askedBy, matches } from './promql.ts'

export interface Rule {
  alert?: string
  record?: string
  expr: string
  for?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
}

export interface Alert extends Rule {
  alert: string
  labels: Record<string, string>
  annotations: Record<string, string>
}

export const rulesFile = shipped('deploy/prometheus/rules.yaml')
export const rules: readonly Rule[] = (parse(readFileSync(rulesFile, 'utf8')) as { groups: Array<{ rules: Rule[] }> }).groups.flatMap((group) => group.rules)
export const alerts: readonly Alert[] = rules.filter((rule): rule is Alert => rule.alert !== undefined)

/** Every series of a gateway with traffic, an upstream that refuses, an open circuit, discovery and a certificate. */
export async function seriesOf (t: TestContext): Promise<ReadSample[]> {
  const { gateway } = await row(t, [refuses, named('second')], {
    pools: { found: { health: { enabled: false }, discovery: { source: 'mine' } }, gone: { health: { enabled: false }, upstreams: [{ url: 'http://127.0.0.1:1' }] } },
    extend: (app) => { app.discovery.provide('mine', { start: (report) => { report([{ url: 'http://10.0.0.1:80' }]) }, stop: () => {} }) },
    routes: [{ path: '/gone', pool: 'gone' }, { path: '/*', pool: 'shop' }],
    before: (app) => { app.addHook('onReady', async () => { Object.assign(app.listener, { certificates: () => [{ file: '/etc/a.pem', notAfter: '2030-01-01T00:00:00.000Z' }] }) }) }
  })
  for (const path of ['/', '/gone']) await rawRequest(gateway.port, request('GET', path))
  gateway.app.breakers.get('gone', '127.0.0.1:1').force('open', 60_000)
  await rawRequest(gateway.port, request('GET', '/gone'))
  await gateway.idle()
  return Array.from((await scrape(gateway)).values(), ({ samples }) => samples).flat()
}

/** What Prometheus adds to every series that it scrapes. */
const added = ['job', 'instance']

/** @throws AssertionError where an expression, or text beside it, asks for a metric, a label or a value that no series has */
export function assertAnswered (expression: string, texts: readonly string[], series: readonly ReadSample[]): void {
  const { selectors, groupedBy } = askedBy(expression)
  assert.ok(selectors.length > 0, expression)
  const labels = new Set(added)
  for (const { metric, matchers } of selectors) {
    // Made by Prometheus, by a rule before this one, or by a scrape that fails.
    const recorded = rules.find(({ record }) => record === metric)
    if (recorded !== undefined || metric === 'up') continue
    const known = series.filter(({ name }) => name === metric)
    assert.ok(known.length > 0, `no metric ${metric}, for ${expression}`)
    for (const name of Object.keys(known[0]?.labels ?? {})) labels.add(name)
    const exported = matchers.filter(({ label }) => !added.includes(label))
    for (const { label } of exported) assert.ok(label in (known[0]?.labels ?? {}), `${metric} has no label ${label}`)
    assert.ok(known.some((each) => exported.every((matcher) => matches(each.labels, matcher))), `no series of ${metric} fits ${expression}`)
    // Each alternative by itself: one that is misspelt would hide behind the others.
    for (const { label, op, value } of exported.filter((matcher) => matcher.op === '=~' && /^[\w|-]+$/.test(matcher.value))) {
      for (const one of value.split('|')) assert.ok(known.some((each) => matches(each.labels, { label, op, value: one })), `no series of ${metric} has ${label}="${one}"`)
    }
  }
  for (const label of groupedBy) assert.ok(labels.has(label), `no label ${label}, for ${expression}`)
  for (const [, label] of texts.join(' ').matchAll(/\{\{\s*(?:or )?\$?(?:labels\.)?(\w+)[^}]*\}\}/g)) {
    if (label !== 'value') assert.ok(labels.has(label as string), `no label ${label}, beside ${expression}`)
  }
}
