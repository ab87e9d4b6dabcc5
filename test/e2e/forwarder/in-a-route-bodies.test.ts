import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawRequest } from '../../support/raw-client.ts'
import { request, withRoutes } from './support.ts'

test('a JSON body that Fastify has parsed is sent on, with its right length', async (t) => {
  const { gateway } = await withRoutes(t, (app) => {
    app.post('/mine', (_request, reply) => reply.forward('shop'))
  })
  const got = await rawRequest(gateway.port, request('POST', '/mine', { 'Content-Type': 'application/json' }, '{ "name" : "caf\xc3\xa9",  "n": [1, 2] }'))
  assert.deepEqual([got.status, got.text()], [200, '{"name":"caf\u00e9","n":[1,2]}'])
  assert.equal(got.header('x-length'), String(Buffer.byteLength(got.text())))
  await gateway.left({ counted: 'success', status: 200 })
})

test('a body that a hook has changed is sent as it is now', async (t) => {
  const { gateway } = await withRoutes(t, (app) => {
    app.post('/mine', {
      preHandler: async (incoming) => { incoming.body = { ...incoming.body as object, seen: true } }
    }, (_request, reply) => reply.forward('shop'))
  })
  const got = await rawRequest(gateway.port, request('POST', '/mine', { 'Content-Type': 'application/json' }, '{"a":1}'))
  assert.equal(got.text(), '{"a":1,"seen":true}')
})

for (const [name, body, expected] of [['a text', 'plain words', 'plain words'], ['an empty text', '', '']] as const) {
  test(`${name} that Fastify has parsed is sent on`, async (t) => {
    const { gateway } = await withRoutes(t, (app) => {
      app.post('/mine', (_request, reply) => reply.forward('shop'))
    })
    const got = await rawRequest(gateway.port, request('POST', '/mine', { 'Content-Type': 'text/plain', 'Content-Length': String(body.length) }, body))
    assert.deepEqual([got.status, got.text()], [200, expected])
    await gateway.left({ counted: 'success', status: 200 })
  })
}

for (const body of ['false', '0', '""', 'null', '"a text"', '[]']) {
  test(`a JSON body of ${body} is sent on`, async (t) => {
    const { gateway } = await withRoutes(t, (app) => {
      app.post('/mine', (_request, reply) => reply.forward('shop'))
    })
    const got = await rawRequest(gateway.port, request('POST', '/mine', { 'Content-Type': 'application/json' }, body))
    assert.deepEqual([got.status, got.text()], [200, body])
    await gateway.left({ counted: 'success', status: 200 })
  })
}

test('a body that a parser left as a stream or a buffer is sent on', async (t) => {
  const { gateway } = await withRoutes(t, (app) => {
    app.addContentTypeParser('application/x-stream', (_request, payload, done) => { done(null, payload) })
    app.addContentTypeParser('application/x-buffer', { parseAs: 'buffer' }, (_request, bytes, done) => { done(null, bytes) })
    app.post('/mine', (_request, reply) => reply.forward('shop'))
  })
  for (const type of ['application/x-stream', 'application/x-buffer']) {
    const got = await rawRequest(gateway.port, request('POST', '/mine', { 'Content-Type': type }, 'x'.repeat(100_000)))
    assert.deepEqual([got.status, got.body.length], [200, 100_000])
    await gateway.left({ counted: 'success', status: 200 })
  }
})

test('a JSON text that a parser left as it came is not made JSON again', async (t) => {
  const { gateway } = await withRoutes(t, (app) => {
    app.removeContentTypeParser('application/json')
    app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) => { done(null, text) })
    app.post('/mine', (_request, reply) => reply.forward('shop'))
  })
  for (const body of ['{ "a": 1 }', '"a text"', '7']) {
    const got = await rawRequest(gateway.port, request('POST', '/mine', { 'Content-Type': 'application/json' }, body))
    assert.deepEqual([got.status, got.text()], [200, body])
    await gateway.left({ counted: 'success', status: 200 })
  }
})

test('a form that a parser made an object of is not sent on as JSON under a form\'s name', async (t) => {
  const { gateway, upstream } = await withRoutes(t, (app) => {
    app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, text, done) => {
      done(null, Object.fromEntries(new URLSearchParams(text as string)))
    })
    app.post('/mine', (_request, reply) => reply.forward('shop'))
  })
  const got = await rawRequest(gateway.port, request('POST', '/mine', { 'Content-Type': 'application/x-www-form-urlencoded' }, 'a=1'))
  assert.equal(got.status, 500)
  assert.equal(upstream.requests.length, 0)
  await gateway.left({ counted: 'neutral', status: 500, upstream: null })
})

test('a body that somebody has read, and left nothing of, is an error of that route and not a hole in the message', async (t) => {
  const { gateway, upstream } = await withRoutes(t, (app) => {
    app.addContentTypeParser('application/x-eaten', (_request, payload, done) => {
      payload.resume()
      payload.on('end', () => { done(null) })
    })
    app.post('/mine', (_request, reply) => reply.forward('shop'))
  })
  const got = await rawRequest(gateway.port, request('POST', '/mine', { 'Content-Type': 'application/x-eaten' }, 'hello'))
  assert.equal(got.status, 500)
  assert.equal(upstream.requests.length, 0)
  await gateway.left({ counted: 'neutral', status: 500, upstream: null })
})

test('maxBodyBytes holds for what Fastify has parsed, too', async (t) => {
  const { gateway, upstream } = await withRoutes(t, (app) => {
    app.post('/mine', (_request, reply) => reply.forward({ pool: 'shop', maxBodyBytes: 10 }))
  })
  const chunked = (json: string): Buffer => Buffer.concat([
    request('POST', '/mine', { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' }), Buffer.from(`${json.length.toString(16)}\r\n${json}\r\n0\r\n\r\n`)])
  const over = await rawRequest(gateway.port, chunked('{"a":"xxx"}'))
  assert.deepEqual([over.status, (over.json() as Record<string, unknown>)['reason']], [413, 'body_too_large'])
  await gateway.left({ counted: 'neutral', status: 413, reason: 'body_too_large', upstream: null })
  assert.equal(upstream.requests.length, 0)
  const within = await rawRequest(gateway.port, chunked('{"a":"xx"}'))
  assert.deepEqual([within.status, within.text()], [200, '{"a":"xx"}'])
})
