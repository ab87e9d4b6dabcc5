import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, send } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest, type Part } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { accessLines, head, startBoth } from './support.ts'

const get = head('GET /a HTTP/1.1', 'Host: shop')

/** `parsed`: the head could be read, so the access line tells method and path. `either`: newer Nodes refuse it in their parser. */
interface Malformed { parts: Part | Part[], status?: number, reason?: string, parsed?: [method: string, path: string], either?: boolean }

const manyFields = (count: number): string[] => Array.from({ length: count }, (_, i) => `a${i}: 1`)

const cases: Record<string, Malformed> = {
  'two Host lines': { parts: head('GET /a HTTP/1.1', 'Host: a', 'Host: b'), parsed: ['GET', '/a'] },
  'two equal Host lines': { parts: head('GET /a HTTP/1.1', 'Host: a', 'host: a'), parsed: ['GET', '/a'] },
  'no Host on HTTP/1.1': { parts: head('GET /a HTTP/1.1'), parsed: ['GET', '/a'] },
  'a Host with user information': { parts: head('GET /a HTTP/1.1', 'Host: u@shop'), parsed: ['GET', '/a'] },
  'a Host with a path': { parts: head('GET /a HTTP/1.1', 'Host: shop/a'), parsed: ['GET', '/a'] },
  'a Host with a space': { parts: head('GET /a HTTP/1.1', 'Host: a b'), parsed: ['GET', '/a'] },
  'a Host with a bad port': { parts: head('GET /a HTTP/1.1', 'Host: shop:80a'), parsed: ['GET', '/a'] },
  'a list of Hosts': { parts: head('GET /a HTTP/1.1', 'Host: a, b/'), parsed: ['GET', '/a'] },
  'HTTP/0.9': { parts: head('GET /a HTTP/0.9', 'Host: shop'), parsed: ['GET', '/a'] },
  'HTTP/2.0': { parts: head('GET /a HTTP/2.0', 'Host: shop'), parsed: ['GET', '/a'] },
  'HTTP/3.0': { parts: head('GET /a HTTP/3.0', 'Host: shop') },
  'HTTP/1.2': { parts: head('GET /a HTTP/1.2', 'Host: shop') },
  'HTTP/11': { parts: head('GET /a HTTP/11', 'Host: shop') },
  'no version': { parts: 'GET /a\r\n\r\n', parsed: ['GET', '/a'] },
  'another protocol': { parts: head('GET /a ICE/1.0', 'Host: shop') },
  'the preface of HTTP/2': { parts: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' },
  'a TLS greeting': { parts: Buffer.from('16030100a5010000a10303', 'hex') },
  'a NUL at the beginning': { parts: '\0\0\0\0' },
  'Content-Length and Transfer-Encoding': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 6', 'Transfer-Encoding: chunked') + '0\r\n\r\nX' },
  'Transfer-Encoding and Content-Length': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked', 'Content-Length: 6') + '0\r\n\r\nX' },
  'two different Content-Length': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 5', 'Content-Length: 6') + 'hello' },
  'two equal Content-Length': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 5', 'Content-Length: 5') + 'hello' },
  'a list of Content-Length': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 5, 5') + 'hello' },
  'a negative Content-Length': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: -1') },
  'a Content-Length with a sign': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: +5') + 'hello' },
  'a Content-Length in hexadecimal': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 0x5') + 'hello' },
  'an empty Content-Length': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length:') },
  'a Content-Length beyond what counts exactly': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 9007199254740993'), parsed: ['POST', '/a'] },
  'a Content-Length beyond all numbers': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 99999999999999999999') },
  'chunked twice': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked, chunked') + '0\r\n\r\n' },
  'chunked not last': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked, gzip') + '0\r\n\r\n' },
  'a coding that is not chunked': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: identity') + 'hello', parsed: ['POST', '/a'] },
  'an empty coding': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding:') + '5\r\nhello\r\n0\r\n\r\n', parsed: ['POST', '/a'], either: true },
  'a coding beneath chunked': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: gzip, chunked') + '0\r\n\r\n', parsed: ['POST', '/a'] },
  'chunked with a tail': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunkedx') + '0\r\n\r\n', parsed: ['POST', '/a'] },
  'a folded line': { parts: head('GET /a HTTP/1.1', 'Host: shop', 'X-A: 1', ' 2') },
  'a folded first line': { parts: 'GET /a HTTP/1.1\r\n Host: shop\r\n\r\n' },
  'a bare CR in a value': { parts: head('GET /a HTTP/1.1', 'Host: shop', 'X-A: 1\r2') },
  'a bare LF at a line\'s end': { parts: 'GET /a HTTP/1.1\r\nHost: shop\nX-A: 1\r\n\r\n' },
  'a bare LF behind the request line': { parts: 'GET /a HTTP/1.1\nHost: shop\r\n\r\n' },
  'a NUL in a value': { parts: head('GET /a HTTP/1.1', 'Host: shop', 'X-A: 1\x002') },
  'a control byte in a value': { parts: head('GET /a HTTP/1.1', 'Host: shop', 'X-A: 1\x012') },
  'a space in a name': { parts: head('GET /a HTTP/1.1', 'Host: shop', 'X A: 1') },
  'a space before the colon': { parts: head('GET /a HTTP/1.1', 'Host: shop', 'X-A : 1') },
  'a space before the Content-Length\'s colon': { parts: head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length : 5') + 'hello' },
  'no name': { parts: head('GET /a HTTP/1.1', 'Host: shop', ': 1') },
  'no colon': { parts: head('GET /a HTTP/1.1', 'Host: shop', 'nonsense') },
  'a name with a latin-1 byte': { parts: head('GET /a HTTP/1.1', 'Host: shop', 'X-\xe9: 1') },
  'a method in small letters': { parts: head('get /a HTTP/1.1', 'Host: shop') },
  'a head that is too large, in one field': { parts: head('GET /a HTTP/1.1', 'Host: shop', `X-A: ${'x'.repeat(70000)}`), status: 431, reason: 'headers_too_large' },
  'a head that is too large, in many': { parts: head('GET /a HTTP/1.1', 'Host: shop', ...Array.from({ length: 100 }, (_, i) => `X-${i}: ${'x'.repeat(1000)}`)), status: 431, reason: 'headers_too_large' },
  'a head that is too large, in the target': { parts: head(`GET /${'x'.repeat(70000)} HTTP/1.1`, 'Host: shop'), status: 431, reason: 'headers_too_large' },
  'more than 2000 fields': { parts: head('GET /a HTTP/1.1', 'Host: shop', ...manyFields(2000)), status: 431, reason: 'headers_too_large', parsed: ['GET', '/a'] },
  'many more than 2000 fields': { parts: head('GET /a HTTP/1.1', 'Host: shop', ...manyFields(5000)), status: 431, reason: 'headers_too_large', parsed: ['GET', '/a'], either: true },
  'half a head, then the end': { parts: 'GET /a HTTP/1.1\r\nHost: sh' }
}

for (const [name, { parts, status = 400, reason = 'bad_request', parsed, either = false }] of Object.entries(cases)) {
  test(`a malformed request is answered once and harms nobody: ${name}`, async (t) => {
    const gateway = await startBoth(t)
    const response = await rawRequest(gateway.port, parts, { until: 'close', end: name.endsWith('then the end') })
    assert.deepEqual([response.status, response.header('content-type')], [status, 'application/problem+json'], response.raw.toString('latin1'))
    assert.equal((response.json() as { reason: string }).reason, reason)
    assert.equal(response.raw.toString('latin1').split('HTTP/1.1 ').length, 2, 'one answer')
    assert.deepEqual([response.ended, response.header('connection')], ['fin', 'close'])
    assert.equal(gateway.behind.requests.length, 0)
    const lines = await accessLines(gateway, 1)
    assert.deepEqual(lines.map((line) => [line['method'], line['path'], line['status'], line['reason'], line['bytes'], line['client_ip']]),
      [[...(parsed === undefined || (either && lines[0]?.['method'] === null) ? [null, null] : parsed), status, reason, response.body.length, '127.0.0.1']])
    assert.equal((await rawRequest(gateway.port, get)).status, 200)
  })
}

test('2000 fields are passed on, all of them', async (t) => {
  const gateway = await startBoth(t)
  assert.equal((await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', ...manyFields(1999)))).status, 200)
  assert.equal(gateway.behind.requests[0]?.headers.filter(([name]) => /^a\d+$/.test(name)).length, 1999)
})

test('the limit of the head is the configured one', async (t) => {
  const gateway = await startBoth(t, { server: { maxHeaderBytes: 1024 } })
  const withField = (size: number): string => head('GET /a HTTP/1.1', 'Host: shop', `X-A: ${'x'.repeat(size)}`)
  assert.equal((await rawRequest(gateway.port, withField(800))).status, 200)
  assert.equal((await rawRequest(gateway.port, withField(1100))).status, 431)
})

const badBodies: Record<string, string> = {
  'a size of letters': 'zz\r\nhi\r\n0\r\n\r\n',
  'a negative size': '-2\r\nhi\r\n0\r\n\r\n',
  'a size that is too small': '1\r\nhello\r\n0\r\n\r\n',
  'a size beyond all numbers': 'fffffffffffffffff\r\nhi\r\n0\r\n\r\n',
  'a bare LF behind the size': '2\nhi\r\n0\r\n\r\n',
  'no line end behind the data': '2\r\nhi0\r\n\r\n',
  'a size with a space': '2 \r\nhi\r\n0\r\n\r\n'
}
for (const [name, bytes] of Object.entries(badBodies)) {
  test(`a malformed chunk ends its request with 400 and nobody blames the upstream: ${name}`, async (t) => {
    const gateway = await startBoth(t, {}, async (socket, request) => {
      if ((await request.body()).complete) await send(socket, answer({ body: 'whole' }))
    })
    // Whether the first chunk has been forwarded already or not.
    for (const pause of [0, 1]) {
      const first = head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked')
      const response = await rawRequest(gateway.port, pause === 0 ? first + bytes
        : [`${first}5\r\nhello\r\n`, () => until(() => gateway.behind.requests.length > 0), bytes], { until: 'close' })
      assert.deepEqual([response.status, (response.json() as { reason: string }).reason, response.ended, response.responses.length], [400, 'bad_request', 'fin', 1], response.raw.toString('latin1'))
      assert.equal(response.raw.toString('latin1').split('HTTP/1.1 ').length, 2, 'one answer')
      await gateway.left({ counted: 'neutral', status: 400, reason: 'bad_request', bytes: response.body.length })
    }
    for (const request of gateway.behind.requests) assert.equal((await request.body()).complete, false)
  })
}

test('chunk extensions without end are refused as too large', async (t) => {
  const gateway = await startBoth(t)
  const response = await rawRequest(gateway.port, head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked') + `2;${'x'.repeat(20000)}\r\nhi\r\n0\r\n\r\n`, { until: 'close' })
  assert.deepEqual([response.status, response.ended], [413, 'fin'])
  await accessLines(gateway, 1)
})

test('what follows on a refused connection is nobody\'s request, however it is split', async (t) => {
  const gateway = await startBoth(t)
  const response = await rawRequest(gateway.port, ['GARBAGE\r\n\r\n', 20, 'more of it', 20, get, 20, get], { until: 'close' })
  assert.deepEqual([response.status, response.raw.toString('latin1').split('HTTP/1.1 ').length, response.ended], [400, 2, 'fin'])
  assert.equal((await accessLines(gateway, 1)).length, 1)
  assert.equal(gateway.behind.requests.length, 0)
})

test('a client that goes on sending gets to read its answer nevertheless', async (t) => {
  const gateway = await startBoth(t)
  const response = await rawRequest(gateway.port, [`GARBAGE ${'x'.repeat(200000)}`, 'y'.repeat(200000)], { until: 'close' })
  assert.deepEqual([response.status, response.complete], [400, true])
})

test('a client that breaks off in the middle of a head harms nobody, and its address is still known', async (t) => {
  const gateway = await startBoth(t)
  for (let turn = 0; turn < 5; turn++) {
    const client = await rawConnect(gateway.port)
    await client.write('GET /a HTTP/1.1\r\nHo')
    client.reset()
  }
  assert.equal((await rawRequest(gateway.port, get)).status, 200)
  const lines = await accessLines(gateway, 1)
  // The system tells of a reset as a reset, or as an end behind what was sent.
  assert.ok(lines.length <= 6)
  for (const line of lines.filter(({ method }) => method === null)) assert.deepEqual([line['client_ip'], line['reason']], ['127.0.0.1', 'bad_request'])
})
