import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Observer } from '../../plugins/observation.ts'
import { answer, reset, send } from '../support/faulty-upstream.ts'
import { rawRequest } from '../support/raw-client.ts'
import { until } from '../support/wait.ts'
import { head, startBoth } from '../e2e/edge/support.ts'
import { named, row } from '../e2e/retries/support.ts'

const get = (path: string): string => head(`GET ${path} HTTP/1.1`, 'Host: shop')

/** Writes down what it is told, a word for each call. */
function notes (): { told: string[], observer: Observer } {
  const told: string[] = []
  return {
    told,
    observer: {
      exchangeBegun: ({ url }) => { told.push(`begun ${url}`) },
      exchangeEnded: ({ url, exchange }, _reply, { status }) => { told.push(`ended ${url} ${status} ${exchange.reason ?? '-'}`) },
      unparsed: ({ reason }) => { told.push(`unparsed ${reason}`) },
      pickRefused: (_exchange, { pool }, reason) => { told.push(`refused ${pool.name} ${reason}`) },
      attemptBegun: (exchange, { upstream, kind }) => { told.push(`attempt ${upstream.pool} ${exchange?.attempts ?? '-'} ${kind}`) },
      attemptEnded: (_exchange, { outcome, status, reason }) => { told.push(`attempt ended ${outcome} ${status} ${reason ?? '-'}`) }
    }
  }
}

test('each request, each attempt and each refusal is told once, in its order', async (t) => {
  const gateway = await startBoth(t, {}, (socket, { target }) => target === '/cut' ? reset(socket) : send(socket, answer({ status: target === '/bad' ? 500 : 200, body: 'x' })))
  const { told, observer } = notes()
  gateway.app.observers.add(observer)
  for (const [path, expected] of [
    ['/good', ['begun /good', 'attempt shop 1 first', 'attempt ended success 200 -', 'ended /good 200 -']],
    ['/bad', ['begun /bad', 'attempt shop 1 first', 'attempt ended failure 500 -', 'ended /bad 500 -']],
    ['/cut', ['begun /cut', 'attempt shop 1 first', 'attempt ended failure 0 connection_reset', 'ended /cut 502 connection_reset']],
    ['/a/../b', ['begun /a/../b', 'ended /a/../b 400 bad_request']]
  ] as const) {
    told.length = 0
    await rawRequest(gateway.port, get(path))
    await until(() => told.some((line) => line.startsWith('ended')), { what: `the end of ${path}` })
    assert.deepEqual(told, expected)
  }
  told.length = 0
  await rawRequest(gateway.port, 'NONSENSE\r\n\r\n')
  assert.deepEqual(told, ['unparsed bad_request'])
  told.length = 0
  gateway.app.breakers.get('shop', gateway.app.pools.get('shop')!.upstreams[0]!.id)?.force('open', 60000, 'test')
  await rawRequest(gateway.port, get('/good'))
  await until(() => told.length === 3, { what: 'the refusal' })
  assert.deepEqual(told, ['begun /good', 'refused shop breaker_open', 'ended /good 503 breaker_open'])
})

test('probes are told to nobody', async (t) => {
  const gateway = await startBoth(t)
  const { told, observer } = notes()
  gateway.app.observers.add(observer)
  await rawRequest(gateway.port, get('/livez'))
  await rawRequest(gateway.port, get('/x'))
  await until(() => told.some((line) => line.startsWith('ended')), { what: 'the end' })
  assert.ok(told.every((line) => !line.includes('livez')), told.join())
})

test('an observer that throws harms nobody, and one that has left is told nothing', async (t) => {
  const gateway = await startBoth(t)
  const broken = gateway.app.observers.add({ exchangeBegun: () => { throw new Error('mine') }, attemptEnded: () => { throw new Error('mine') } })
  const { told, observer } = notes()
  const leave = gateway.app.observers.add(observer)
  assert.equal((await rawRequest(gateway.port, get('/x'))).status, 200)
  await until(() => told.length === 4, { what: 'the end' })
  broken()
  leave()
  assert.equal((await rawRequest(gateway.port, get('/x'))).status, 200)
  assert.equal(told.length, 4)
})

test('an attempt says what it is: the first one, one after a failure, a copy', async (t) => {
  const retried = await row(t, [named('bad', 503), named('good')], { pools: { shadow: { health: { enabled: false }, upstreams: [{ url: 'http://127.0.0.1:9' }] } }, routes: [{ path: '/*', pool: 'shop', mirror: { pool: 'shadow' } }] })
  const { told, observer } = notes()
  retried.gateway.app.observers.add(observer)
  await rawRequest(retried.gateway.port, get('/x'))
  await retried.gateway.idle()
  assert.deepEqual(told.filter((line) => !line.includes('ended')), ['begun /x', 'attempt shop 1 first', 'attempt shadow - copy', 'attempt shop 2 retry'])
})
