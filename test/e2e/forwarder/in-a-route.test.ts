import assert from 'node:assert/strict'
import { Transform } from 'node:stream'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { answer, send, stall } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, request, withRoutes } from './support.ts'

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

test('forwarding to nothing in particular says what is wanted', async (t) => {
  const table: Array<[unknown, string]> = [[undefined, 'undefined'], [null, 'null'], [7, '7'], [{}, 'an object without a pool\'s name'], [{ pool: 7 }, 'an object without a pool\'s name'], [() => 'shop', 'a function']]
  const { gateway } = await withRoutes(t, (app) => {
    app.get('/mine/:n', ({ params }, reply) => reply.forward(table[Number((params as { n: string }).n)]?.[0] as string))
  })
  for (const [n, [, given]] of table.entries()) {
    const got = await rawRequest(gateway.port, request('GET', `/mine/${n}`))
    assert.deepEqual([got.status, got.text().includes(`reply.forward() wants the name of a pool, or a route such as { pool: 'shop', stripPrefix: '/api' }, not ${given}`)], [500, true], got.text())
  }
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
