import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import breakerRegistry from '../../plugins/breaker-registry.ts'
import eventJournal, { type JournalEvent } from '../../plugins/event-journal.ts'
import healthPolling from '../../plugins/health-polling.ts'
import upstreamPools from '../../plugins/upstream-pools.ts'
import { closedPort } from '../support/ports.ts'

async function appWith (t: TestContext, capacity?: number): Promise<{ app: FastifyInstance, lines: Array<Record<string, unknown>> }> {
  const lines: Array<Record<string, unknown>> = []
  const app = Fastify({ logger: { stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } } })
  t.after(() => app.close())
  await app.register(eventJournal, capacity === undefined ? {} : { capacity })
  return { app, lines }
}

test('an event is kept with its time, told to the listeners, and frozen', async (t) => {
  const { app } = await appWith(t)
  const told: JournalEvent[] = []
  const leave = app.events.subscribe((event) => { told.push(event) })
  const before = Date.now()
  const event = app.events.record('config_reloaded', { version: 2 })
  assert.ok(Object.isFrozen(event))
  assert.ok(Date.parse(event.at) >= before && Date.parse(event.at) <= Date.now())
  assert.deepEqual(told, [{ seq: 1, at: event.at, type: 'config_reloaded', version: 2 }])
  assert.deepEqual(app.events.since(0), { events: told, firstSeq: 1, lastSeq: 1 })
  leave()
  app.events.record('other')
  assert.equal(told.length, 1)
  assert.equal(app.events.lastSeq, 2)
})

test('a listener that fails, at once or later, is logged and harms nobody', async (t) => {
  const { app, lines } = await appWith(t)
  const told: number[] = []
  app.events.subscribe(() => { throw new Error('at once') })
  app.events.subscribe(async () => { throw new Error('later') })
  app.events.subscribe(({ seq }) => { told.push(seq) })
  app.events.record('a')
  await new Promise(setImmediate)
  assert.deepEqual(told, [1])
  assert.deepEqual(lines.filter(({ msg, source }) => msg === 'listener_failed' && source === 'event-journal').map(({ err }) => (err as Error).message).toSorted(), ['at once', 'later'])
})

test('an event that a listener records is told after the one that it heard of', async (t) => {
  const { app } = await appWith(t)
  const told: string[] = []
  app.events.subscribe(({ type }) => { if (type === 'a') app.events.record('b') })
  app.events.subscribe(({ type }) => { told.push(type) })
  app.events.record('a')
  assert.deepEqual(told, ['a', 'b'])
})

test('it is bounded, and says what is lost', async (t) => {
  const { app } = await appWith(t, 3)
  for (let index = 0; index < 10; index++) app.events.record('x')
  const { events, firstSeq } = app.events.since(2)
  assert.deepEqual([events.length, firstSeq], [3, 8])
})

for (const order of ['before', 'after'] as const) {
  test(`breaker transitions and health changes go in by themselves, registered ${order} the journal`, async (t) => {
    const port = await closedPort(t)
    const app = Fastify()
    t.after(() => app.close())
    const sources = async (): Promise<void> => {
      await app.register(upstreamPools, { pools: { shop: { upstreams: [`http://127.0.0.1:${port}`], health: { initial: 'healthy', intervalMs: 60000 } } } })
      await app.register(breakerRegistry)
      await app.register(healthPolling)
    }
    if (order === 'before') await sources()
    await app.register(eventJournal)
    if (order === 'after') await sources()
    await app.ready()

    const id = `127.0.0.1:${port}`
    app.breakers.get('shop', id).force('open', 60000, 'a drill')
    await app.health.checkNow('shop', id)
    const [transition, change, ...others] = app.events.since(0).events
    assert.deepEqual(others, [])
    assert.equal(typeof transition?.at, 'string')
    assert.deepEqual({ ...transition, at: 0, generation: 0, evidence: 0 }, {
      seq: 1, at: 0, type: 'breaker_transition', pool: 'shop', upstream: id, from: 'closed', to: 'open', cause: 'forced', mode: 'enforce', generation: 0, evidence: 0, failure: null, openForMs: 60000, reason: 'a drill', requests: [], explanation: 'Forced open for 60 s (a drill).'
    })
    assert.deepEqual({ ...change, at: 0 }, { seq: 2, at: 0, type: 'health_changed', pool: 'shop', upstream: id, healthy: false, cause: 'connect_refused' })
    assert.equal(change?.at, app.health.get('shop', id)?.since)
  })
}
