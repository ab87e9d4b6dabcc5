import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { test } from 'node:test'
import { valuesOf } from '../../support/http-bytes.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { accessLines, head, startBoth } from './support.ts'

const hopByHop: Array<[name: string, ...fields: string[]]> = [
  ['Keep-Alive', 'Keep-Alive: timeout=5'],
  ['Keep-Alive, nominated', 'Connection: keep-alive, Keep-Alive', 'Keep-Alive: timeout=5'],
  ['Upgrade to h2c', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
  ['Upgrade without Connection', 'Upgrade: foo/2'],
  ['TE', 'TE: deflate;q=0.5'],
  ['TE, nominated', 'Connection: TE', 'TE: gzip'],
  ['Trailer', 'Trailer: X-Checksum'],
  ['Proxy-Connection', 'Proxy-Connection: keep-alive'],
  ['Proxy-Authorization', 'Proxy-Authorization: Basic c2VjcmV0'],
  ['Proxy-Authenticate', 'Proxy-Authenticate: Basic'],
  ['an expectation that nobody knows', 'Expect: wonders']
]

for (const [name, ...fields] of hopByHop) {
  test(`a client's hop-by-hop field ends at the proxy and harms nobody: ${name}`, async (t) => {
    const gateway = await startBoth(t)
    const response = await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', ...fields, 'X-Mine: 1'))
    assert.equal(response.status, 200, response.raw.toString())
    const [seen] = gateway.behind.requests
    for (const field of fields) {
      const field0 = field.split(':', 1)[0] as string
      if (field0 !== 'Connection') assert.equal(seen?.header(field0), undefined, field0)
    }
    assert.equal(seen?.header('connection'), 'keep-alive')
    assert.equal(seen?.header('x-mine'), '1')
    await gateway.left({ counted: 'success', status: 200 })
  })
}

test('what a Connection line names is taken out, in any case and however many lines there are', async (t) => {
  const gateway = await startBoth(t)
  await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', 'X-One: 1', 'X-TWO: 2', 'x-two: 2', 'X-Three: 3', 'X-Four: 4',
    'Connection: x-one , ,X-Two', 'Connection: keep-alive, X-THREE'))
  const [seen] = gateway.behind.requests
  assert.deepEqual(['x-one', 'x-two', 'x-three', 'x-four'].map((name) => seen?.header(name)), [undefined, undefined, undefined, '4'])
})

test('a Connection line cannot take away what the proxy says, nor what the message needs', async (t) => {
  const gateway = await startBoth(t, { server: { trustedProxies: ['127.0.0.1/32'] } })
  await rawRequest(gateway.port, [head('POST /a HTTP/1.1', 'Host: shop', 'X-Forwarded-For: 203.0.113.7', 'X-Request-Id: r-1', 'Authorization: Basic eA==', 'Cookie: a=1',
    'Content-Type: text/plain', 'Content-Length: 2',
    'Connection: close, Host, X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto, X-Real-IP, Forwarded, Via, X-Request-Id, Authorization, Cookie, Content-Length, Content-Type'), 'hi'])
  const [seen] = gateway.behind.requests
  const expected = {
    'host': `127.0.0.1:${gateway.behind.port}`,
    'x-forwarded-for': '203.0.113.7, 127.0.0.1',
    'x-forwarded-host': 'shop',
    'x-forwarded-proto': 'http',
    'x-real-ip': '203.0.113.7',
    'via': '1.1 breakwater',
    'x-request-id': 'r-1',
    'authorization': 'Basic eA==',
    'cookie': 'a=1',
    'content-type': 'text/plain',
    'content-length': '2'
  }
  for (const [name, value] of Object.entries(expected)) assert.equal(seen?.header(name), value, name)
  assert.match(seen?.header('forwarded') ?? '', /^for=203\.0\.113\.7, for=127\.0\.0\.1;host=shop;proto=http$/)
  assert.equal((await seen?.body())?.body.toString(), 'hi')
})

test('fields arrive in their order, spelling and repetition, with every byte that they had', async (t) => {
  const gateway = await startBoth(t)
  const fields: Array<[string, string]> = [
    ['X-B', 'one'], ['x-a', 'caf\xe9 \xff\x80'], ['X-B', 'two, three'], ['Cookie', 'a=1'], ['Cookie', 'b=2'], ['Referer', 'r1'], ['Referer', 'r2'],
    ['__proto__', 'polluted'], ['constructor', 'c'], ['toString', 's'], ['hasOwnProperty', 'h'], ['X-Empty', ''], ['X-Tab', 'a\tb'], ['!#$%&\'*+-.^_`|~', 'odd name']
  ]
  const response = await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', ...fields.map(([name, value]) => `${name}: ${value}`)))
  assert.equal(response.status, 200)
  const names = new Set(fields.map(([name]) => name))
  assert.deepEqual(gateway.behind.requests[0]?.headers.filter(([name]) => names.has(name)), fields)
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
})

const identity = ['X-User-Id', 'x-user-id', 'X-USER-ID', 'X_User_Id', 'x-user_id', 'X-Internal_Auth', 'x_internal_auth', 'X-INTERNAL-AUTH']
for (const configured of [['x-user-id', 'x-internal-auth'], ['X_USER_ID', 'x_internal-auth']]) {
  test(`identity fields are never accepted from a client, in no spelling, when configured as ${configured.join(' and ')}`, async (t) => {
    const gateway = await startBoth(t, { server: { stripRequestHeaders: configured } })
    for (const name of identity) await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', `${name}: root`, 'X-Users-Id: 1', 'X-Useful: 2'))
    assert.equal(gateway.behind.requests.length, identity.length)
    for (const seen of gateway.behind.requests) {
      assert.equal(seen.text.includes('root'), false, seen.text)
      assert.deepEqual([seen.header('x-users-id'), seen.header('x-useful')], ['1', '2'])
    }
  })
}

test('an underscore twin of a field that the proxy owns is not passed on, from trusted peers neither', async (t) => {
  for (const trustedProxies of [[], ['127.0.0.1']]) {
    const gateway = await startBoth(t, { server: { trustedProxies } })
    await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', ...['X_Forwarded_For', 'x-forwarded_for', 'X_REAL_IP', 'x_request_id', 'Content_Length', 'Transfer_Encoding'].map((name) => `${name}: spoof`)))
    assert.equal(gateway.behind.requests[0]?.text.includes('spoof'), false, gateway.behind.requests[0]?.text)
  }
})

test('the upstream is asked for its own host, or for the client\'s where that is configured; the original is always told', async (t) => {
  for (const [hostHeader, expected] of [['upstream', 'own'], ['preserve', 'Shop.Example:8080']] as const) {
    const gateway = await startBoth(t, { pool: { hostHeader } })
    await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: Shop.Example:8080'))
    await rawRequest(gateway.port, head('GET http://Other.example/b HTTP/1.1', 'Host: Shop.Example:8080'))
    await rawRequest(gateway.port, head('GET /c HTTP/1.0'))
    const own = `127.0.0.1:${gateway.behind.port}`
    const seen = gateway.behind.requests.map((request) => [request.target, valuesOf(request.headers, 'host'), request.header('x-forwarded-host'), request.header('x-forwarded-port')])
    assert.deepEqual(seen, [
      ['/a', [expected === 'own' ? own : expected], 'Shop.Example:8080', '8080'],
      ['/b', [expected === 'own' ? own : 'Other.example'], 'Other.example', String(gateway.port)],
      ['/c', [own], '', String(gateway.port)]
    ])
  }
})

test('OPTIONS with Max-Forwards is counted down and answered at zero; for other methods it is a field like any', async (t) => {
  const gateway = await startBoth(t)
  const ask = (method: string, ...values: string[]) =>
    rawRequest(gateway.port, head(`${method} /a HTTP/1.1`, 'Host: shop', ...values.map((value) => `Max-Forwards: ${value}`)))
  const zero = await ask('OPTIONS', '0')
  assert.deepEqual([zero.status, zero.header('allow')?.includes('PATCH'), zero.header('allow')?.includes('TRACE')], [204, true, false])
  assert.equal((await ask('OPTIONS', '7')).status, 200)
  for (const bad of [['x'], ['-1'], ['1.5'], [''], ['1', '2'], ['9999999999']]) assert.equal((await ask('OPTIONS', ...bad)).status, 400, bad.join())
  for (const any of ['0', '5', 'x']) assert.equal((await ask('GET', any)).status, 200)
  assert.deepEqual(gateway.behind.requests.map((request) => `${request.method} ${request.header('max-forwards')}`), ['OPTIONS 6', 'GET 0', 'GET 5', 'GET x'])
})

test('TRACE is refused with what is allowed, CONNECT with 400; neither reaches the upstream', async (t) => {
  const gateway = await startBoth(t)
  const trace = await rawRequest(gateway.port, head('TRACE /a HTTP/1.1', 'Host: shop', 'Cookie: secret=1'))
  assert.deepEqual([trace.status, trace.json()], [405, { type: 'urn:breakwater:reason:method_not_allowed', title: 'This method is not allowed here', status: 405, detail: 'This method is not allowed here', reason: 'method_not_allowed', requestId: trace.header('x-request-id') }])
  assert.match(trace.header('allow') ?? '', /GET, HEAD/)
  for (const target of ['shop:443', '/a']) {
    const connect = await rawRequest(gateway.port, head(`CONNECT ${target} HTTP/1.1`, 'Host: shop'))
    assert.deepEqual([connect.status, connect.header('connection')], [400, 'close'])
    assert.equal(connect.header('x-request-id'), (connect.json() as { requestId: string }).requestId)
  }
  const lines = await accessLines(gateway, 3)
  assert.deepEqual(lines.map(({ method, path, status, reason }) => [method, path, status, reason]), [
    ['TRACE', '/a', 405, 'method_not_allowed'], ['CONNECT', null, 400, 'bad_request'], ['CONNECT', null, 400, 'bad_request']
  ])
  assert.equal(gateway.behind.requests.length, 0)
})

test('a client that asks for a tunnel and then breaks the connection leaves the proxy alive', async (t) => {
  const gateway = await startBoth(t)
  for (const ending of ['reset', 'destroy'] as const) {
    const client = await rawConnect(gateway.port)
    await client.write(head('CONNECT shop:443 HTTP/1.1', 'Host: shop') + 'x'.repeat(100000))
    client[ending]()
  }
  await accessLines(gateway, 2)
  assert.equal((await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop'))).status, 200)
})

test('a method that nobody has heard of is refused, a rare one is passed on', async (t) => {
  const gateway = await startBoth(t)
  assert.equal((await rawRequest(gateway.port, head('BREW /pot HTTP/1.1', 'Host: shop'))).status, 400)
  for (const method of ['PURGE', 'PROPFIND', 'MKCOL', 'M-SEARCH', 'LINK']) {
    assert.equal((await rawRequest(gateway.port, head(`${method} /a HTTP/1.1`, 'Host: shop'))).status, 200, method)
  }
  assert.deepEqual(gateway.behind.requests.map(({ method }) => method), ['PURGE', 'PROPFIND', 'MKCOL', 'M-SEARCH', 'LINK'])
})

test('bodies of every type pass, with the type that the client gave them', async (t) => {
  const gateway = await startBoth(t)
  const types = [undefined, '', 'application/json', 'text/plain', 'nonsense', 'text/html; charset=utf-8', 'multipart/form-data; boundary=x', 'a/b/c', 'application/x-www-form-urlencoded']
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'GET', 'OPTIONS', 'QUERY'].filter((each) => METHODS.includes(each))) {
    for (const type of types) {
      const fields = type === undefined ? [] : [`Content-Type: ${type}`]
      const response = await rawRequest(gateway.port, [head(`${method} /a HTTP/1.1`, 'Host: shop', ...fields, 'Content-Length: 4'), '{"a"'])
      assert.equal(response.status, 200, `${method} ${type}: ${response.text()}`)
      const seen = gateway.behind.requests.at(-1)
      assert.deepEqual([seen?.header('content-type'), (await seen?.body())?.body.toString()], [type, '{"a"'], `${method} ${type}`)
    }
  }
})

test('Icecast is not HTTP, though its request line looks like it', async (t) => {
  const gateway = await startBoth(t)
  for (const request of [head('SOURCE /x ICE/1.0'), head('SOURCE /x HTTP/1.1', 'Host: shop')]) {
    const response = await rawRequest(gateway.port, request)
    assert.equal(response.status, 405)
    assert.doesNotMatch(response.header('allow') ?? '', /SOURCE/)
  }
  assert.equal(gateway.behind.requests.length, 0)
  await accessLines(gateway, 2)
})
