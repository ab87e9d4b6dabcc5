/** Discovery over the real pools. */
import assert from 'node:assert/strict'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { rootCertificates } from 'node:tls'
import Fastify, { type FastifyInstance } from 'fastify'
import discovery from '../../../plugins/discovery.ts'
import healthPolling from '../../../plugins/health-polling.ts'
import upstreamPools, { type PoolInput } from '../../../plugins/upstream-pools.ts'
import { lines, type LineCollector } from '../../support/collect.ts'
import { until } from '../../support/wait.ts'
import { folder } from './fixtures.ts'
import { at, idsOf, Played } from './played.ts'

const off = { health: { enabled: false } }

async function appWith (t: TestContext, pools: Record<string, PoolInput>, health = false): Promise<{ app: FastifyInstance, log: LineCollector, mine: Played }> {
  const log = lines()
  const app = Fastify({ logger: { level: 'info', stream: log } }) as unknown as FastifyInstance
  t.after(() => app.close())
  await app.register(upstreamPools, { pools, random: () => 0 })
  if (health) await app.register(healthPolling)
  await app.register(discovery, { readyMs: 0 })
  const mine = new Played()
  app.discovery.provide('mine', mine)
  await app.ready()
  return { app, log, mine }
}

/** The share of its part in the traffic that each upstream has at `now`. */
function shares (app: FastifyInstance, now: number): number[] {
  app.pools.lane('shop')!.sweep(now)
  return app.pools.get('shop')!.upstreams.map(({ share }) => share)
}

test('the members that come first to an empty pool begin with their full share, and those that come later slowly', async (t) => {
  const { app, mine } = await appWith(t, { shop: { discovery: { source: 'mine' }, balancer: 'weighted', slowStart: { ms: 60000, minimumShare: 0.1, aggression: 1 }, ...off } })
  const now = performance.now()
  assert.deepEqual(shares(app, now), [])
  mine.report(at(1, 2))
  assert.deepEqual(shares(app, now), [1, 1])
  mine.report(at(1, 2, 3))
  assert.deepEqual(shares(app, now), [1, 1, 0.1])
})

test('a certificate that cannot be read harms nobody: neither when the list changes nor when it goes', async (t) => {
  const path = folder(t)
  const [ca, away, file] = ['ca.pem', 'away.pem', 'list.yaml'].map((name) => join(path, name)) as [string, string, string]
  writeFileSync(ca, rootCertificates[0]!)
  writeFileSync(file, '- url: https://10.0.0.1:1\n')
  const { app, log } = await appWith(t, { shop: { upstreams: ['https://10.0.0.9:1'], tls: { ca }, discovery: { file: { path: file, pollMs: 100 }, keep: false }, ...off } })
  const ids = (): string => app.pools.get('shop')!.upstreams.map(({ id }) => id).join()
  await until(() => ids() === '10.0.0.9:1,10.0.0.1:1')
  renameSync(ca, away)
  writeFileSync(file, '- url: https://10.0.0.2:1\n')
  await until(() => ids() === '10.0.0.9:1,10.0.0.2:1' || log.find('discovery_refused') !== undefined)
  rmSync(file)
  await log.waitFor('discovery_failed')
  renameSync(away, ca)
  writeFileSync(file, '- url: https://10.0.0.3:1\n')
  await until(() => ids() === '10.0.0.9:1,10.0.0.3:1')
  assert.equal(app.discovery.view()[0]!.stale, false)
})

test('a sync where nothing has changed tells nobody, and checks nobody anew', async (t) => {
  const pool = { discovery: { source: 'mine' }, health: { intervalMs: 60000 } }
  const { app, mine } = await appWith(t, { a: pool, b: pool, c: pool }, true)
  mine.report(at(1, 2))
  const snapshots = app.pools.list()
  const events: string[] = []
  app.pools.on('event', ({ type }) => { events.push(type) })
  app.discovery.on('change', ({ type }) => { events.push(type) })
  const { sync } = app.health
  let syncs = 0
  app.health.sync = (name) => {
    syncs++
    sync(name)
  }
  app.discovery.sync()
  assert.deepEqual([events, syncs], [[], 0])
  assert.ok(app.pools.list().every((each, index) => each === snapshots[index]))
  assert.deepEqual(app.health.list().map(({ pool: name, upstream }) => `${name} ${upstream}`), ['a', 'b', 'c'].flatMap((name) => idsOf(1, 2).map((id) => `${name} ${id}`)))
})
