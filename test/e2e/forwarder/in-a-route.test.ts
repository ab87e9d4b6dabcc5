import assert from 'node:assert/strict'
import { Transform } from 'node:stream'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { answer, send, stall } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, inFront, request } from './support.ts'
import type { Pair } from './support.ts'

const echo: RawHandler = async (socket, { target, body, header }) => {
  const { body: bytes } = await body()
  await send(socket, answer({ headers: [['Content-Type', 'text/plain'], ['X-Target', target], ['X-Length', header('content-length') ?? 'none']], body: bytes }))
}

/** Somebody's app with routes of its own beside the gateway's. */
function withRoutes (t: TestContext, routes: (app: FastifyInstance) => void, handler: RawHandler = echo): Promise<Pair> {
  return inFront(t, handler, { extend: app => app.register(async (scope) => { routes(scope) }) })
}

test('a route of one\'s own forwards to a pool by its name', async (t) => {
  const { gateway } = await withRoutes(t, (app) => {
    app.get('/mine/:id', (_request, reply) => reply.forward('shop'))
  })
  const got = await rawRequest(gateway.port, request('GET', '/mine/7?a=1'))
  assert.deepEqual([got.status, got.header('x-target')], [200, '/mine/7?a=1'])
  await gateway.left({ counted: 'success', status: 200 })
})

test('an async handler may return the reply', async (t) => {
  const { gateway } = await withRoutes(t, (app) => {
    app.get('/mine', async (_request, reply) => {
      await delay(5)
      return reply.forward({ pool: 'shop', prefix: '/v2' })
    })
  })
  assert.equal((await rawRequest(gateway.port, request('GET', '/mine'))).header('x-target'), '/v2/mine')
  await gateway.left({ counted: 'success', status: 200 })
})

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

test('an onSend hook sees the answer and may add fields', async (t) => {
  for (const size of [10, 500_000]) {
    const { gateway } = await withRoutes(t, (app) => {
      app.addHook('onSend', async (_request, reply, payload) => {
        reply.header('x-added', 'yes')
        return payload
      })
      app.get('/mine', (_request, reply) => reply.forward('shop'))
    }, socket => send(socket, answer({ headers: [['X-Own', 'yes']], body: 'x'.repeat(size) })))
    const got = await rawRequest(gateway.port, request('GET', '/mine'))
    assert.deepEqual([got.status, got.header('x-added'), got.header('x-own'), got.body.length, got.complete], [200, 'yes', 'yes', size, true])
    await gateway.left({ counted: 'success', status: 200 })
  }
})

test('an onSend hook that takes its time and replaces the stream does not lose the head', async (t) => {
  const { gateway } = await withRoutes(t, (app) => {
    app.addHook('onSend', async (_request, reply, payload) => {
      const louder = new Transform({ transform (bytes: Buffer, _encoding, done) { done(null, bytes.toString('latin1').toUpperCase()) } })
      const replaced = (payload as NodeJS.ReadableStream).pipe(louder)
      await delay(30)
      reply.removeHeader('content-length')
      return replaced
    })
    app.get('/mine', (_request, reply) => reply.forward('shop'))
  }, async (socket) => {
    await send(socket, answer({ status: 203, headers: [['X-Own', 'yes'], ['Content-Length', '10']], framing: 'none', body: 'hello' }))
    await delay(60)
    await send(socket, 'world')
  })
  const got = await rawRequest(gateway.port, request('GET', '/mine'))
  assert.deepEqual([got.status, got.header('x-own'), got.text(), got.complete], [203, 'yes', 'HELLOWORLD', true])
  await gateway.left({ counted: 'success', status: 203 })
})

test('a hook of the user that refuses keeps the request from the upstream', async (t) => {
  const { gateway, upstream } = await withRoutes(t, (app) => {
    app.addHook('onRequest', async (incoming, reply) => {
      if (incoming.headers.authorization === undefined) return reply.code(401).send({ error: 'who?' })
      return undefined
    })
    app.post('/mine', (_request, reply) => reply.forward('shop'))
  })
  const refused = await rawRequest(gateway.port, request('POST', '/mine', { 'Content-Type': 'text/plain' }, 'hello'))
  assert.deepEqual([refused.status, refused.json()], [401, { error: 'who?' }])
  await gateway.left({ counted: 'neutral', status: 401, upstream: null })
  const let_in = await rawRequest(gateway.port, request('POST', '/mine', { 'Content-Type': 'text/plain', 'Authorization': 'x' }, 'hello'))
  assert.equal(let_in.status, 200)
  assert.equal(upstream.requests.length, 1)
})

test('a hook of the user that throws is that app\'s own error, and nothing is left over', async (t) => {
  const { gateway, upstream } = await withRoutes(t, (app) => {
    app.get('/mine', { preHandler: async () => { throw new Error('mine') } }, (_request, reply) => reply.forward('shop'))
  })
  assert.equal((await rawRequest(gateway.port, request('GET', '/mine'))).status, 500)
  assert.equal(upstream.requests.length, 0)
  await gateway.left({ counted: 'neutral', status: 500, upstream: null })
})

test('a pool that does not exist is an error at the call', async (t) => {
  const { gateway } = await withRoutes(t, (app) => {
    app.get('/mine', (_request, reply) => reply.forward('nobody'))
  })
  const got = await rawRequest(gateway.port, request('GET', '/mine'))
  assert.equal(got.status, 500)
  assert.match(got.text(), /there is no pool named/)
  await gateway.left({ counted: 'neutral', status: 500, upstream: null })
})

for (const healthy of [true, false]) {
  test(`forwarding twice throws, and leaves nothing over (the first one ${healthy ? 'is on its way' : 'was refused'})`, async (t) => {
    let thrown: unknown
    const { gateway, upstream } = await withRoutes(t, (app) => {
      app.get('/mine', (_request, reply) => {
        reply.forward('shop')
        try {
          reply.forward('shop')
        } catch (error) {
          thrown = error
        }
        return reply
      })
    })
    gateway.app.pools.setDraining('shop', gateway.upstream().id, !healthy)
    const got = await rawRequest(gateway.port, request('GET', '/mine'))
    assert.match(String(thrown), /called twice/)
    assert.equal(got.status, healthy ? 200 : 503)
    await gateway.left(healthy ? { counted: 'success', status: 200 } : { counted: 'neutral', status: 503, reason: 'no_upstream_healthy', upstream: null })
    assert.equal(upstream.requests.length, healthy ? 1 : 0)
  })
}

for (const kind of ['whole', 'streamed'] as const) {
  test(`a handler that answers by itself after all does not leave the upstream's answer (${kind}) hanging`, async (t) => {
    const { gateway, upstream } = await withRoutes(t, (app) => {
      app.get('/mine', (_request, reply) => {
        reply.forward('shop')
        reply.code(202).send('mine')
      })
    }, async (socket) => {
      await delay(20)
      await send(socket, answer({ headers: [['Content-Length', '1000000']], framing: 'none', body: kind === 'whole' ? Buffer.alloc(1_000_000) : 'x' }))
      await stall(socket)
    })
    const got = await rawRequest(gateway.port, request('GET', '/mine'))
    assert.deepEqual([got.status, got.text()], [202, 'mine'])
    await gateway.idle()
    await until(() => upstream.open.size === 0, { what: 'the upstream\'s connection closed' })
    await until(() => gateway.lines.find('access'))
    const line = gateway.lines.find('access')
    assert.deepEqual([line?.['status'], line?.['reason'], gateway.breaker().window.failures], [202, null, 0])
  })
}

test('a client that leaves while a hook is at work is not forwarded any more', async (t) => {
  let entered = false
  let goOn: () => void = () => {}
  const { gateway, upstream } = await withRoutes(t, (app) => {
    app.get('/mine', {
      preHandler: async () => {
        entered = true
        await new Promise<void>(resolve => { goOn = resolve })
      }
    }, (_request, reply) => reply.forward('shop'))
  })
  const client = await rawConnect(gateway.port)
  await client.write(request('GET', '/mine'))
  await until(() => entered)
  client.reset()
  await until(() => gateway.lines.find('access'))
  goOn()
  await delay(30)
  assert.equal(upstream.requests.length, 0)
  await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled', upstream: null })
})

test('the catch-all still takes what no route of one\'s own does', async (t) => {
  const { gateway } = await withRoutes(t, (app) => {
    app.get('/mine', async () => 'mine')
  })
  assert.equal((await rawRequest(gateway.port, request('GET', '/mine'))).text(), 'mine')
  assert.equal((await rawRequest(gateway.port, get)).header('x-target'), '/')
})
