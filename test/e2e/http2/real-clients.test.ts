/** Clients that people use, over TLS and ALPN. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Agent, request } from 'undici'
import { answer, rawUpstream, send, stall } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import { until } from '../../support/wait.ts'
import { Folder } from '../listener/support.ts'

it('undici speaks HTTP/2 to the gateway: GET, POST, many at once, and one that it gives up', async (t) => {
  const upstream = await rawUpstream(async (socket, { target, method, body }) => {
    if (target === '/hang') return stall(socket)
    const { body: bytes } = await body()
    await send(socket, answer({ body: `${method} ${target} ${bytes.length}` }))
  })
  t.after(() => upstream.close())
  const gateway = await startGateway(t, { upstreams: [upstream.url], server: { tls: { certificates: [new Folder(t).issue('shop.example')] } } })
  const dispatcher = new Agent({ allowH2: true, connections: 1, pipelining: 100, connect: { rejectUnauthorized: false } })
  t.after(() => dispatcher.destroy())
  const url = `https://127.0.0.1:${gateway.port}`
  const ask = async (path: string, options = {}): Promise<string> => (await request(url + path, { dispatcher, ...options })).body.text()

  assert.equal(await ask('/a'), 'GET /a 0')
  assert.equal(await ask('/b', { method: 'POST', body: Buffer.alloc(500_000) }), 'POST /b 500000')
  const paths = Array.from({ length: 40 }, (_, i) => `/${i}`)
  assert.deepEqual(await Promise.all(paths.map((path) => ask(path))), paths.map((path) => `GET ${path} 0`))
  await until(() => gateway.lines.all('access').length === 42)
  // Over HTTP/2 it was: an upstream is told so.
  assert.deepEqual(new Set(upstream.requests.map((each) => each.header('via'))), new Set(['2.0 breakwater']))

  await gateway.skip()
  const given = new AbortController()
  const hung = ask('/hang', { signal: given.signal })
  await until(() => upstream.requests.some(({ target }) => target === '/hang'))
  given.abort()
  await assert.rejects(hung, { name: 'AbortError' })
  await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled' })
  assert.equal(await ask('/c'), 'GET /c 0')
})
