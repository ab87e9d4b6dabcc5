import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { ask, Folder, get, startListener } from './support.ts'

const line = 'PROXY TCP4 192.0.2.7 10.0.0.2 54321 8443\r\n'
const binary = Buffer.concat([Buffer.from('0d0a0d0a000d0a515549540a 21 11 000f c0000207 0a000002 d431 20fb 04 0000'.replaceAll(' ', ''), 'hex')])
const local = Buffer.from('0d0a0d0a000d0a515549540a 20 00 0000'.replaceAll(' ', ''), 'hex')
const listed = { proxyProtocolFrom: ['127.0.0.1'] }

for (const [version, header] of [['1', Buffer.from(line)], ['2', binary]] as const) {
  test(`a load balancer's header of version ${version} tells the client's address, for the log and for the upstream`, async (t) => {
    const gateway = await startListener(t, listed)
    const { status, body } = await rawRequest(gateway.port, [Buffer.concat([header, Buffer.from(get)])], { methods: ['GET'] })
    assert.equal(status, 200)
    assert.match(body.toString(), /x-forwarded-for: 192\.0\.2\.7\r\n/i)
    assert.match(body.toString(), /x-forwarded-port: 8443\r\n/i)
    assert.match(body.toString(), /forwarded: for=192\.0\.2\.7;/i)
    const access = await gateway.left({ counted: 'success', status: 200 })
    assert.equal(access['client_ip'], '192.0.2.7')
  })
}

test('whom to trust is asked of the client\'s address, not of the load balancer\'s', async (t) => {
  const gateway = await startListener(t, { ...listed, trustedProxies: ['127.0.0.1', '192.0.2.8'] })
  const request = (address: string): string => `PROXY TCP4 ${address} 10.0.0.2 54321 8443\r\nGET /a HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n\r\n`
  await rawRequest(gateway.port, request('192.0.2.7'), { methods: ['GET'] })
  await rawRequest(gateway.port, request('192.0.2.8'), { methods: ['GET'] })
  await until(() => gateway.lines.all('access').length === 2)
  assert.deepEqual(gateway.lines.all('access').map((access) => access['client_ip']), ['192.0.2.7', '203.0.113.9'])
})

test('a header without an address leaves the load balancer as the peer', async (t) => {
  const gateway = await startListener(t, listed)
  for (const header of [local, Buffer.from('PROXY UNKNOWN\r\n')]) {
    const { status } = await rawRequest(gateway.port, [Buffer.concat([header, Buffer.from(get)])], { methods: ['GET'] })
    assert.equal(status, 200)
    assert.equal((await gateway.left({ counted: 'success', status: 200 }))['client_ip'], '127.0.0.1')
  }
})

test('from anybody else a header is bytes that are not HTTP', async (t) => {
  const gateway = await startListener(t, { proxyProtocolFrom: ['192.0.2.1'] })
  for (const header of [Buffer.from(line), binary]) {
    const { status } = await rawRequest(gateway.port, [Buffer.concat([header, Buffer.from(get)])], { methods: ['GET'] })
    assert.equal(status, 400)
    assert.equal((await gateway.left({ counted: 'neutral', status: 400, reason: 'bad_request', upstream: null }))['client_ip'], '127.0.0.1')
  }
})

test('a load balancer that sends no header is closed without an answer, and told of in the log', async (t) => {
  const gateway = await startListener(t, listed)
  for (const bytes of [get, 'PROXY TCP4 nonsense\r\n', `PROXY UNKNOWN ${'x'.repeat(200)}`]) {
    const { raw, ended } = await rawRequest(gateway.port, bytes, { methods: ['GET'] })
    assert.equal(raw.length, 0)
    assert.notEqual(ended, 'timeout')
  }
  const told = await until(() => gateway.lines.find((entry) => entry['msg'] === 'connection_failed'))
  assert.equal(told['failure'], 'proxy_header')
  assert.equal(told['client_ip'], '127.0.0.1')
  assert.deepEqual(gateway.lines.all('access'), [])
})

test('a header that does not come in time is not waited for', async (t) => {
  const gateway = await startListener(t, { ...listed, headersTimeoutMs: 100 })
  for (const bytes of ['', 'PROXY TCP4 192']) {
    const { raw, ended } = await rawRequest(gateway.port, bytes, { methods: ['GET'] })
    assert.equal(raw.length, 0)
    assert.notEqual(ended, 'timeout')
  }
})

test('a client that leaves behind half a header leaves nothing behind', async (t) => {
  const gateway = await startListener(t, listed)
  for (const leave of ['end', 'reset'] as const) {
    const connection = await rawConnect(gateway.port)
    await connection.write('PROXY ')
    connection[leave]()
    await until(async () => await connections(gateway.app.server) === 0, { what: 'no connection' })
  }
})

function connections (server: { getConnections: (callback: (error: Error | null, count: number) => void) => void }): Promise<number> {
  return new Promise((resolve, reject) => { server.getConnections((error, count) => { if (error === null) resolve(count); else reject(error) }) })
}

test('however header and requests are split, the same arrives', async (t) => {
  const gateway = await startListener(t, listed)
  const body = 'x'.repeat(70000)
  const bytes = Buffer.concat([binary, Buffer.from(`POST /a HTTP/1.1\r\nHost: shop\r\nContent-Length: ${body.length}\r\n\r\n${body}${get}`)])
  const cuts = fc.uniqueArray(fc.oneof(fc.nat(60), fc.nat(bytes.length)), { maxLength: 6 })
  await fc.assert(fc.asyncProperty(cuts, async (at) => {
    const edges = [0, ...at.toSorted((a, b) => a - b), bytes.length]
    const parts = edges.slice(1).flatMap((end, index) => [bytes.subarray(edges[index], end), () => turn()])
    const { responses } = await rawRequest(gateway.port, parts, { methods: ['POST', 'GET'] })
    assert.deepEqual(responses.map(({ status }) => status), [200, 200])
  }), { numRuns: 25 })
})

test('behind the header there may be TLS', async (t) => {
  const folder = new Folder(t)
  const gateway = await startListener(t, { ...listed, tls: { certificates: [folder.issue('shop.example')] } })
  const under = connect({ port: gateway.port, host: '127.0.0.1' })
  t.after(() => under.destroy())
  under.write(line)
  const { text, name } = await ask(gateway.port, { socket: under })
  assert.equal(name, 'shop.example')
  assert.match(text, /x-forwarded-for: 192\.0\.2\.7\r\n/i)
  assert.match(text, /x-forwarded-proto: https\r\n/i)
})

test('on a Unix socket the header comes from whoever connects', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-'))
  t.after(() => { rmSync(folder, { recursive: true }) })
  const path = join(folder, 'app.sock')
  const gateway = await startListener(t, { proxyProtocolFrom: ['unix'] }, { listen: { path } })
  const socket = connect(path)
  t.after(() => socket.destroy())
  let text = ''
  socket.on('data', (bytes: Buffer) => { text += bytes.toString('latin1') })
  socket.write(line + get)
  await until(() => socket.destroyed)
  assert.match(text, /x-forwarded-for: 192\.0\.2\.7\r\n/i)
  assert.equal((await gateway.left({ counted: 'success', status: 200 }))['client_ip'], '192.0.2.7')
})
