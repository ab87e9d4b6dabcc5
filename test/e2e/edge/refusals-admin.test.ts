/** The table of docs/http.md on the admin listener, with writes behind the refused bytes. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import adminListener from '../../../plugins/admin-listener.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { refusedBodies, refusedHeads } from '../../support/refused.ts'
import { head } from './support.ts'

const write = head('POST /drain HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', 'Content-Length: 2') + '{}'

async function listen (t: TestContext): Promise<{ port: number, done: string[] }> {
  const app = Fastify() as unknown as FastifyInstance
  t.after(() => app.close())
  const done: string[] = []
  await app.register(adminListener, {
    port: 0,
    routes: (admin) => {
      for (const path of ['/a', '/drain']) admin.route({ method: ['GET', 'POST'], url: path, handler: async () => done.push(path) })
      admin.get('/slow', async () => {
        await new Promise((resolve) => { setTimeout(resolve, 30) })
        return 'slow'
      })
      admin.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, parsed) => { parsed(null, body) })
    }
  })
  await app.ready()
  return { port: app.adminAddress?.port ?? 0, done }
}

for (const [title, row] of Object.entries({ ...refusedHeads, ...refusedBodies })) {
  // The limits of time and their options are the public listener's; this one has its own.
  if (row.server !== undefined) continue
  test(`the admin listener refuses it as well: ${title}`, async (t) => {
    const { port, done } = await listen(t)
    for (const [name, { parts, end = false }] of Object.entries(row.cases)) {
      for (const behind of end ? [[]] : [[write], [10, write]]) {
        const response = await rawRequest(port, [...parts, ...behind], { until: 'close', methods: ['GET', 'GET'], end, allowHalfOpen: true })
        const seen = `${name}: ${response.raw.toString('latin1').slice(0, 600)}`
        assert.deepEqual([response.responses.map(({ status }) => status), response.ended, response.header('connection')], [[row.status], 'fin', 'close'], seen)
        assert.equal((response.json() as { reason: string }).reason, row.reason, seen)
      }
    }
    assert.deepEqual(done, [])
    assert.equal((await rawRequest(port, write)).status, 200)
  })
}

test('malformed bytes behind an admin request are not answered before it', async (t) => {
  const { port } = await listen(t)
  for (const bad of ['\0garbage\r\n\r\n', head('GET /a HTTP/1.1', 'Host: a', 'Host: b'), head('CONNECT a:1 HTTP/1.1', 'Host: a')]) {
    const { responses } = await rawRequest(port, head('GET /slow HTTP/1.1', 'Host: localhost') + bad, { until: 'close', methods: ['GET', 'GET'] })
    assert.deepEqual(responses.map((each) => [each.status, each.header('connection') === 'close']), [[200, false], [400, true]])
    assert.equal(responses[0]?.text(), 'slow')
  }
})

test('what is pipelined behind the last admin request of a connection is not run', async (t) => {
  const { port, done } = await listen(t)
  const { responses } = await rawRequest(port, head('GET /slow HTTP/1.1', 'Host: localhost', 'Connection: close') + write, { until: 'close', methods: ['GET', 'POST'] })
  assert.deepEqual([responses.map(({ status }) => status), done], [[200], []])
})
