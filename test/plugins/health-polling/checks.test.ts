/** One check against an upstream that answers well, badly, endlessly or not at all. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createNetServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { HealthOptions } from '../../../config/schema.ts'
import { block, harness, ok, overTls, RawUpstream, status, until, type Answer } from './fixtures.ts'

const chunk = 'x'.repeat(16384)
/** Writes as fast as it is read, for ever. */
const endless = (head: string): Answer => (socket) => {
  socket.write(head)
  const more = (): void => { while (!socket.destroyed && socket.write(chunk)); }
  socket.on('drain', more)
  more()
}
const trickle = (head: string): Answer => (socket) => {
  socket.write(head)
  const timer = setInterval(() => socket.write('x'), 5)
  socket.on('close', () => clearInterval(timer))
}
const hang: Answer = () => {}

const table: Array<[name: string, answer: Answer, cause: string, options?: Partial<HealthOptions>]> = [
  ['200', ok, 'check_passed'],
  ['a chunked answer', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n', 'check_passed'],
  ['an answer that ends with the connection', (socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nok'), 'check_passed'],
  ['204 that names a length', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', 'check_passed'],
  ['an answer with garbage behind it', ok + 'more', 'check_passed'],
  ['two answers to one request', ok + status(503), 'check_passed'],
  ['early hints first', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n' + ok, 'check_passed'],
  ['the edges of the range', status(399), 'check_passed', { statuses: [200, 399] }],
  ['a redirect, which is not followed', status(302, 'Location: /elsewhere\r\n'), 'status_302'],
  ['404', status(404), 'status_404'],
  ['503', status(503), 'status_503'],
  ['503 whose body never ends', trickle('HTTP/1.1 503 Any\r\n\r\n'), 'status_503', { timeoutMs: 400 }],
  ['silence', hang, 'timeout', { timeoutMs: 400 }],
  ['a head that never ends', trickle('HTTP/1.1 200 OK\r\nX-Slow: '), 'timeout', { timeoutMs: 400 }],
  ['a body that trickles for ever', trickle('HTTP/1.1 200 OK\r\n\r\n'), 'timeout', { timeoutMs: 400 }],
  ['a body that pours for ever', endless('HTTP/1.1 200 OK\r\n\r\n'), 'check_passed'],
  ['503 with a body that pours for ever', endless('HTTP/1.1 503 Any\r\n\r\n'), 'status_503'],
  ['a head of 100 KiB', 'HTTP/1.1 200 OK\r\nX-Huge: ' + 'x'.repeat(102400) + '\r\nContent-Length: 0\r\n\r\n', 'response_invalid'],
  ['a head that pours for ever', endless('HTTP/1.1 200 OK\r\nX-Huge: '), 'response_invalid'],
  ['garbage', '\u0000\u0001 no HTTP at all\r\n\r\n', 'response_invalid'],
  ['a status that is none', 'HTTP/1.1 2x0 OK\r\n\r\n', 'response_invalid'],
  ['an unasked 100', 'HTTP/1.1 100 Continue\r\n\r\n' + ok, 'response_invalid'],
  ['an unasked 101', 'HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n', 'response_invalid'],
  ['a bad chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 'response_invalid'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok', 'response_invalid'],
  ['a reset', (socket) => socket.resetAndDestroy(), 'connection_reset'],
  ['a close without an answer', (socket) => socket.end(), 'connection_reset'],
  ['a close within the head', (socket) => socket.end('HTTP/1.1 200 OK\r\nX-Half'), 'connection_reset'],
  ['a body cut before its length', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok'), 'body_truncated'],
  ['a chunked body cut off', (socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok'), 'body_truncated'],
  ['the same, with Connection: close', (socket) => socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok'), 'body_truncated'],
  ['a body reset', (socket) => { socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok', () => setImmediate(() => socket.resetAndDestroy())) }, 'body_truncated']
]

for (const [name, answer, cause, health = {}] of table) {
  test(`${name}: ${cause}, the next check is sound, and no connection is left behind`, async (t) => {
    const upstream = await new RawUpstream(answer, ok).listen(t)
    const { app, check } = await harness(t, { upstreams: [upstream.url], health })
    const result = await check()
    assert.equal(result.cause, cause)
    assert.equal(result.passed, cause === 'check_passed')
    const next = await check()
    assert.equal(next.cause, 'check_passed')
    await until('one connection is left at most', () => upstream.sockets.size <= 1)
    await app.close()
    await until('the upstream has no connection', () => upstream.sockets.size === 0)
    assert.equal(upstream.requests.length, 2)
  })
}

test('the request is a GET of base path and path, with the upstream\'s own Host and our name', async (t) => {
  const upstream = await new RawUpstream(ok).listen(t)
  const { check } = await harness(t, { upstreams: [{ url: upstream.url, basePath: '/base' }], health: { path: '/up?deep=1' } })
  await check()
  const head = upstream.requests[0]!
  assert.match(head, /^GET \/base\/up\?deep=1 HTTP\/1\.1\r\n/)
  assert.match(head, new RegExp(`\r\nhost: 127\\.0\\.0\\.1:${upstream.port}\r\n`, 'i'))
  assert.match(head, /\r\nuser-agent: breakwater-health\/\d+\.\d+\.\d+\r\n/i)
})

test('checks reuse their connection', async (t) => {
  const upstream = await new RawUpstream(ok).listen(t)
  const { check } = await harness(t, { upstreams: [upstream.url] })
  for (let round = 0; round < 5; round++) assert.equal((await check()).passed, true)
  assert.equal(upstream.accepted, 1)
})

test('a kept connection that the upstream closes as it is used again is no failure', async (t) => {
  const upstream = await new RawUpstream(ok, (socket) => socket.destroy(), ok).listen(t)
  const { app, check } = await harness(t, { upstreams: [upstream.url] })
  await check()
  assert.equal((await check()).cause, 'check_passed')
  assert.equal(upstream.accepted, 2)
  assert.equal(app.health.list()[0]!.healthy, true)
})

test('an upstream that closes fresh connections too has failed', async (t) => {
  const upstream = await new RawUpstream(ok, (socket) => socket.destroy()).listen(t)
  const { check } = await harness(t, { upstreams: [upstream.url] })
  await check()
  assert.equal((await check()).cause, 'connection_reset')
  assert.equal(upstream.accepted, 2)
})

test('nobody listens: connect_refused', async (t) => {
  const upstream = await new RawUpstream(ok).listen(t)
  const { url } = upstream
  await upstream.close()
  const { check } = await harness(t, { upstreams: [url] })
  const { cause, status: seen } = await check()
  assert.deepEqual([cause, seen], ['connect_refused', null])
})

test('a name that does not resolve: dns_failed', async (t) => {
  const error = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND', syscall: 'getaddrinfo' })
  const lookup = (_host: string, _options: object, done: (error: Error) => void): void => done(error)
  const { check } = await harness(t, { upstreams: [{ url: 'http://nowhere.invalid:80', connector: { lookup } }] })
  assert.equal((await check()).cause, 'dns_failed')
})

test('a connection that is never made ends with the time limit, and is closed', async (t) => {
  let asked = 0
  await new RawUpstream(ok).listen(t) // Something has to keep this process alive: the checks do not.
  const { app, check } = await harness(t, {
    upstreams: [{ url: 'http://nowhere.invalid:80', connector: { lookup: () => { asked++ } } }], health: { timeoutMs: 400 }
  })
  assert.equal((await check()).cause, 'timeout')
  assert.equal((await check()).cause, 'timeout')
  assert.equal(asked, 2)
  await app.close()
})

test('our own lack of descriptors says nothing about the upstream', async (t) => {
  const upstream = await new RawUpstream(ok).listen(t)
  let lacking = false
  const lookup = (_host: string, { all }: { all?: boolean }, done: (...result: unknown[]) => void): void => {
    if (lacking) done(Object.assign(new Error('connect EMFILE'), { code: 'EMFILE', syscall: 'connect' }))
    else if (all === true) done(null, [{ address: '127.0.0.1', family: 4 }])
    else done(null, '127.0.0.1', 4)
  }
  upstream.script = [ok.replace('\r\n', '\r\nConnection: close\r\n')]
  const { app, check, logged } = await harness(t, { upstreams: [{ url: `http://up.invalid:${upstream.port}`, connector: { lookup } }] })
  assert.equal((await check()).passed, true)
  const before = app.health.list()
  const told: unknown[] = []
  app.health.on('trouble', ({ type, cause, error }) => { told.push([type, cause, error]) })
  lacking = true
  for (let round = 0; round < 3; round++) {
    const result = await check()
    assert.deepEqual([result.passed, result.cause], [null, 'local_error'])
  }
  assert.deepEqual(app.health.list(), before)
  assert.equal(logged('health_check_inconclusive').length, 1)
  assert.deepEqual(told, [['health_check_inconclusive', 'local_error', 'connect EMFILE']])
  lacking = false
  assert.equal((await check()).passed, true)
})

test('a unix socket', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'health-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const socketPath = join(folder, 'up.sock')
  const upstream = await new RawUpstream(ok).listen(t, socketPath)
  const { check } = await harness(t, { upstreams: [{ url: 'http://localhost', id: socketPath, socketPath }] })
  const result = await check()
  assert.deepEqual([result.upstream, result.cause], [socketPath, 'check_passed'])
  await upstream.close()
  assert.equal((await check()).cause, 'connect_refused')
})

test('TLS: an unknown certificate is refused, a trusted one accepted, a wrong name refused', async (t) => {
  const raw = new RawUpstream(ok)
  const { url, cert } = await overTls(t, raw)
  const connectors = [{}, { ca: cert }, { ca: cert, servername: 'other.invalid' }, { rejectUnauthorized: false }, { ca: 'no certificate at all', cert: 'nor here', key: 'nor here' }]
  const { app, check } = await harness(t, { upstreams: connectors.map((connector, index) => ({ url, id: `${index}`, connector })) })
  const causes = await Promise.all(connectors.map(async (_, index) => (await check(index)).cause))
  assert.deepEqual(causes, ['tls_failed', 'check_passed', 'tls_failed', 'check_passed', 'tls_failed'])
  await app.close()
  await until('the upstream has no connection', () => raw.sockets.size === 0)
})

test('TLS spoken to a server that has none: tls_failed', async (t) => {
  const server = createNetServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.after(() => { server.close() })
  const { check } = await harness(t, { upstreams: [`https://127.0.0.1:${(server.address() as AddressInfo).port}`] })
  assert.equal((await check()).cause, 'tls_failed')
})

test('an answer that arrived while our own event loop stood still counts as in time', async (t) => {
  const upstream = await new RawUpstream(ok).listen(t)
  const { check } = await harness(t, { upstreams: [upstream.url], health: { timeoutMs: 100 } })
  await check()
  const running = check()
  block(400)
  assert.equal((await running).cause, 'check_passed')
})

test('a failure across a stall of ours longer than the time limit says nothing about the upstream', async (t) => {
  const upstream = await new RawUpstream(ok, (socket) => {
    block(400)
    socket.destroy()
  }).listen(t)
  const { app, check } = await harness(t, { upstreams: [upstream.url], health: { timeoutMs: 100 } })
  await check()
  const result = await check()
  assert.deepEqual([result.passed, result.cause], [null, 'event_loop_stall'])
  assert.equal(app.health.list()[0]!.healthy, true)
})

test('a stall shorter than the time limit does not save an upstream that hangs', async (t) => {
  const upstream = await new RawUpstream(hang).listen(t)
  const { check } = await harness(t, { upstreams: [upstream.url], health: { timeoutMs: 1000 } })
  const running = check()
  await until('the request has arrived', () => upstream.requests.length === 1)
  block(100)
  assert.equal((await running).cause, 'timeout')
})
