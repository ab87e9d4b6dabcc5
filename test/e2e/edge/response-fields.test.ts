import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, answering, send } from '../../support/faulty-upstream.ts'
import { chunk, lastChunk, toBytes, valuesOf, type FieldList } from '../../support/http-bytes.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { withTrailers } from '../../support/strange-answers.ts'
import { head, startBoth } from './support.ts'

const get = head('GET /a HTTP/1.1', 'Host: shop')

test('an upstream that closes its connection does not close the client\'s', async (t) => {
  const gateway = await startBoth(t, {}, async (socket) => {
    await send(socket, answer({ headers: [['Connection', 'close, X-Private'], ['Keep-Alive', 'timeout=1'], ['X-Private', '1'], ['X-Public', '2']], body: 'hello' }))
    socket.end()
  })
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  for (let turn = 0; turn < 3; turn++) {
    await client.write(get)
    const response = await client.readResponse()
    assert.deepEqual([response.status, response.text(), response.header('connection'), response.header('x-private'), response.header('x-public')], [200, 'hello', 'keep-alive', undefined, '2'])
  }
  assert.equal(gateway.behind.connections, 3)
})

test('an upstream\'s hop-by-hop fields end at the proxy', async (t) => {
  const fields: FieldList = [['Keep-Alive', 'timeout=1'], ['Proxy-Connection', 'x'], ['Proxy-Authenticate', 'Basic'], ['TE', 'trailers'], ['Upgrade', 'h2c'], ['Trailer', 'X-Sum'], ['WWW-Authenticate', 'Basic realm="a"']]
  const gateway = await startBoth(t, {}, answering({ headers: fields, body: 'hello' }))
  const response = await rawRequest(gateway.port, get)
  assert.deepEqual(fields.map(([name]) => response.header(name)), ['timeout=60', undefined, undefined, undefined, undefined, undefined, 'Basic realm="a"'])
})

const trailerAnswers: Array<[name: string, method: string, bytes: Buffer]> = [
  ['a counted answer', 'GET', answer({ headers: [['Trailer', 'X-Sum']], body: 'hello' })],
  ['204', 'GET', answer({ status: 204, headers: [['Trailer', 'X-Sum']], framing: 'none' })],
  ['304', 'GET', answer({ status: 304, headers: [['Trailer', 'X-Sum'], ['ETag', '"a"']], framing: 'none' })],
  ['an answer to HEAD', 'HEAD', answer({ headers: [['Trailer', 'X-Sum'], ['Content-Length', '5']], framing: 'none' })],
  ['a chunked answer', 'GET', withTrailers([['X-Sum', '1']])],
  ['a chunked answer with other trailers than announced', 'GET', Buffer.concat([answer({ headers: [['Trailer', 'X-Sum'], ['Transfer-Encoding', 'chunked']], framing: 'none' }), chunk('hello'), lastChunk([['Set-Cookie', 'a=1'], ['X-Other', '3']])])],
  ['a nominated Trailer', 'GET', answer({ headers: [['Connection', 'Trailer'], ['Trailer', 'X-Sum']], body: 'hello' })]
]
for (const [name, method, bytes] of trailerAnswers) {
  test(`trailers announced on ${name} harm nobody`, async (t) => {
    const gateway = await startBoth(t, {}, answering(bytes))
    for (let turn = 0; turn < 2; turn++) {
      const response = await rawRequest(gateway.port, head(`${method} /a HTTP/1.1`, 'Host: shop'))
      assert.ok(response.status >= 200 && response.status < 400, response.raw.toString())
      assert.equal(response.complete, true)
      assert.deepEqual([response.header('trailer'), response.trailers], [undefined, []])
    }
  })
}

test('an answer\'s fields arrive repeated, in order and with every byte that they had', async (t) => {
  const fields: FieldList = [
    ['Set-Cookie', 'a=1; Path=/'], ['X-B', 'one'], ['Set-Cookie', 'b=2, with a comma'], ['Vary', 'Accept'], ['X-B', 'two'], ['Vary', 'Cookie'], ['set-cookie', 'c=3'],
    ['X-Latin', 'caf\xe9 \xff'], ['constructor', 'c'], ['hasOwnProperty', 'h'], ['toString', 's'], ['X-Empty', ''], ['Link', '</a>; rel=next'], ['WWW-Authenticate', 'Basic'], ['WWW-Authenticate', 'Digest']
  ]
  const gateway = await startBoth(t, {}, answering({ headers: fields, body: 'hello' }))
  const response = await rawRequest(gateway.port, get)
  for (const name of new Set(fields.map(([each]) => each.toLowerCase()))) assert.deepEqual(valuesOf(response.headers, name), valuesOf(fields, name), name)
})

test('a field named __proto__ is harmless', async (t) => {
  const gateway = await startBoth(t, {}, answering({ headers: [['__proto__', 'polluted'], ['__proto__', 'again'], ['X-After', '1']], body: 'hello' }))
  for (let turn = 0; turn < 2; turn++) {
    const response = await rawRequest(gateway.port, get)
    assert.deepEqual([response.status, response.header('x-after'), response.text()], [200, '1', 'hello'])
  }
})

test('bodies and codings are passed on untouched', async (t) => {
  const body = Buffer.from(Array.from({ length: 1024 }, (_, i) => i & 255))
  const gateway = await startBoth(t, {}, answering({ headers: [['Content-Encoding', 'gzip'], ['Content-Type', 'application/json'], ['ETag', '"x"']], body }))
  const response = await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', 'Accept-Encoding: gzip'))
  assert.deepEqual(response.body, body)
  assert.deepEqual([response.header('content-encoding'), response.header('content-type'), response.header('etag'), response.header('content-length')], ['gzip', 'application/json', '"x"', '1024'])
})

test('an answer without a type gets none', async (t) => {
  const gateway = await startBoth(t, {}, answering({ body: '{"a":1}' }))
  assert.equal((await rawRequest(gateway.port, get)).header('content-type'), undefined)
})

test('control bytes in an upstream\'s field make an invalid answer, not a failure of the proxy', async (t) => {
  for (const bad of ['\x01', '\x7f', '\x0b']) {
    const gateway = await startBoth(t, {}, answering(toBytes(`HTTP/1.1 200 OK\r\nX-Bad: a${bad}b\r\nContent-Length: 2\r\n\r\nhi`)))
    const response = await rawRequest(gateway.port, get)
    assert.deepEqual([response.status, (response.json() as { reason: string }).reason], [502, 'response_invalid'], JSON.stringify(bad))
    assert.equal((await rawRequest(gateway.port, get)).status, 502)
  }
})

test('Via tells of the proxy on the way back too', async (t) => {
  const gateway = await startBoth(t, {}, answering({ headers: [['Via', '1.1 a'], ['Via', '1.0 b']], body: 'x' }))
  assert.equal((await rawRequest(gateway.port, get)).header('via'), '1.1 a, 1.0 b, 1.1 breakwater')
})
