import assert from 'node:assert/strict'
import { connect, type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2'
import { describe, it, type TestContext } from 'node:test'
import { answer, answering, rawUpstream, reset, send, stall, type RawHandler, type RawUpstream } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway, type GatewayOptions } from '../../support/gateway.ts'
import { data, frameClient, headers as headFrame, requestFields } from '../../support/http2-frames.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { until, within } from '../../support/wait.ts'
import { request as http1 } from '../forwarder/support.ts'

interface Answer { status: number, headers: IncomingHttpHeaders, body: Buffer, trailers: IncomingHttpHeaders, interim: number[], rstCode: number, ended: boolean }

/** Makes a request; resolves when its stream is closed. */
function ask (session: ClientHttp2Session, headers: OutgoingHttpHeaders = {}, body?: Buffer | string | ((stream: ClientHttp2Stream) => void)): Promise<Answer> {
  return within(new Promise((resolve) => {
    const stream = session.request({ ':path': '/', ...headers }, { endStream: body === undefined })
    const pieces: Buffer[] = []
    const found: Answer = { status: 0, headers: {}, body: Buffer.alloc(0), trailers: {}, interim: [], rstCode: 0, ended: false }
    stream.on('headers', (fields) => { found.interim.push(Number(fields[':status'])) })
      .on('response', (fields) => { Object.assign(found, { status: Number(fields[':status']), headers: fields }) })
      .on('trailers', (fields) => { found.trailers = fields })
      .on('data', (piece: Buffer) => { pieces.push(piece) })
      .on('end', () => { found.ended = true })
      .on('error', () => {})
      .on('close', () => { resolve({ ...found, body: Buffer.concat(pieces), rstCode: stream.rstCode }) })
    if (typeof body === 'function') body(stream)
    else if (body !== undefined) stream.end(body)
  }), { what: 'an answer' })
}

interface Front { gateway: Gateway, upstream: RawUpstream, session: ClientHttp2Session }

async function behind (t: TestContext, handler: RawHandler, { server, ...options }: GatewayOptions = {}): Promise<Front> {
  const upstream = await rawUpstream(handler)
  t.after(() => upstream.close())
  const gateway = await startGateway(t, { upstreams: [upstream.url], server: { ...server, http2: { cleartext: true, ...server?.['http2'] as object } }, ...options })
  return { gateway, upstream, session: open(t, gateway) }
}

function open (t: TestContext, { port }: Gateway): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  t.after(() => { session.destroy() })
  return session
}

describe('a client that speaks HTTP/2', () => {
  it('is answered like one that speaks HTTP/1, without fields of the connection', async (t) => {
    const { gateway, upstream, session } = await behind(t, answering({ headers: [['Content-Type', 'text/plain'], ['Keep-Alive', 'timeout=5'], ['Set-Cookie', 'a=1'], ['Set-Cookie', 'b=2'], ['X-Latin', 'caf\u00e9']], body: 'hello' }))
    const found = await ask(session, { ':path': '/a%2Fb?c', ':authority': 'shop.example', 'cookie': ['a=1', 'b=2'], 'x-two': ['1', '2'], 'x-latin': 'caf\u00e9' })
    assert.equal(found.status, 200)
    assert.equal(found.body.toString(), 'hello')
    assert.deepEqual(found.headers['set-cookie'], ['a=1', 'b=2'])
    assert.equal(found.headers['x-latin'], 'caf\u00e9')
    assert.equal(found.headers['via'], '1.1 breakwater')
    for (const name of ['connection', 'keep-alive', 'transfer-encoding']) assert.equal(found.headers[name], undefined, name)
    const seen = upstream.requests[0]!
    assert.equal(seen.target, '/a%2Fb?c')
    assert.equal(seen.header('x-forwarded-host'), 'shop.example')
    assert.equal(seen.header('x-forwarded-proto'), 'http')
    assert.equal(seen.header('via'), '2.0 breakwater')
    assert.equal(seen.header('cookie'), 'a=1; b=2')
    assert.equal(seen.header('x-two'), '1, 2')
    assert.equal(seen.header('x-latin'), 'caf\u00e9')
    assert.ok(!seen.headers.some(([name]) => name.startsWith(':')))
    const line = await gateway.left({ counted: 'success', status: 200, bytes: 5 })
    assert.equal(line['path'], '/a%2Fb')
    assert.equal(line['client_ip'], '127.0.0.1')
    assert.equal((await rawRequest(gateway.port, http1())).status, 200)
  })

  it('has many answers at the same time on one connection', async (t) => {
    const { gateway, session } = await behind(t, async (socket, { target }) => {
      await new Promise((resolve) => { setTimeout(resolve, 20) })
      await send(socket, answer({ body: target }))
    })
    const found = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(session, { ':path': `/${i}` })))
    found.forEach(({ body }, i) => assert.equal(body.toString(), `/${i}`))
    await gateway.idle()
  })

  it('sends a body of known length and one of unknown length, and large ones', async (t) => {
    const { session, upstream } = await behind(t, async (socket, { body }) => {
      const { body: bytes } = await body()
      await send(socket, answer({ body: String(bytes.length) }))
    })
    assert.equal((await ask(session, { ':method': 'POST', 'content-length': '4' }, 'some')).body.toString(), '4')
    assert.equal(upstream.requests[0]?.header('content-length'), '4')
    assert.equal((await ask(session, { ':method': 'POST' }, Buffer.alloc(5000000))).body.toString(), '5000000')
    assert.equal(upstream.requests[1]?.header('transfer-encoding'), 'chunked')
  })

  for (const [what, more] of [['of unknown length', []], ['of known length', [['content-length', '5']]]] as const) {
    it(`sends a body ${what} in one packet with its head: it is forwarded`, async (t) => {
      const { gateway } = await behind(t, async (socket, { body }) => {
        const { body: bytes } = await body()
        await send(socket, answer({ body: `got ${bytes.toString()}` }))
      })
      const client = await frameClient(t, gateway.port)
      client.send(headFrame(1, requestFields('/', 'POST', more)), data(1, 'hello', true))
      await until(() => client.body(1).toString() === 'got hello', { what: 'the body, in the answer' })
      await gateway.left({ counted: 'success', status: 200, bytes: 9 })
    })
  }

  it('gets a large answer whole', async (t) => {
    const big = Buffer.alloc(8000000, 'x')
    const { session } = await behind(t, answering({ body: big }))
    const { body, ended } = await ask(session)
    assert.ok(ended && body.equals(big))
  })

  it('is answered to HEAD, 204, 304, 103, and Expect', async (t) => {
    const { session } = await behind(t, async (socket, { method, target, body }) => {
      if (target === '/hints') await send(socket, 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n')
      if (target === '/204') return send(socket, 'HTTP/1.1 204 No Content\r\n\r\n')
      if (target === '/304') return send(socket, 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n')
      await body()
      return send(socket, method === 'HEAD' ? 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n' : answer({ body: 'hello' }))
    })
    assert.deepEqual((await ask(session, { ':path': '/hints' })).interim, [103])
    const head = await ask(session, { ':method': 'HEAD' })
    assert.equal(head.headers['content-length'], '5')
    assert.equal(head.body.length, 0)
    assert.equal((await ask(session, { ':path': '/204' })).status, 204)
    assert.equal((await ask(session, { ':path': '/304' })).headers['etag'], '"a"')
    const expecting = await ask(session, { ':method': 'POST', 'expect': '100-continue' }, (stream) => { stream.on('continue', () => { stream.end('body') }) })
    assert.equal(expecting.status, 200)
  })

  it('gets the trailers of an HTTP/1.1 upstream', async (t) => {
    const { session } = await behind(t, (socket) => send(socket, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n'))
    const { body, trailers } = await ask(session)
    assert.equal(body.toString(), 'hello')
    assert.equal(trailers['x-sum'], '5')
  })

  it('is refused with a problem document, and probes are answered', async (t) => {
    const { gateway, session } = await behind(t, answering(), { routes: [{ path: '/only', pool: 'shop' }] })
    const refused = await ask(session, { ':path': '/other' })
    assert.equal(refused.status, 404)
    assert.match(refused.body.toString(), /no_route/)
    await gateway.left({ counted: 'neutral', status: 404, reason: 'no_route', upstream: null })
    assert.equal((await ask(session, { ':path': '/livez' })).status, 204)
  })
})

describe('a client over HTTP/2 that leaves', () => {
  for (const method of ['GET', 'HEAD', 'POST']) {
    it(`resets its stream (${method}) before the answer: it has left, and everything is given back`, async (t) => {
      const { gateway, upstream, session } = await behind(t, stall)
      const stream = session.request({ ':path': '/', ':method': method }, { endStream: method !== 'POST' })
      stream.on('error', () => {})
      if (method === 'POST') stream.write('some')
      await until(() => upstream.requests.length === 1)
      stream.close(8)
      await until(() => upstream.open.size === 0)
      await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled' })
      upstream.handle(answering({ body: 'hello' }))
      assert.equal((await ask(session)).body.toString(), 'hello')
    })
  }

  it('in the middle of its upload: the upstream gets no end of it', async (t) => {
    let complete: boolean | null = null
    const { gateway, session } = await behind(t, async (_socket, { body }) => { ({ complete } = await body()) })
    const stream = session.request({ ':path': '/', ':method': 'POST' })
    stream.on('error', () => {})
    stream.write('some')
    await until(() => gateway.upstream().inFlight === 1)
    stream.destroy(new Error('gone'))
    await until(() => complete !== null)
    assert.equal(complete, false)
    await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled' })
  })

  it('in the middle of the answer: its stream ends, and no other', async (t) => {
    const { gateway, upstream, session } = await behind(t, async (socket) => {
      await send(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome')
      await stall(socket)
    })
    const stream = session.request({ ':path': '/' })
    stream.on('error', () => {})
    await new Promise((resolve) => { stream.once('data', resolve) })
    stream.close(8)
    await until(() => upstream.open.size === 0)
    await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled', bytes: 4 })
  })

  it('with its connection: all of its exchanges end', async (t) => {
    const { gateway, upstream, session } = await behind(t, stall)
    for (let i = 0; i < 3; i++) session.request({ ':path': '/' }).on('error', () => {})
    await until(() => upstream.requests.length === 3)
    session.destroy()
    await until(() => gateway.lines.all('access').length === 3)
    await gateway.idle()
    assert.deepEqual(gateway.lines.all('access').map(({ reason }) => reason), Array(3).fill('client_cancelled'))
  })
})

describe('an answer over HTTP/2', () => {
  it('that the upstream cuts is reset with INTERNAL_ERROR, and never ends', async (t) => {
    const { gateway, session } = await behind(t, async (socket) => {
      await send(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome')
      setTimeout(() => { reset(socket) }, 30)
      await stall(socket)
    })
    const found = await ask(session)
    assert.equal(found.status, 200)
    assert.equal(found.rstCode, 2)
    await gateway.left({ counted: 'failure', status: 200, reason: 'body_truncated', bytes: 4 })
    assert.equal(session.destroyed, false)
  })

  it('that comes before the upload is whole asks for no more of it', async (t) => {
    const { gateway, session } = await behind(t, async (socket) => {
      await send(socket, answer({ body: 'early' }))
      await stall(socket)
    })
    const found = await ask(session, { ':method': 'POST' }, (stream) => { stream.write('some') })
    assert.equal(found.body.toString(), 'early')
    assert.equal(found.rstCode, 0)
    await gateway.left({ counted: 'success', status: 200 })
  })

  it('is not waited for by a stopping process longer than its grace, and one that comes in time is given', async (t) => {
    const held: Array<() => unknown> = []
    const { gateway, session } = await behind(t, (socket) => new Promise((resolve) => { held.push(() => send(socket, answer({ body: 'late' })).then(resolve)) }), { server: { shutdown: { graceMs: 5000 } } })
    const asked = ask(session)
    await until(() => held.length === 1)
    let goaway: number | null = null
    session.on('goaway', (code) => { goaway ??= code })
    const closed = gateway.close()
    await until(() => goaway !== null)
    assert.equal(goaway, 0)
    held[0]?.()
    assert.equal((await asked).body.toString(), 'late')
    await closed
  })

  it('that is still owed at the end of the grace is cut', async (t) => {
    const { gateway, session, upstream } = await behind(t, stall, { server: { shutdown: { graceMs: 100 } } })
    const asked = ask(session)
    await until(() => upstream.requests.length === 1)
    await assert.rejects(gateway.close(), /1 connections? with an unanswered/)
    assert.equal((await asked).status, 0)
    assert.equal(gateway.lines.find(({ msg }) => msg === 'access')?.['reason'], 'draining')
  })
})
