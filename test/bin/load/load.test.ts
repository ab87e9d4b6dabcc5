import { test, type TestContext } from 'node:test'
import assert from 'node:assert/strict'
import { startLoad, type LoadOptions, type LoadResult } from '../../../bin/load/load.ts'
import { steadyPorts } from '../../../bench/drills/ports.ts'
import { answer, rawUpstream, send, type RawHandler, type RawUpstream } from '../../support/faulty-upstream.ts'
import { until } from '../../support/wait.ts'

const options: Omit<LoadOptions, 'port'> = { rate: 200, seconds: 0.25, seed: 1, method: 'GET', path: '/', bodyBytes: 0, maxOpen: 100, patienceMs: 5000, prefix: 'r' }

async function loadOn (t: TestContext, handler: RawHandler, changes: Partial<LoadOptions> = {}): Promise<{ upstream: RawUpstream, result: LoadResult }> {
  const upstream = await rawUpstream(handler)
  t.after(() => upstream.close())
  const load = await startLoad({ ...options, port: upstream.port, ...changes })
  return { upstream, result: await load.result }
}

const ok: RawHandler = socket => send(socket, answer({ body: 'ok' }))

test('each request is sent once, under an id of its own, and its answer is told', async t => {
  const { upstream, result } = await loadOn(t, ok)
  assert.deepEqual(result.samples.map(({ id, status, failure }) => ({ id, status, failure })), Array.from({ length: 50 }, (_, i) => ({ id: `r${i}`, status: 200, failure: '' })))
  assert.deepEqual(upstream.requests.map(request => request.header('x-drill-id')).toSorted(), result.samples.map(({ id }) => id).toSorted())
})

test('POSTs carry a body of the size that was asked for', async t => {
  const lengths: number[] = []
  const { result } = await loadOn(t, async (socket, request) => {
    lengths.push((await request.body()).body.length)
    await send(socket, answer())
  }, { method: 'POST', bodyBytes: 70_000, rate: 40 })
  assert.deepEqual(lengths, result.samples.map(() => 70_000))
})

test('the loop is open: while nothing is answered, requests go on, and their time counts from when they were due', async t => {
  let release = (): void => {}
  const released = new Promise<void>(resolve => { release = resolve })
  const upstream = await rawUpstream(async socket => {
    await released
    await send(socket, answer())
  })
  t.after(() => upstream.close())
  const load = await startLoad({ ...options, port: upstream.port })
  await until(() => upstream.requests.length === 50, { what: 'all requests at the same time' })
  release()
  const { samples } = await load.result
  const ends = samples.map(({ at, ms }) => at + ms)
  for (const end of ends) assert.ok(end >= (samples.at(-1)?.at ?? 0), `an answer at ${end} ms`)
})

test('what is over the bound is not sent, what is not answered is given up', async t => {
  const { upstream, result } = await loadOn(t, () => new Promise(() => {}), { maxOpen: 5, patienceMs: 2000 })
  assert.equal(upstream.requests.length, 5)
  assert.deepEqual(result.samples.map(({ failure }) => failure), [...Array.from({ length: 5 }, () => 'timeout'), ...Array.from({ length: 45 }, () => 'unsent')])
})

test('it can be stopped at any time', async t => {
  const upstream = await rawUpstream(ok)
  t.after(() => upstream.close())
  const load = await startLoad({ ...options, port: upstream.port, seconds: 3600 })
  await until(() => upstream.requests.length > 10)
  load.stop()
  const { samples } = await load.result
  assert.ok(samples.every(({ status }) => status === 200))
})

test('steady ports are different each time', async () => {
  const ports = [...await steadyPorts(20), ...await steadyPorts(20)]
  assert.equal(new Set(ports).size, 40)
})
