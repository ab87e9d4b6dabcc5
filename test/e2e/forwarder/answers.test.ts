import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, answering, send } from '../../support/faulty-upstream.ts'
import { chunk, lastChunk } from '../../support/http-bytes.ts'
import type { FieldList } from '../../support/http-bytes.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { earlyHints103, withTrailers } from '../../support/strange-answers.ts'
import { get, inFront, request } from './support.ts'

const etag: FieldList = [['ETag', '"1"']]

test('a whole answer arrives as it was sent, and counts as a success', async (t) => {
  const { gateway } = await inFront(t, answering({ headers: [['Content-Type', 'text/plain'], ['X-Own', 'yes']], body: 'hello' }))
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.text(), got.complete], [200, 'hello', true])
  assert.equal(got.header('content-type'), 'text/plain')
  assert.equal(got.header('x-own'), 'yes')
  assert.equal(got.header('content-length'), '5')
  await gateway.left({ counted: 'success', status: 200, bytes: 5 })
})

test('an answer without a type keeps none', async (t) => {
  const { gateway } = await inFront(t, answering({ body: 'hello' }))
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.text(), got.header('content-type'), got.complete], ['hello', undefined, true])
  await gateway.left({ counted: 'success', status: 200, bytes: 5 })
})

for (const [name, bytes] of Object.entries({
  'by its length': answer(),
  'in chunks': Buffer.concat([answer({ headers: [['Transfer-Encoding', 'chunked']], framing: 'none' }), lastChunk()])
})) {
  test(`an empty 200, told ${name}, arrives empty and whole`, async (t) => {
    const { gateway } = await inFront(t, answering(bytes))
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, got.body.length, got.complete, got.ended], [200, 0, true, 'open'])
    await gateway.left({ counted: 'success', status: 200, bytes: 0 })
  })
}

test('204 arrives without a length, even where the upstream told one', async (t) => {
  const { gateway } = await inFront(t, answering({ status: 204, reason: 'No Content', headers: etag }))
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.header('etag'), got.header('content-length'), got.ended], [204, '"1"', undefined, 'open'])
  await gateway.left({ counted: 'success', status: 204, bytes: 0 })
})

for (const length of ['none', '1234']) {
  test(`304 arrives with its fields (Content-Length: ${length})`, async (t) => {
    const headers: FieldList = length === 'none' ? etag : [...etag, ['Content-Length', length]]
    const { gateway } = await inFront(t, answering({ status: 304, reason: 'Not Modified', headers, framing: 'none' }))
    for (let i = 0; i < 3; i++) {
      const got = await rawRequest(gateway.port, request('GET', '/', { 'If-None-Match': '"1"' }))
      assert.deepEqual([got.status, got.header('etag'), got.complete, got.ended], [304, '"1"', true, 'open'])
      assert.equal(got.header('content-length'), length === 'none' ? undefined : length)
      await gateway.left({ counted: 'success', status: 304, bytes: 0 })
    }
  })
}

test('the answer to HEAD has the fields of a GET and no body', async (t) => {
  const { gateway } = await inFront(t, answering({ headers: [['Content-Length', '12345'], ['Content-Type', 'text/plain']], framing: 'none' }))
  const got = await rawRequest(gateway.port, request('HEAD'))
  assert.deepEqual([got.status, got.header('content-length'), got.header('content-type'), got.ended], [200, '12345', 'text/plain', 'open'])
  assert.equal(got.raw.length, got.head.length, 'nothing after the head')
  await gateway.left({ counted: 'success', status: 200, bytes: 0 })
})

for (const [status, counted] of [[400, 'success'], [404, 'success'], [429, 'success'], [499, 'success'], [500, 'failure'], [503, 'failure'], [599, 'failure']] as const) {
  test(`${status} passes untouched and counts as a ${counted}`, async (t) => {
    const headers: FieldList = [['Content-Type', 'text/html'], ['Retry-After', '77']]
    const { gateway, upstream } = await inFront(t, answering({ status, reason: 'Own', headers, body: '<b>mine</b>' }))
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, got.text(), got.header('content-type'), got.header('retry-after')], [status, '<b>mine</b>', 'text/html', '77'])
    assert.equal(got.header('proxy-status'), undefined)
    await gateway.left({ counted, status, reason: null, bytes: 11 })
    assert.equal(upstream.requests.length, 1)
  })
}

test('a large 500 is one failure', async (t) => {
  const { gateway } = await inFront(t, answering({ status: 500, body: 'x'.repeat(500_000) }))
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.body.length, got.complete], [500, 500_000, true])
  await gateway.left({ counted: 'failure', status: 500, reason: null, bytes: 500_000 })
})

test('trailers are left out and harm nobody', async (t) => {
  const { gateway } = await inFront(t, answering(withTrailers()))
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.text(), got.complete, got.header('trailer')], [200, 'hello', true, undefined])
  await gateway.left({ counted: 'success', status: 200, bytes: 5 })
})

test('a Trailer field on an answer with a length harms nobody', async (t) => {
  const { gateway } = await inFront(t, answering({ headers: [['Trailer', 'X-Checksum']], body: 'hello' }))
  for (const method of ['GET', 'HEAD']) {
    const got = await rawRequest(gateway.port, request(method))
    assert.equal(got.status, 200)
    await gateway.left({ counted: 'success', status: 200, bytes: method === 'GET' ? 5 : 0 })
  }
})

test('an upstream that closes its connection does not close the client\'s', async (t) => {
  const { gateway } = await inFront(t, answering({ headers: [['Connection', 'close'], ['Keep-Alive', 'timeout=1']], body: 'hello' }))
  const got = await rawRequest(gateway.port, [get, get], { methods: ['GET', 'GET'] })
  assert.deepEqual(got.responses.map(each => each.text()), ['hello', 'hello'])
  assert.equal(got.ended, 'open')
  assert.equal(got.header('keep-alive')?.includes('timeout=1,') ?? false, false)
})

test('103 Early Hints are passed on', async (t) => {
  const { gateway } = await inFront(t, answering(Buffer.concat([earlyHints103, answer({ body: 'hello' })])))
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.text()], [200, 'hello'])
  assert.deepEqual(got.interim.map(each => [each.status, each.headers]), [[103, [['Link', '</style.css>; rel=preload']]]])
  await gateway.left({ counted: 'success', status: 200, bytes: 5 })
})

test('no 103 goes to an HTTP/1.0 client', async (t) => {
  const { gateway } = await inFront(t, answering(Buffer.concat([earlyHints103, answer({ body: 'hello' })])))
  const got = await rawRequest(gateway.port, 'GET / HTTP/1.0\r\nHost: shop.example\r\n\r\n')
  assert.deepEqual([got.interim, got.status, got.text(), got.ended], [[], 200, 'hello', 'fin'])
  await gateway.left({ counted: 'success', status: 200, bytes: 5 })
})

test('a 103 that comes long before the answer arrives long before it', async (t) => {
  let goOn: () => void = () => {}
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, earlyHints103)
    await new Promise<void>(resolve => { goOn = resolve })
    await send(socket, answer({ body: 'late' }))
  })
  let early = ''
  const got = await rawRequest(gateway.port, [get, 100, () => {
    early = 'the answer had not been sent'
    goOn()
  }])
  assert.deepEqual([early, got.interim.length, got.text()], ['the answer had not been sent', 1, 'late'])
  await gateway.left({ counted: 'success', status: 200, bytes: 4 })
})

test('102 is left out', async (t) => {
  const { gateway } = await inFront(t, answering(Buffer.concat([Buffer.from('HTTP/1.1 102 Processing\r\n\r\n'), answer({ body: 'hello' })])))
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.interim, got.status, got.text()], [[], 200, 'hello'])
  await gateway.left({ counted: 'success', status: 200 })
})

test('a body in many chunks arrives whole, and an HTTP/1.0 client gets it up to the end of the connection', async (t) => {
  const pieces = Array.from({ length: 50 }, (_, index) => chunk(`piece ${index};`))
  const body = Array.from({ length: 50 }, (_, index) => `piece ${index};`).join('')
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: [['Transfer-Encoding', 'chunked']], framing: 'none' }))
    for (const piece of pieces) await send(socket, piece)
    await send(socket, lastChunk())
  })
  const newer = await rawRequest(gateway.port, get)
  assert.deepEqual([newer.text(), newer.complete, newer.header('transfer-encoding')], [body, true, 'chunked'])
  await gateway.left({ counted: 'success', status: 200, bytes: body.length })
  const older = await rawRequest(gateway.port, 'GET / HTTP/1.0\r\nHost: shop.example\r\n\r\n')
  assert.deepEqual([older.text(), older.header('transfer-encoding'), older.ended], [body, undefined, 'fin'])
  await gateway.left({ counted: 'success', status: 200, bytes: body.length })
})

test('an answer that ends with its connection arrives whole', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ body: 'first;', framing: 'none' }))
    setTimeout(() => { socket.end('second') }, 20)
  })
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.text(), got.complete, got.ended], [200, 'first;second', true, 'open'])
  await gateway.left({ counted: 'success', status: 200, bytes: 12 })
})

test('fields that come more than once stay apart and in order', async (t) => {
  const headers: FieldList = [['Set-Cookie', 'a=1'], ['Set-Cookie', 'b=2'], ['Vary', 'A'], ['Vary', 'B'], ['X-Latin', 'caf\xe9']]
  const { gateway } = await inFront(t, answering({ headers, body: 'hello' }))
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual(got.headers.filter(([name]) => /^(set-cookie|vary|x-latin)$/i.test(name)).map(([name, value]) => [name.toLowerCase(), value]),
    [['set-cookie', 'a=1'], ['set-cookie', 'b=2'], ['vary', 'A'], ['vary', 'B'], ['x-latin', 'caf\xe9']])
  await gateway.left({ counted: 'success', status: 200 })
})
