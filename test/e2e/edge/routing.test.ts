import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answering, rawUpstream, type RawUpstream } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { accessLines, head, startBoth } from './support.ts'

interface Case { method?: string, host?: string, target: string, pool: string | null, route: string | null }

/** A gateway whose pools are named and answer with their name. */
async function startPools (t: Parameters<typeof startBoth>[0], names: string[], routes: Array<Record<string, unknown>>): Promise<Gateway> {
  const behind = new Map<string, RawUpstream>()
  for (const name of names) {
    const upstream = await rawUpstream(answering({ body: name }))
    t.after(() => upstream.close())
    behind.set(name, upstream)
  }
  const pools = Object.fromEntries([...behind].map(([name, { url }]) => [name, { health: { enabled: false }, upstreams: [{ url }] }]))
  return startGateway(t, { pools, routes })
}

test('exact before method-aware before longest prefix, and a host before all', async (t) => {
  const gateway = await startPools(t, ['exact', 'writes', 'users', 'user', 'api', 'rest', 'host'], [
    { path: '/*', pool: 'rest' },
    { path: '/api/*', pool: 'api' },
    { path: '/api/status', pool: 'exact' },
    { path: '/api/*', pool: 'writes', methods: ['POST', 'PUT'] },
    { path: '/users/*', pool: 'users' },
    { path: '/users/:id', pool: 'user' },
    { path: '/*', pool: 'host', host: 'Admin.Example' }
  ])
  const cases: Case[] = [
    { target: '/', pool: 'rest', route: '/*' },
    { target: '/api', pool: 'api', route: '/api/*' },
    { target: '/api/', pool: 'api', route: '/api/*' },
    { target: '/apiary', pool: 'rest', route: '/*' },
    { target: '/api/a/b?c', pool: 'api', route: '/api/*' },
    { target: '/%61pi/a', pool: 'api', route: '/api/*' },
    { target: '/API/a', pool: 'rest', route: '/*' },
    { target: '/api%2Fa', pool: 'rest', route: '/*' },
    { target: '/api/status', pool: 'exact', route: '/api/status' },
    { target: '/api/status?x', pool: 'exact', route: '/api/status' },
    { target: '/api/status/', pool: 'api', route: '/api/*' },
    { method: 'POST', target: '/api/status', pool: 'exact', route: '/api/status' },
    { method: 'POST', target: '/api/a', pool: 'writes', route: '/api/*' },
    { method: 'PUT', target: '/api', pool: 'writes', route: '/api/*' },
    { method: 'PATCH', target: '/api/a', pool: 'api', route: '/api/*' },
    { target: '/users/7', pool: 'user', route: '/users/:id' },
    { target: '/users/7/orders', pool: 'users', route: '/users/*' },
    { target: '/users/a%2Fb', pool: 'user', route: '/users/:id' },
    { target: `/users/${'x'.repeat(10000)}`, pool: 'user', route: '/users/:id' },
    { target: '/users', pool: 'users', route: '/users/*' },
    { host: 'admin.example', target: '/api/status', pool: 'host', route: '/*' },
    { host: 'ADMIN.example:8080', target: '/a', pool: 'host', route: '/*' },
    { host: 'admin.example.', target: '/a', pool: 'host', route: '/*' },
    { host: 'admin.example.:80', target: '/a', pool: 'host', route: '/*' },
    { host: 'admin.example.evil', target: '/a', pool: 'rest', route: '/*' },
    { host: 'x', target: 'http://admin.example/a', pool: 'host', route: '/*' },
    { host: 'admin.example', target: 'http://x/a', pool: 'rest', route: '/*' },
    { method: 'OPTIONS', target: '*', pool: 'rest', route: '/*' }
  ]
  for (const { method = 'GET', host = 'shop', target, pool } of cases) {
    const response = await rawRequest(gateway.port, head(`${method} ${target} HTTP/1.1`, `Host: ${host}`))
    assert.deepEqual([response.status, response.text()], [200, pool], `${method} ${host} ${target.slice(0, 60)}`)
  }
  const lines = await accessLines(gateway, cases.length)
  assert.deepEqual(lines.map(({ route, pool }) => [route, pool]), cases.map(({ route, pool }) => [route, pool]))
})

test('what no route takes is 404 with a reason, whatever method and body, and reaches nobody', async (t) => {
  const gateway = await startBoth(t, { routes: [{ path: '/a', pool: 'shop', methods: ['GET'] }, { path: '/b/*', pool: 'shop', host: 'shop' }] })
  const cases: Array<[string, string, string?]> = [
    ['GET', '/'], ['GET', '/a/'], ['GET', '/A'], ['POST', '/A'], ['HEAD', '/bb'], ['GET', '/bb'], ['GET', '/b/c', 'other'], ['OPTIONS', '*']
  ]
  for (const [method, target, host = 'shop'] of cases) {
    const response = await rawRequest(gateway.port, head(`${method} ${target} HTTP/1.1`, `Host: ${host}`))
    assert.deepEqual([response.status, response.header('content-type'), response.header('connection')], [404, 'application/problem+json', 'keep-alive'], `${method} ${target}`)
    assert.equal(response.header('proxy-status'), 'breakwater; error=destination_not_found; details="no_route"')
    assert.equal(response.header('retry-after'), undefined)
    if (method !== 'HEAD') assert.equal((response.json() as { reason: string }).reason, 'no_route')
  }
  const upload = await rawRequest(gateway.port, [head('POST /x HTTP/1.1', 'Host: shop', 'Content-Length: 1000000'), 'x'.repeat(1000000)], { until: 'close' })
  assert.deepEqual([upload.status, upload.complete, upload.header('connection')], [404, true, 'close'])
  const lines = await accessLines(gateway, cases.length + 1)
  assert.deepEqual(new Set(lines.map(({ route, pool, upstream, attempts, reason }) => JSON.stringify([route, pool, upstream, attempts, reason]))), new Set(['[null,null,null,0,"no_route"]']))
  assert.equal(gateway.behind.requests.length, 0)
})

test('a Host that is none is malformed before it is without a route', async (t) => {
  const gateway = await startBoth(t, { routes: [{ path: '/b/*', pool: 'shop', host: 'shop' }] })
  for (const host of ['a b', 'u@shop', 'shop/b', 'http://shop', 'shop:8x', 'a, b']) {
    const response = await rawRequest(gateway.port, head('GET /b/c HTTP/1.1', `Host: ${host}`))
    assert.deepEqual([response.status, (response.json() as { reason: string }).reason], [400, 'bad_request'], host)
  }
  for (const host of ['', 'other']) assert.equal((await rawRequest(gateway.port, head('GET /b/c HTTP/1.1', `Host: ${host}`))).status, 404, host)
  assert.equal(gateway.behind.requests.length, 0)
})
