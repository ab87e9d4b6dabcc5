import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answering } from '../../support/faulty-upstream.ts'
import { startRouted } from './support.ts'

test('fields of the request are set and taken out on the way, and nobody slips one past', async (t) => {
  const gateway = await startRouted(t, ['shop'], [
    { path: '/*', pool: 'shop', requestHeaders: { set: { 'X-Env': 'prod', 'x-user-id': 'guest' }, remove: ['X-Debug', 'cookie'] } },
    { path: '/plain', pool: 'shop' }
  ])
  const received = () => gateway.behind['shop']?.requests.at(-1)
  const fields = ['X-ENV: dev', 'x-env: test', 'X_User_Id: admin', 'X-User-Id: admin', 'x-debug: 1', 'x_debug: 2', 'Cookie: a=b', 'X-Kept: 1', 'Accept: a/b']
  assert.equal((await gateway.ask('GET /a', ...fields)).status, 200)
  const names = received()?.headers.map(([name]) => name.toLowerCase()) ?? []
  assert.deepEqual([received()?.header('x-env'), received()?.header('x-user-id'), received()?.header('x-kept'), received()?.header('accept')], ['prod', 'guest', '1', 'a/b'])
  for (const gone of ['x-debug', 'x_debug', 'x_user_id', 'cookie']) assert.ok(!names.includes(gone), gone)
  assert.equal(names.filter((name) => name === 'x-env').length, 1)
  assert.equal(received()?.header('x-forwarded-for'), '127.0.0.1')

  await gateway.ask('GET /plain', ...fields)
  assert.deepEqual([received()?.header('x-debug'), received()?.header('cookie'), received()?.header('x-user-id')], ['1', 'a=b', 'admin'], 'another route changes nothing')
})

test('fields of the answer are set and taken out on the way, cookies too, and our own refusals are left alone', async (t) => {
  const gateway = await startRouted(t, ['shop'], [
    { path: '/*', pool: 'shop', responseHeaders: { set: { 'Cache-Control': 'no-store', 'X-Pool': 'hidden' }, remove: ['SERVER', 'set-cookie'] } },
    { path: '/plain', pool: 'shop' }
  ])
  const changed = await gateway.ask('GET /a')
  assert.deepEqual(['cache-control', 'x-pool', 'server', 'set-cookie', 'content-length'].map((name) => changed.header(name)), ['no-store', 'hidden', undefined, undefined, '4'])
  assert.equal(changed.text(), 'shop')
  const plain = await gateway.ask('GET /plain')
  assert.deepEqual(['cache-control', 'x-pool', 'server', 'set-cookie'].map((name) => plain.header(name)), [undefined, 'shop', 'inside', 'a=1, b=2'])

  gateway.behind['shop']?.handle(answering({ status: 500, headers: [['Server', 'inside']], body: 'broken' }))
  const failed = await gateway.ask('GET /a')
  assert.deepEqual([failed.status, failed.header('server'), failed.header('cache-control')], [500, undefined, 'no-store'], 'an upstream\'s own failure is an answer like any')
  gateway.behind['shop']?.handle((socket) => { socket.destroy() })
  const refused = await gateway.ask('GET /a')
  assert.deepEqual([refused.status, refused.header('x-pool'), refused.header('content-type')], [502, undefined, 'application/problem+json'])
})

test('what is forwarded is made of the path once, and escaped slashes stay inside their segments', async (t) => {
  const gateway = await startRouted(t, ['shop'], [
    { path: '/users/:id', pool: 'shop', rewrite: '/v2/people/:id' },
    { path: '/users/:id/orders/*', pool: 'shop', rewrite: '/v2/orders/of/:id/*' },
    { path: '/files/*', pool: 'shop', rewrite: '/files/files/*' },
    { path: '/api/*', pool: 'shop', stripPrefix: '/api', prefix: '/api/v1' },
    { path: '/old', pool: 'shop', rewrite: '/new' }
  ])
  const cases: Array<[asked: string, forwarded: string]> = [
    ['/users/7', '/v2/people/7'], ['/users/a%2Fb', '/v2/people/a%2Fb'], ['/users/a%2fb%20c?q=/x', '/v2/people/a%2fb%20c?q=/x'], ['/%75sers/%37', '/v2/people/%37'], ['/users/%252e%252e', '/v2/people/%252e%252e'],
    ['/users/7/orders/1/2', '/v2/orders/of/7/1/2'], ['/users/7/orders/', '/v2/orders/of/7/'], ['/users/7/orders', '/v2/orders/of/7'], ['/users/7/orders//..x/;a', '/v2/orders/of/7//..x/;a'],
    ['/files/files/a', '/files/files/files/a'], ['/files', '/files/files'], ['/api/api/x', '/api/v1/api/x'], ['/api%2Fx/y', ''], ['/old?a=b', '/new?a=b']
  ]
  for (const [asked, forwarded] of cases) {
    const before = gateway.behind['shop']?.requests.length
    const { status } = await gateway.ask(`GET ${asked}`)
    if (forwarded === '') {
      assert.deepEqual([status, gateway.behind['shop']?.requests.length], [404, before], asked)
    } else {
      assert.deepEqual([status, gateway.behind['shop']?.requests.at(-1)?.target], [200, forwarded], asked)
    }
  }
  for (const asked of ['/files/../x', '/files/%2e%2e/x', '/files/..%2fx', '/users/..', '/users/%2E%2e', '/users/..;a', '/files/a%2f..%2fb']) assert.equal((await gateway.ask(`GET ${asked}`)).status, 400, asked)
})

test('a rewritten path goes behind the base path of the upstream', async (t) => {
  const gateway = await startRouted(t, ['shop'], [{ path: '/a/*', pool: 'based', rewrite: '/b/*' }, { path: '/*', pool: 'shop' }], {})
    .catch((error: Error) => error)
  assert.ok(gateway instanceof Error && gateway.message.includes('routes[0].pool'))
  const { behind } = await startRouted(t, ['shop'], [{ path: '/*', pool: 'shop' }])
  const based = await startRouted(t, [], [{ path: '/a/*', pool: 'based', rewrite: '/b/*' }], { pools: { based: { health: { enabled: false }, upstreams: [{ url: `${behind['shop']?.url}/base` }] } } })
  await based.ask('GET /a/x%2Fy?z')
  assert.equal(behind['shop']?.requests.at(-1)?.target, '/base/b/x%2Fy?z')
})
