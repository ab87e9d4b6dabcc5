import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../../lib/random.ts'
import { answer, rawUpstream, reset, send, stall } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { request } from '../forwarder/support.ts'

const random = seededRandom(20)
const pick = <T> (list: readonly T[]): T => list[Math.floor(random() * list.length)] as T

test('whatever fails, whoever leaves: each request has one line, nothing that may not be repeated is, and nothing is left over', async (t) => {
  const delivered = new Map<string, number>()
  const behave: RawHandler[] = [
    (socket) => send(socket, answer({ body: 'ok' })),
    (socket) => send(socket, answer({ body: 'x'.repeat(200000) })),
    (socket) => send(socket, answer({ status: 503, body: 'busy' })),
    (socket) => send(socket, answer({ status: 503, headers: [['Retry-After', '0']], body: 'x'.repeat(100000) })),
    (socket) => send(socket, answer({ status: 500 })),
    (socket) => { reset(socket) },
    (socket) => { socket.end() },
    async (socket) => { await send(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'); reset(socket) },
    async (socket) => { await send(socket, 'HTTP/1.1 503 No\r\nContent-Length: 10\r\n\r\nabc'); socket.end() },
    (socket) => send(socket, 'rubbish\r\n\r\n'),
    stall
  ]
  const chaotic: RawHandler = async (socket, asked) => {
    const id = asked.header('x-id') ?? ''
    delivered.set(id, (delivered.get(id) ?? 0) + 1)
    if (random() < 0.9) await asked.body()
    await (random() < 0.4 ? send(socket, answer({ body: 'ok' })) : pick(behave)(socket, asked))
  }
  const upstreams = await Promise.all([1, 2, 3].map(() => rawUpstream(chaotic)))
  t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())))
  const gateway = await startGateway(t, {
    pools: {
      shop: {
        health: { enabled: false },
        breaker: { consecutiveFailures: 0, window: { failureRatio: 0, seconds: 3600 } },
        connections: { max: 4 },
        timeouts: { headersMs: 250, bodyIdleMs: 250, totalMs: 600, connectMs: 500 },
        retry: { retries: 2, backoff: { baseMs: 1, maxMs: 5 }, maxBufferedBodyBytes: 1000, budget: { ratio: 1, minPerSecond: 100 }, hedge: { percentile: 0.6, minMs: 1 } },
        upstreams: upstreams.map(({ url }) => ({ url }))
      },
      shadow: { health: { enabled: false }, timeouts: { headersMs: 250, totalMs: 600 }, upstreams: upstreams.map(({ url }) => ({ url })) }
    },
    routes: [{ path: '/*', pool: 'shop', mirror: { pool: 'shadow', share: 0.2, maxInFlight: 3 } }]
  })
  const count = 600
  let next = 0
  const posts = new Set<string>()
  const bytesOf = (id: string): Buffer => {
    const method = pick(['GET', 'GET', 'HEAD', 'POST', 'PUT'])
    if (method === 'POST') posts.add(id)
    // A copy of a POST would be delivered, too, and that is what copies are for.
    const fields = { 'X-Id': id, ...method === 'POST' && { 'X-Breakwater-Mirror': '1' } }
    if (method === 'GET' || method === 'HEAD') return request(method, `/${id}`, fields)
    return request(method, `/${id}`, fields, 'y'.repeat(pick([1, 999, 1001, 50000])))
  }
  await Promise.all(Array.from({ length: 12 }, async () => {
    while (next < count) {
      const id = `r${next++}`
      const bytes = bytesOf(id)
      if (random() < 0.8) {
        await rawRequest(gateway.port, bytes)
        continue
      }
      const client = await rawConnect(gateway.port)
      await client.write(bytes.subarray(0, Math.ceil(random() * bytes.length)))
      await new Promise((resolve) => { setTimeout(resolve, random() * 40) })
      client.reset()
      // A head that did not come whole is no request; its line names none.
      await client.closed
    }
  }))
  await gateway.idle()
  await until(() => gateway.lines.all('access').length >= count - 150)
  const lines = gateway.lines.all('access')
  const ids = lines.map(({ path }) => path).filter((path) => path !== null)
  assert.equal(new Set(ids).size, ids.length, 'one line for each')
  assert.deepEqual([...posts].filter((id) => (delivered.get(id) ?? 0) > 1), [], 'no POST was delivered twice')
  assert.equal(gateway.lines.find('internal_error'), undefined)
  for (const { attempts, reason, status } of lines) {
    assert.ok((attempts as number) <= 3)
    if (status === 200 && reason !== null) assert.ok(['body_truncated', 'client_cancelled', 'body_idle_timeout', 'deadline_exceeded'].includes(reason as string), String(reason))
  }
  const { retries, hedges } = gateway.app.forwarding.view('shop')
  assert.ok(retries > 20 && hedges > 5, `${retries} retries, ${hedges} hedges`)
})
