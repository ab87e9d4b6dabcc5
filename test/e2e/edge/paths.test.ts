import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answering, rawUpstream } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { accessLines, head, startBoth } from './support.ts'

/** Targets that must arrive as they were sent, byte for byte. */
const faithful = [
  '/', '//', '///a', '//a//b//', '/a/', '/a//', '/a%2Fb', '/a%2fb', '/%2F', '/a%5Cb', '/a%5cb', '/a%23b', '/a%3Fb', '/%20', '/a+b', '/a%2Bb', '/%00', '/a%0D%0Ab',
  '/caf%C3%A9', '/%e2%82%ac', '/a;b=c', '/a;v=1/b;w=2', '/;', '/a..;b', '/...;b', '/;/..a', '/a;..', '/a|b', '/a^b', '/a\'b', '/a"b', '/a<b>', '/a{b}', '/a`b', '/[x]', '/a[]', '/a,b', '/a:b', '/:a', '/a@b', '/a=b&c', '/a!$&\'()*+,;=:@~-._',
  '/..a', '/a..', '/a../b', '/...', '/.../b', '/.hidden', '/a/.well-known/b', '/a.b/..c', '/a%2e', '/%2ea', '/%2e%2e%2e', '/a%252e%252e/b', '/%252e', '/*', '/a*b', '/~', '/%7E',
  '/?', '/a?', '/a??', '/a?b?c', '/a?x=1&x=2', '/a?x=%zz', '/a?%', '/a?x=/../y', '/a?..', '/a?x=\\', '/a?x="<>', '/a?q=[]{}|^`', '/a?x=http://h/', '/a?x=a%20b+c', '/a?;', '/a?&&=', '/a?x=%00', '/a/b/c/d/e/f/g/h/i/j',
  '/livez/', '/livez2', '/readyz/x', `/${'x'.repeat(5000)}`, `/${'%41'.repeat(2000)}`, `/a?${'y'.repeat(20000)}`
]

test('paths and queries reach the upstream byte for byte', async (t) => {
  const gateway = await startBoth(t)
  for (const target of faithful) {
    const response = await rawRequest(gateway.port, head(`GET ${target} HTTP/1.1`, 'Host: shop'))
    assert.equal(response.status, 200, `${target.slice(0, 80)}: ${response.text()}`)
    assert.equal(gateway.behind.requests.at(-1)?.target, target)
  }
  assert.equal(gateway.behind.requests.length, faithful.length)
})

/** Targets that would mean something else to somebody on the way. */
const refused = [
  '/.', '/..', '/./a', '/../a', '/a/.', '/a/..', '/a/./b', '/a/../b', '/a/b/../..', '//../a', '/a//..//b',
  '/%2e', '/%2E%2e', '/.%2e/a', '/%2e./a', '/a/%2e%2E/b', '/a/%2e', '/a/.%2E', '/a%2f..%2fb', '/a%2F%2e%2e/b', '/a%5c..%5cb', '/..%2fb', '/..%5Cb',
  '/..;/a', '/.;/a', '/api/..;/x', '/a/..;x=1', '/a/%2e%2e;/b', '/a%2f..;%2fb', '/..;',
  '/a\\b', '/\\evil.example', '\\a', '/a\\..\\b', '/a#b', '/#', '/a?x#y', '/%', '/%2', '/%zz', '/a%', '/a%u0041', '/a%2', '/%G1',
  // Escapes that are not UTF-8: Fastify's router takes none of them.
  '/%FF%FE', '/caf%E9', '/%C3', '/%E2%82',
  'http://shop/../a', 'http://shop/a%2e%2e/..', 'http://shop/a#b', 'http://u:p@shop/a', 'http:///a', 'http://', 'http://sh op/', 'ftp://shop/a', 'file:///etc/passwd', 'http://a/b\\c'
]

test('dot segments, backslashes, fragments and bad escapes are refused once, and never forwarded', async (t) => {
  const gateway = await startBoth(t)
  for (const target of refused) {
    const response = await rawRequest(gateway.port, head(`GET ${target} HTTP/1.1`, 'Host: shop'), { timeoutMs: 5000 })
    assert.deepEqual([response.status, (response.json() as { reason: string }).reason, response.responses.length], [400, 'bad_request', 1], target)
  }
  assert.equal((await accessLines(gateway, refused.length)).length, refused.length)
  assert.deepEqual(gateway.behind.requests.map(({ target }) => target), [])
})

test('no byte that a path cannot have gets through', async (t) => {
  const gateway = await startBoth(t)
  let asked = 0
  for (let code = 0; code < 256; code++) {
    if (code > 0x20 && code < 0x7f) continue
    // A space ends the target, and the tab and line ends make another request line: the parser's business.
    const response = await rawRequest(gateway.port, Buffer.from(`GET /a${String.fromCharCode(code)}b HTTP/1.1\r\nHost: shop\r\n\r\n`, 'latin1'))
    assert.equal(response.status, 400, `0x${code.toString(16)}: ${response.raw.toString('latin1')}`)
    asked++
  }
  assert.equal((await accessLines(gateway, asked)).length, asked)
  assert.equal(gateway.behind.requests.length, 0)
})

test('an absolute target is taken apart: its host wins, its path is forwarded', async (t) => {
  const gateway = await startBoth(t)
  const targets: Array<[string, string, string]> = [
    ['http://Other.example/a/b?c', '/a/b?c', 'Other.example'],
    ['http://other.example:81', '/', 'other.example:81'],
    ['http://other.example?x=1', '/?x=1', 'other.example'],
    ['HTTP://other.example/a%2Fb;c//', '/a%2Fb;c//', 'other.example'],
    ['https://[::1]:8443/a', '/a', '[::1]:8443'],
    ['http://1.2.3.4/http://x/', '/http://x/', '1.2.3.4']
  ]
  for (const [target, path, host] of targets) {
    const response = await rawRequest(gateway.port, head(`GET ${target} HTTP/1.1`, 'Host: shop'))
    assert.equal(response.status, 200, target)
    const seen = gateway.behind.requests.at(-1)
    assert.deepEqual([seen?.target, seen?.header('x-forwarded-host')], [path, host], target)
  }
  const lines = await accessLines(gateway, targets.length)
  assert.deepEqual(lines.map(({ path }) => path), targets.map(([, path]) => path.split('?')[0]))
})

test('OPTIONS * keeps its target, and no other method has one', async (t) => {
  const gateway = await startBoth(t)
  const answers = await Promise.all([['OPTIONS', '*'], ['OPTIONS', 'http://shop'], ['GET', '*'], ['OPTIONS', '*x']].map(([method, target]) =>
    rawRequest(gateway.port, head(`${method} ${target} HTTP/1.1`, 'Host: shop'))))
  assert.deepEqual(answers.map(({ status }) => status), [200, 200, 400, 400])
  assert.deepEqual(gateway.behind.requests.map(({ method, target }) => `${method} ${target}`), ['OPTIONS *', 'OPTIONS *'])
})

const rewritten: Array<[name: string, route: Record<string, unknown>, base: string, pairs: Array<[from: string, to: string]>]> = [
  ['a prefix taken off', { path: '/api/*', stripPrefix: '/api' }, '', [
    ['/api/a', '/a'], ['/api', '/'], ['/api/', '/'], ['/api//a', '//a'], ['/api/api/a', '/api/a'], ['/api/a%2Fb?x=%zz', '/a%2Fb?x=%zz'], ['/%61pi/a', '/a'], ['/a%70i/%61', '/%61'], ['/api?x', '/?x'], ['/api/;x', '/;x']
  ]],
  ['a prefix put before', { path: '/*', prefix: '/v1' }, '', [['/a', '/v1/a'], ['/', '/v1/'], ['/v1/a', '/v1/v1/a'], ['//a', '/v1//a']]],
  ['one taken off and one put before', { path: '/api/*', stripPrefix: '/api', prefix: '/v1' }, '', [['/api/a', '/v1/a'], ['/api', '/v1/'], ['/api/v1/a', '/v1/v1/a']]],
  ['a base path', { path: '/*' }, '/base', [['/a', '/base/a'], ['/', '/base/'], ['/base/a', '/base/base/a'], ['/a?b', '/base/a?b']]],
  ['a base path that ends with a slash', { path: '/*' }, '/base/', [['/a', '/base/a'], ['//a', '/base//a']]],
  ['a base path, a prefix taken off and one put before', { path: '/api/*', stripPrefix: '/api', prefix: '/v1' }, '/base', [['/api/a', '/base/v1/a']]],
  ['a prefix of several segments', { path: '/a/b/*', stripPrefix: '/a/b' }, '', [['/a/b/c', '/c'], ['/a/b', '/'], ['/%61/%62/%63', '/%63']]]
]
for (const [name, route, base, pairs] of rewritten) {
  test(`the path is joined once and otherwise untouched: ${name}`, async (t) => {
    const behind = await rawUpstream(answering({ body: 'hello' }))
    t.after(() => behind.close())
    const gateway = await startGateway(t, { upstreams: [behind.url + base], routes: [{ pool: 'shop', ...route }] })
    for (const [from] of pairs) assert.equal((await rawRequest(gateway.port, head(`GET ${from} HTTP/1.1`, 'Host: shop'))).status, 200, from)
    assert.deepEqual(behind.requests.map(({ target }, i) => [pairs[i]?.[0], target]), pairs)
  })
}

test('a path may be as long as a head may be, under every kind of route', async (t) => {
  const server = { maxHeaderBytes: 1048576 }
  const target = `/api/${'x'.repeat(300000)}`
  for (const path of ['/*', '/api/*', '/api/:id']) {
    const gateway = await startBoth(t, { server, routes: [{ path, pool: 'shop' }] })
    assert.equal((await rawRequest(gateway.port, head(`GET ${target} HTTP/1.1`, 'Host: shop'))).status, 200, path)
    assert.equal(gateway.behind.requests[0]?.target.length, target.length)
  }
})
