import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, startListener } from './support.ts'

const request = 'GET /a HTTP/1.1\r\nHost: shop\r\n\r\n'

test('after so many requests a connection is closed, and the last answer says so', async (t) => {
  const gateway = await startListener(t, { maxRequestsPerConnection: 3 })
  const connection = await rawConnect(gateway.port)
  for (const expected of [undefined, undefined, 'close']) {
    await connection.write(request)
    const { status, header } = await connection.readResponse()
    assert.equal(status, 200)
    assert.equal(header('connection')?.replace('keep-alive', '') || undefined, expected)
  }
  assert.equal((await connection.readAll()).length, 0)
  assert.equal(await connection.closed, 'fin')
})

test('requests that were pipelined behind the last one are not taken', async (t) => {
  const gateway = await startListener(t, { maxRequestsPerConnection: 2 })
  const { responses } = await rawRequest(gateway.port, request.repeat(5), { methods: ['GET', 'GET', 'GET'], until: 'close' })
  assert.deepEqual(responses.map(({ status }) => status), [200, 200])
  await until(() => gateway.lines.all('access').length === 2)
  await gateway.idle()
  assert.equal(gateway.lines.all('access').length, 2)
})

test('a limit of one makes every answer the last of its connection', async (t) => {
  const gateway = await startListener(t, { maxRequestsPerConnection: 1 })
  const { status, header, ended } = await rawRequest(gateway.port, request)
  assert.deepEqual([status, header('connection'), ended], [200, 'close', 'fin'])
})

test('more connections than there may be are closed at once; when one ends another may come', async (t) => {
  const gateway = await startListener(t, { maxConnections: 2 })
  const [one, two] = [await rawConnect(gateway.port), await rawConnect(gateway.port)]
  const { raw } = await rawRequest(gateway.port, get)
  assert.equal(raw.length, 0)
  const told = await until(() => gateway.lines.find(({ msg }) => msg === 'connection_failed'))
  assert.deepEqual([told['failure'], told['count']], ['connection_limit', 1])
  one.destroy()
  await until(async () => (await rawRequest(gateway.port, get)).status === 200, { what: 'a place for another' })
  await two.write(get)
  assert.equal((await two.readResponse()).status, 200)
})

test('HTTP/1 on a listener that also takes HTTP/2 without TLS is as ever', async (t) => {
  const gateway = await startListener(t, { http2: { cleartext: true } })
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  // Each of these begins as the preface of HTTP/2 does.
  for (const part of ['P', 'PRI * HTTP/2.0\r\n\r\nS']) {
    const { status } = await rawRequest(gateway.port, [part, () => new Promise((resolve) => { setImmediate(resolve) }), 'OST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n'], { methods: ['POST'] })
    assert.equal(status, part === 'P' ? 200 : 400)
  }
})

test('a preface that does not come whole is not waited for', async (t) => {
  const gateway = await startListener(t, { http2: { cleartext: true }, headersTimeoutMs: 100 })
  for (const bytes of ['', 'PRI * HTTP']) {
    const { raw, ended } = await rawRequest(gateway.port, bytes)
    assert.equal(raw.length, 0)
    assert.notEqual(ended, 'timeout')
  }
})

for (const [trustedProxies, expected] of [[['unix'], '203.0.113.9'], [[], '']] as const) {
  test(`what a proxy on a Unix socket says is ${expected === '' ? 'not ' : ''}believed where unix is ${expected === '' ? 'not ' : ''}trusted`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'breakwater-'))
    t.after(() => { rmSync(folder, { recursive: true }) })
    const path = join(folder, 'app.sock')
    const gateway = await startListener(t, { trustedProxies }, { listen: { path } })
    const socket = connect(path)
    t.after(() => socket.destroy())
    let text = ''
    socket.on('data', (bytes: Buffer) => { text += bytes.toString('latin1') })
    socket.write('GET /a HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n')
    await until(() => socket.destroyed)
    assert.equal(/x-forwarded-for: (.*)\r\n/.exec(text)?.[1], expected)
    assert.equal(/x-forwarded-proto: (.*)\r\n/.exec(text)?.[1], expected === '' ? 'http' : 'https')
    assert.equal((await gateway.left({ counted: 'success', status: 200 }))['client_ip'], expected)
  })
}
