/** What becomes of a list that the pool cannot take, and that nothing of it is thrown at the source. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { DiscoveryOptions } from '../../../config/schema.ts'
import { harness, type Harness } from './fixtures.ts'
import { at, idsOf, Played } from './played.ts'

type Setup = Harness & { mine: Played }

/** A pool that follows a source of the test's. */
async function setup (t: TestContext, options: Partial<DiscoveryOptions> = {}): Promise<Setup> {
  const made = await harness(t, { shop: { source: 'mine', ...options } }, { readyMs: 0 })
  const mine = new Played()
  made.app.discovery.provide('mine', mine)
  await made.app.ready()
  return { ...made, mine }
}

const view = ({ app }: Setup) => app.discovery.view()[0]!
const gone = new Error('the certificate is gone')

for (const keep of [true, false]) {
  test(`keep: ${keep}: a list that the pool refuses is told once, is no failure of the source, and is tried again`, async (t) => {
    const made = await setup(t, { keep })
    const { ids, pools, log, mine, types } = made
    mine.report(at(1))
    pools.refuses = gone
    mine.report(at(2))
    mine.report(at(2))
    const { error, keeping, level } = log.find('discovery_refused')!
    assert.deepEqual({ error, keeping, level }, { error: gone.message, keeping: 1, level: 50 })
    const { members, stale, lastError, lastSuccess } = view(made)
    assert.deepEqual([ids(), members, stale, lastError?.message], [idsOf(1), idsOf(1), true, gone.message])
    assert.notEqual(lastSuccess, null)
    pools.refuses = null
    mine.report(at(2))
    assert.deepEqual([ids(), view(made).members, view(made).stale, view(made).lastError], [idsOf(2), idsOf(2), false, null])
    assert.deepEqual(types(), ['discovery_changed', 'discovery_refused', 'discovery_changed', 'discovery_recovered'])
  })
}

test('what the pool refused is tried again at a refresh, at a sync, and when the source fails', async (t) => {
  const made = await setup(t)
  const { app, ids, pools, mine } = made
  const occasions = [() => app.discovery.refresh('shop'), () => app.discovery.sync(), () => mine.fail(new Error('no registry'))]
  for (const [index, occasion] of occasions.entries()) {
    pools.refuses = gone
    mine.report(at(index + 1))
    occasion()
    assert.equal(view(made).lastError?.message, gone.message)
    pools.refuses = null
    occasion()
    assert.deepEqual(ids(), idsOf(index + 1))
  }
  assert.deepEqual([view(made).lastError?.message, mine.calls], ['no registry', ['start', 'refresh', 'refresh']])
})

test('keep: false: a pool that cannot give its members up keeps them until it can, and the source hears nothing of it', async (t) => {
  const made = await setup(t, { keep: false })
  const { app, ids, pools, mine, types } = made
  mine.report(at(1))
  pools.refuses = gone
  mine.fail(new Error('no registry'))
  assert.deepEqual([ids(), view(made).members, view(made).lastError?.message], [idsOf(1), idsOf(1), gone.message])
  pools.refuses = null
  app.discovery.refresh('shop')
  assert.deepEqual([ids(), view(made).members, view(made).lastError?.message], [[], [], 'no registry'])
  mine.report(at(1))
  assert.deepEqual(types(), ['discovery_changed', 'discovery_failed', 'discovery_refused', 'discovery_changed', 'discovery_changed', 'discovery_recovered'])
})

test('a source that takes back what the pool refused is all well again, and nobody came or went', async (t) => {
  const made = await setup(t)
  const { pools, mine, types } = made
  mine.report(at(1))
  pools.refuses = gone
  mine.report(at(2))
  pools.refuses = null
  mine.report(at(1))
  assert.deepEqual([view(made).stale, types()], [false, ['discovery_changed', 'discovery_refused', 'discovery_recovered']])
})

test('a pool that refuses its members at a sync is told, has them with the next word, and the sync goes on', async (t) => {
  const { app, pools, log, ids } = await harness(t, { plain: { source: 'mine' }, shop: { source: 'mine' } }, { readyMs: 0 })
  const mine = new Played()
  app.discovery.provide('mine', mine)
  await app.ready()
  mine.report(at(1))
  pools.refuses = gone
  pools.define('plain')
  app.discovery.sync()
  assert.deepEqual([log.all('discovery_forget_failed').length, log.find('discovery_refused')!['error']], [1, gone.message])
  pools.refuses = null
  pools.members.clear()
  mine.report(at(1))
  assert.deepEqual([ids('shop'), app.discovery.view().map(({ pool, stale }) => [pool, stale])], [idsOf(1), [['shop', false]]])
})

test('a pool that is gone is told as a refusal', async (t) => {
  for (const keep of [true, false]) {
    const made = await setup(t, { keep })
    made.mine.report(at(1))
    made.pools.pools.clear()
    made.mine.report(at(2))
    made.mine.fail(new Error('no registry'))
    assert.equal(view(made).lastError?.message, 'no pool shop')
  }
})

test('whatever a source gives as its error is a failure, and nothing is thrown at it', async (t) => {
  for (const reason of [undefined, null, 7, Symbol('x'), Object.create(null), { get message () { throw new Error('worse') } }, 'no registry']) {
    const made = await setup(t, { keep: false })
    made.mine.report(at(1))
    made.mine.fail(reason as Error)
    assert.deepEqual([made.ids(), view(made).lastError?.message], [[], reason === 'no registry' ? reason : 'no reason is given'])
    made.mine.report(at(1), reason as Error)
    assert.deepEqual(made.ids(), idsOf(1))
  }
})

test('a source that throws at a refresh has failed, and its time of the next look may be none', async (t) => {
  const made = await setup(t)
  made.mine.refresh = () => { throw new Error('no registry') }
  made.mine.nextAt = Infinity
  assert.equal(made.app.discovery.refresh('shop'), true)
  assert.deepEqual([view(made).lastError?.message, view(made).nextAt], ['no registry', null])
})

test('a listener that brings the source to say more while a list is told leaves the pool with the last one', async (t) => {
  const made = await setup(t)
  const { app, ids, mine, types } = made
  app.discovery.on('change', ({ type }) => { if (type === 'discovery_changed' && ids().length === 1) mine.report(at(2, 3)) })
  mine.report(at(1))
  assert.deepEqual([ids(), view(made).members, types()], [idsOf(2, 3), idsOf(2, 3), ['discovery_changed', 'discovery_changed']])
})

test('that a list is cut is told once, after it was taken, whatever a listener has the source say', async (t) => {
  const { app, ids, mine, types } = await setup(t)
  const many = at(...Array.from({ length: 300 }, (_, port) => port + 1))
  const seen: number[] = []
  app.discovery.on('change', ({ type }) => {
    if (type !== 'discovery_cut') return
    seen.push(ids().length)
    mine.report(many)
  })
  mine.report(many)
  assert.deepEqual([types(), seen], [['discovery_changed', 'discovery_cut'], [256]])
})
