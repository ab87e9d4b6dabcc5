import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Socket } from 'node:net'
import { answer, reset, send } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { request } from '../forwarder/support.ts'
import { leftover, named, refuses, row, told } from './support.ts'

const bytes = (size: number): Buffer => Buffer.alloc(size, 'abcdefghij')
const chunked = (body: Buffer, pieces = 3): Buffer => {
  const size = Math.ceil(body.length / pieces)
  const parts = Array.from({ length: pieces }, (_, i) => body.subarray(i * size, (i + 1) * size)).filter((part) => part.length > 0)
  return Buffer.concat([...parts.flatMap((part) => [Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]), Buffer.from('0\r\n\r\n')])
}
const upload = (method: string, body: Buffer, framing: string): Buffer =>
  framing === 'chunks' ? Buffer.concat([request(method, '/', { 'Transfer-Encoding': 'chunked' }), chunked(body)]) : request(method, '/', {}, body.toString('latin1'))

/** Takes the whole request, and then fails. */
const takesAll: RawHandler = async (socket, { body }) => {
  await body()
  reset(socket)
}

/** Answers with the length and a sum of the body. */
const measures: RawHandler = async (socket, { body, header }) => {
  const { body: got } = await body()
  await send(socket, answer({ headers: [['X-Framing', header('transfer-encoding') ?? header('content-length') ?? 'none']], body: `${got.length} ${got.reduce((sum, byte) => (sum * 31 + byte) % 1000003, 0)}` }))
}
const measured = (body: Buffer): string => `${body.length} ${body.reduce((sum, byte) => (sum * 31 + byte) % 1000003, 0)}`

for (const framing of ['length', 'chunks']) {
  for (const size of [1, 999, 1000]) {
    test(`a PUT body of ${size} bytes, of which 1000 are kept, is sent again whole (${framing})`, async (t) => {
      const { gateway, asked } = await row(t, [takesAll, measures], { retry: { maxBufferedBodyBytes: 1000 } })
      const got = await rawRequest(gateway.port, upload('PUT', bytes(size), framing))
      assert.deepEqual([got.status, got.text()], [200, measured(bytes(size))])
      assert.equal(got.header('x-framing'), framing === 'chunks' ? 'chunked' : String(size))
      assert.deepEqual(told(gateway, await leftover(gateway)), [200, null, 2, 1])
      assert.deepEqual(asked(), [1, 1])
    })
  }

  for (const size of [1001, 200000]) {
    test(`a PUT body of ${size} bytes, of which 1000 are kept, is sent once (${framing})`, async (t) => {
      const { gateway, asked } = await row(t, [takesAll, measures], { retry: { maxBufferedBodyBytes: 1000 } })
      assert.equal((await rawRequest(gateway.port, upload('PUT', bytes(size), framing))).status, 502)
      const left = await leftover(gateway)
      assert.deepEqual(told(gateway, left), [502, 'connection_reset', 1, 0])
      assert.deepEqual(left.errors.map((line) => line['no_retry']), ['body'])
      assert.deepEqual(asked(), [1, 0])
    })
  }

  for (const method of ['POST', 'PATCH', 'PUT']) {
    for (const size of [5, 300000]) {
      test(`a ${method} of ${size} bytes whose upstream refuses the connection goes to another one, whole (${framing})`, async (t) => {
        const { gateway, asked } = await row(t, [refuses, measures], { retry: { maxBufferedBodyBytes: 1000 } })
        const got = await rawRequest(gateway.port, upload(method, bytes(size), framing))
        assert.deepEqual([got.status, got.text()], [200, measured(bytes(size))])
        assert.deepEqual(told(gateway, await leftover(gateway)), [200, null, 2, 1])
        assert.deepEqual(asked(), [0, 1])
      })
    }
  }

  test(`a POST is not sent twice once a byte of it has been sent (${framing})`, async (t) => {
    for (const handler of [takesAll, (socket: Socket) => { reset(socket) }]) {
      const { gateway, asked } = await row(t, [handler, measures])
      assert.equal((await rawRequest(gateway.port, upload('POST', bytes(100), framing))).status, 502)
      const left = await leftover(gateway)
      assert.deepEqual(told(gateway, left), [502, 'connection_reset', 1, 0])
      assert.deepEqual(left.errors.map((line) => line['no_retry']), ['method'])
      assert.deepEqual(asked(), [1, 0])
    }
  })

  test(`where an upstream fails in the middle of an upload, another one gets what has come and what is still to come (${framing})`, async (t) => {
    const { gateway, asked } = await row(t, [async (socket) => { reset(socket) }, measures])
    const client = await rawConnect(gateway.port)
    const all = upload('PUT', bytes(3000), framing)
    const part = all.length - 1500
    await client.write(all.subarray(0, part))
    await until(() => asked()[1] === 1, { what: 'the second attempt' })
    await client.write(all.subarray(part))
    const got = await client.readResponse('PUT')
    assert.deepEqual([got.status, got.text()], [200, measured(bytes(3000))])
    client.destroy()
    assert.deepEqual(told(gateway, await leftover(gateway)), [200, null, 2, 1])
  })
}

test('a body that is larger than what is kept is retried where nothing was taken from it: the connection broke before its first byte', async (t) => {
  const { gateway, asked } = await row(t, [refuses, measures], { retry: { maxBufferedBodyBytes: 0 } })
  const got = await rawRequest(gateway.port, upload('POST', bytes(100000), 'length'))
  assert.equal(got.text(), measured(bytes(100000)))
  await gateway.idle()
  assert.deepEqual(asked(), [0, 1])
})

test('a body that a parser has read is sent again as it is', async (t) => {
  const { gateway, asked } = await row(t, [takesAll, named('second')], {
    extend: (app) => app.register(async (scope) => { scope.put('/parsed', (_request, reply) => reply.forward('shop')) })
  })
  const got = await rawRequest(gateway.port, request('PUT', '/parsed', { 'Content-Type': 'application/json' }, '{"a":1}'))
  assert.equal(got.text(), 'second:{"a":1}')
  await gateway.idle()
  assert.deepEqual(asked(), [1, 1])
})

test('a body over the limit is refused though another upstream is there', async (t) => {
  const { gateway, asked } = await row(t, [measures, measures], { server: { maxBodyBytes: 1000 } })
  const got = await rawRequest(gateway.port, upload('PUT', bytes(5000), 'chunks'))
  assert.equal(got.status, 413)
  assert.deepEqual(told(gateway, await leftover(gateway)), [413, 'body_too_large', 1, 0])
  assert.equal(asked()[1], 0)
})

test('a client that stalls its upload is answered 408, and no other upstream waits for it', async (t) => {
  const { gateway, asked } = await row(t, [measures, measures], { pool: { timeouts: { bodyIdleMs: 150 } } })
  const client = await rawConnect(gateway.port)
  await client.write(request('PUT', '/', { 'Content-Length': '100' }))
  await client.write('x')
  assert.equal((await client.readResponse('PUT')).status, 408)
  client.destroy()
  assert.deepEqual(told(gateway, await leftover(gateway)), [408, 'request_timeout', 1, 0])
  assert.equal(asked()[1], 0)
})

test('an answer that comes before the upload is over is the answer, or is dropped like any other', async (t) => {
  for (const [status, expected] of [[200, 'first'], [503, 'second']] as const) {
    const early: RawHandler = (socket) => send(socket, answer({ status, headers: [['X-Upstream', 'first']], body: 'early' }))
    const { gateway } = await row(t, [early, named('second')])
    const client = await rawConnect(gateway.port)
    await client.write(request('PUT', '/', { 'Content-Length': '3000' }))
    await client.write(bytes(1000))
    if (status === 503) await gateway.lines.waitFor('upstream_error')
    if (status === 503) await client.write(bytes(2000))
    const got = await client.readResponse('PUT')
    assert.deepEqual([got.status, got.header('x-upstream')], [200, expected])
    client.destroy()
    const left = await leftover(gateway)
    assert.equal(left.access['attempts'], status === 503 ? 2 : 1)
  }
})

test('a stale kept-alive connection is repeated on a fresh one where the body is in memory, and that is no attempt', async (t) => {
  const forgetful: RawHandler = async (socket, { index, body }) => {
    await body()
    if (index === 1) await send(socket, answer({ body: 'fresh' }))
    else socket.end()
  }
  const { gateway, upstreams } = await row(t, [forgetful, named('second')])
  assert.equal((await rawRequest(gateway.port, request())).text(), 'fresh')
  await gateway.skip()
  const got = await rawRequest(gateway.port, request('PUT', '/', {}, 'hello'))
  assert.deepEqual([got.status, got.text()], [200, 'fresh'])
  const left = await leftover(gateway, { access: 1, errors: 0 })
  assert.deepEqual(told(gateway, left), [200, null, 1, 0])
  assert.deepEqual(upstreams[0]?.requests.map(({ connection, index }) => [connection, index]), [[1, 1], [1, 2], [2, 1]])
  assert.equal(gateway.app.forwarding.view('shop').repeats, 1)
})

test('a flood of POSTs onto an upstream that dies is delivered to no upstream twice', async (t) => {
  const delivered = new Map<string, number>()
  const counts = (name: string): RawHandler => async (socket, { header, body, total }) => {
    const id = header('x-order') as string
    delivered.set(id, (delivered.get(id) ?? 0) + 1)
    const { complete } = await body()
    if (name === 'dying' && total > 20) return reset(socket)
    if (complete) await send(socket, answer({ body: name }))
  }
  const { gateway, upstreams } = await row(t, [counts('dying'), counts('well')], { pool: { connections: { max: 16 } } })
  const killing = until(() => (upstreams[0]?.requests.length ?? 0) > 60).then(() => upstreams[0]?.close())
  const statuses = new Map<number, number>()
  const answered = new Set<string>()
  await Promise.all(Array.from({ length: 16 }, async (_, worker) => {
    for (let i = 0; i < 25; i++) {
      const id = `${worker}-${i}`
      const got = await rawRequest(gateway.port, request('POST', '/', { 'X-Order': id }, `order ${id}`))
      statuses.set(got.status, (statuses.get(got.status) ?? 0) + 1)
      if (got.status === 200) answered.add(id)
    }
  }))
  await killing
  await gateway.idle()
  assert.deepEqual([...delivered].filter(([, times]) => times > 1), [], 'no order is delivered twice')
  for (const id of answered) assert.equal(delivered.get(id), 1, 'what was answered was delivered')
  assert.deepEqual([...statuses.keys()].filter((status) => status !== 200 && status !== 502), [])
  assert.ok((statuses.get(200) ?? 0) > 100)
})
