import assert from 'node:assert/strict'
import { test } from 'node:test'
import { accessLines } from '../edge/support.ts'
import { startRouted } from './support.ts'

test('a canary has its share of the clients, each of whom stays with its pool', async (t) => {
  const gateway = await startRouted(t, ['stable', 'canary'], [{ path: '/*', split: { pools: { stable: 70, canary: 30 } } }], { server: { trustedProxies: ['127.0.0.1'] } })
  const clients = [...Array(100).keys()]
  /** The pool of each client, asked a few at a time. */
  const poolsOf = async (): Promise<string[]> => {
    const pools: string[] = []
    for (let from = 0; from < clients.length; from += 20) {
      const answers = clients.slice(from, from + 20).map((client) => gateway.ask('GET /', `X-Forwarded-For: 10.0.0.${client}`))
      for (const answer of await Promise.all(answers)) pools.push(answer.text())
    }
    return pools
  }
  const first = await poolsOf()
  assert.deepEqual(await poolsOf(), first)
  const canary = first.filter((pool) => pool === 'canary').length
  // The clients are the same ones in each run, so the number is as well.
  assert.ok(canary >= 20 && canary <= 40, `${canary} of 100`)
  const lines = await accessLines(gateway, 200)
  assert.equal(lines.filter(({ pool, route }) => pool === 'canary' && route === '/*').length, 2 * canary)

  gateway.app.routeTable.swap([{ path: '/*', split: { pools: { stable: 50, canary: 50 } } }])
  const raised = await poolsOf()
  assert.ok(raised.every((pool, client) => pool === first[client] || pool === 'canary'), 'nobody leaves the canary')
  assert.ok(raised.filter((pool) => pool === 'canary').length > canary)
})

test('a cookie keeps its clients wherever they come from, and a header lets them choose', async (t) => {
  const gateway = await startRouted(t, ['stable', 'canary'], [
    { path: '/*', split: { pools: { stable: 50, canary: 50 }, by: 'cookie', name: 'session', overrideHeader: 'X-Release' } }
  ], { server: { trustedProxies: ['127.0.0.1'] } })
  const pools = new Set<string>()
  for (let session = 0; session < 20; session++) {
    const asked = await Promise.all(['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((client) => gateway.ask('GET /', `X-Forwarded-For: ${client}`, `Cookie: a=b; session=${session}`)))
    const seen = new Set(asked.map((response) => response.text()))
    assert.equal(seen.size, 1, `session ${session}`)
    for (const pool of seen) pools.add(pool)
    for (const release of ['stable', 'canary']) assert.equal((await gateway.ask('GET /', `Cookie: session=${session}`, `X-Release: ${release}`)).text(), release)
  }
  assert.equal(pools.size, 2)
  assert.equal((await gateway.ask('GET /', 'X-Release: nobody')).status, 200)
})
