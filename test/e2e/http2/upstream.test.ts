import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { request } from '../forwarder/support.ts'
import { bodyOf, http2Upstream, priorKnowledge } from './support.ts'

const get = request()

describe('an upstream that speaks HTTP/2', () => {
  it('is asked with the fields of the client, Host as its authority, and without those of the connection', async (t) => {
    const upstream = await http2Upstream(t, (stream) => {
      stream.respond({ ':status': 200, 'x-one': ['a', 'b'], 'set-cookie': ['a=1', 'b=2'], 'x-latin': 'caf\u00e9' })
      stream.end('hello')
    })
    const gateway = await priorKnowledge(t, upstream.url, { pool: { hostHeader: 'preserve' } })
    const answer = await rawRequest(gateway.port, Buffer.from('GET /a%2Fb?c HTTP/1.1\r\nHost: shop.example\r\nConnection: x-hop\r\nX-Hop: 1\r\nTE: trailers, gzip\r\nX-Two: 1\r\nX-Two: 2\r\n' +
      'Cookie: a=1\r\nCookie: b=2\r\nX-Latin: caf\u00e9\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n\r\n', 'latin1'))
    assert.equal(answer.status, 200)
    assert.equal(answer.text(), 'hello')
    assert.deepEqual(answer.headers.filter(([name]) => name.toLowerCase().startsWith('set-')).map(([, value]) => value), ['a=1', 'b=2'])
    assert.equal(answer.header('x-one'), 'a, b')
    assert.equal(answer.header('x-latin'), 'caf\u00e9')
    assert.equal(answer.header('via'), '2.0 breakwater')
    const { headers, raw } = upstream.requests[0]!
    assert.equal(headers[':path'], '/a%2Fb?c')
    assert.equal(headers[':authority'], 'shop.example')
    assert.equal(headers[':scheme'], 'http')
    assert.equal(headers['te'], 'trailers')
    assert.equal(headers['cookie'], 'a=1; b=2')
    assert.equal(headers['x-latin'], 'caf\u00e9')
    assert.equal(headers['x-two'], '1, 2')
    assert.equal(headers['x-forwarded-host'], 'shop.example')
    for (const name of ['host', 'connection', 'x-hop', 'upgrade', 'http2-settings', 'keep-alive', 'proxy-connection', 'transfer-encoding']) assert.ok(!raw.includes(name), name)
    await gateway.left({ counted: 'success', status: 200, bytes: 5 })
  })

  it('has many exchanges on one connection', async (t) => {
    let open = 0
    const upstream = await http2Upstream(t, async (stream) => {
      open++
      await until(() => open === 20)
      stream.respond({ ':status': 200 })
      stream.end('x')
    })
    const gateway = await priorKnowledge(t, upstream.url)
    const answers = await Promise.all(Array.from({ length: 20 }, () => rawRequest(gateway.port, get)))
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
    assert.equal(upstream.connections, 1)
  })

  it('may say later that it takes more streams', async (t) => {
    let open = 0
    const upstream = await http2Upstream(t, async (stream, { headers }) => {
      if (headers[':path'] === '/more') {
        await new Promise<void>((resolve) => { stream.session?.settings({ maxConcurrentStreams: 5 }, () => { resolve() }) })
      } else {
        open++
        await until(() => open === 5)
      }
      stream.respond({ ':status': 200 })
      stream.end('x')
    }, undefined, { maxConcurrentStreams: 1 })
    const gateway = await priorKnowledge(t, upstream.url, { pool: { http2: 'prior-knowledge', connections: { max: 1 } } })
    assert.equal((await rawRequest(gateway.port, request('GET', '/more'))).status, 200)
    const answers = await Promise.all(Array.from({ length: 5 }, () => rawRequest(gateway.port, get)))
    assert.deepEqual(answers.map(({ status }) => status), Array(5).fill(200))
    assert.equal(upstream.connections, 1)
  })

  it('gets a further connection where its streams are taken, and a bounded number of them', async (t) => {
    const held: Array<() => void> = []
    const upstream = await http2Upstream(t, (stream) => {
      held.push(() => {
        stream.respond({ ':status': 200 })
        stream.end('x')
      })
    })
    const gateway = await priorKnowledge(t, upstream.url, { pool: { http2: 'prior-knowledge', connections: { max: 2, maxStreams: 2 } } })
    const asked = Array.from({ length: 6 }, () => rawRequest(gateway.port, get))
    await until(() => held.length === 4 && gateway.upstream().waiting === 2)
    assert.equal(upstream.connections, 2)
    const refused = await rawRequest(gateway.port, get)
    assert.equal(refused.status, 503)
    assert.match(refused.text(), /upstream_capacity/)
    for (let i = 0; i < 6; i++) (await until(() => held[i]))()
    assert.deepEqual((await Promise.all(asked)).map(({ status }) => status), Array(6).fill(200))
    assert.equal(upstream.connections, 2)
    await gateway.skip()
  })

  it('decides how many streams a connection has', async (t) => {
    let most = 0
    let open = 0
    const upstream = await http2Upstream(t, (stream) => {
      most = Math.max(most, ++open)
      setTimeout(() => {
        open--
        stream.respond({ ':status': 200 })
        stream.end('x')
      }, 20)
    }, undefined, { maxConcurrentStreams: 3 })
    const gateway = await priorKnowledge(t, upstream.url, { pool: { http2: 'prior-knowledge', connections: { max: 1 } } })
    await rawRequest(gateway.port, get)
    const answers = await Promise.all(Array.from({ length: 4 }, () => rawRequest(gateway.port, get)))
    assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200, 200])
    assert.equal(most, 3)
  })

  it('gets a body as it comes, and trailers behind it', async (t) => {
    let trailers: object | null = null
    const upstream = await http2Upstream(t, async (stream, { headers }) => {
      stream.on('trailers', (fields: object) => { trailers = { ...fields } })
      const body = await bodyOf(stream)
      stream.respond({ ':status': 200, 'x-length': headers['content-length'] ?? 'none' })
      stream.end(body)
    })
    const gateway = await priorKnowledge(t, upstream.url)
    const fixed = await rawRequest(gateway.port, request('POST', '/', {}, 'some bytes'))
    assert.equal(fixed.text(), 'some bytes')
    assert.equal(fixed.header('x-length'), '10')
    await gateway.left({ counted: 'success', status: 200 })
    const chunked = await rawRequest(gateway.port, [request('POST', '/', { 'Transfer-Encoding': 'chunked', Trailer: 'x-sum' }), '3\r\nabc\r\n', 20, '3\r\ndef\r\n0\r\nX-Sum: 6\r\nAuthorization: no\r\nX-Real-IP: 1.2.3.4\r\n\r\n'], { methods: ['POST'] })
    assert.equal(chunked.text(), 'abcdef')
    assert.equal(chunked.header('x-length'), 'none')
    assert.deepEqual(Object.keys(trailers ?? {}), ['x-sum'])
    await gateway.left({ counted: 'success', status: 200 })
  })

  it('has its trailers passed on to a client that takes them', async (t) => {
    const upstream = await http2Upstream(t, (stream) => {
      stream.respond({ ':status': 200 }, { waitForTrailers: true })
      stream.on('wantTrailers', () => { stream.sendTrailers({ 'x-sum': '5' }) })
      stream.end('hello')
    })
    const gateway = await priorKnowledge(t, upstream.url)
    const answer = await rawRequest(gateway.port, request('GET', '/', { TE: 'trailers', Connection: 'TE' }))
    assert.equal(answer.text(), 'hello')
    assert.deepEqual(answer.trailers, [['x-sum', '5']])
    assert.equal((await rawRequest(gateway.port, get)).text(), 'hello')
  })

  it('has 103 passed on, and answers HEAD, 204 and 304 without a body', async (t) => {
    const upstream = await http2Upstream(t, (stream, { headers }) => {
      if (headers[':path'] === '/hints') stream.additionalHeaders({ ':status': 103, link: '</a.css>; rel=preload' })
      const status = { '/204': 204, '/304': 304 }[String(headers[':path'])] ?? 200
      stream.respond({ ':status': status, ...headers[':method'] === 'HEAD' && { 'content-length': '5' } }, { endStream: status !== 200 || headers[':method'] === 'HEAD' })
      if (status === 200 && headers[':method'] !== 'HEAD') stream.end('hello')
    })
    const gateway = await priorKnowledge(t, upstream.url)
    const hinted = await rawRequest(gateway.port, request('GET', '/hints'))
    assert.deepEqual(hinted.interim.map(({ status }) => status), [103])
    const head = await rawRequest(gateway.port, request('HEAD'))
    assert.equal(head.header('content-length'), '5')
    assert.equal((await rawRequest(gateway.port, request('GET', '/204'))).status, 204)
    assert.equal((await rawRequest(gateway.port, request('GET', '/304'))).status, 304)
    const asterisk = await rawRequest(gateway.port, Buffer.from('OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'))
    assert.equal(asterisk.status, 200)
    assert.equal(upstream.requests.at(-1)?.headers[':path'], '*')
  })

  it('has a large body in each direction, and waits for a client that does not read', async (t) => {
    const big = Buffer.alloc(20 * 1024 * 1024, 'x')
    let written = 0
    const upstream = await http2Upstream(t, async (stream, { headers }) => {
      if (headers[':method'] === 'POST') {
        const { length } = await bodyOf(stream)
        stream.respond({ ':status': 200 })
        stream.end(String(length))
        return
      }
      stream.respond({ ':status': 200 })
      for (let at = 0; at < big.length; at += 65536) {
        if (!stream.write(big.subarray(at, at + 65536))) await new Promise((resolve) => { stream.once('drain', resolve) })
        written = at
      }
      stream.end()
    })
    const gateway = await priorKnowledge(t, upstream.url, { server: { requestTimeoutMs: 0 } })
    const up = await rawRequest(gateway.port, request('POST', '/', {}, big), { timeoutMs: 20000 })
    assert.equal(up.text(), String(big.length))
    const client = await rawConnect(gateway.port, { timeoutMs: 20000 })
    client.socket.pause()
    await client.write(get)
    let before = -1
    await until(() => {
      const same = written > 0 && written === before
      before = written
      return same
    }, { intervalMs: 200, what: 'the upstream to wait' })
    assert.ok(written < big.length / 2, `waits after ${written}`)
    client.socket.resume()
    const down = await client.readResponse()
    assert.equal(down.body.length, big.length)
    client.destroy()
  })
})
