/** TLS to upstreams: verified both ways, and files that are read again at a reload. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { TlsOptions } from 'node:tls'
import { certificate, type Pair } from '../../config/certificate.ts'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { Folder } from '../listener/support.ts'

const ours = { pair: certificate({ name: 'internal', authority: true }), name: 'internal' }
const shop = certificate({ name: 'shop.internal', names: ['shop.internal'], by: ours })
const get = 'GET /a HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n'

/** An upstream that answers with the CN of its client's certificate, and how many connections it has had. */
async function upstreamWith (t: TestContext, options: TlsOptions, answer?: (request: IncomingMessage, response: ServerResponse) => void): Promise<{ port: number, connections: () => number, open: () => number, use: (pair: Pair) => void }> {
  const server = createServer({ ...options, ...shop })
  const sockets = new Set<object>()
  let connections = 0
  server.on('secureConnection', (socket) => {
    connections++
    sockets.add(socket)
    socket.on('close', () => { sockets.delete(socket) })
  })
  server.on('request', answer ?? ((request, response) => {
    const { socket } = request as unknown as { socket: { getPeerCertificate: () => { subject?: { CN?: string } } } }
    response.end(`client ${socket.getPeerCertificate().subject?.CN ?? 'none'}`)
  }))
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, connections: () => connections, open: () => sockets.size, use: (pair) => { server.setSecureContext({ ...options, ...pair }) } }
}

async function ask ({ port }: Gateway): Promise<string> {
  const { status, body } = await rawRequest(port, get)
  return status === 200 ? body.toString() : String(status)
}

test('an upstream that wants a certificate of ours gets it, and refuses us without', async (t) => {
  const folder = new Folder(t)
  const { port } = await upstreamWith(t, { requestCert: true, ca: ours.pair.cert })
  const tls = { ca: folder.write('ca.pem', ours.pair.cert), servername: 'shop.internal' }
  const client = folder.pair('client', certificate({ name: 'breakwater', by: ours }))
  const [shown, kept] = await Promise.all([{ ...tls, ...client }, tls].map((each) => startGateway(t, { upstreams: [`https://127.0.0.1:${port}`], pool: { tls: each } }))) as [Gateway, Gateway]
  assert.equal(await ask(shown), 'client breakwater')
  assert.equal(await ask(kept), '502')
})

test('whatever the environment says, a certificate that nobody vouches for is refused', async (t) => {
  const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED']
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.after(() => {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
  })
  const { port } = await upstreamWith(t, {})
  for (const pool of [{}, { tls: {} }, { http2: 'alpn' }, { health: { enabled: true, intervalMs: 20, initial: 'unhealthy' } }]) {
    const gateway = await startGateway(t, { upstreams: [`https://127.0.0.1:${port}`], pool })
    if ('health' in pool) await until(() => gateway.lines.find(({ msg, cause }) => msg === 'health_changed' || cause === 'tls_failed') ?? gateway.upstream().checked)
    assert.match(await ask(gateway), /^50[23]$/, JSON.stringify(pool))
  }
})

test('a reload takes changed files: new connections go by them, and those that are idle close', async (t) => {
  const folder = new Folder(t)
  const upstream = await upstreamWith(t, { requestCert: true, rejectUnauthorized: false })
  const ca = folder.write('ca.pem', ours.pair.cert)
  const client = folder.pair('client', certificate({ name: 'before', by: ours }))
  const gateway = await startGateway(t, { upstreams: [`https://127.0.0.1:${upstream.port}`], pool: { tls: { ca, ...client, servername: 'shop.internal' } } })
  const { configuration } = gateway.app
  configuration.follow({ load: () => structuredClone(configuration.current), file: null })
  assert.equal(await ask(gateway), 'client before')
  assert.equal(await ask(gateway), 'client before')
  assert.equal(upstream.connections(), 1, 'a connection is used again')

  const next = certificate({ name: 'after', by: ours })
  writeFileSync(client.cert, next.cert)
  writeFileSync(client.key, next.key)
  assert.equal(await ask(gateway), 'client before', 'not before a reload')
  assert.equal((await configuration.reload('signal')).valid, true)
  assert.equal(await ask(gateway), 'client after')
  await until(() => upstream.open() === 1, { what: 'the end of the connection of before' })

  // Another authority for us to trust, which this upstream is not from.
  writeFileSync(ca, certificate({ name: 'other', authority: true }).cert)
  assert.equal((await configuration.reload('signal')).valid, true)
  assert.equal(await ask(gateway), '502')

  writeFileSync(ca, ours.pair.cert)
  assert.equal((await configuration.reload('signal')).valid, true)
  assert.equal(await ask(gateway), 'client after')
  await gateway.idle()
})

test('an exchange that is under way when files change ends as it began', async (t) => {
  const folder = new Folder(t)
  let finish: (() => void) | null = null
  const upstream = await upstreamWith(t, {}, (_request, response) => {
    response.write('begun, ')
    finish = () => { response.end('ended') }
  })
  const ca = folder.write('ca.pem', ours.pair.cert)
  const gateway = await startGateway(t, { upstreams: [`https://127.0.0.1:${upstream.port}`], pool: { tls: { ca, servername: 'shop.internal' } } })
  const { configuration } = gateway.app
  configuration.follow({ load: () => structuredClone(configuration.current), file: null })
  const asked = ask(gateway)
  await until(() => finish)
  writeFileSync(ca, certificate({ name: 'other', authority: true }).cert)
  assert.equal((await configuration.reload('signal')).valid, true)
  finish!()
  assert.equal(await asked, 'begun, ended')
  await until(() => upstream.open() === 0, { what: 'the end of the connection' })
})

test('the name of an upstream is its own or the configured one, whatever Host the client says', async (t) => {
  const folder = new Folder(t)
  const asked: unknown[] = []
  const server = createServer({ ...shop, SNICallback: (name, done) => { asked.push(name); done(null) } }, ({ headers }, response) => { response.end(headers.host) })
  let connections = 0
  server.on('secureConnection', () => { connections++ })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const ca = folder.write('ca.pem', ours.pair.cert)
  for (const upstream of ['127.0.0.1', 'localhost']) {
    for (const http2 of ['off', 'alpn'] as const) {
      asked.length = connections = 0
      const gateway = await startGateway(t, { upstreams: [`https://${upstream}:${port}`], pool: { hostHeader: 'preserve', http2, tls: { ca, servername: 'shop.internal' } } })
      for (const host of ['one.example', 'two.example', 'one.example']) {
        const { status, body } = await rawRequest(gateway.port, `GET /a HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
        assert.deepEqual([status, body.toString()], [200, host], `${upstream}, ${http2}`)
      }
      assert.deepEqual([new Set(asked), connections], [new Set(['shop.internal']), 1], `${upstream}, ${http2}`)
    }
  }
  const wrong = await startGateway(t, { upstreams: [`https://localhost:${port}`], pool: { hostHeader: 'preserve', tls: { ca } } })
  assert.equal((await rawRequest(wrong.port, 'GET /a HTTP/1.1\r\nHost: shop.internal\r\nConnection: close\r\n\r\n')).status, 502)
})
