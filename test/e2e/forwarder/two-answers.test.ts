import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Transform, type Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { answer, reset, send, stall, type RawHandler } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest, type RawResult } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, inFront, request, withRoutes, type Pair } from './support.ts'

/** A door that a test opens. */
class Door {
  waiting = 0
  open: () => void = () => {}
  readonly opened = new Promise<void>((resolve) => { this.open = resolve })
  through (): Promise<void> {
    this.waiting++
    return this.opened
  }
}

/** An app whose answers wait in an asynchronous onSend hook. */
function slowAnswers (app: FastifyInstance, door: Door): void {
  app.addHook('onSend', async (_request, _reply, payload) => {
    await door.through()
    return payload
  })
}

const limitMs = 40

/** A gateway with a handler time limit and slow answers; the upstream answers when its own door opens. */
async function timed (t: TestContext, handler: RawHandler): Promise<Pair & { upstreamDoor: Door, sendDoor: Door }> {
  const upstreamDoor = new Door()
  const sendDoor = new Door()
  const pair = await inFront(t, async (socket, incoming) => {
    await upstreamDoor.through()
    await handler(socket, incoming)
  }, { fastify: { handlerTimeout: limitMs }, before: (app) => { slowAnswers(app, sendDoor) } })
  return { ...pair, upstreamDoor, sendDoor }
}

function assertOurs (got: RawResult, status: number, reason: string): void {
  assert.deepEqual([got.status, got.complete, got.header('content-type'), (got.json() as Record<string, unknown>)['reason']], [status, true, 'application/problem+json', reason])
  assert.equal(got.header('x-own'), undefined)
  assert.equal(got.header('etag'), undefined)
}

const theirs = answer({ headers: [['X-Own', 'yes'], ['ETag', '"x"']], body: 'x'.repeat(2000) })

for (const [what, handler] of Object.entries<RawHandler>({
  'an upstream\'s answer': (socket) => send(socket, theirs),
  'an upstream\'s endless answer': async (socket) => {
    await send(socket, answer({ headers: [['X-Own', 'yes'], ['Content-Length', '5000']], framing: 'none', body: 'x' }))
    await stall(socket)
  },
  'a reset of the upstream': (socket) => { reset(socket) }
})) {
  test(`${what} is not mixed into the answer of a handler time limit that waits in a hook`, async (t) => {
    const { gateway, upstream, upstreamDoor, sendDoor } = await timed(t, handler)
    const asked = rawRequest(gateway.port, get)
    await until(() => sendDoor.waiting === 1, { what: 'the time limit\'s answer in the hook' })
    upstreamDoor.open()
    await until(() => upstream.open.size === 0, { what: 'the upstream let go' })
    await delay(20)
    sendDoor.open()
    const got = await asked
    assertOurs(got, 500, 'internal_error')
    assert.equal(sendDoor.waiting, 1, 'one answer')
    await gateway.idle()
    await gateway.lines.waitFor('access')
    const line = gateway.lines.find('access')
    assert.deepEqual([line?.['status'], line?.['reason'], line?.['bytes']], [500, 'internal_error', got.body.length])
    assert.equal(gateway.breaker().window.total, 0, 'nobody is blamed')
  })
}

test('the answer of a handler time limit is not mixed into an upstream\'s that waits in a hook', async (t) => {
  const { gateway, upstreamDoor, sendDoor } = await timed(t, (socket) => send(socket, theirs))
  upstreamDoor.open()
  const asked = rawRequest(gateway.port, get)
  await until(() => sendDoor.waiting === 1)
  await delay(3 * limitMs)
  sendDoor.open()
  const got = await asked
  // Where this process was late, the limit came first.
  if (got.status === 500) return assertOurs(got, 500, 'internal_error')
  assert.deepEqual([got.status, got.complete, got.header('x-own'), got.body.length, sendDoor.waiting], [200, true, 'yes', 2000, 1])
  await gateway.left({ counted: 'success', status: 200, bytes: 2000 })
})

test('a handler that answers by itself after all is not mixed with the upstream\'s answer, though a hook takes its time', async (t) => {
  const door = new Door()
  const { gateway, upstream } = await withRoutes(t, (app) => {
    slowAnswers(app, door)
    app.get('/mine', (_request, reply) => {
      reply.forward('shop')
      reply.code(202).header('x-mine', 'yes').send('mine')
    })
  }, (socket) => send(socket, theirs))
  const asked = rawRequest(gateway.port, request('GET', '/mine'))
  await until(() => door.waiting === 1)
  await delay(30)
  door.open()
  const got = await asked
  assert.deepEqual([got.status, got.header('x-mine'), got.header('x-own'), got.text(), door.waiting], [202, 'yes', undefined, 'mine', 1])
  await gateway.idle()
  assert.ok(upstream.requests.length <= 1)
  await gateway.left({ counted: 'neutral', status: 202, bytes: 4 })
})

test('a malformed upload is not answered twice while hooks are at work on its refusal', async (t) => {
  for (const first of ['a refusal', 'a refusal before anything was forwarded', 'an answer'] as const) {
    const door = new Door()
    const { gateway } = await inFront(t, async (socket) => {
      await send(socket, theirs)
      await stall(socket)
    }, { before: (app) => { slowAnswers(app, door) }, ...first === 'a refusal' && { server: { maxBodyBytes: 2 } } })
    gateway.app.pools.setDraining('shop', gateway.upstream().id, first === 'a refusal before anything was forwarded')
    const client = await rawConnect(gateway.port)
    await client.write(request('POST', '/', { 'Transfer-Encoding': 'chunked' }))
    await client.write('5\r\nhello\r\n')
    await until(() => door.waiting === 1)
    await client.write('zz\r\n')
    await delay(30)
    door.open()
    const got = await client.readResponse('POST')
    assert.equal((await client.readAll()).length, 0, 'nothing behind it')
    if (first === 'a refusal') assertOurs(got as RawResult, 413, 'body_too_large')
    else if (first !== 'an answer') assertOurs(got as RawResult, 503, 'no_upstream_healthy')
    else assert.deepEqual([got.status, got.header('x-own'), got.body.length], [200, 'yes', 2000])
    assert.equal(door.waiting, 1)
    client.destroy()
    await gateway.idle()
  }
})

test('forward() throws where the request has been answered, and nothing is sent to the upstream', async (t) => {
  for (const slow of [false, true]) {
    let thrown: unknown
    const door = new Door()
    const { gateway, upstream } = await withRoutes(t, (app) => {
      if (slow) slowAnswers(app, door)
      app.post('/mine', (_request, reply) => {
        reply.code(401).send('no')
        try {
          reply.forward('shop')
        } catch (error) {
          thrown = error
        }
      })
    })
    door.open()
    const got = await rawRequest(gateway.port, request('POST', '/mine', { 'Content-Length': '0' }))
    assert.deepEqual([got.status, got.text()], [401, 'no'])
    assert.match(String(thrown), /has been answered/)
    assert.equal(upstream.requests.length, 0)
    await gateway.left({ counted: 'neutral', status: 401, upstream: null })
  }
})

test('an error handler may forward', async (t) => {
  const { gateway } = await withRoutes(t, (app) => {
    app.setErrorHandler((_error, _request, reply) => { reply.forward('shop') })
    app.get('/mine', async () => { throw new Error('mine') })
  })
  assert.deepEqual((await rawRequest(gateway.port, request('GET', '/mine'))).header('x-target'), '/mine')
  await gateway.left({ counted: 'success', status: 200 })
})

for (const size of [10, 500_000]) {
  for (const where of ['the gateway', 'a route of one\'s own'] as const) {
    test(`an onSend hook that throws on an answer of ${size} bytes leaves nothing of it in the refusal (${where})`, async (t) => {
      const head = { headers: [['Content-Encoding', 'gzip'], ['Set-Cookie', 'theirs=1'], ['ETag', '"x"'], ['X-Own', 'yes']] as Array<[string, string]>, status: 404 }
      const hooks = (app: FastifyInstance): void => {
        app.addHook('onRequest', async (_request, reply) => { reply.header('set-cookie', 'mine=1').header('x-app', 'yes') })
        app.addHook('onSend', async (_request, reply) => { if (reply.getHeader('x-own') === 'yes') throw new Error('boom') })
      }
      const handler: RawHandler = (socket) => send(socket, answer({ ...head, body: 'x'.repeat(size) }))
      const { gateway } = where === 'the gateway'
        ? await inFront(t, handler, { before: hooks })
        : await withRoutes(t, (app) => {
          hooks(app)
          app.get('/', { constraints: { host: 'mine' } }, (_request, reply) => reply.forward('shop'))
        }, handler)
      const got = await rawRequest(gateway.port, request('GET', '/', { Host: where === 'the gateway' ? 'shop' : 'mine' }))
      assert.deepEqual([got.status, got.complete, (got.json() as Record<string, unknown>)[where === 'the gateway' ? 'reason' : 'message']], [500, true, where === 'the gateway' ? 'internal_error' : 'boom'])
      for (const name of ['content-encoding', 'etag', 'x-own', 'via']) assert.equal(got.header(name), undefined, name)
      assert.deepEqual([got.header('set-cookie'), got.header('x-app'), got.header('content-length')], ['mine=1', 'yes', String(got.body.length)])
      assert.match(got.header('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
      await gateway.idle()
      const line = await gateway.lines.waitFor('access')
      assert.deepEqual([line['status'], line['bytes']], [500, got.body.length])
    })
  }
}

const shapes: Record<string, (app: FastifyInstance, door: Door) => void> = {
  'waits in a hook': slowAnswers,
  'was made another stream by a hook': (app, door) => {
    app.addHook('onSend', async (_request, _reply, payload) => {
      const same = new Transform({ transform (bytes: Buffer, _encoding, done) { done(null, bytes) } })
      if (typeof (payload as Readable | null)?.pipe !== 'function') return payload
      const made = (payload as Readable).pipe(same)
      await door.through()
      return made
    })
  },
  'is being read by a hook': (app, door) => {
    app.addHook('onSend', async (_request, _reply, payload) => {
      if (typeof (payload as Readable | null)?.pipe !== 'function') return payload
      door.waiting++
      const pieces: Buffer[] = []
      for await (const piece of payload as Readable) pieces.push(piece as Buffer)
      return Buffer.concat(pieces)
    })
  }
}

for (const [shape, hook] of Object.entries(shapes)) {
  for (const [what, status, reason] of [['is cut', 502, 'body_truncated'], ['stalls', 504, 'body_idle_timeout']] as const) {
    for (const where of ['the gateway', 'a route of one\'s own'] as const) {
      test(`an answer that ${what} while it ${shape} is refused with ${status}, as nothing of it was sent (${where})`, async (t) => {
        const door = new Door()
        const cut = new Door()
        const handler: RawHandler = async (socket) => {
          await send(socket, answer({ headers: [['X-Own', 'yes'], ['Content-Length', '1000']], framing: 'none', body: 'abc' }))
          if (what === 'stalls') return stall(socket)
          await cut.through()
          reset(socket)
        }
        const pool = what === 'stalls' ? { timeouts: { bodyIdleMs: 60 } } : {}
        const { gateway } = await inFront(t, handler, where === 'the gateway' ? { pool, before: (app) => { hook(app, door) } } : {
          pool,
          extend: (app) => app.register(async (scope) => {
            hook(scope, door)
            scope.get('/mine', (_request, reply) => reply.forward('shop'))
          })
        })
        const asked = rawRequest(gateway.port, request('GET', where === 'the gateway' ? '/' : '/mine'))
        await until(() => door.waiting === 1, { what: 'the hook at work' })
        cut.open()
        await until(() => gateway.lines.find('upstream_error'), { what: 'the failure' })
        door.open()
        assertOurs(await asked, status, reason)
        await gateway.idle()
        const line = await gateway.lines.waitFor('access')
        assert.deepEqual([line['status'], line['reason']], [status, reason])
      })
    }
  }
}

test('an error handler of the app\'s own learns why an answer failed on its way through a hook', async (t) => {
  const door = new Door()
  const { gateway } = await withRoutes(t, (app) => {
    slowAnswers(app, door)
    app.setErrorHandler<Error & { code: string, reason: string, statusCode: number }>(({ code, reason, statusCode }, _request, reply) => reply.code(statusCode).send({ code, reason }))
    app.get('/mine', (_request, reply) => reply.forward('shop'))
  }, async (socket) => {
    await send(socket, answer({ headers: [['Content-Length', '1000']], framing: 'none', body: 'abc' }))
    await until(() => door.waiting === 1)
    reset(socket)
  })
  const asked = rawRequest(gateway.port, request('GET', '/mine'))
  await until(() => gateway.lines.find('upstream_error'))
  door.open()
  const got = await asked
  assert.deepEqual([got.status, got.json()], [502, { code: 'BREAKWATER_EXCHANGE_FAILED', reason: 'body_truncated' }])
})
