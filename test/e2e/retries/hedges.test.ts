import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Socket } from 'node:net'
import { answer, reset, send, stall } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { unlessStalled } from '../../support/gateway.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, request } from '../forwarder/support.ts'
import { leftover, named, row, told } from './support.ts'
import type { Row, RowOptions } from './support.ts'
import type { TestContext } from 'node:test'

const hedge = { percentile: 0.9, minMs: 20 }

/** A row that knows what is usual: its first upstream has answered quickly for a while; then it does what `handlers` say. */
async function seasoned (t: TestContext, handlers: readonly RawHandler[], options: RowOptions = {}): Promise<Row & { seen: { access: number, errors: number }, base: number }> {
  const set = await row(t, handlers.map(() => named('quick')), { ...options, retry: { retries: 0, hedge, ...options.retry } })
  const { gateway, upstreams } = set
  // As many as it takes to know: one more might be sent twice already.
  for (let i = 0; i < 20; i++) assert.equal((await rawRequest(gateway.port, get)).status, 200)
  await gateway.skip()
  for (const [i, handler] of handlers.entries()) upstreams[i]?.handle(handler)
  return { ...set, seen: { access: 20, errors: gateway.lines.all('upstream_error').length }, base: upstreams[0]?.requests.length ?? 0 }
}

/** Answers when it is told to. */
function gated (handler: RawHandler): [RawHandler, open: () => void] {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => { open = resolve })
  return [async (socket, asked) => {
    await opened
    if (!socket.destroyed) await handler(socket, asked)
  }, open]
}

for (const method of ['GET', 'HEAD']) {
  test(`a slow ${method} is sent to another upstream as well; the first answer wins, and the other one is cancelled`, async (t) => {
    const { gateway, upstreams, seen } = await seasoned(t, [stall, named('second')])
    const got = await rawRequest(gateway.port, request(method))
    assert.deepEqual([got.status, got.header('x-upstream')], [200, 'second'])
    const left = await leftover(gateway, seen)
    assert.deepEqual(told(gateway, left), [200, null, 2, 1])
    assert.deepEqual(left.errors, [])
    await until(() => upstreams[0]?.open.size === 0, { what: 'the slow one cancelled' })
    assert.deepEqual(left.counts.map(([, failures]) => failures), [0, 0])
    const { hedges, hedgesWon, retries } = gateway.app.forwarding.view('shop')
    assert.deepEqual([hedges, hedgesWon, retries], [1, 1, 0])
  })
}

test('where the first one answers after all, its answer wins, and the second one is cancelled', async (t) => {
  const [first, open] = gated(named('first'))
  const { gateway, upstreams, seen } = await seasoned(t, [first, stall])
  const pending = rawRequest(gateway.port, get)
  await until(() => upstreams[1]?.requests.length === 1)
  open()
  assert.equal((await pending).header('x-upstream'), 'first')
  const left = await leftover(gateway, seen)
  assert.deepEqual(told(gateway, left), [200, null, 2, 0])
  await until(() => upstreams[1]?.open.size === 0)
  assert.deepEqual([gateway.app.forwarding.view('shop').hedgesWon, left.counts[1]], [0, [0, 0]])
})

for (const [what, bad] of Object.entries<RawHandler>({
  'answers 503': named('bad', 503),
  'answers 500': named('bad', 500),
  'resets': (socket) => { reset(socket) }
})) {
  test(`a second one that ${what} is not the answer while the first one may still have a better one`, async (t) => {
    const [first, open] = gated(named('first'))
    const { gateway, upstreams, seen } = await seasoned(t, [first, bad])
    const pending = rawRequest(gateway.port, get)
    await until(() => gateway.breaker(1).window.total === 1)
    open()
    assert.equal((await pending).header('x-upstream'), 'first')
    assert.deepEqual(told(gateway, await leftover(gateway, seen)), [200, null, 2, 0])
    assert.equal(upstreams[1]?.requests.length, 1)
  })

  test(`a first one that ${what} after the second was sent waits for that`, async (t) => {
    const [first, open] = gated(bad)
    const [second, openSecond] = gated(named('second'))
    const { gateway, upstreams, seen } = await seasoned(t, [first, second])
    const before = gateway.breaker(0).window.failures
    const pending = rawRequest(gateway.port, get)
    await until(() => upstreams[1]?.requests.length === 1)
    open()
    await until(() => gateway.breaker(0).window.failures === before + 1)
    openSecond()
    assert.equal((await pending).header('x-upstream'), 'second')
    assert.deepEqual(told(gateway, await leftover(gateway, seen)), [200, null, 2, 1])
  })

  test(`where both fail (the second ${what}), the first failure is the answer, and without a retry left there is no further one`, async (t) => {
    const [first, open] = gated((socket) => { reset(socket) })
    const { gateway, seen, asked } = await seasoned(t, [first, bad, named('third')], { retry: { retries: 1 } })
    const pending = rawRequest(gateway.port, get)
    await until(() => gateway.breaker(1).window.total === 1)
    open()
    const got = await pending
    assert.deepEqual([got.status, got.header('x-upstream')], what === 'resets' ? [502, undefined] : [what === 'answers 503' ? 503 : 500, 'bad'])
    const left = await leftover(gateway, seen)
    assert.equal(left.access['attempts'], 2)
    assert.equal(asked()[2], 0)
  })
}

test('where both fail and a retry is left, a third upstream is asked', async (t) => {
  const [first, open] = gated((socket) => { reset(socket) })
  const { gateway, seen } = await seasoned(t, [first, named('bad', 503), named('third')], { retry: { retries: 2 } })
  const pending = rawRequest(gateway.port, get)
  await until(() => gateway.breaker(1).window.total === 1)
  open()
  assert.equal((await pending).header('x-upstream'), 'third')
  const left = await leftover(gateway, seen)
  assert.deepEqual(told(gateway, left), [200, null, 3, 2])
  assert.deepEqual(left.errors.map(({ reason, error }) => [reason, error === 'answered 503']), [['connection_reset', false], [null, true]])
})

test('an answer that failed and is not to be retried is not retried beside a failure either', async (t) => {
  const [first, open] = gated((socket) => { reset(socket) })
  const { gateway, seen, asked } = await seasoned(t, [first, named('bad', 500), named('third')], { retry: { retries: 3 } })
  const pending = rawRequest(gateway.port, get)
  await until(() => gateway.breaker(1).window.total === 1)
  open()
  assert.equal((await pending).status, 500)
  assert.deepEqual(told(gateway, await leftover(gateway, seen)), [500, null, 2, 1])
  assert.equal(asked()[2], 0)
})

test('a client that leaves ends both attempts, and neither is blamed', async (t) => {
  const { gateway, upstreams, seen } = await seasoned(t, [stall, stall])
  const before = gateway.breaker(0).window.total
  const client = await rawConnect(gateway.port)
  await client.write(get)
  await until(() => upstreams[1]?.requests.length === 1)
  client.reset()
  const left = await leftover(gateway, seen)
  assert.deepEqual([left.access['reason'], left.access['attempts'], left.errors], ['client_cancelled', 2, []])
  await until(() => upstreams.every(({ open }) => open.size === 0))
  assert.deepEqual(left.counts, [[before, 0], [0, 0]])
})

for (const [what, bytes] of Object.entries({ 'a POST': request('POST'), 'a GET with a body': request('GET', '/', {}, 'x'), 'a DELETE': request('DELETE') })) {
  test(`${what} is never sent twice at the same time`, async (t) => {
    await unlessStalled(async () => {
      const { gateway, asked, seen } = await seasoned(t, [stall, named('second')], { pool: { timeouts: { headersMs: 300 } } })
      assert.equal((await rawRequest(gateway.port, bytes)).status, 504)
      const left = await leftover(gateway, seen)
      assert.deepEqual([left.access['attempts'], asked()[1]], [1, 0])
    })
  })
}

test('while it is not known what is usual, no second attempt is sent', async (t) => {
  const { gateway, asked } = await row(t, [stall, named('second')], { retry: { retries: 0, hedge }, pool: { timeouts: { headersMs: 300 } } })
  assert.equal((await rawRequest(gateway.port, get)).status, 504)
  assert.equal(asked()[1], 0)
})

test('the budget pays for second attempts; without it there is none', async (t) => {
  await unlessStalled(async () => {
    const { gateway, asked, seen } = await seasoned(t, [stall, named('second')], { retry: { budget: { ratio: 0, minPerSecond: 0 } }, pool: { timeouts: { headersMs: 300 } } })
    assert.equal((await rawRequest(gateway.port, get)).status, 504)
    const left = await leftover(gateway, seen)
    assert.deepEqual([left.access['attempts'], asked()[1]], [1, 0])
  })
})

test('a quick answer causes no second attempt', async (t) => {
  const { gateway, asked } = await seasoned(t, [named('first'), named('second')], { retry: { hedge: { percentile: 0.9, minMs: 2000 } } })
  for (let i = 0; i < 50; i++) await rawRequest(gateway.port, get)
  assert.equal(asked()[1], 0)
})

for (const [retries, attempts] of [[0, 1], [1, 2]] as const) {
  test(`a failure that comes before a second attempt is due does not wait for that (${retries} retries)`, async (t) => {
    for (const bad of [named('bad', 503), (socket: Socket) => { reset(socket) }]) {
      const { gateway, seen } = await seasoned(t, [bad, named('second')], { retry: { retries, hedge: { percentile: 0.9, minMs: 4000 } } })
      const got = await rawRequest(gateway.port, get, { timeoutMs: 3000 })
      assert.deepEqual([got.status === 200, got.ended], [retries === 1, 'open'])
      const left = await leftover(gateway, seen)
      assert.deepEqual([left.access['attempts'], gateway.app.forwarding.view('shop').hedges], [attempts, 0])
    }
  })
}

test('a slow body causes no second attempt: the head has come', async (t) => {
  const slowBody: RawHandler = async (socket) => {
    await send(socket, answer({ headers: [['Content-Length', '2']], framing: 'none', body: 'a' }))
    await new Promise((resolve) => { setTimeout(resolve, 150) })
    await send(socket, 'b')
  }
  const { gateway, asked } = await seasoned(t, [slowBody, named('second')])
  assert.equal((await rawRequest(gateway.port, get)).text(), 'ab')
  assert.equal(asked()[1], 0)
})
