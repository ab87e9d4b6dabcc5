import assert from 'node:assert/strict'
import { createServer as createHttp1 } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { describe, it, type TestContext } from 'node:test'
import { selfSigned } from '../../config/certificate.ts'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { request } from '../forwarder/support.ts'
import { http2Upstream } from './support.ts'

const get = request()
const tls = selfSigned('shop')
const trusting = { http2: 'alpn', tls: { insecureSkipVerify: true } }

const gatewayTo = (t: TestContext, url: string, pool: Record<string, unknown> = {}): Promise<Gateway> =>
  startGateway(t, { upstreams: [url], pool: { ...trusting, ...pool } })

/** An https server that speaks HTTP/1.1 alone. */
async function http1Upstream (t: TestContext): Promise<{ url: string, connections: () => number, versions: string[] }> {
  let connections = 0
  const versions: string[] = []
  const server = createHttp1(tls, (incoming, response) => {
    versions.push(incoming.httpVersion)
    incoming.resume().on('end', () => { response.end(`hello ${incoming.headers.te ?? ''}`) })
  })
  server.on('secureConnection', () => { connections++ })
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections, versions }
}

describe('a pool that agrees on the protocol (ALPN)', () => {
  it('speaks HTTP/2 where the upstream does, with many exchanges on one connection', async (t) => {
    const upstream = await http2Upstream(t, (stream) => {
      stream.respond({ ':status': 200 })
      stream.end('hello')
    }, tls)
    const gateway = await gatewayTo(t, upstream.url)
    const answers = await Promise.all(Array.from({ length: 10 }, () => rawRequest(gateway.port, get)))
    assert.deepEqual(new Set(answers.map((answer) => answer.text())), new Set(['hello']))
    assert.equal(answers[0]?.header('via'), '2.0 breakwater')
    assert.equal(upstream.requests[0]?.headers[':scheme'], 'https')
    assert.equal(upstream.connections, 1)
  })

  it('speaks HTTP/1.1 where the upstream does not, and wastes no connection on finding out', async (t) => {
    const upstream = await http1Upstream(t)
    const gateway = await gatewayTo(t, upstream.url)
    const first = await rawRequest(gateway.port, request('POST', '/', { TE: 'trailers', Connection: 'TE' }, 'body'))
    assert.equal(first.text(), 'hello trailers')
    assert.equal(first.header('via'), '1.1 breakwater')
    assert.equal((await rawRequest(gateway.port, get)).status, 200)
    assert.equal(upstream.connections(), 1)
    assert.deepEqual(upstream.versions, ['1.1', '1.1'])
    await gateway.skip()
  })

  it('has all of many exchanges answered that came before anything was agreed on', async (t) => {
    const upstream = await http1Upstream(t)
    const gateway = await gatewayTo(t, upstream.url, { connections: { max: 4 } })
    const answers = await Promise.all(Array.from({ length: 8 }, () => rawRequest(gateway.port, get)))
    assert.deepEqual(answers.map(({ status }) => status), Array(8).fill(200))
    assert.ok(upstream.connections() <= 4)
    await gateway.skip()
  })

  it('follows an upstream that takes up the other protocol', async (t) => {
    let asked = 0
    const upstream = await http2Upstream(t, () => {}, { ...tls, allowHTTP1: true })
    upstream.server.removeAllListeners('stream').on('request', (incoming: Http2ServerRequest, response: Http2ServerResponse) => {
      asked++
      response.end(incoming.httpVersion)
    })
    const gateway = await gatewayTo(t, upstream.url)
    assert.equal((await rawRequest(gateway.port, get)).text(), '2.0')
    const client = await rawConnect(gateway.port)
    await client.write(Buffer.from('OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'))
    assert.equal((await client.readResponse()).text(), '1.1')
    client.destroy()
    for (const socket of upstream.sockets) socket.destroy()
    await until(() => upstream.sockets.size === 0)
    assert.equal((await rawRequest(gateway.port, get)).text(), '2.0')
    assert.equal(asked, 3)
  })

  it('tells a certificate that it does not trust', async (t) => {
    const upstream = await http2Upstream(t, () => {}, tls)
    const gateway = await gatewayTo(t, upstream.url, { tls: {} })
    const answer = await rawRequest(gateway.port, get)
    assert.match(answer.text(), /tls_failed/)
    await gateway.left({ counted: 'failure', status: 502, reason: 'tls_failed' })
  })

  for (const [what, http2, url] of [['HTTP/2 over TLS', 'alpn', 'https'], ['HTTP/2 in clear text', 'prior-knowledge', 'http']] as const) {
    it(`checks an upstream that speaks nothing but ${what}`, async (t) => {
      let healthy = true
      const upstream = await http2Upstream(t, (stream, { headers }) => {
        stream.respond({ ':status': headers[':path'] === '/healthz' && !healthy ? 500 : 200 })
        stream.end('hello')
      }, url === 'https' ? tls : undefined)
      const gateway = await gatewayTo(t, upstream.url, { http2, ...http2 === 'prior-knowledge' && { tls: undefined }, health: { enabled: true, intervalMs: 50, jitter: 0 } })
      await until(() => gateway.upstream().healthy)
      healthy = false
      await until(() => !gateway.upstream().healthy)
      healthy = true
      await until(() => gateway.upstream().healthy)
      assert.equal((await rawRequest(gateway.port, get)).text(), 'hello')
      assert.ok(upstream.connections <= 2, `${upstream.connections} connections`)
    })
  }

  it('answers a WebSocket and gRPC that the other protocol would be needed for', async (t) => {
    const http1 = await http1Upstream(t)
    const gateway = await gatewayTo(t, http1.url)
    const grpc = request('POST', '/a.B/C', { 'Content-Type': 'application/grpc', TE: 'trailers', Connection: 'TE' }, '12345')
    assert.equal((await rawRequest(gateway.port, grpc)).header('grpc-status'), '12')
    await gateway.left({ counted: 'neutral', status: 200, reason: 'protocol_mismatch' })
    const cleartext = await http2Upstream(t, () => {})
    const other = await startGateway(t, { upstreams: [cleartext.url], pool: { http2: 'prior-knowledge' } })
    const handshake = request('GET', '/', { Upgrade: 'websocket', Connection: 'Upgrade', 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version': '13' })
    const refused = await rawRequest(other.port, handshake)
    assert.equal(refused.status, 502)
    assert.match(refused.text(), /protocol_mismatch/)
    await other.left({ counted: 'neutral', status: 502, reason: 'protocol_mismatch', upstream: null })
  })
})
