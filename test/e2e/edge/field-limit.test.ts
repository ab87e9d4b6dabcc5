/** The limit of header fields in an app that was made without our serverOptions. */
import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import { edge, forwarder, upstreamPools } from '../../../index.ts'
import { answering, rawUpstream, type RawUpstream } from '../../support/faulty-upstream.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { head, startBoth } from './support.ts'

const many = (count: number): string => head('GET /a HTTP/1.1', 'Host: shop', ...Array.from({ length: count - 1 }, (_, i) => `x${i}: 1`))

async function startAlone (t: TestContext, prepare: (app: FastifyInstance) => void = () => {}, host = '127.0.0.1'): Promise<{ app: FastifyInstance, port: number, behind: RawUpstream }> {
  const behind = await rawUpstream(answering({ body: 'hello' }))
  t.after(() => behind.close())
  const app = Fastify({ http: { maxHeaderSize: 262144 } }) as unknown as FastifyInstance
  t.after(() => app.close())
  prepare(app)
  await app.register(edge)
  await app.register(upstreamPools, { pools: { shop: { upstreams: [behind.url] } } })
  await app.register(forwarder)
  app.get('/a', (_request, reply) => reply.forward('shop'))
  await app.listen({ port: 0, host })
  return { app, port: (app.server.address() as AddressInfo).port, behind }
}

const reasonOf = (answer: { json (): unknown }): string => (answer.json() as { reason: string }).reason
const mineOf = ({ requests }: RawUpstream): number => requests[0]?.headers.filter(([name]) => /^x\d+$/.test(name)).length ?? 0

test('in an app of its own 2,000 fields are forwarded, every one, and one more is refused', async (t) => {
  const gateway = await startBoth(t, { server: { maxHeaderBytes: 262144 } })
  assert.equal((await rawRequest(gateway.port, many(2000))).status, 200)
  assert.equal(mineOf(gateway.behind), 1999)
  const refused = await rawRequest(gateway.port, many(2001))
  assert.deepEqual([refused.status, reasonOf(refused), gateway.behind.requests.length], [431, 'headers_too_large', 1])
})

test('in an ordinary app 2,050 fields are refused and never shortened; 2,000 arrive, every one', async (t) => {
  const { port, behind } = await startAlone(t)
  const refused = await rawRequest(port, many(2050))
  assert.deepEqual([refused.status, behind.requests.length], [431, 0])
  // Newer Nodes count in their parser; without our own options Fastify answers for them.
  if (refused.header('content-type') === 'application/problem+json') assert.equal(reasonOf(refused), 'headers_too_large')
  assert.equal((await rawRequest(port, many(2000))).status, 200)
  assert.equal(mineOf(behind), 1999)
})

test('a limit that the app has set is kept, and what it would shorten is refused', async (t) => {
  const { app, port, behind } = await startAlone(t, ({ server }) => { server.maxHeadersCount = 100 })
  assert.equal(app.server.maxHeadersCount, 100)
  for (const count of [100, 120, 500]) assert.equal((await rawRequest(port, many(count))).status, 431, `${count}`)
  assert.equal((await rawRequest(port, many(99))).status, 200)
  assert.equal(mineOf(behind), 98)
})

test('the second server that Fastify opens for "localhost" shortens nothing either', async (t) => {
  const { port, behind } = await startAlone(t, () => {}, 'localhost')
  for (const host of ['127.0.0.1', '::1']) {
    for (const count of [900, 1500, 2050]) {
      const before = behind.requests.length
      const answer = await rawRequest(port, many(count), { host }).catch((error: NodeJS.ErrnoException) => {
        if (host === '::1' && ['ECONNREFUSED', 'EADDRNOTAVAIL'].includes(error.code ?? '')) return null
        throw error
      })
      if (answer === null) continue
      if (answer.status === 200) assert.equal(behind.requests[before]?.headers.filter(([name]) => /^x\d+$/.test(name)).length, count - 1)
      else assert.equal(answer.status, 431)
      if (count === 900) assert.equal(answer.status, 200)
      if (count === 2050) assert.equal(answer.status, 431)
    }
  }
})
