import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTcp, createServer, type AddressInfo, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import { answering, reset, send } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until, within } from '../../support/wait.ts'
import { ask, Folder, get, startListener } from './support.ts'

test('the name that a client asks for chooses its certificate', async (t) => {
  const folder = new Folder(t)
  const { port } = await startListener(t, {
    tls: {
      certificates: [
        folder.issue('first.example'),
        folder.issue('*.shop.example', { names: ['*.shop.example', 'shop.example'] }),
        { ...folder.issue('named'), names: ['own.example', 'api.shop.example'] }
      ]
    }
  })
  const expected: [string | undefined, string][] = [
    ['first.example', 'first.example'], ['shop.example', '*.shop.example'], ['www.shop.example', '*.shop.example'], ['WWW.Shop.Example', '*.shop.example'],
    ['a.b.shop.example', 'first.example'], ['own.example', 'named'], ['api.shop.example', 'named'], ['named', 'first.example'], ['other.example', 'first.example'], [undefined, 'first.example']
  ]
  for (const [servername, name] of expected) {
    const asked = await ask(port, servername === undefined ? {} : { servername })
    assert.equal(asked.name, name, servername)
    assert.match(asked.text, /^HTTP\/1\.1 200 /)
  }
})

test('the upstream is told that the client came by TLS', async (t) => {
  const folder = new Folder(t)
  const { port } = await startListener(t, { tls: { certificates: [folder.issue('shop.example')] } })
  const { text } = await ask(port)
  assert.match(text, /x-forwarded-proto: https\r\n/i)
  assert.match(text, new RegExp(`x-forwarded-port: ${port}\r\n`, 'i'))
  assert.match(text, /forwarded: for=127\.0\.0\.1;host=shop\.example;proto=https\r\n/i)
})

test('versions of TLS below the oldest that is spoken are refused', async (t) => {
  const folder = new Folder(t)
  const certificates = [folder.issue('shop.example')]
  const older = await startListener(t, { tls: { certificates } })
  const newer = await startListener(t, { tls: { certificates, minVersion: 'TLSv1.3' } })
  assert.match((await ask(older.port, { maxVersion: 'TLSv1.2' })).text, /^HTTP\/1\.1 200 /)
  await assert.rejects(ask(newer.port, { maxVersion: 'TLSv1.2' }), { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' })
  assert.match((await ask(newer.port)).text, /^HTTP\/1\.1 200 /)
})

test('who speaks HTTP/2 is agreed on in the handshake', async (t) => {
  const folder = new Folder(t)
  const certificates = [folder.issue('shop.example')]
  const both = await startListener(t, { tls: { certificates } })
  const one = await startListener(t, { tls: { certificates }, http2: { enabled: false } })
  const agreed = async (port: number, ALPNProtocols: string[]): Promise<string | false | null> => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols })
    await within(new Promise((resolve, reject) => { socket.on('secureConnect', resolve).on('error', reject) }))
    socket.destroy()
    return socket.alpnProtocol
  }
  assert.equal(await agreed(both.port, ['http/1.1', 'h2']), 'h2')
  assert.equal(await agreed(both.port, ['http/1.1']), 'http/1.1')
  assert.equal(await agreed(both.port, []), false)
  assert.equal(await agreed(one.port, ['h2', 'http/1.1']), 'http/1.1')
  await assert.rejects(agreed(one.port, ['h2']), { code: 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL' })
})

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`a client comes back without a whole handshake, whatever name it asks for (${maxVersion})`, async (t) => {
    const folder = new Folder(t)
    const { port } = await startListener(t, { tls: { certificates: [folder.issue('first.example'), folder.issue('shop.example')] } })
    for (const servername of ['first.example', 'shop.example']) {
      const { session } = await withSession(t, port, { servername, maxVersion })
      const again = await withSession(t, port, { servername, maxVersion, session })
      assert.equal(again.reused, true, servername)
      assert.match(again.text, /^HTTP\/1\.1 200 /)
    }
  })
}

test('a client that is slow to make TLS, or makes none, is closed in time', async (t) => {
  const folder = new Folder(t)
  const gateway = await startListener(t, { headersTimeoutMs: 1000, tls: { certificates: [folder.issue('shop.example')] } })
  for (const bytes of ['', '\x16\x03\x01\x02\x00']) {
    const connection = await rawConnect(gateway.port)
    await connection.write(bytes)
    assert.equal((await connection.readAll()).length, 0)
  }
  const { raw } = await rawRequest(gateway.port, Buffer.alloc(100, 0x17))
  assert.doesNotMatch(raw.toString('latin1'), /HTTP/)
  assert.deepEqual(gateway.lines.all('access'), [])
  await until(() => gateway.lines.all('connection_failed').length === 2)
  assert.deepEqual(gateway.lines.all('connection_failed').map(({ failure }) => failure), ['opening_timeout', 'tls_handshake'])
})

test('a client is not late for what lies unread while our own loop stands still', async (t) => {
  const gateway = await startListener(t, { headersTimeoutMs: 300, tls: { certificates: [new Folder(t).issue('shop.example')] } })
  const plain = connectTcp(gateway.port, '127.0.0.1')
  t.after(() => { plain.destroy() })
  await until(() => new Promise((resolve) => { gateway.app.server.getConnections((_error, count) => { resolve(count === 1) }) }))
  const socket = connect({ socket: plain, rejectUnauthorized: false })
  const secured = new Promise((resolve, reject) => { socket.on('secureConnect', resolve).on('error', reject) })
  for (const end = performance.now() + 400; performance.now() < end;);
  await within(secured)
  socket.write(get)
  assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 200 /)
})

test('whoever speaks HTTP without TLS to the port of TLS is told so, whole and once, and others are served', async (t) => {
  const folder = new Folder(t)
  const gateway = await startListener(t, { headersTimeoutMs: 300, proxyProtocolFrom: ['127.0.0.2'], tls: { certificates: [folder.issue('shop.example')] } })
  const body = 'x'.repeat(100_000)
  const cases: Array<[string, string | string[], object?]> = [
    ['a request', get],
    ['two', get + get],
    ['a method that goes on in another packet', ['DEL', 'ETE / HTTP/1.1\r\nHost: a\r\n\r\n']],
    ['a body behind it', [`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`, body]],
    ['HTTP/2 with prior knowledge', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['behind a PROXY header', `PROXY TCP4 192.0.2.7 192.0.2.8 1 443\r\n${get}`, { localAddress: '127.0.0.2' }]
  ]
  for (const [name, bytes, options] of cases) {
    const pieces = [bytes].flat().flatMap((piece) => [piece, 20])
    const response = await rawRequest(gateway.port, pieces, { methods: ['GET'], until: 'close', ...options })
    assert.deepEqual([response.status, response.header('connection'), response.responses.length, response.ended], [400, 'close', 1, 'fin'], name)
    assert.deepEqual((response.json() as { reason: string, detail: string }), { ...response.json() as object, reason: 'bad_request', detail: 'This port speaks TLS: ask by https://' })
  }
  await until(() => gateway.lines.all('access').length === cases.length)
  const lines = gateway.lines.all('access')
  for (const line of lines) assert.deepEqual([line['method'], line['path'], line['status'], line['reason']], [null, null, 400, 'bad_request'])
  assert.equal(lines.at(-1)?.['client_ip'], '192.0.2.7')
  // A method that never ends, and what is neither.
  for (const bytes of ['GET', 'A'.repeat(40), 'get / HTTP/1.1\r\n\r\n', ' ']) assert.equal((await rawRequest(gateway.port, bytes, { until: 'close' })).raw.toString('latin1').includes('HTTP'), false)
  assert.match((await ask(gateway.port)).text, /^HTTP\/1\.1 200 /)
  assert.equal(gateway.lines.all('access').length, cases.length + 1)
})

test('a slow head over TLS gets its answer, as without TLS', async (t) => {
  const folder = new Folder(t)
  const gateway = await startListener(t, { headersTimeoutMs: 200, tls: { certificates: [folder.issue('shop.example')] } })
  const { text } = await ask(gateway.port, {}, 'GET / HTTP/1.1\r\nHost:')
  assert.match(text, /^HTTP\/1\.1 408 /)
  await gateway.left({ counted: 'neutral', status: 408, reason: 'request_timeout', upstream: null })
})

test('malformed requests, CONNECT and Expect are treated over TLS as without', async (t) => {
  const folder = new Folder(t)
  const gateway = await startListener(t, { tls: { certificates: [folder.issue('shop.example')] } })
  assert.match((await ask(gateway.port, {}, 'GET / HTTP/9\r\n\r\n')).text, /^HTTP\/1\.1 400 /)
  assert.match((await ask(gateway.port, {}, 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n')).text, /^HTTP\/1\.1 400 /)
  assert.match((await ask(gateway.port, {}, 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n')).text, /^HTTP\/1\.1 400 /)
  assert.match((await ask(gateway.port, {}, 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx')).text, /^HTTP\/1\.1 200 /)
})

test('an answer that breaks off over TLS is never taken for whole, even where only the end of the connection ends it', async (t) => {
  const folder = new Folder(t)
  let text = ''
  const { port } = await startListener(t, { tls: { certificates: [folder.issue('shop.example')] } }, {}, async (upstream) => {
    await send(upstream, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
    await until(() => text.endsWith('abc'), { what: 'a part of the body' })
    reset(upstream)
  })
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  t.after(() => socket.destroy())
  const broken = new Promise((resolve) => { socket.on('error', resolve) })
  socket.on('data', (bytes: Buffer) => { text += bytes.toString('latin1') })
  socket.write('GET / HTTP/1.0\r\nHost: a\r\n\r\n')
  assert.equal((await within(broken, { what: 'an error' }) as NodeJS.ErrnoException).code, 'ECONNRESET')
  assert.match(text, /^HTTP\/1\.1 200 /)
})

test('connections that are not ready yet count, and close with the listener', async (t) => {
  const folder = new Folder(t)
  const gateway = await startListener(t, { maxConnections: 2, headersTimeoutMs: 60000, tls: { certificates: [folder.issue('shop.example')] } })
  const waiting = [await rawConnect(gateway.port), await rawConnect(gateway.port)]
  await waiting[1]!.write('\x16')
  const third = await rawConnect(gateway.port)
  assert.equal((await third.readAll()).length, 0, 'one too many is closed at once')
  await until(() => gateway.lines.find(({ msg, failure }) => msg === 'connection_failed' && failure === 'connection_limit'))
  await within(gateway.close(), { what: 'the end of the app' })
  for (const connection of waiting) assert.equal((await connection.readAll()).length, 0)
})

test('a client that leaves in the midst of its handshake leaves nothing behind, however it goes', async (t) => {
  const folder = new Folder(t)
  const gateway = await startListener(t, { maxConnections: 1, headersTimeoutMs: 60000, tls: { certificates: [folder.issue('shop.example')] } })
  const hello = await helloOf(t)
  for (const [bytes, leave] of [[hello, 'destroy'], [hello, 'end'], [hello, 'resetAndDestroy'], [hello.subarray(0, 50), 'destroy'], [hello.subarray(0, 1), 'end']] as const) {
    const client = connectTcp(gateway.port, '127.0.0.1')
    t.after(() => client.destroy())
    client.on('error', () => {}).resume().write(bytes)
    // It is in the midst of its handshake once it was answered; of a part nothing tells.
    await (bytes === hello ? within(new Promise((resolve) => { client.once('data', resolve) })) : turn())
    client[leave]()
    await until(async () => (await ask(gateway.port).catch(() => ({ text: '' }))).text.startsWith('HTTP/1.1 200 '), { what: `its place, after ${bytes.length} bytes and ${leave}` })
  }
})

test('a client that wants to negotiate anew is cut off', async (t) => {
  const folder = new Folder(t)
  const { port } = await startListener(t, { tls: { certificates: [folder.issue('shop.example')] } })
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, maxVersion: 'TLSv1.2' })
  t.after(() => socket.destroy())
  socket.on('error', () => {}).resume()
  await within(new Promise((resolve) => { socket.once('secureConnect', resolve) }))
  socket.renegotiate({}, () => {})
  await until(() => socket.closed)
  assert.match((await ask(port)).text, /^HTTP\/1\.1 200 /)
})

/** What a client of TLS says first. */
async function helloOf (t: TestContext): Promise<Buffer> {
  const server = createServer()
  t.after(() => server.close())
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  const client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' }).on('error', () => {})
  t.after(() => client.destroy())
  const [socket] = await once(server, 'connection') as [Socket]
  t.after(() => socket.destroy())
  return (await once(socket, 'data') as [Buffer])[0]
}

test('the way down lets a request over TLS finish, and closes idle connections', async (t) => {
  const folder = new Folder(t)
  let finish: (() => void) | null = null
  const gateway = await startListener(t, { tls: { certificates: [folder.issue('shop.example')] } }, {}, async (socket, request) => {
    await new Promise<void>((resolve) => { finish = resolve })
    return answering({ body: 'whole' })(socket, request)
  })
  const open = async (): Promise<TLSSocket> => {
    const socket = connect({ port: gateway.port, host: '127.0.0.1', rejectUnauthorized: false })
    t.after(() => socket.destroy())
    await within(new Promise((resolve, reject) => { socket.on('secureConnect', resolve).on('error', reject) }))
    return socket
  }
  const idle = await open()
  const busy = await open()
  let text = ''
  busy.on('data', (bytes: Buffer) => { text += bytes.toString() })
  busy.write('GET / HTTP/1.1\r\nHost: shop\r\n\r\n')
  await until(() => finish)
  const closed = gateway.close()
  idle.resume()
  await until(() => idle.closed, { what: 'the end of the idle connection' })
  finish!()
  await within(closed)
  await until(() => busy.closed)
  assert.match(text, /\r\n\r\nwhole$/)
})

interface Session { session: Buffer, reused: boolean, text: string }

async function withSession (t: TestContext, port: number, options: object): Promise<Session> {
  const sessions: Buffer[] = []
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
  t.after(() => socket.destroy())
  let text = ''
  socket.on('session', (session: Buffer) => { sessions.push(session) }).on('data', (bytes: Buffer) => { text += bytes.toString('latin1') }).on('error', () => {})
  let reused = false
  socket.on('secureConnect', () => {
    reused = socket.isSessionReused()
    socket.write(get)
  })
  await until(() => socket.closed, { what: 'the end of the connection' })
  return { session: sessions[0] as Buffer, reused, text }
}

test('bytes that are not TLS do not disturb others', async (t) => {
  const folder = new Folder(t)
  const { port } = await startListener(t, { tls: { certificates: [folder.issue('shop.example')] } })
  const socket = connectTcp(port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.on('error', () => {}).resume().write(Buffer.alloc(100000, 1))
  await until(() => socket.closed)
  assert.match((await ask(port)).text, /^HTTP\/1\.1 200 /)
})

test('a certificate that has expired, or soon will, is told of at the start', async (t) => {
  const folder = new Folder(t)
  const soon = new Date(Date.now() + 5 * 86_400_000).toISOString().replace(/[-:T]|\.\d+/g, '')
  const gateway = await startListener(t, {
    tls: { certificates: [folder.issue('old.example', { notAfter: '20210101000000Z' }), folder.issue('soon.example', { notAfter: soon }), folder.issue('fine.example')] }
  })
  assert.deepEqual(gateway.lines.all('certificate_expired').map(({ names }) => names), [['old.example']])
  assert.deepEqual(gateway.lines.all('certificate_expires_soon').map(({ names }) => names), [['soon.example']])
  assert.deepEqual(gateway.app.events.since(0).events.filter(({ type }) => type.startsWith('certificate_')).map(({ type, names }) => [type, names]), [
    ['certificate_expired', ['old.example']], ['certificate_expires_soon', ['soon.example']]
  ])
})

