/** Checks of type tcp: a connection, and with TLS its handshake, is all that is wanted. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { closedPort } from '../../support/ports.ts'
import { fakePool, harness, ok, overTls, RawUpstream, until, type Answer } from './fixtures.ts'

const hang: Answer = () => {}
const tcp = { type: 'tcp' as const }

test('an upstream that accepts and says nothing passes; nothing is sent, and no connection stays', async (t) => {
  const upstream = await new RawUpstream(hang).listen(t)
  let received = 0
  let ended = 0
  upstream.server.on('connection', (socket) => {
    socket.on('data', ({ length }) => { received += length })
    socket.on('end', () => { ended++ })
  })
  const { app, check } = await harness(t, { upstreams: [upstream.url], health: tcp })
  for (let round = 1; round <= 3; round++) {
    const { passed, cause, status } = await check()
    assert.deepEqual([passed, cause, status], [true, 'check_passed', null])
    await until('the connection is closed', () => upstream.accepted === round && upstream.sockets.size === 0)
  }
  assert.deepEqual([received, ended, app.health.list()[0]!.healthy], [0, 3, true])
})

test('an upstream that speaks first passes too', async (t) => {
  const upstream = await new RawUpstream(hang).listen(t)
  upstream.server.on('connection', (socket) => { socket.write('220 welcome\r\n') })
  const { check } = await harness(t, { upstreams: [upstream.url], health: tcp })
  for (let round = 0; round < 3; round++) assert.equal((await check()).cause, 'check_passed')
  await until('no connection stays', () => upstream.accepted === 3 && upstream.sockets.size === 0)
})

test('a port where nobody listens: connect_refused', async (t) => {
  const { check } = await harness(t, { upstreams: [`http://127.0.0.1:${await closedPort(t)}`], health: tcp })
  const { passed, cause } = await check()
  assert.deepEqual([passed, cause], [false, 'connect_refused'])
})

test('an IPv6 address is connected to, and no name to resolve', async (t) => {
  const lookup = (host: string): void => assert.fail(`${host} was looked up`)
  const { check } = await harness(t, { upstreams: [{ url: 'http://[::1]:1', connector: { lookup } }], health: tcp })
  // Where there is no IPv6, there is no such address.
  assert.match((await check()).cause, /^(?:connect_refused|local_error)$/)
})

test('a unix socket, and one that is gone', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'health-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const socketPath = join(folder, 'up.sock')
  const upstream = await new RawUpstream(hang).listen(t, socketPath)
  const { check } = await harness(t, { upstreams: [{ url: 'http://localhost', id: socketPath, socketPath }], health: tcp })
  assert.equal((await check()).cause, 'check_passed')
  await until('no connection stays', () => upstream.accepted === 1 && upstream.sockets.size === 0)
  await upstream.close()
  assert.equal((await check()).cause, 'connect_refused')
})

test('a name that does not resolve: dns_failed', async (t) => {
  const error = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND', syscall: 'getaddrinfo' })
  const lookup = (_host: string, _options: object, done: (error: Error) => void): void => done(error)
  const { check } = await harness(t, { upstreams: [{ url: 'http://nowhere.invalid:80', connector: { lookup } }], health: tcp })
  assert.equal((await check()).cause, 'dns_failed')
})

test('our own lack of descriptors says nothing about the upstream', async (t) => {
  const error = Object.assign(new Error('connect EMFILE'), { code: 'EMFILE', syscall: 'connect' })
  const lookup = (_host: string, _options: object, done: (error: Error) => void): void => done(error)
  const { check } = await harness(t, { upstreams: [{ url: 'http://up.invalid:80', connector: { lookup } }], health: tcp })
  const { passed, cause } = await check()
  assert.deepEqual([passed, cause], [null, 'local_error'])
})

test('a connection that is never made ends with the time limit, or with the app, which leaves none', async (t) => {
  await new RawUpstream(ok).listen(t) // Something has to keep this process alive: the checks do not.
  const { app, check } = await harness(t, { upstreams: [{ url: 'http://nowhere.invalid:80', connector: { lookup: () => {} } }], health: { ...tcp, timeoutMs: 400 } })
  assert.equal((await check()).cause, 'timeout')
  const running = check()
  await app.close()
  assert.equal((await running).cause, 'stopped')
})

test('TLS: the certificate is verified, each time with a whole handshake', async (t) => {
  const raw = new RawUpstream(hang)
  const resumed: boolean[] = []
  const serve = raw.serve.bind(raw)
  raw.serve = (socket) => {
    resumed.push((socket as TLSSocket).isSessionReused())
    serve(socket)
  }
  const { url, cert, broken } = await overTls(t, raw)
  const connectors = [{}, { ca: cert }, { ca: cert, servername: 'other.invalid' }, { rejectUnauthorized: false }, { ca: 'no certificate at all', cert: 'nor here', key: 'nor here' }]
  const { check } = await harness(t, { upstreams: connectors.map((connector, index) => ({ url, id: `${index}`, connector })), health: tcp })
  for (let round = 0; round < 3; round++) {
    const causes = await Promise.all(connectors.map(async (_, index) => (await check(index)).cause))
    assert.deepEqual(causes, ['tls_failed', 'check_passed', 'tls_failed', 'check_passed', 'tls_failed'])
  }
  await until('all handshakes were seen', () => resumed.length + broken.length === 12)
  await until('no connection stays', () => raw.sockets.size === 0)
  assert.deepEqual(resumed, Array.from({ length: 6 }, () => false))
})

test('TLS: a server that never answers the handshake times out, one that speaks something else fails, and no connection stays', async (t) => {
  const silent = await new RawUpstream(hang).listen(t)
  const plain = await new RawUpstream(hang).listen(t)
  plain.server.on('connection', (socket) => { socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')) })
  const { check } = await harness(t, {
    upstreams: [silent, plain].map(({ url }) => url.replace('http:', 'https:')), health: { ...tcp, timeoutMs: 400 }
  })
  assert.equal((await check(0)).cause, 'timeout')
  assert.equal((await check(1)).cause, 'tls_failed')
  await until('no connection stays', () => silent.sockets.size === 0 && plain.sockets.size === 0)
})

test('a reload from http to tcp and back: what passes only one of them is believed accordingly', async (t) => {
  const upstream = await new RawUpstream(hang).listen(t)
  const { app, check, pools } = await harness(t, { upstreams: [upstream.url], health: { timeoutMs: 400 } })
  assert.equal((await check()).cause, 'timeout')
  pools[0] = fakePool({ upstreams: [upstream.url], health: tcp })
  app.health.sync()
  assert.equal((await check()).cause, 'check_passed')
  assert.equal(pools[0].upstreams[0]!.healthy, true)
  pools[0] = fakePool({ upstreams: [upstream.url], health: { timeoutMs: 400 } })
  app.health.sync()
  assert.equal((await check()).cause, 'timeout')
  assert.equal(pools[0].upstreams[0]!.healthy, false)
})
