import assert from 'node:assert/strict'
import { PassThrough, Transform, type Readable } from 'node:stream'
import { test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { answer, answering, send, type RawHandler } from '../../support/faulty-upstream.ts'
import { chunk, lastChunk, type FieldList } from '../../support/http-bytes.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { withTrailers } from '../../support/strange-answers.ts'
import { until } from '../../support/wait.ts'
import { inFront, request } from './support.ts'

const taking = request('GET', '/', { TE: 'trailers', Connection: 'TE' })
const sums: FieldList = [['X-Sum', 'abc'], ['X-Sum', 'd\xe9f']]
const passed: FieldList = [['x-sum', 'abc'], ['x-sum', 'd\xe9f']]

/** The same answer whole in one packet, and with its end long after its head. */
const ways: Array<[how: string, handler: (bytes: Buffer) => RawHandler]> = [
  ['at once', (bytes) => answering(bytes)],
  ['piece by piece', (bytes) => async (socket) => {
    const at = bytes.indexOf('\r\n\r\n') + 4
    await send(socket, bytes.subarray(0, at))
    for (let i = at; i < bytes.length; i += 3) {
      await new Promise((resolve) => { setImmediate(resolve) })
      await send(socket, bytes.subarray(i, i + 3))
    }
  }]
]

for (const [how, handler] of ways) {
  test(`trailers of an answer that comes ${how} reach a client that takes them, announced and in order`, async (t) => {
    const { gateway } = await inFront(t, handler(withTrailers(sums)))
    const got = await rawRequest(gateway.port, [taking, taking], { methods: ['GET', 'GET'] })
    for (const each of got.responses) {
      assert.deepEqual([each.text(), each.complete, each.header('trailer'), each.header('content-length')], ['hello', true, 'X-Sum, X-Sum', undefined])
      assert.deepEqual(each.trailers, passed)
    }
    assert.equal(got.responses.length, 2)
    await until(() => gateway.lines.all('access').length === 2)
    for (const { status, bytes } of gateway.lines.all('access')) assert.deepEqual([status, bytes], [200, 5])
  })

  test(`whoever does not say that he takes trailers gets none of an answer that comes ${how}, nor an announcement`, async (t) => {
    const { gateway } = await inFront(t, handler(withTrailers(sums)))
    for (const bytes of [request(), request('GET', '/', { TE: 'gzip' }), 'GET / HTTP/1.0\r\nHost: shop\r\nTE: trailers\r\n\r\n']) {
      const got = await rawRequest(gateway.port, bytes)
      assert.deepEqual([got.text(), got.complete, got.header('trailer'), got.trailers], ['hello', true, undefined, []])
    }
  })

  test(`what must not stand behind a body is taken out of an answer that comes ${how}`, async (t) => {
    const { gateway } = await inFront(t, handler(Buffer.concat([
      answer({ headers: [['Transfer-Encoding', 'chunked'], ['Connection', 'X-Hop'], ['Trailer', 'Set-Cookie, X-Sum, X-Hop, X-Request-Id']], framing: 'none' }), chunk('hello'),
      lastChunk([['Set-Cookie', 'a=1'], ['X-Sum', '1'], ['X-Hop', '1'], ['X-Request-Id', 'mine'], ['Via', 'x'], ['Location', '/'], ['Transfer-Encoding', 'gzip'], ['Unannounced', '2']])
    ])))
    const got = await rawRequest(gateway.port, taking)
    assert.deepEqual([got.header('trailer'), got.trailers], ['X-Sum', [['x-sum', '1'], ['unannounced', '2']]])
    assert.deepEqual([got.header('set-cookie'), got.header('location')], [undefined, undefined])
  })
}

test('an answer that announces trailers and has a length, or no body at all, passes without them', async (t) => {
  const { gateway, upstream } = await inFront(t, answering({ headers: [['Trailer', 'X-Sum']], body: 'hello' }))
  for (const method of ['GET', 'HEAD']) {
    const got = await rawRequest(gateway.port, request(method, '/', { TE: 'trailers' }))
    assert.deepEqual([got.status, got.header('content-length'), got.header('trailer'), got.trailers], [200, '5', undefined, []], method)
  }
  upstream.handle(answering({ status: 304, headers: [['Trailer', 'X-Sum'], ['ETag', '"a"']], framing: 'none' }))
  assert.deepEqual([(await rawRequest(gateway.port, taking)).status], [304])
})

test('an upstream that cuts its answer within the trailers has not sent it whole', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: [['Transfer-Encoding', 'chunked']], framing: 'none' }), chunk('hello'), '0\r\nX-Sum: ab')
    socket.end()
  })
  const got = await rawRequest(gateway.port, taking)
  assert.equal(got.complete && got.status === 200, false)
  await gateway.left({ counted: 'failure', status: got.status, reason: 'body_truncated' })
})

test('trailers without end make the answer invalid, and are not kept', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: [['Transfer-Encoding', 'chunked']], framing: 'none' }), chunk('hello'), '0\r\n')
    for (let i = 0; i < 200 && !socket.destroyed; i++) await send(socket, `X-${i}: ${'x'.repeat(1000)}\r\n`)
  })
  const got = await rawRequest(gateway.port, taking)
  assert.equal(got.complete && got.status === 200, false)
  await gateway.idle()
})

/** Hooks that make something else of an answer. */
const hooks: Array<[name: string, make: (payload: Readable) => unknown, trailers: FieldList]> = [
  ['passes it on', (payload) => payload, [['x-sum', 'abc']]],
  ['makes another stream of it', (payload) => payload.pipe(new Transform({ transform (piece: Buffer, _encoding, done) { done(null, String(piece).toUpperCase()) } })), [['x-sum', 'abc']]],
  ['replaces it with text', (payload) => {
    payload.on('error', () => {}).resume()
    return 'other'
  }, []],
  ['replaces it with a stream of its own', (payload) => {
    payload.on('error', () => {}).resume()
    return new PassThrough().end('other')
  }, [['x-sum', 'abc']]]
]
for (const [name, make, trailers] of hooks) {
  test(`trailers and an onSend hook that ${name}`, async (t) => {
    const { gateway } = await inFront(t, answering(withTrailers([['X-Sum', 'abc']])), {
      extend: (app: FastifyInstance) => app.addHook('onSend', async (_request, _reply, payload) => make(payload as Readable))
    })
    const got = await rawRequest(gateway.port, taking)
    assert.deepEqual([got.status, got.complete, got.trailers], [200, true, trailers])
  })
}

test('a hook that fails on an answer with trailers leaves nothing of them in the refusal', async (t) => {
  const { gateway } = await inFront(t, answering(withTrailers(sums)), {
    extend: (app: FastifyInstance) => {
      app.addHook('onSend', async (_request, reply) => {
        if (reply.statusCode === 200) throw new Error('no')
      })
    }
  })
  const got = await rawRequest(gateway.port, taking)
  assert.deepEqual([got.status, got.header('trailer'), got.trailers], [500, undefined, []])
})

test('the upstream is told that trailers are taken, for its own connection; of anything else in TE it is told nothing', async (t) => {
  const { gateway, upstream } = await inFront(t, answering({ body: 'hello' }))
  for (const te of ['trailers', 'gzip, trailers;q=0.5, Trailers', 'gzip']) await rawRequest(gateway.port, request('GET', '/', { TE: te, Connection: 'TE' }))
  await rawRequest(gateway.port, request())
  assert.deepEqual(upstream.requests.map((each) => [each.header('te'), each.header('connection')]),
    [['trailers', 'keep-alive, TE'], ['trailers', 'keep-alive, TE'], [undefined, 'keep-alive'], [undefined, 'keep-alive']])
})

test('trailers of a request end at the proxy: none is sent, and none becomes a field, though it is named like one of ours', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket, { body }) => {
    const { body: bytes, trailers } = await body()
    await send(socket, answer({ body: `${bytes.toString()} ${trailers.length}` }))
  })
  const got = await rawRequest(gateway.port, [
    request('POST', '/', { 'Transfer-Encoding': 'chunked', 'Trailer': 'X-Sum' }), chunk('hello'),
    lastChunk([['X-Sum', '1'], ['Authorization', 'Basic x'], ['X-Forwarded-For', '6.6.6.6'], ['Host', 'evil']]), request('GET', '/next')
  ], { methods: ['POST', 'GET'] })
  assert.deepEqual(got.responses.map((each) => each.text()), ['hello 0', ' 0'])
  const [first] = upstream.requests
  assert.deepEqual(['x-sum', 'trailer', 'authorization', 'x-forwarded-for', 'host'].map((name) => first?.header(name)), [undefined, undefined, undefined, '127.0.0.1', `127.0.0.1:${upstream.port}`])
  assert.deepEqual(upstream.requests.map(({ target }) => target), ['/', '/next'])
})
