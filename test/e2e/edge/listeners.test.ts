import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import Fastify, { type FastifyInstance } from 'fastify'
import edge from '../../../plugins/edge.ts'
import forwarder from '../../../plugins/forwarder.ts'
import { answerMalformed } from '../../../plugins/malformed.ts'
import upstreamPools from '../../../plugins/upstream-pools.ts'
import { selfSigned } from '../../config/certificate.ts'
import { answer, answering, partOfBody, rawUpstream, send, stall, type RawHandler } from '../../support/faulty-upstream.ts'
import { until } from '../../support/wait.ts'

type Listener = (t: TestContext, routes: (app: FastifyInstance) => Promise<void>) => Promise<() => Socket>

function close (t: TestContext, app: FastifyInstance): void {
  t.after(() => {
    app.server.closeAllConnections()
    return app.close()
  })
}

/** Listeners whose connections have no TCP handle of their own, which alone can be reset. */
const listeners: Record<string, Listener> = {
  async 'a Unix socket' (t, routes) {
    const folder = await mkdtemp(join(tmpdir(), 'breakwater-'))
    t.after(() => rm(folder, { recursive: true }))
    const app = Fastify({ clientErrorHandler: answerMalformed as never })
    close(t, app)
    await routes(app)
    const path = join(folder, 'app.sock')
    await app.listen({ path })
    return () => connect(path)
  },
  async 'TLS' (t, routes) {
    const app = Fastify({ https: selfSigned('127.0.0.1'), clientErrorHandler: answerMalformed as never }) as unknown as FastifyInstance
    close(t, app)
    await routes(app)
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.server.address() as AddressInfo
    return () => connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  }
}

interface Scenario { handler: RawHandler, timeouts?: object, send: string[] }

const get = 'GET /a HTTP/1.1\r\nHost: shop\r\n\r\n'
const stalling: RawHandler = async (socket) => {
  await send(socket, answer({ headers: [['Content-Length', '1000']], framing: 'none', body: 'abc' }))
  await stall(socket)
}
const scenarios: Record<string, Scenario> = {
  'a body that is cut': { handler: (socket) => partOfBody(socket, { ending: 'reset' }), send: [get] },
  'a body that stalls': { handler: stalling, timeouts: { bodyIdleMs: 50 }, send: [get] },
  'a malformed upload behind a half sent answer': { handler: stalling, send: ['POST /a HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n', 'zz\r\n'] }
}

for (const [where, listen] of Object.entries(listeners)) {
  for (const [what, { handler, timeouts = {}, send: parts }] of Object.entries(scenarios)) {
    test(`on ${where}, ${what} breaks its connection off, and the process goes on`, async (t) => {
      const upstream = await rawUpstream(handler)
      t.after(() => upstream.close())
      const open = await listen(t, async (app) => {
        await app.register(edge)
        await app.register(upstreamPools, { pools: { shop: { upstreams: [upstream.url], timeouts } } })
        await app.register(forwarder)
        app.removeAllContentTypeParsers()
        app.addContentTypeParser('*', (_request, _payload, done) => { done(null) })
        app.all('/a', (_request, reply) => { reply.forward('shop') })
      })

      const got = await talk(t, open(), parts)
      assert.match(got, /^HTTP\/1\.1 200 /)
      assert.doesNotMatch(got, /\r\n0\r\n\r\n$/, 'never whole')

      upstream.handle(answering({ body: 'still there' }))
      assert.match(await talk(t, open(), ['GET /a HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n']), /still there$/)
    })
  }
}

/** Sends the first part, and each further one when something has been answered; resolves with all that came when the peer closes. */
async function talk (t: TestContext, socket: Socket, parts: string[]): Promise<string> {
  t.after(() => socket.destroy())
  let got = ''
  let closed = false
  socket.on('error', () => {}).on('data', (bytes: Buffer) => { got += bytes.toString('latin1') }).on('close', () => { closed = true })
  for (const [i, part] of parts.entries()) {
    if (i > 0) await until(() => got.length > 0, { what: 'the beginning of an answer' })
    socket.write(part)
  }
  await until(() => closed, { what: 'the end of the connection' })
  return got
}
