import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { selfSigned } from '../../config/certificate.ts'
import { answer } from '../../support/faulty-upstream.ts'
import { startGateway, unlessStalled } from '../../support/gateway.ts'
import { closedPort } from '../../support/ports.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { deafPort } from './deaf-port.ts'
import { tlsServer } from './tls-server.ts'
import { get, request } from './support.ts'

for (const method of ['GET', 'POST']) {
  test(`an upstream that refuses connections is answered 502 (${method})`, async (t) => {
    const port = await closedPort(t)
    const gateway = await startGateway(t, { upstreams: [`http://127.0.0.1:${port}`] })
    for (let i = 0; i < 3; i++) {
      const got = await rawRequest(gateway.port, request(method, '/', {}, method === 'POST' ? 'hello' : ''))
      assert.equal(got.status, 502)
      assert.doesNotMatch(got.text(), /127\.0\.0\.1|ECONNREFUSED/)
      assert.equal(got.ended, 'open')
      await gateway.left({ counted: 'failure', status: 502, reason: 'connect_refused' })
    }
  })
}

test('an upstream whose socket file is not there is answered 502', async (t) => {
  const gateway = await startGateway(t, { upstreams: [`unix:${join(tmpdir(), 'breakwater-nobody.sock')}`] })
  assert.equal((await rawRequest(gateway.port, get)).status, 502)
  await gateway.left({ counted: 'failure', status: 502, reason: 'connect_refused' })
})

test('an upstream on a unix socket is asked and answers', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'breakwater-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'app.sock')
  let seen = ''
  const server = createServer((socket) => {
    socket.on('data', (bytes) => {
      seen = bytes.toString('latin1')
      socket.end(answer({ body: 'hello' }))
    })
    socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(path, resolve))
  t.after(() => { server.close() })
  const gateway = await startGateway(t, { upstreams: [`unix:${path}`] })
  assert.equal((await rawRequest(gateway.port, get)).text(), 'hello')
  assert.match(seen, /\r\nhost: localhost\r\n/i)
  await gateway.left({ counted: 'success', status: 200, bytes: 5 })
})

test('an upstream that accepts no connection is given up after connectMs and answered 504', async (t) => {
  const gateway = await startGateway(t, { upstreams: [`http://127.0.0.1:${await deafPort(t)}`], pool: { timeouts: { connectMs: 150 } } })
  await unlessStalled(async () => {
    const began = performance.now()
    const got = await rawRequest(gateway.port, get)
    const took = performance.now() - began
    assert.equal(got.status, 504)
    assert.ok(took >= 149, String(took))
    await gateway.left({ counted: 'failure', status: 504, reason: 'connect_timeout' })
  })
})

test('a client that leaves while the connection is being made is nobody\'s failure', async (t) => {
  const gateway = await startGateway(t, { upstreams: [`http://127.0.0.1:${await deafPort(t)}`], pool: { timeouts: { connectMs: 400 } } })
  const client = await rawConnect(gateway.port)
  await client.write(get)
  await until(() => gateway.upstream().inFlight === 1)
  client.destroy()
  await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled', bytes: 0 })
})

test('totalMs ends a request that waits for its connection', async (t) => {
  const gateway = await startGateway(t, { upstreams: [`http://127.0.0.1:${await deafPort(t)}`], pool: { timeouts: { connectMs: 1000, totalMs: 150 } } })
  await unlessStalled(async () => {
    const got = await rawRequest(gateway.port, get)
    assert.equal(got.status, 504)
    await gateway.left({ counted: 'failure', status: 504, reason: 'deadline_exceeded' })
  })
})

test('a name that nobody knows is answered 502', async (t) => {
  const gateway = await startGateway(t, { upstreams: ['http://nobody.invalid:80'] })
  const got = await rawRequest(gateway.port, get, { timeoutMs: 15000 })
  assert.equal(got.status, 502)
  assert.doesNotMatch(got.text(), /invalid/)
  await gateway.left({ counted: 'failure', status: 502, reason: 'dns_failed' })
})

async function file (t: TestContext, content: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'breakwater-'))
  t.after(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'ca.pem'), content)
  return join(folder, 'ca.pem')
}

test('an upstream whose certificate nobody vouches for is answered 502, and gets no request', async (t) => {
  const port = await tlsServer(t, selfSigned('shop.internal'))
  const gateway = await startGateway(t, { upstreams: [`https://127.0.0.1:${port}`] })
  assert.equal((await rawRequest(gateway.port, get)).status, 502)
  await gateway.left({ counted: 'failure', status: 502, reason: 'tls_failed' })
})

test('an upstream whose certificate we trust is asked over TLS', async (t) => {
  const certificate = selfSigned('shop.internal')
  const port = await tlsServer(t, certificate)
  const ca = await file(t, certificate.cert)
  const gateway = await startGateway(t, { upstreams: [`https://127.0.0.1:${port}`], pool: { tls: { ca, servername: 'shop.internal' } } })
  for (let i = 0; i < 2; i++) {
    assert.equal((await rawRequest(gateway.port, get)).text(), 'secret')
    await gateway.left({ counted: 'success', status: 200, bytes: 6 })
  }
  assert.equal(gateway.upstream().connects, 1)
})

test('a trusted certificate for another name is answered 502', async (t) => {
  const certificate = selfSigned('shop.internal')
  const port = await tlsServer(t, certificate)
  const gateway = await startGateway(t, { upstreams: [`https://127.0.0.1:${port}`], pool: { tls: { ca: await file(t, certificate.cert), servername: 'other.internal' } } })
  assert.equal((await rawRequest(gateway.port, get)).status, 502)
  await gateway.left({ counted: 'failure', status: 502, reason: 'tls_failed' })
})

test('with insecureSkipVerify the certificate is not looked at, and the log says so', async (t) => {
  const port = await tlsServer(t, selfSigned('shop.internal'))
  const gateway = await startGateway(t, { upstreams: [`https://127.0.0.1:${port}`], pool: { tls: { insecureSkipVerify: true } } })
  assert.equal((await rawRequest(gateway.port, get)).text(), 'secret')
  await gateway.left({ counted: 'success', status: 200 })
  assert.ok(gateway.lines.find(line => line['level'] === 40 && String(line['msg']).includes('NOT verified')))
})

test('an upstream that does not talk TLS is answered 502', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => { socket.end(answer({ status: 400 })) })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => { server.close() })
  const gateway = await startGateway(t, { upstreams: [`https://127.0.0.1:${(server.address() as AddressInfo).port}`] })
  assert.equal((await rawRequest(gateway.port, get)).status, 502)
  await gateway.left({ counted: 'failure', status: 502, reason: 'tls_failed' })
})

test('a TLS handshake that never ends is given up after connectMs', async (t) => {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  const gateway = await startGateway(t, { upstreams: [`https://127.0.0.1:${(server.address() as AddressInfo).port}`], pool: { timeouts: { connectMs: 150 } } })
  await unlessStalled(async () => {
    assert.equal((await rawRequest(gateway.port, get)).status, 504)
    await gateway.left({ counted: 'failure', status: 504, reason: 'connect_timeout' })
  })
})

for (const way of ['the deadline', 'the client'] as const) {
  for (const method of ['GET', 'POST'] as const) {
    test(`a ${method} that is given up by ${way} while its connection is being made gives the connection's place back`, async (t) => {
      const open = new Set<Socket>()
      const server = createServer((socket) => {
        open.add(socket)
        socket.on('error', () => {}).on('close', () => { open.delete(socket) }).resume()
      })
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      t.after(() => {
        for (const socket of open) socket.destroy()
        server.close()
      })
      const timeouts = { connectMs: 0, totalMs: way === 'the deadline' ? 100 : 0 }
      const gateway = await startGateway(t, { upstreams: [`https://127.0.0.1:${(server.address() as AddressInfo).port}`], pool: { timeouts, connections: { max: 1 } } })
      const bytes = request(method, '/', {}, method === 'POST' ? 'hello' : '')
      for (let i = 0; i < 3; i++) {
        if (way === 'the deadline') {
          assert.equal((await rawRequest(gateway.port, bytes)).status, 504)
        } else {
          const client = await rawConnect(gateway.port)
          await client.write(bytes)
          await until(() => open.size === 1, { what: 'a connection' })
          client.reset()
        }
        await gateway.idle()
        await until(() => open.size === 0, { what: 'the connection closed' })
      }
      const lines = gateway.lines.all('access')
      assert.deepEqual(lines.map(({ reason }) => reason), Array.from({ length: 3 }, () => way === 'the deadline' ? 'deadline_exceeded' : 'client_cancelled'))
    })
  }
}
