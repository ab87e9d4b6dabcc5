import assert from 'node:assert/strict'
import { test } from 'node:test'
import { demoPhases, startDemoUpstreams } from '../../bin/demo.ts'
import { rawConnect, rawRequest } from '../support/raw-client.ts'
import { until } from '../support/wait.ts'

const get = (path = '/') => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const portOf = (url: string | undefined): number => Number(new URL(url ?? '').port)

test('the demo has two steady upstreams and one that goes bad and recovers, in good health all the while', async t => {
  const demo = await startDemoUpstreams([
    { forMs: 200, faults: { failRatio: 0, hang: false } },
    { forMs: 200, faults: { failRatio: 1, hang: false } },
    { forMs: 200, faults: { failRatio: 0, hang: true } }
  ])
  t.after(() => demo.close())
  const [quick, steady, moody] = demo.urls.map(portOf)
  assert.ok(quick !== undefined && steady !== undefined && moody !== undefined && demo.urls.length === 3)
  const seen = new Set<string>()
  await until(async () => {
    const { status, ended } = await rawRequest(moody, get(), { timeoutMs: 100 })
    seen.add(ended === 'timeout' ? 'silence' : String(status))
    assert.equal((await rawRequest(moody, get('/healthz'))).status, 200)
    assert.equal((await rawRequest(quick, get())).status, 200)
    assert.equal((await rawRequest(steady, get())).status, 200)
    return seen.size === 3
  }, { what: 'answers, failures and silence from the moody upstream', timeoutMs: 10_000 })
  assert.deepEqual([...seen].toSorted(), ['200', '500', 'silence'])
})

test('as shipped it is bad for 15 of every 45 seconds, first within the first minute', () => {
  let at = 0
  const bad: Array<[from: number, to: number]> = []
  for (const { forMs, faults } of demoPhases) {
    if (faults.failRatio === 1 || faults.hang === true) bad.push([at, at + forMs])
    at += forMs
  }
  assert.deepEqual([bad, at], [[[10_000, 25_000], [55_000, 70_000]], 90_000])
})

test('closing the demo leaves nothing open', async () => {
  const demo = await startDemoUpstreams()
  const clients = await Promise.all(demo.urls.map(url => rawConnect(portOf(url))))
  await demo.close()
  await Promise.all(clients.map(client => client.closed))
  await assert.rejects(rawConnect(portOf(demo.urls[0])), { code: 'ECONNREFUSED' })
})
