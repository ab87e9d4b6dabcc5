import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { answer, answerThenFin, answering, finAfter, inTurn, partOfBody, rawUpstream, reset, resetAfter, send, stall } from './faulty-upstream.ts'
import type { RawHandler, RawUpstream, RawUpstreamOptions } from './faulty-upstream.ts'
import { rawConnect, rawRequest } from './raw-client.ts'
import { closedPort } from './ports.ts'
import { continue100, earlyHints103, hugeHead, withTrailers } from './strange-answers.ts'
import { until } from './wait.ts'

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

async function upstreamFor (t: TestContext, handler: RawHandler, options?: RawUpstreamOptions): Promise<RawUpstream> {
  const upstream = await rawUpstream(handler, options)
  t.after(() => upstream.close())
  return upstream
}

describe('the raw client tells', () => {
  test('a whole answer on a kept connection, byte for byte', async t => {
    const { port } = await upstreamFor(t, answering({ headers: [['X-Odd', 'a\xe9'], ['x-odd', 'b']], body: 'hello' }))
    const result = await rawRequest(port, get)
    assert.deepEqual([result.status, result.reason, result.version, result.ended, result.complete], [200, 'OK', 'HTTP/1.1', 'open', true])
    assert.deepEqual(result.headers, [['X-Odd', 'a\xe9'], ['x-odd', 'b'], ['Content-Length', '5']])
    assert.equal(result.header('X-ODD'), 'a\xe9, b')
    assert.equal(result.text(), 'hello')
    assert.deepEqual(result.raw, answer({ headers: [['X-Odd', 'a\xe9'], ['x-odd', 'b']], body: 'hello' }))
  })

  test('a close that the answer announced', async t => {
    const { port } = await upstreamFor(t, socket => answerThenFin(socket, { headers: [['Connection', 'close']], body: 'bye' }))
    const result = await rawRequest(port, get)
    assert.deepEqual([result.status, result.complete, result.ended], [200, true, 'fin'])
  })

  test('a close that nobody announced, when asked to wait for it', async t => {
    const { port } = await upstreamFor(t, socket => answerThenFin(socket))
    assert.equal((await rawRequest(port, get, { until: 'close' })).ended, 'fin')
  })

  for (const ending of ['fin', 'reset'] as const) {
    test(`half a body, then ${ending}`, async t => {
      const { port } = await upstreamFor(t, socket => partOfBody(socket, { declared: 10, sent: 4, ending }))
      const result = await rawRequest(port, get)
      assert.deepEqual([result.status, result.text(), result.complete, result.ended], [200, 'xxxx', false, ending])
    })
  }

  test('silence', async t => {
    const { port } = await upstreamFor(t, stall)
    const result = await rawRequest(port, get, { timeoutMs: 50 })
    assert.deepEqual([result.status, result.head, result.complete, result.ended, result.responses.length], [0, '', false, 'timeout', 0])
  })

  test('a reset before the head, and one before any request', async t => {
    const { port } = await upstreamFor(t, reset)
    assert.equal((await rawRequest(port, get)).ended, 'reset')
    const refusing = await upstreamFor(t, answering(), { onConnection: socket => { reset(socket) } })
    assert.equal((await rawRequest(refusing.port, [20, get])).ended, 'reset')
  })

  test('interim answers apart from the final one', async t => {
    const { port } = await upstreamFor(t, socket => send(socket, continue100, earlyHints103, answer({ body: 'x' })))
    const result = await rawRequest(port, get)
    assert.deepEqual([result.status, result.interim.map(({ status }) => status)], [200, [100, 103]])
  })

  test('trailers, and a large head', async t => {
    const { port } = await upstreamFor(t, inTurn(socket => send(socket, withTrailers()), socket => send(socket, hugeHead(100_000))))
    const first = await rawRequest(port, get)
    assert.deepEqual([first.text(), first.trailers, first.complete], ['hello', [['X-Checksum', 'abc']], true])
    assert.ok((await rawRequest(port, get)).head.length > 100_000)
  })

  test('all answers to pipelined requests, HEAD without a body', async t => {
    const upstream = await upstreamFor(t, (socket, { method, target }) => send(socket, answer({ body: target, ...(method === 'HEAD' ? { body: '', headers: [['Content-Length', '9']], framing: 'none' } : {}) })))
    const result = await rawRequest(upstream.port, 'GET /1 HTTP/1.1\r\n\r\nHEAD /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n', { methods: ['GET', 'HEAD', 'GET'] })
    assert.deepEqual(result.responses.map(response => [response.text(), response.complete]), [['/1', true], ['', true], ['/3', true]])
    assert.deepEqual(upstream.requests.map(({ connection, index, total }) => [connection, index, total]), [[1, 1, 1], [1, 2, 2], [1, 3, 3]])
  })

  test('what a part threw', async t => {
    const { port } = await upstreamFor(t, answering())
    await assert.rejects(rawRequest(port, [get.slice(0, 5), () => { throw new Error('mine') }, get.slice(5)]), /mine/)
  })

  test('that no connection could be made', async t => {
    await assert.rejects(rawRequest(await closedPort(t), get), { code: 'ECONNREFUSED' })
  })
})

describe('the raw upstream', () => {
  test('answers before the body has come, and reads it afterwards', async t => {
    const { port } = await upstreamFor(t, async (socket, request) => {
      await send(socket, answer({ body: 'early' }))
      await request.body()
    })
    const client = await rawConnect(port)
    await client.write('POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n')
    assert.equal((await client.readResponse()).text(), 'early')
    await client.write(`body${get}`)
    assert.equal((await client.readResponse()).text(), 'early')
    client.destroy()
  })

  test('hands over the body, de-chunked', async t => {
    const { port } = await upstreamFor(t, async (socket, request) => send(socket, answer({ body: (await request.body()).body })))
    const result = await rawRequest(port, ['POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n', 10, '0\r\n\r\n'])
    assert.equal(result.text(), 'abc')
  })

  test('sees a client that leaves in the middle of a body, which is no fault of the test', async t => {
    let complete: boolean | undefined
    const { port } = await upstreamFor(t, async (_socket, request) => { complete = (await request.body()).complete })
    const client = await rawConnect(port)
    await client.write('POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab')
    client.reset()
    await until(() => complete !== undefined)
    assert.equal(complete, false)
  })

  test('ends or resets a connection after a number of requests', async t => {
    const upstream = await upstreamFor(t, finAfter(2))
    const twice = await rawRequest(upstream.port, get + get, { methods: ['GET', 'GET'], until: 'close' })
    assert.deepEqual([twice.responses.length, twice.ended], [2, 'fin'])
    upstream.handle(resetAfter(1))
    const once = await rawRequest(upstream.port, get + get, { methods: ['GET', 'GET'] })
    assert.deepEqual([once.responses.length, once.ended], [1, 'reset'])
    assert.equal(upstream.connections, 2)
    await until(() => upstream.open.size === 0)
  })

  test('tells at its close what a handler threw', async () => {
    const upstream = await rawUpstream(() => { throw new Error('in the handler') })
    await rawRequest(upstream.port, get)
    await assert.rejects(upstream.close(), /in the handler/)
  })

  test('keeps its half open for a client that ends its own, when asked to', async t => {
    const { port } = await upstreamFor(t, async (socket, request) => {
      await request.body()
      await until(() => socket.readableEnded)
      await answerThenFin(socket, { body: 'late' })
    }, { allowHalfOpen: true })
    const result = await rawRequest(port, get, { end: true, until: 'close' })
    assert.deepEqual([result.text(), result.ended], ['late', 'fin'])
  })
})

test('an interactive connection feels and makes backpressure', async t => {
  // More than the system's buffers of both ends can ever hold.
  const size = 32 << 20
  let written = false
  const { port } = await upstreamFor(t, async socket => {
    await send(socket, answer({ body: Buffer.alloc(size) }))
    written = true
  })
  const client = await rawConnect(port)
  t.after(() => client.destroy())
  await client.write(get)
  await client.readHead()
  assert.equal(written, false)
  assert.equal((await client.readBytes(size)).length, size)
  await until(() => written)
})

test('an interactive connection says what it was waiting for', async t => {
  const { port } = await upstreamFor(t, async socket => {
    await send(socket, 'HTTP/1.1 200')
    await stall(socket)
  })
  const client = await rawConnect(port, { timeoutMs: 250 })
  await client.write(get)
  await assert.rejects(client.readHead(), /no head within 250 ms; so far: "HTTP\/1.1 200"/)
  client.destroy()
})
