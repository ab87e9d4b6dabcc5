/** Who may ask. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import adminRoutes from '../../../routes/admin/index.ts'
import { withAdmin } from './fixtures.ts'

const token = 'correct-horse'

test('with a token, everything but the probes wants it', async (t) => {
  const app = await withAdmin(t, { token })
  for (const path of ['/livez', '/readyz']) assert.equal((await app.inject(`/admin${path}`)).statusCode, 204, path)
  for (const [method, path] of [
    ['GET', '/pools'], ['HEAD', '/pools'], ['GET', '/breakers'], ['GET', '/health'], ['GET', '/shedding'], ['GET', '/routes'], ['GET', '/routes/match?path=/'], ['GET', '/config'],
    ['GET', '/events'], ['GET', '/events/stream'], ['POST', '/breakers/shop/127.0.0.1:9/reset'], ['POST', '/pools'], ['GET', '/nowhere'], ['POST', '/livez']
  ] as const) {
    const response = await app.inject({ method, url: `/admin${path}` })
    assert.deepEqual([response.statusCode, response.headers['www-authenticate'], response.headers['content-type']], [401, 'Bearer', 'application/problem+json'], path)
  }
})

test('the token is taken from Authorization: Bearer, whole, and from nowhere else', async (t) => {
  const app = await withAdmin(t, { token })
  const ask = async (authorization: string, url = '/admin/pools'): Promise<number> => (await app.inject({ url, headers: { authorization } })).statusCode
  for (const good of [`Bearer ${token}`, `bearer  ${token}`]) assert.equal(await ask(good), 200, good)
  for (const bad of ['', 'Bearer', 'Bearer ', `Bearer ${token}x`, `Bearer ${token.slice(0, -1)}`, `Bearer ${token.toUpperCase()}`, `Basic ${token}`, token, `Bearer ${token} ${token}`]) {
    assert.equal(await ask(bad), 401, bad)
  }
  assert.equal((await app.inject(`/admin/pools?token=${token}`)).statusCode, 401)
  assert.equal((await app.inject(`/admin/pools?access_token=${token}`)).statusCode, 401)
})

test('a token may have any characters', async (t) => {
  const any = 'pass phrase of ünusual signs'
  const app = await withAdmin(t, { token: any })
  // The bytes of UTF-8, as curl sends them.
  const authorization = Buffer.from(`Bearer ${any}`).toString('latin1')
  assert.equal((await app.inject({ url: '/admin/pools', headers: { authorization } })).statusCode, 200)
})

test('without a token they are registered only for this machine', async (t) => {
  for (const options of [{}, { token: '' }, { loopbackOnly: false }]) {
    const app = Fastify()
    t.after(() => app.close())
    await assert.rejects(async () => app.register(adminRoutes, { prefix: '/admin', ...options }), { code: 'BREAKWATER_ADMIN_TOKEN_REQUIRED' })
  }
})

test('loopbackOnly answers connections of this machine alone', async (t) => {
  const app = await withAdmin(t)
  for (const [remoteAddress, status] of [['127.0.0.1', 200], ['::1', 200], ['::ffff:127.0.0.1', 200], ['10.1.2.3', 403], ['fe80::1', 403]] as const) {
    assert.equal((await app.inject({ url: '/admin/pools', remoteAddress })).statusCode, status, remoteAddress)
  }
  const spoofed = await app.inject({ url: '/admin/pools', remoteAddress: '10.1.2.3', headers: { 'x-forwarded-for': '127.0.0.1' } })
  assert.equal(spoofed.statusCode, 403)
})

test('DNS rebinding: on loopback another Host is misdirected', async (t) => {
  const app = await withAdmin(t)
  for (const [host, status] of [['localhost:9090', 200], ['127.0.0.1:9090', 200], ['[::1]:9090', 200], ['evil.example:9090', 421], ['localhost.evil.example', 421], ['10.0.0.1', 421]] as const) {
    const response = await app.inject({ url: '/admin/pools', headers: { host } })
    assert.equal(response.statusCode, status, host)
  }
  const open = await withAdmin(t, { loopbackOnly: false, token })
  const response = await open.inject({ url: '/admin/pools', headers: { host: 'admin.example', authorization: `Bearer ${token}` } })
  assert.equal(response.statusCode, 200)
})

test('a foreign origin is refused, whoever it names', async (t) => {
  const app = await withAdmin(t)
  const ask = async (origin: string, host = 'localhost:9090'): Promise<number> => (await app.inject({ url: '/admin/pools', headers: { origin, host } })).statusCode
  assert.equal(await ask('http://localhost:9090'), 200)
  assert.equal(await ask('http://localhost', 'localhost:80'), 200)
  for (const origin of ['http://evil.example', 'http://localhost:3000', 'http://127.0.0.1:9090', 'null', '', 'http://localhost:9090.evil.example', 'file://localhost:9090', 'http://']) {
    assert.equal(await ask(origin), 403, origin)
  }
})
