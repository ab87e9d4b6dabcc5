import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, send, stall } from '../../support/faulty-upstream.ts'
import type { Gateway } from '../../support/gateway.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { head, startBoth } from '../edge/support.ts'

const get = head('GET /a HTTP/1.1', 'Host: shop')
const off = { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0, maxHeapUsedBytes: 0, maxRssBytes: 0 }
const holding: Parameters<typeof startBoth>[2] = (socket, { target }) => target === '/hold' ? stall(socket) : send(socket, answer({ body: 'hello' }))

/** Keeps the event loop busy for most of the time until it is stopped. */
function keepBusy (): () => void {
  const timer = setInterval(() => {
    const end = performance.now() + 90
    while (performance.now() < end) { /* the event loop stands still */ }
  }, 1)
  return () => { clearInterval(timer) }
}

async function underPressure (gateway: Gateway, expected: boolean): Promise<void> {
  await until(() => gateway.app.shedding.view().pressure.under === expected, { timeoutMs: 15000, intervalMs: 50, what: `pressure: ${expected}` })
}

test('an event loop that is late is noticed, refused for, and forgiven when it is over', async (t) => {
  const gateway = await startBoth(t, { shedding: { pressure: { ...off, maxEventLoopDelayMs: 20 } } })
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  const stop = keepBusy()
  try {
    await underPressure(gateway, true)
    const refused = await rawRequest(gateway.port, get)
    assert.deepEqual([refused.status, (refused.json() as { reason: string }).reason, refused.header('connection')], [503, 'shed_pressure', 'keep-alive'])
    assert.match(refused.header('retry-after') ?? '', /^[12]$/)
    for (const path of ['/livez', '/readyz']) assert.equal((await rawRequest(gateway.port, head(`GET ${path} HTTP/1.1`, 'Host: shop'))).status, 204)
  } finally {
    stop()
  }
  await underPressure(gateway, false)
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  assert.deepEqual(gateway.app.shedding.view().shed, { shed_capacity: 0, shed_pressure: 1, shed_priority: 0 })
})

test('a loop that is busy but on time refuses only what would pile up, and nothing once it is idle again', async (t) => {
  const gateway = await startBoth(t, { shedding: { maxInFlight: 16, pressure: { ...off, maxEventLoopUtilization: 0.5 } } }, holding)
  const stop = keepBusy()
  try {
    await underPressure(gateway, true)
    assert.equal((await rawRequest(gateway.port, get)).status, 200)
    const held = await Promise.all([rawConnect(gateway.port), rawConnect(gateway.port)])
    for (const client of held) {
      t.after(() => client.destroy())
      await client.write(head('GET /hold HTTP/1.1', 'Host: shop'))
    }
    await until(() => gateway.app.shedding.view().inFlight === 2)
    const refused = await rawRequest(gateway.port, get)
    assert.deepEqual([refused.status, (refused.json() as { reason: string }).reason], [503, 'shed_pressure'])
  } finally {
    stop()
  }
  // The share of the last second counts, not that of the process's whole life.
  await underPressure(gateway, false)
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
})

for (const limit of ['maxHeapUsedBytes', 'maxRssBytes'] as const) {
  test(`memory over ${limit} is refused for`, async (t) => {
    const gateway = await startBoth(t, { shedding: { pressure: { ...off, [limit]: 1000 } } })
    await underPressure(gateway, true)
    const refused = await rawRequest(gateway.port, get)
    assert.deepEqual([refused.status, (refused.json() as { reason: string }).reason], [503, 'shed_pressure'])
  })
}

test('with every limit at 0 nothing of all that is refused', async (t) => {
  const gateway = await startBoth(t, { shedding: { pressure: off } })
  const stop = keepBusy()
  try {
    const end = performance.now() + 2500
    while (performance.now() < end) {
      assert.equal((await rawRequest(gateway.port, get, { timeoutMs: 10000 })).status, 200)
      assert.equal(gateway.app.shedding.view().pressure.under, false)
    }
  } finally {
    stop()
  }
})

test('a system that cannot tell how much memory is used does not end the process', async (t) => {
  const { memoryUsage } = process
  let broken = false
  let asked = 0
  process.memoryUsage = Object.assign(() => {
    if (!broken) return memoryUsage()
    asked++
    throw Object.assign(new Error('EMFILE: too many open files, uv_resident_set_memory'), { code: 'ERR_SYSTEM_ERROR' })
  }, { rss: memoryUsage.rss })
  t.after(() => { process.memoryUsage = memoryUsage })
  const gateway = await startBoth(t, { shedding: { pressure: { ...off, maxHeapUsedBytes: 1e12 } } })
  broken = true
  await until(() => asked >= 2, { timeoutMs: 10000 })
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  await gateway.close()
  assert.notEqual(process.memoryUsage, memoryUsage)
  broken = false
})
