import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { answer, send } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { chunk, lastChunk } from '../../support/http-bytes.ts'
import type { FieldList, RawBody } from '../../support/http-bytes.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { inFront, request } from './support.ts'

const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** Every byte value, in no order that a text filter would keep. */
function binary (size: number): Buffer {
  const bytes = Buffer.alloc(size)
  let state = size + 1
  for (let i = 0; i < size; i++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    bytes[i] = state >>> 16
  }
  return bytes
}

function inChunks (bytes: Buffer, size: number): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) pieces.push(chunk(bytes.subarray(at, at + size)))
  return Buffer.concat([...pieces, lastChunk()])
}

const sizes = [0, 1, 1000, 65535, 65536, 65537, 131072, 5_000_000]

for (const framing of ['length', 'chunked'] as const) {
  test(`downloads of any size (${framing}) arrive byte for byte`, async (t) => {
    let bytes: Buffer = Buffer.alloc(0)
    const { gateway } = await inFront(t, (socket) => {
      const headers: FieldList = [['Content-Type', 'application/octet-stream']]
      if (framing === 'length') return send(socket, answer({ headers, body: bytes }))
      return send(socket, answer({ headers: [...headers, ['Transfer-Encoding', 'chunked']], framing: 'none' }), inChunks(bytes, 50_000))
    })
    for (const size of sizes) {
      bytes = binary(size)
      const got = await rawRequest(gateway.port, request())
      assert.deepEqual([got.status, got.complete, got.body.length, hash(got.body)], [200, true, size, hash(bytes)])
      await gateway.left({ counted: 'success', status: 200, bytes: size })
    }
  })

  test(`uploads of any size (${framing}) arrive byte for byte`, async (t) => {
    let received: RawBody | undefined
    const { gateway, upstream } = await inFront(t, async (socket, { body }) => {
      received = await body()
      await send(socket, answer({ body: hash(received.body) }))
    })
    for (const size of sizes) {
      const bytes = binary(size)
      const sent = framing === 'length'
        ? request('POST', '/', { 'Content-Length': String(size), 'Content-Type': 'application/octet-stream' }, bytes)
        : Buffer.concat([request('POST', '/', { 'Transfer-Encoding': 'chunked', 'Content-Type': 'application/octet-stream' }), inChunks(bytes, 50_000)])
      const got = await rawRequest(gateway.port, sent)
      assert.deepEqual([got.status, got.text(), received?.complete], [200, hash(bytes), true])
      await gateway.left({ counted: 'success', status: 200 })
      const [framingField] = upstream.requests.at(-1)?.headers.filter(([name]) => /^(content-length|transfer-encoding)$/i.test(name)) ?? []
      assert.ok(framingField !== undefined, 'framed')
      assert.equal(upstream.requests.at(-1)?.headers.filter(([name]) => /^(content-length|transfer-encoding)$/i.test(name)).length, 1, 'framed once')
    }
  })
}

const echo: RawHandler = async (socket, { method, body, header }) => {
  const { body: bytes } = await body()
  const type = header('content-type')
  await send(socket, answer({ headers: [['X-Method', method], ['X-Type', type ?? 'none']], body: method === 'HEAD' ? '' : bytes }))
}

for (const [name, type, bytes] of [
  ['text over a megabyte', 'text/plain', Buffer.alloc(2_000_000, 'text ')],
  ['JSON with a key that stands there twice, and odd spaces', 'application/json', Buffer.from('{ "a":1,\n"a" : 2.0, "__proto__":{"x":1} }')],
  ['JSON that is none', 'application/json', Buffer.from('{ nonsense')],
  ['a large JSON', 'application/json; charset=utf-8', Buffer.from(`["${'x'.repeat(2_000_000)}"]`)],
  ['multipart', 'multipart/form-data; boundary=xyz', Buffer.from('--xyz\r\nContent-Disposition: form-data; name="f"\r\n\r\n\0\xff\r\n--xyz--\r\n', 'latin1')],
  ['a form', 'application/x-www-form-urlencoded', Buffer.from('a=1&a=2&b=%zz')],
  ['a type that is none', 'nonsense', Buffer.from('hello')],
  ['an empty type', '', Buffer.from('hello')],
  ['no type', undefined, Buffer.from('hello')]
] as const) {
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    test(`a ${method} body of ${name} passes unchanged`, async (t) => {
      const { gateway } = await inFront(t, echo)
      const got = await rawRequest(gateway.port, request(method, '/', type === undefined ? {} : { 'Content-Type': type }, bytes))
      assert.deepEqual([got.status, got.header('x-method'), hash(got.body)], [200, method, hash(bytes)])
      assert.equal(got.header('x-type'), type ?? 'none')
      await gateway.left({ counted: 'success', status: 200, bytes: bytes.length })
    })
  }
}

for (const method of ['GET', 'HEAD', 'OPTIONS', 'PROPFIND', 'PURGE', 'MKCOL', 'REPORT', 'SEARCH', 'M-SEARCH', 'LOCK', 'QUERY']) {
  test(`${method} passes, with a body and without`, async (t) => {
    const { gateway, upstream } = await inFront(t, echo)
    const empty = await rawRequest(gateway.port, request(method))
    if (method === 'QUERY' && empty.status === 400) {
      // This Node does not know it.
      assert.equal(upstream.requests.length, 0)
      return
    }
    assert.deepEqual([empty.status, empty.header('x-method')], [200, method])
    await gateway.left({ counted: 'success', status: 200, bytes: 0 })
    for (const fields of [{}, { 'Content-Type': 'application/json' }]) {
      const got = await rawRequest(gateway.port, request(method, '/', fields, 'not json'))
      assert.deepEqual([got.status, got.header('x-method'), got.text()], [200, method, method === 'HEAD' ? '' : 'not json'])
      assert.equal((await upstream.requests.at(-1)?.body())?.body.toString(), 'not json')
      await gateway.left({ counted: 'success', status: 200 })
    }
  })
}

test('a chunked GET body passes', async (t) => {
  const { gateway } = await inFront(t, echo)
  const got = await rawRequest(gateway.port, Buffer.concat([request('GET', '/', { 'Transfer-Encoding': 'chunked' }), inChunks(Buffer.from('hello'), 2)]))
  assert.deepEqual([got.status, got.text()], [200, 'hello'])
  await gateway.left({ counted: 'success', status: 200, bytes: 5 })
})

test('a POST without a body is told to be empty', async (t) => {
  const { gateway, upstream } = await inFront(t, echo)
  for (const fields of [{}, { 'Content-Length': '0' }]) {
    const got = await rawRequest(gateway.port, request('POST', '/', fields))
    assert.equal(got.status, 200)
    assert.equal(upstream.requests.at(-1)?.header('content-length'), '0')
    await gateway.left({ counted: 'success', status: 200, bytes: 0 })
  }
})

test('an upload and a download at the same time pass each other', async (t) => {
  // The answer begins before the request is over, and ends after it.
  const { gateway } = await inFront(t, async (socket, { body }) => {
    await send(socket, answer({ headers: [['Transfer-Encoding', 'chunked']], framing: 'none' }), chunk('begin;'))
    const { body: bytes } = await body()
    await send(socket, chunk(`${bytes.length}`), lastChunk())
  })
  const got = await rawRequest(gateway.port, [request('POST', '/', { 'Content-Length': '300000' }), Buffer.alloc(100_000), 50, Buffer.alloc(200_000)])
  assert.deepEqual([got.status, got.text(), got.complete], [200, 'begin;300000', true])
  await gateway.left({ counted: 'success', status: 200, bytes: 12 })
})

test('requests that share a connection do not share bodies', async (t) => {
  const { gateway } = await inFront(t, echo)
  const bodies = Array.from({ length: 20 }, (_, index) => `body ${index}`)
  const got = await rawRequest(gateway.port, Buffer.concat(bodies.map(body => request('POST', '/', {}, body))), { methods: bodies.map(() => 'POST') })
  assert.deepEqual(got.responses.map(each => each.text()), bodies)
  await gateway.idle()
})
