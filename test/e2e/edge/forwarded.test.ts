import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawRequest } from '../../support/raw-client.ts'
import { accessLines, head, startBoth } from './support.ts'

const owned = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-prefix', 'x-real-ip', 'forwarded', 'via']

/** What a client, or a proxy in front, says of where the request came from. */
const said = [
  'X-Forwarded-For: 203.0.113.9, 198.51.100.4', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: public.example', 'X-Forwarded-Port: 443', 'X-Forwarded-Prefix: /outer',
  'X-Real-IP: 203.0.113.9', 'Forwarded: for=203.0.113.9;proto=https', 'Via: 1.1 front'
]

test('from a peer that is not trusted, everything that it says of where it comes from is replaced', async (t) => {
  const gateway = await startBoth(t)
  const response = await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop:81', ...said, 'x-forwarded-for: 10.0.0.1', 'FORWARDED: for=10.0.0.1'))
  assert.equal(response.status, 200)
  const [seen] = gateway.behind.requests
  assert.deepEqual(owned.map((name) => seen?.header(name)),
    ['127.0.0.1', 'http', 'shop:81', '81', undefined, '127.0.0.1', 'for=127.0.0.1;host="shop:81";proto=http', '1.1 breakwater'])
  assert.equal((await accessLines(gateway, 1))[0]?.['client_ip'], '127.0.0.1')
})

test('what a trusted peer says is extended: the client\'s address is the first one that is not a trusted proxy\'s', async (t) => {
  const gateway = await startBoth(t, { server: { trustedProxies: ['127.0.0.1/32', '198.51.100.0/24'] } })
  await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: inner', ...said))
  const [seen] = gateway.behind.requests
  assert.deepEqual(owned.map((name) => seen?.header(name)), [
    '203.0.113.9, 198.51.100.4, 127.0.0.1', 'https', 'public.example', '443', '/outer', '203.0.113.9',
    'for=203.0.113.9;proto=https, for=127.0.0.1;host=inner;proto=http', '1.1 front, 1.1 breakwater'
  ])
  assert.equal((await accessLines(gateway, 1))[0]?.['client_ip'], '203.0.113.9')
})

test('a trusted peer that says nothing is taken for the client', async (t) => {
  const gateway = await startBoth(t, { server: { trustedProxies: ['127.0.0.1'] } })
  await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop'))
  const [seen] = gateway.behind.requests
  assert.deepEqual(owned.map((name) => seen?.header(name)),
    ['127.0.0.1', 'http', 'shop', String(gateway.port), undefined, '127.0.0.1', 'for=127.0.0.1;host=shop;proto=http', '1.1 breakwater'])
})

const chains: Array<[name: string, chain: string[], client: string]> = [
  ['one address', ['203.0.113.9'], '203.0.113.9'],
  ['several lines', ['203.0.113.9', '10.0.0.7'], '203.0.113.9'],
  ['a spoofed beginning', ['1.2.3.4, 203.0.113.9, 10.0.0.7'], '203.0.113.9'],
  ['only proxies', ['10.0.0.9, 10.0.0.7'], '10.0.0.9'],
  ['IPv6', ['2001:db8::1'], '2001:db8::1'],
  ['IPv6 in brackets with a port', ['[2001:db8::1]:4711, 10.0.0.7'], '2001:db8::1'],
  ['a trusted IPv6 proxy', ['203.0.113.9, fd00::7'], '203.0.113.9'],
  ['IPv4 with a port', ['203.0.113.9:1234'], '203.0.113.9'],
  ['mapped IPv4', ['::ffff:203.0.113.9'], '203.0.113.9'],
  ['a mapped trusted proxy', ['203.0.113.9, ::ffff:10.0.0.7'], '203.0.113.9'],
  ['no spaces', ['203.0.113.9,10.0.0.7,10.0.0.8'], '203.0.113.9'],
  ['a name behind a proxy', ['unknown, 10.0.0.7'], '10.0.0.7'],
  ['garbage', ['<script>'], '127.0.0.1'],
  ['a number that some take for an address', ['2130706433'], '127.0.0.1'],
  ['a number in hexadecimal', ['0x7f.1'], '127.0.0.1'],
  ['nothing', [''], '127.0.0.1'],
  ['only commas', [',,,'], '127.0.0.1'],
  ['a bracket that does not close', ['[2001:db8::1'], '127.0.0.1']
]
for (const [name, chain, client] of chains) {
  test(`the client's address behind trusted proxies: ${name}`, async (t) => {
    const gateway = await startBoth(t, { server: { trustedProxies: ['127.0.0.1', '10.0.0.0/8', 'fd00::/8'] } })
    await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', ...chain.map((line) => `X-Forwarded-For: ${line}`)))
    assert.equal((await accessLines(gateway, 1))[0]?.['client_ip'], client)
    assert.equal(gateway.behind.requests[0]?.header('x-real-ip'), client)
  })
}

const elements: Array<[name: string, lines: string[], client: string]> = [
  ['an address', ['Forwarded: for=203.0.113.9;proto=https'], '203.0.113.9'],
  ['several lines', ['Forwarded: for=1.2.3.4, for="[2001:db8::1]:4711"', 'forwarded: for=10.0.0.7;host="a,b"'], '2001:db8::1'],
  ['a hop that does not tell', ['Forwarded: for=203.0.113.9, for=_hidden, for=10.0.0.7'], '10.0.0.7'],
  ['a quoted string over two lines', ['Forwarded: for=1.2.3.4;host="', 'Forwarded: for=203.0.113.9'], '127.0.0.1'],
  ['X-Forwarded-For beside it', ['Forwarded: for=1.2.3.4', 'X-Forwarded-For: 203.0.113.9'], '203.0.113.9']
]
for (const [name, lines, client] of elements) {
  test(`the client's address behind trusted proxies that write Forwarded: ${name}`, async (t) => {
    const gateway = await startBoth(t, { server: { trustedProxies: ['127.0.0.1', '10.0.0.0/8'] } })
    await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', ...lines))
    assert.equal((await accessLines(gateway, 1))[0]?.['client_ip'], client)
    assert.equal(gateway.behind.requests[0]?.header('x-real-ip'), client)
  })
}

test('Forwarded of a peer that is not trusted tells nothing of the client', async (t) => {
  const gateway = await startBoth(t, { server: { trustedProxies: ['10.0.0.0/8'] } })
  await rawRequest(gateway.port, head('GET /a HTTP/1.1', 'Host: shop', 'Forwarded: for=203.0.113.9'))
  assert.equal((await accessLines(gateway, 1))[0]?.['client_ip'], '127.0.0.1')
})

const hosts: Array<[host: string, forwarded: string]> = [
  ['shop.example', 'for=127.0.0.1;host=shop.example;proto=http'],
  ['shop.example:80', 'for=127.0.0.1;host="shop.example:80";proto=http'],
  ['[::1]:8080', 'for=127.0.0.1;host="[::1]:8080";proto=http'],
  ['a(b)', 'for=127.0.0.1;host="a(b)";proto=http'],
  ['', 'for=127.0.0.1;proto=http']
]
for (const [host, forwarded] of hosts) {
  test(`Forwarded is a token or a quoted string: Host "${host}"`, async (t) => {
    const gateway = await startBoth(t)
    await rawRequest(gateway.port, head('GET /a HTTP/1.1', `Host: ${host}`))
    assert.equal(gateway.behind.requests[0]?.header('forwarded'), forwarded)
  })
}

test('the prefix that a route takes off is told to the upstream', async (t) => {
  const routes = [{ path: '/api/*', pool: 'shop', stripPrefix: '/api' }]
  const spoof = 'X-Forwarded-Prefix: /spoof'
  const plain = await startBoth(t, { routes })
  await rawRequest(plain.port, head('GET /api/a HTTP/1.1', 'Host: shop', spoof))
  assert.equal(plain.behind.requests[0]?.header('x-forwarded-prefix'), '/api')
  const trusting = await startBoth(t, { routes, server: { trustedProxies: ['127.0.0.1'] } })
  await rawRequest(trusting.port, head('GET /api/a HTTP/1.1', 'Host: shop', 'X-Forwarded-Prefix: /outer'))
  assert.equal(trusting.behind.requests[0]?.header('x-forwarded-prefix'), '/outer/api')
})
