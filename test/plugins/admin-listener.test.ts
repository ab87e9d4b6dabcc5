import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import Fastify, { type FastifyInstance } from 'fastify'
import adminListener, { type AdminListenerOptions } from '../../plugins/admin-listener.ts'
import breakerRegistry from '../../plugins/breaker-registry.ts'
import eventJournal from '../../plugins/event-journal.ts'
import readiness from '../../plugins/readiness.ts'
import upstreamPools from '../../plugins/upstream-pools.ts'
import adminRoutes from '../../routes/admin/index.ts'
import { rawConnect, rawRequest } from '../support/raw-client.ts'
import { until, within } from '../support/wait.ts'

interface Harness { app: FastifyInstance, lines: Array<Record<string, unknown>> }

async function appWith (t: TestContext, options: Partial<AdminListenerOptions> = {}): Promise<Harness> {
  const lines: Array<Record<string, unknown>> = []
  const app = Fastify({ logger: { stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } } }) as unknown as FastifyInstance
  t.after(() => app.close())
  const { token = '' } = options
  await app.register(adminListener, {
    port: 0,
    routes: (admin, { loopbackOnly }) => admin.register(adminRoutes, { source: app, token, loopbackOnly }),
    ...options
  })
  await app.register(upstreamPools, { pools: { shop: { upstreams: ['http://127.0.0.1:9'], health: { enabled: false } } } })
  await app.register(breakerRegistry)
  app.breakers.get('shop', '127.0.0.1:9')
  await app.register(eventJournal)
  await app.register(readiness)
  return { app, lines }
}

const request = (path: string, fields = '', method = 'GET'): string => `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n`

test('OPTIONS * asks the listener as a whole what it takes, and wants the token like all else', async (t) => {
  for (const token of ['', 'secret']) {
    const { app } = await appWith(t, { token })
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.adminAddress!
    if (token !== '') assert.equal((await rawRequest(port, request('*', '', 'OPTIONS'))).status, 401)
    const got = await rawRequest(port, request('*', token === '' ? '' : `Authorization: Bearer ${token}\r\n`, 'OPTIONS'))
    assert.deepEqual([got.status, got.header('allow'), got.body.length], [204, 'GET, HEAD, POST, OPTIONS', 0])
    assert.equal((await rawRequest(port, request('*', '', 'GET'))).status, 400)
  }
})

test('it is open before the app listens, says where, and shows what the app believes', async (t) => {
  const { app, lines } = await appWith(t)
  assert.equal(app.adminAddress, null)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { host, port } = app.adminAddress!
  assert.equal(host, '127.0.0.1')
  const said = lines.map(({ msg }) => String(msg))
  assert.deepEqual(lines.filter(({ msg }) => msg === 'admin listening').map((line) => [line['host'], line['port']]), [[host, port]])
  assert.ok(said.indexOf('admin listening') < said.findIndex((msg) => msg.startsWith('Server listening')))

  const pools = await rawRequest(port, request('/pools'))
  assert.equal(pools.status, 200)
  assert.match(pools.text(), /"upstream":"127\.0\.0\.1:9"/)
  assert.match(String(pools.header('x-request-id')), /^[0-9a-f-]{36}$/)
  const body = '{"state":"open","ttlMs":60000,"reason":"a drill"}'
  const forced = await rawRequest(port, request('/breakers/shop/127.0.0.1:9/force', `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`, 'POST') + body)
  assert.equal(forced.status, 200)
  assert.equal(app.breakers.find('shop', '127.0.0.1:9')?.breaker.state ?? 'none', 'open')
  assert.equal((await rawRequest(port, request('/readyz'))).status, 503)
  assert.equal((await rawRequest(port, request('/livez'))).status, 204)
  // The public listener knows nothing of it, and its calls leave no lines of their own.
  assert.equal((await rawRequest((app.server.address() as AddressInfo).port, request('/pools'))).status, 404)
  assert.deepEqual(lines.filter(({ listener }) => listener === 'admin'), [])
})

test('nothing but loopback without a token', async (t) => {
  for (const host of ['0.0.0.0', '::', '10.0.0.1']) {
    await assert.rejects(appWith(t, { host }), { code: 'BREAKWATER_ADMIN_TOKEN_REQUIRED', message: new RegExp(`needs a token to listen on ${host}`) }, host)
  }
})

test('with a token on all addresses it answers by any name', async (t) => {
  const { app } = await appWith(t, { host: '0.0.0.0', token: 's3cret' })
  await app.ready()
  const { port } = app.adminAddress!
  const ask = (fields: string) => rawRequest(port, `GET /pools HTTP/1.1\r\nHost: admin.example\r\n${fields}\r\n`)
  assert.equal((await ask('')).status, 401)
  assert.equal((await ask('Authorization: Bearer s3cret\r\n')).status, 200)
  assert.equal((await rawRequest(port, request('/livez'))).status, 204)
})

test('on loopback another Host and a foreign Origin are refused, with a token too', async (t) => {
  const { app } = await appWith(t, { host: 'localhost', token: 's3cret' })
  await app.ready()
  const { host, port } = app.adminAddress!
  const ask = async (fields: string): Promise<number> => (await rawRequest(port, `GET /pools HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n${fields}\r\n`, { host })).status
  assert.equal(await ask(`Host: localhost:${port}\r\n`), 200)
  assert.equal(await ask(`Host: evil.example:${port}\r\n`), 421)
  assert.equal(await ask(`Host: localhost:${port}\r\nOrigin: http://evil.example\r\n`), 403)
})

test('a port that is taken stops the start, and the message says which', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  t.after(() => { holder.close() })
  const { port } = holder.address() as AddressInfo
  const { app } = await appWith(t, { port })
  await assert.rejects(app.listen({ port: 0, host: '127.0.0.1' }), {
    code: 'BREAKWATER_ADMIN_LISTEN_FAILED',
    message: `the admin listener cannot listen on 127.0.0.1, port ${port}: EADDRINUSE`
  })
  assert.equal(app.adminAddress, null)
  assert.equal(app.server.listening, false)
})

test('a name that does not resolve stops the start', async (t) => {
  await assert.rejects(appWith(t, { host: 'no host of ours' }), { code: 'BREAKWATER_ADMIN_LISTEN_FAILED', message: /no host of ours/ })
})

test('it answers until the requests of the app have ended, and then closes at once', async (t) => {
  const { app } = await appWith(t)
  const gate = new EventEmitter()
  app.get('/slow', async () => {
    gate.emit('asked')
    await once(gate, 'answer')
    return 'done'
  })
  const asked = once(gate, 'asked')
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.adminAddress!
  const slow = rawRequest((app.server.address() as AddressInfo).port, request('/slow'))
  await asked
  // One connection on which nothing ever came, one that is idle, and a stream.
  const connections = await Promise.all([rawConnect(port), rawConnect(port), rawConnect(port)])
  t.after(() => { for (const connection of connections) connection.destroy() })
  await connections[1].write(request('/livez'))
  await connections[1].readResponse()
  await connections[2].write(request('/events/stream'))
  await connections[2].readHead()

  const closed = app.close()
  await until(() => !app.server.listening, { what: 'the end of the public listener' })
  assert.equal((await rawRequest(port, request('/livez'))).status, 204)
  assert.ok(app.adminAddress !== null)
  gate.emit('answer')
  assert.equal((await slow).text(), 'done')
  await within(closed, { what: 'the close' })
  await within(Promise.all(connections.map((connection) => connection.closed)), { what: 'the end of the connections' })
  assert.equal(app.adminAddress, null)
  await assert.rejects(rawRequest(port, request('/livez')), { code: 'ECONNREFUSED' })
})

test('what an answer is being written to is not cut, but not waited for without end either', async (t) => {
  const { app } = await appWith(t, {
    routes: (admin) => {
      admin.get('/never', () => {
        asked++
        return new Promise<string>(() => {})
      })
      admin.get('/soon', async () => {
        asked++
        await until(() => closing)
        return 'done'
      })
    }
  })
  let closing = false
  let asked = 0
  app.addHook('preClose', async () => { closing = true })
  await app.ready()
  const { port } = app.adminAddress!
  const never = rawRequest(port, request('/never'))
  const soon = await rawConnect(port)
  t.after(() => soon.destroy())
  await soon.write(request('/soon'))
  await until(() => asked === 2)
  await within(app.close(), { what: 'the close' })
  assert.equal((await soon.readResponse()).text(), 'done')
  assert.equal((await never).status, 0)
})

test('what is no request, and what no route takes, is answered with a problem', async (t) => {
  const { app } = await appWith(t)
  await app.ready()
  const { port } = app.adminAddress!
  for (const [bytes, status] of [
    ['nonsense\r\n\r\n', 400],
    [request('/pools', `X: ${'x'.repeat(17000)}\r\n`), 431],
    [request('/%zz'), 400],
    [request(`/pools/${'x'.repeat(2000)}`), 404],
    [request('/pools', '', 'PROPFIND'), 405],
    [request('/nowhere', '', 'PROPFIND'), 404],
    [request('/breakers/shop/127.0.0.1:9/reset', 'Content-Length: 0\r\n', 'POST'), 415],
    [request('/breakers/shop/127.0.0.1:9/reset', 'Content-Type: application/json\r\nContent-Length: 70000\r\n', 'POST'), 413]
  ] as const) {
    const answer = await rawRequest(port, bytes)
    assert.deepEqual([answer.status, answer.header('content-type')], [status, 'application/problem+json'], bytes.slice(0, 60))
    assert.equal((answer.json() as { status: number }).status, status)
  }
  assert.equal((await rawRequest(port, request('/livez'))).status, 204)
})

test('it is no reason for the process to live', async () => {
  const script = `
    import Fastify from '${import.meta.resolve('fastify')}'
    import adminListener from '${new URL('../../plugins/admin-listener.js', import.meta.url).href}'
    const app = Fastify()
    await app.register(adminListener, { port: 0, routes: () => {} })
    await app.ready()
    console.log(app.adminAddress.host)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { timeout: 10000 })
  assert.equal(stdout, '127.0.0.1\n')
})
