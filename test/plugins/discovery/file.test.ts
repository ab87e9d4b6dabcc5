import assert from 'node:assert/strict'
import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { DiscoveryOptions } from '../../../config/schema.ts'
import { until } from '../../support/wait.ts'
import { folder, harness } from './fixtures.ts'

const listOf = (...ports: number[]): string => ports.map((port) => `- url: http://10.0.0.1:${port}\n`).join('')
const idsOf = (...ports: number[]): string => ports.map((port) => `10.0.0.1:${port}`).join()

async function setup (t: TestContext, content: string | null, rest: Partial<DiscoveryOptions> = {}) {
  const path = join(folder(t), 'upstreams.yaml')
  if (content !== null) writeFileSync(path, content)
  const made = await harness(t, { shop: { file: { path, pollMs: 100 }, ...rest } })
  await made.app.ready()
  return { ...made, path, view: () => made.app.discovery.view()[0]!, has: (...ports: number[]) => until(() => made.ids().join() === idsOf(...ports), { what: idsOf(...ports) }) }
}

test('the list is there when the app is ready, with all that a pool\'s upstream may say', async (t) => {
  const { pools, path, view } = await setup(t, `
- { url: "http://10.0.0.2:80", weight: 5, priority: 1, maxInFlight: 7, health: { path: /up } }
- url: https://10.0.0.1/base
- url: unix:/run/shop.sock
  weight: 0
`)
  assert.deepEqual(pools.given.get('shop'), [
    { url: 'unix:/run/shop.sock', weight: 0, priority: 0 },
    { url: 'https://10.0.0.1/base', weight: 1, priority: 0 },
    { url: 'http://10.0.0.2:80', weight: 5, priority: 1, maxInFlight: 7, health: { path: '/up' } }
  ])
  const { kind, from, stale, lastError, nextAt } = view()
  assert.deepEqual({ kind, from, stale, lastError, nextAt }, { kind: 'file', from: path, stale: false, lastError: null, nextAt: null })
})

test('JSON is a list, too', async (t) => {
  const { ids } = await setup(t, JSON.stringify([{ url: 'http://10.0.0.1:1' }]))
  assert.deepEqual(ids(), ['10.0.0.1:1'])
})

test('a file renamed over, written in place, and a symlink that is swapped all change the members', async (t) => {
  const { path, has, events } = await setup(t, listOf(1))
  writeFileSync(path, listOf(1, 2))
  await has(1, 2)
  writeFileSync(`${path}.new`, listOf(2, 3))
  renameSync(`${path}.new`, path)
  await has(2, 3)
  mkdirSync(`${path}.d`)
  writeFileSync(join(`${path}.d`, 'list'), listOf(4))
  symlinkSync(join(`${path}.d`, 'list'), `${path}.link`)
  renameSync(`${path}.link`, path)
  await has(4)
  assert.deepEqual(events.map(({ type }) => type), Array.from({ length: 4 }, () => 'discovery_changed'))
})

for (const [what, content, message] of [
  ['garbage', '{[', /line 1/],
  ['no list', 'url: http://10.0.0.1:1', /must be a list of upstreams/],
  ['no text', Buffer.from([0xff, 0xfe, 0x00]), /must be UTF-8/],
  ['two mistakes, which are both told', '- { url: "http://10.0.0.1:1", wieght: 2 }\n- url: ftp://x\n', /\[0\]\.wieght: .*\[1\]\.url: /s],
  ['one upstream twice', listOf(1, 1), /\[1\]\.url: is the same upstream \(10\.0\.0\.1:1\) as \[0\]\.url/],
  ['nothing', '', /gives no upstreams/],
  ['an empty list', '[]', /gives no upstreams/]
] as const) {
  test(`a file with ${what} changes nothing, is told once, and a good one helps`, async (t) => {
    const { path, log, ids, has, types, view } = await setup(t, listOf(1, 2))
    writeFileSync(path, content)
    const line = await log.waitFor('discovery_failed')
    assert.match(String(line['error']), message)
    assert.deepEqual([ids().join(), line['keeping'], view().stale, view().lastError?.message], [idsOf(1, 2), 2, true, line['error']])
    writeFileSync(path, listOf(3))
    await has(3)
    await log.waitFor('discovery_recovered')
    assert.deepEqual([types().toSorted(), view().stale], [['discovery_changed', 'discovery_changed', 'discovery_failed', 'discovery_recovered'], false])
  })
}

test('half a file that is made whole at once is never told of', async (t) => {
  const { path, has, types } = await setup(t, listOf(1))
  writeFileSync(path, '- url: [half')
  // Long enough to be met, not long enough to count as wrong.
  const writer = setTimeout(() => { writeFileSync(path, listOf(1, 2)) }, 60)
  t.after(() => { clearTimeout(writer) })
  await has(1, 2)
  assert.ok(types().every((type, index, all) => type === 'discovery_changed' || all.includes('discovery_recovered')), types().join())
})

test('a file that is gone keeps the members, and back with the same list all is well', async (t) => {
  const { path, log, ids, types, view } = await setup(t, listOf(1))
  unlinkSync(path)
  const { error } = await log.waitFor('discovery_failed')
  assert.match(String(error), /ENOENT/)
  assert.equal(ids().join(), idsOf(1))
  writeFileSync(path, listOf(1))
  await log.waitFor('discovery_recovered')
  assert.deepEqual([types(), view().stale], [['discovery_changed', 'discovery_failed', 'discovery_recovered'], false])
})

test('a file that comes later is used when it comes', async (t) => {
  const { path, log, has, view } = await setup(t, null)
  assert.deepEqual([log.all('discovery_failed').length, view().lastSuccess, view().stale], [1, null, true])
  writeFileSync(path, listOf(1))
  await has(1)
})

test('keep: false takes an empty list at its word, and drops the members of a file that is gone', async (t) => {
  const { path, log, has, ids } = await setup(t, listOf(1), { keep: false })
  writeFileSync(path, '[]')
  await until(() => ids().length === 0)
  assert.equal(log.find('discovery_failed'), undefined)
  writeFileSync(path, listOf(2))
  await has(2)
  unlinkSync(path)
  await until(() => ids().length === 0)
  await log.waitFor('discovery_failed')
})

test('the view is as fresh as the last look, though nothing changes', async (t) => {
  const { view, events } = await setup(t, listOf(1))
  const { lastSuccess } = view()
  await until(() => view().lastSuccess! > lastSuccess!)
  assert.equal(events.length, 1)
})

test('refresh looks at once', async (t) => {
  const path = join(folder(t), 'upstreams.yaml')
  const real = join(folder(t), 'real.yaml')
  writeFileSync(real, listOf(1))
  symlinkSync(real, path)
  const { app, ids } = await harness(t, { shop: { file: { path, pollMs: 3_600_000 } } })
  await app.ready()
  writeFileSync(real, listOf(2))
  app.discovery.refresh('shop')
  await until(() => ids().join() === idsOf(2))
})
