import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawRequest } from '../../support/raw-client.ts'
import { accessLines, head } from '../edge/support.ts'
import { brief, startRouted } from './support.ts'

test('a method that no route takes is 405 with those that one takes, and reaches nobody', async (t) => {
  const gateway = await startRouted(t, ['shop'], [
    { path: '/a', pool: 'shop', methods: ['GET'] },
    { path: '/a', pool: 'shop', methods: ['POST'], host: 'shop' },
    { path: '/a/*', pool: 'shop', methods: ['DELETE'] },
    { path: '/a', pool: 'shop', methods: ['PATCH'], headers: { 'x-v': '1' } },
    { path: '/c', pool: 'shop', methods: ['OPTIONS', 'PUT'] }
  ])
  const cases: Array<[string, number, string | undefined, string?]> = [
    ['PUT /a', 405, 'DELETE, GET, HEAD, POST'], ['OPTIONS /a?x', 405, 'DELETE, GET, HEAD, POST'], ['PUT /a', 405, 'DELETE, GET, HEAD, PATCH, POST', 'X-V: 1'], ['POST /a/b', 405, 'DELETE'],
    ['GET /c', 405, 'OPTIONS, PUT'], ['HEAD /c', 405, 'OPTIONS, PUT'], ['PUT /b', 404, undefined], ['OPTIONS *', 404, undefined]
  ]
  for (const [start, status, allow, ...fields] of cases) {
    const response = await gateway.ask(start, ...fields as string[])
    assert.deepEqual([response.status, response.header('allow'), response.header('content-type'), response.header('connection')], [status, allow, 'application/problem+json', 'keep-alive'], start)
    if (status === 405) assert.equal(response.header('proxy-status'), 'breakwater; error=http_request_denied; details="method_not_allowed"')
  }
  const upload = await rawRequest(gateway.port, [head('PUT /a HTTP/1.1', 'Host: shop', 'Content-Length: 1000000'), 'x'.repeat(1000000)], { until: 'close' })
  assert.deepEqual([...brief(upload), upload.complete, upload.header('connection')], [405, 'method_not_allowed', true, 'close'])
  const lines = await accessLines(gateway, cases.length + 1)
  assert.deepEqual(new Set(lines.map(({ route, pool, attempts }) => JSON.stringify([route, pool, attempts]))), new Set(['[null,null,0]']))
  assert.equal(gateway.behind['shop']?.requests.length, 0)

  for (const start of ['GET /a', 'POST /a', 'DELETE /a', 'DELETE /a/b', 'OPTIONS /c']) assert.equal((await gateway.ask(start)).status, 200, start)
  const asked = await gateway.ask('HEAD /a')
  assert.deepEqual([asked.status, asked.text(), asked.header('content-length')], [200, '', '4'], 'HEAD goes with GET')
})

test('hosts and their suffixes, header fields and query parameters choose the route; what does not hold lets a request through', async (t) => {
  const gateway = await startRouted(t, ['any', 'wild', 'deep', 'host', 'canary', 'preview', 'both', 'exact'], [
    { path: '/*', pool: 'any' },
    { path: '/*', pool: 'wild', host: '*.shop.example' },
    { path: '/*', pool: 'deep', host: '*.eu.shop.example' },
    { path: '/only', pool: 'host', host: 'a.shop.example' },
    { path: '/api/*', pool: 'canary', headers: { 'X-Canary': '1' } },
    { path: '/api/*', pool: 'preview', query: { preview: '*' } },
    { path: '/api/*', pool: 'both', headers: { 'x-canary': '1' }, query: { preview: 'yes please' } },
    { path: '/api/status', pool: 'exact', headers: { 'x-canary': '*' } }
  ])
  const cases: Array<[pool: string, start: string, ...fields: string[]]> = [
    ['any', 'GET /'], ['any', 'GET /', 'Host: shop.example'], ['wild', 'GET /', 'Host: b.shop.example'], ['wild', 'GET /', 'Host: B.C.Shop.Example.:80'], ['deep', 'GET /', 'Host: x.eu.shop.example'],
    ['wild', 'GET /', 'Host: eu.shop.example'], ['any', 'GET /', 'Host: xshop.example'], ['host', 'GET /only', 'Host: a.shop.example'], ['wild', 'GET /other', 'Host: a.shop.example'],
    ['wild', 'GET http://b.shop.example/ ', 'Host: other'], ['any', 'GET http://other/', 'Host: b.shop.example'],
    ['any', 'GET /api/x'], ['canary', 'GET /api/x', 'x-CANARY: 1'], ['canary', 'GET /api', 'X-Canary:   1  '], ['any', 'GET /api/x', 'X-Canary: 2'], ['any', 'GET /api/x', 'X-Canary: 1', 'X-Canary: 1'],
    ['preview', 'GET /api/x?preview'], ['preview', 'GET /api/x?a=b&preview=no&preview=yes+please', 'X-Canary: 2'], ['both', 'GET /api/x?%70review=yes%20please', 'X-Canary: 1'],
    ['both', 'GET /api/x?preview=yes+please', 'X-Canary: 1'], ['any', 'GET /api/x?Preview=1'], ['exact', 'GET /api/status', 'X-Canary: 0'], ['preview', 'GET /api/status?preview=1'], ['any', 'GET /api/status']
  ]
  for (const [pool, start, ...fields] of cases) assert.deepEqual(brief(await gateway.ask(start.trim(), ...fields)), [200, pool], [start, ...fields].join(' | '))
})

test('a route asks for no field that is never accepted from clients', async (t) => {
  await assert.rejects(startRouted(t, ['shop'], [{ path: '/*', pool: 'shop', headers: { 'x-user-id': '*' } }], { server: { stripRequestHeaders: ['X-User-Id'] } }), /routes\[0\]\.headers\.x-user-id: must not be one of server\.stripRequestHeaders/)
})

test('with a thousand routes each request finds its own', async (t) => {
  const routes = Array.from({ length: 1000 }, (_, i) => ({ path: i % 2 === 0 ? `/service-${i}/*` : `/service-${i}/:id`, pool: i % 3 === 0 ? 'a' : 'b', stripPrefix: `/service-${i}` }))
  const gateway = await startRouted(t, ['a', 'b'], routes)
  for (const i of [0, 1, 2, 500, 501, 998, 999]) {
    assert.deepEqual(brief(await gateway.ask(`GET /service-${i}/x`)), [200, i % 3 === 0 ? 'a' : 'b'], String(i))
    assert.equal(gateway.behind[i % 3 === 0 ? 'a' : 'b']?.requests.at(-1)?.target, '/x')
  }
  assert.deepEqual(brief(await gateway.ask('GET /service-1000/x')), [404, 'no_route'])
})
