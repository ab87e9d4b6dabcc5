/** What the page is made of. */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { eventTypes } from '../../lib/event-types.ts'
import { shipped } from '../config/support.ts'

const web = dirname(shipped('web/index.html'))
const files = readdirSync(web).map((name) => [name, readFileSync(join(web, name), 'utf8')] as const)

test('nothing in the page makes markup or code of text, and nothing is inline', () => {
  const forbidden = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc|javascript:|createContextualFragment|DOMParser|setTimeout\('|<style|\sstyle=|\son\w+=/
  for (const [name, text] of files) assert.doesNotMatch(text, forbidden, name)
})

test('the page names no other host', () => {
  for (const [name, text] of files) assert.doesNotMatch(text.replaceAll('http://www.w3.org/2000/svg', ''), /https?:|\/\/[a-z][\w.-]+\.[a-z]/, name)
})

test('the page is small, in modules that can be read', () => {
  for (const [name, text] of files) assert.ok(text.split('\n').length < 260, name)
  const bytes = files.reduce((sum, [, text]) => sum + Buffer.byteLength(text), 0)
  assert.ok(bytes < 90000, String(bytes))
})

test('every module is imported, and every import is there', () => {
  const imported = new Set(files.flatMap(([, text]) => [...text.matchAll(/from '\.\/([\w-]+\.js)'/g)].map(([, name]) => name as string)))
  assert.deepEqual([...imported, 'main.js'].toSorted(), files.map(([name]) => name).filter((name) => name.endsWith('.js')).toSorted())
})

test('the first lines say how many requests were refused lately, whatever the plots show', async () => {
  const { overall } = await import(pathToFileURL(join(web, 'state.js')).href) as { overall: (pools: object[], shedding: null, history: object | null) => { sentence: string, more: string } }
  const pools = [{ pool: 'shop', panic: false, upstreams: [{ verdict: { tone: 'ok' } }] }]
  const told = (refused: object): string => overall(pools, null, { stepMs: 5000, gate: { refused } }).more
  assert.equal(told({ breaker_open: [0, 40], shed_capacity: [1, 2] }), '42 requests refused in the last 5 s')
  assert.equal(told({ no_route: [7, 1] }), '1 request refused in the last 5 s')
  assert.equal(told({ no_route: [7, 0], shed_capacity: [] }), '')
  assert.equal(overall(pools, null, null).more, '')
})

test('of what is in the journal, trouble stands out from what was meant to be, also where there are no words of its own for it', async () => {
  const { tell } = await import(pathToFileURL(join(web, 'sentences.js')).href) as { tell: (event: object) => { tone: string } }
  const troubles = Object.keys(eventTypes).filter((type) => ['warn', 'out'].includes(tell({ type, to: 'open' }).tone))
  assert.deepEqual(troubles, [
    'shutdown_incomplete', 'breaker_transition', 'health_changed', 'health_removal_held', 'health_first_check_failed', 'health_check_inconclusive', 'upstream_ejected', 'ejection_held',
    'retry_budget_spent', 'shed_begun', 'discovery_failed', 'discovery_refused', 'discovery_cut', 'config_rejected', 'certificates_rejected', 'certificate_expires_soon', 'certificate_expired', 'webhook_failing'
  ])
})
