import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, answering, send } from '../../support/faulty-upstream.ts'
import { toBytes } from '../../support/http-bytes.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { inFront, request } from './support.ts'

const echo = answering({ body: 'hello' })

test('HEAD: the fields of a GET, no body, and a body that the upstream sends nevertheless is nobody\'s answer', async (t) => {
  const { gateway, upstream } = await inFront(t, (socket, { method, target }) =>
    send(socket, answer({ headers: [['X-Target', target], ['ETag', '"a"']], body: method === 'HEAD' ? 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Target: evil\r\n\r\nevil!' : 'hello' })))
  for (let turn = 0; turn < 5; turn++) {
    const got = await rawRequest(gateway.port, [request('HEAD', '/head'), request('GET', '/get')], { methods: ['HEAD', 'GET'] })
    assert.deepEqual(got.responses.map((each) => [each.status, each.header('x-target'), each.text()]), [[200, '/head', ''], [200, '/get', 'hello']])
    assert.equal(got.header('content-length'), '59')
  }
  assert.ok(upstream.requests.every(({ method, index }) => method !== 'HEAD' || index >= 1))
})

const bodyless: Array<[status: number, fields: Array<[string, string]>, expected: string | undefined]> = [
  [204, [], undefined], [204, [['Content-Length', '0']], undefined], [204, [['Content-Length', '7']], undefined],
  [304, [], undefined], [304, [['Content-Length', '7']], '7'],
  [205, [['Content-Length', '0']], '0']
]
for (const [status, headers, length] of bodyless) {
  test(`${status} (${JSON.stringify(headers)}) has no body, and bytes behind it are nobody's answer`, async (t) => {
    const evil = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'
    const { gateway } = await inFront(t, (socket, { target }) => target === '/next' ? send(socket, answer({ body: 'next' })) : send(socket, answer({ status, headers, framing: 'none' }), evil))
    const got = await rawRequest(gateway.port, [request('GET', '/a'), 30, request('GET', '/next')], { methods: ['GET', 'GET'] })
    assert.deepEqual(got.responses.map((each) => [each.status, each.text()]), [[status, ''], [200, 'next']], got.raw.toString('latin1'))
    assert.equal(got.header('content-length'), length)
  })
}

test('205 with a body passes as it came: its framing says where it ends', async (t) => {
  const { gateway } = await inFront(t, answering({ status: 205, body: 'reset' }))
  const got = await rawRequest(gateway.port, [request(), request()], { methods: ['GET', 'GET'] })
  assert.deepEqual(got.responses.map((each) => [each.status, each.text(), each.complete]), [[205, 'reset', true], [205, 'reset', true]])
})

test('queries arrive as they came, odd ones too', async (t) => {
  const { gateway, upstream } = await inFront(t, echo)
  const targets = ['/?', '/??', '/a?a=%00', '/a?%0d%0aX-Evil:%201', '/a?a=1&a=2&&=', '/a?%zz', '/a?q=a/../b', '/a?x=\'"<>{}|^`', '/a?b=%2F%2f', '/a;p=1?q', '/a%20b%2Fc?d+e', '//a//b', '/a?http://u@h/../x']
  for (const target of targets) assert.equal((await rawRequest(gateway.port, request('GET', target))).status, 200, target)
  assert.deepEqual(upstream.requests.map(({ target }) => target), targets)
})

test('unusual methods pass, with a body and without', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket, { body }) => { await send(socket, answer({ body: (await body()).body })) })
  const methods = ['QUERY', 'PROPFIND', 'PROPPATCH', 'PURGE', 'M-SEARCH', 'LINK', 'UNLINK', 'REPORT', 'MKCOL', 'MKCALENDAR', 'COPY', 'MOVE', 'LOCK', 'UNLOCK', 'SEARCH', 'ACL', 'BIND', 'REBIND', 'UNBIND', 'CHECKOUT', 'MERGE', 'MKACTIVITY', 'NOTIFY', 'SUBSCRIBE', 'UNSUBSCRIBE']
  for (const method of methods) {
    for (const body of ['', 'some bytes']) {
      const got = await rawRequest(gateway.port, request(method, '/', {}, body))
      assert.deepEqual([got.status, got.text()], [200, body], method)
    }
  }
  assert.deepEqual([...new Set(upstream.requests.map(({ method }) => method))], methods)
})

test('Content-Length: 0 of a POST is kept, and chunks of nothing are an empty body', async (t) => {
  const { gateway, upstream } = await inFront(t, echo)
  await rawRequest(gateway.port, request('POST', '/', { 'Content-Length': '0' }))
  await rawRequest(gateway.port, request('POST', '/'))
  await rawRequest(gateway.port, [request('POST', '/', { 'Transfer-Encoding': 'chunked' }), '0\r\n\r\n'])
  await rawRequest(gateway.port, [request('POST', '/', { 'Transfer-Encoding': 'chunked' }), 30, '0\r\n\r\n'])
  await rawRequest(gateway.port, request('GET', '/'))
  // Chunks of nothing are a length of nothing: that means the same.
  assert.deepEqual(upstream.requests.map((each) => [each.header('content-length'), each.header('transfer-encoding')]),
    [['0', undefined], ['0', undefined], ['0', undefined], ['0', undefined], [undefined, undefined]])
  for (const each of upstream.requests) assert.deepEqual([(await each.body()).body.length, (await each.body()).complete], [0, true])
})

test('chunk extensions end at the proxy, in both directions, and sizes are written anew', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket, { body }) => {
    const { body: bytes } = await body()
    await send(socket, `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00${bytes.length.toString(16)};a="b"\r\n`, bytes, '\r\n0;last\r\n\r\n')
  })
  const got = await rawRequest(gateway.port, [request('POST', '/', { 'Transfer-Encoding': 'chunked' }), '0005;a="x;\\"y"\r\nhello\r\n', 10, '6;b\r\n world\r\n000;c\r\n\r\n', request()], { methods: ['POST', 'GET'] })
  assert.deepEqual(got.responses.map((each) => each.text()), ['hello world', ''])
  assert.equal(got.raw.includes(';a='), false)
  assert.equal(upstream.requests.length, 2)
})

test('HTTP/1.0 clients are kept where they ask for it and the answer has a length, and else closed', async (t) => {
  const { gateway, upstream } = await inFront(t, echo)
  const old = (...fields: string[]): string => ['GET / HTTP/1.0', ...fields, '', ''].join('\r\n')
  const kept = await rawRequest(gateway.port, [old('Connection: keep-alive'), old('Connection: keep-alive'), old()], { methods: ['GET', 'GET', 'GET'], until: 'close' })
  assert.deepEqual(kept.responses.map((each) => [each.text(), each.header('connection')]), [['hello', 'keep-alive'], ['hello', 'keep-alive'], ['hello', 'close']])
  assert.equal(kept.ended, 'fin')
  upstream.handle(async (socket) => {
    await send(socket, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')
    setTimeout(() => { socket.write('0\r\n\r\n') }, 20)
  })
  const streamed = await rawRequest(gateway.port, old('Connection: keep-alive'), { until: 'close' })
  assert.deepEqual([streamed.text(), streamed.header('transfer-encoding'), streamed.header('connection'), streamed.ended], ['hello', undefined, 'close', 'fin'])
})

test('an upstream of HTTP/1.0 without a length is read to its end, one with keep-alive is used again', async (t) => {
  const { gateway, upstream } = await inFront(t, (socket) => { socket.end('HTTP/1.0 200 OK\r\nX-A: 1\r\n\r\nhello') })
  const got = await rawRequest(gateway.port, [request(), 20, request()], { methods: ['GET', 'GET'] })
  assert.deepEqual(got.responses.map((each) => [each.version, each.text(), each.complete]), [['HTTP/1.1', 'hello', true], ['HTTP/1.1', 'hello', true]])
  assert.equal(upstream.connections, 2)
  upstream.handle((socket) => send(socket, 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nagain'))
  for (let turn = 0; turn < 3; turn++) assert.equal((await rawRequest(gateway.port, request())).text(), 'again')
  assert.equal(upstream.connections, 3)
})

test('one field of 60,000 bytes passes in both directions', async (t) => {
  const large = 'v'.repeat(60000)
  const { gateway, upstream } = await inFront(t, answering({ headers: [['X-Large', large]], body: 'hello' }))
  const got = await rawRequest(gateway.port, request('GET', '/', { 'X-Large': large }))
  assert.deepEqual([got.status, got.header('x-large') === large, upstream.requests[0]?.header('x-large') === large], [200, true, true])
})

test('what an upstream says on several lines stays so, and in order', async (t) => {
  const names = ['Set-Cookie', 'Link', 'WWW-Authenticate', 'Warning', 'Vary', 'Cache-Control', 'X-A']
  const headers = names.flatMap((name): Array<[string, string]> => [[name, `1 "a, b"`], [name, '2']])
  const { gateway } = await inFront(t, answering({ headers, body: 'hello' }))
  const got = await rawRequest(gateway.port, request())
  for (const name of names) assert.deepEqual(got.headers.filter(([each]) => each.toLowerCase() === name.toLowerCase()).map(([, value]) => value), ['1 "a, b"', '2'], name)
})

test('equal lengths on two lines of an answer become one; more bytes than the length never reach another client', async (t) => {
  const { gateway, upstream } = await inFront(t, (socket) => send(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello'))
  const got = await rawRequest(gateway.port, request())
  if (got.status === 200) assert.deepEqual([got.header('content-length'), got.text()], ['5', 'hello'])
  else assert.equal(got.status, 502)
  upstream.handle((socket, { target }) => send(socket, toBytes(`HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n${target.slice(1).padEnd(5)}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nevil!`)))
  for (let turn = 0; turn < 5; turn++) {
    const each = await rawRequest(gateway.port, request('GET', `/${turn}`))
    assert.deepEqual([each.status, each.text().trim()], [200, String(turn)])
  }
})
