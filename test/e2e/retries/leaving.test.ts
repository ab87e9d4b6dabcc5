import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, reset, send, stall } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { rawConnect } from '../../support/raw-client.ts'
import type { RawConnection } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, request } from '../forwarder/support.ts'
import { leftover, named, refuses, row, told } from './support.ts'
import type { Row } from './support.ts'

/** A wait that nobody lives to see the end of, however it is drawn. */
const long = { retry: { backoff: { baseMs: 2147483647, maxMs: 2147483647 } }, pool: { timeouts: { totalMs: 0 } } }
const ways: Record<string, (client: RawConnection) => void> = {
  reset: (client) => { client.reset() },
  FIN: (client) => { client.end() }
}

const inTheWait = async ({ gateway }: Row): Promise<void> => {
  await gateway.lines.waitFor('upstream_error')
}

for (const [way, leave] of Object.entries(ways)) {
  test(`a client that leaves by ${way} in the wait before a retry ends it: no further upstream is asked`, async (t) => {
    const set = await row(t, [refuses, named('second')], long)
    const { gateway, asked } = set
    const client = await rawConnect(gateway.port)
    await client.write(get)
    await inTheWait(set)
    leave(client)
    const left = await leftover(gateway)
    client.destroy()
    assert.deepEqual(told(gateway, left), [499, 'client_cancelled', 1, 0])
    assert.deepEqual([asked(), left.counts], [[0, 0], [[1, 1], [0, 0]]])
  })

  test(`a client that leaves by ${way} in the wait before a retry of its upload ends it, too`, async (t) => {
    const resets: RawHandler = (socket) => { reset(socket) }
    const set = await row(t, [resets, named('second')], long)
    const { gateway, asked } = set
    const client = await rawConnect(gateway.port)
    await client.write(request('PUT', '/', { 'Content-Length': '5000' }))
    await client.write('x'.repeat(1000))
    await inTheWait(set)
    leave(client)
    assert.deepEqual(told(gateway, await leftover(gateway)), [499, 'client_cancelled', 1, 0])
    client.destroy()
    assert.deepEqual(asked(), [1, 0])
  })

  for (const size of [5, 300000]) {
    test(`a client that leaves by ${way} while an answer of ${size} bytes is held is told of neither`, async (t) => {
      const { gateway, upstreams, asked } = await row(t, [(socket) => send(socket, answer({ status: 503, body: 'x'.repeat(size) })), named('second')], long)
      const client = await rawConnect(gateway.port)
      await client.write(get)
      await until(() => gateway.breaker(0).window.total === 1)
      leave(client)
      const left = await leftover(gateway)
      if (way === 'FIN') assert.equal((await client.readAll()).length, 0)
      client.destroy()
      assert.deepEqual(told(gateway, left), [499, 'client_cancelled', 1, 0])
      assert.deepEqual([asked(), left.counts], [[1, 0], [[1, 1], [0, 0]]])
      if (size > 5) await until(() => upstreams[0]?.open.size === 0, { what: 'the rest of the answer given up' })
    })
  }

  test(`a client that leaves by ${way} during the second attempt is nobody's failure, and both upstreams are left alone`, async (t) => {
    const { gateway, upstreams, asked } = await row(t, [refuses, stall, named('third')], { retry: { retries: 2 } })
    const client = await rawConnect(gateway.port)
    await client.write(get)
    await until(() => asked()[1] === 1)
    await until(() => gateway.breaker(1).outstanding.count === 1)
    leave(client)
    const left = await leftover(gateway)
    client.destroy()
    assert.deepEqual(told(gateway, left), [499, 'client_cancelled', 2, 1])
    assert.deepEqual([asked(), left.counts], [[0, 1, 0], [[1, 1], [0, 0], [0, 0]]])
    await until(() => upstreams[1]?.open.size === 0)
  })
}

test('a client that leaves in the very moment in which the upstream fails leaves nothing behind, whichever was first', async (t) => {
  for (const first of ['client', 'upstream', 'client', 'upstream', 'client', 'upstream']) {
    const { gateway, upstreams, asked } = await row(t, [stall, named('second')])
    const client = await rawConnect(gateway.port)
    await client.write(get)
    await until(() => asked()[0] === 1)
    if (first === 'client') client.reset()
    for (const socket of upstreams[0]?.open ?? []) reset(socket)
    if (first !== 'client') client.reset()
    await gateway.idle()
    const { access } = await leftover(gateway)
    assert.equal(access['reason'], 'client_cancelled')
  }
})

test('an app that answers by itself in the wait before a retry has the only answer', async (t) => {
  const { gateway, asked } = await row(t, [refuses, named('second')], {
    ...long,
    extend: (app) => app.register(async (scope) => {
      scope.get('/own', (_request, reply) => {
        void gateway.lines.waitFor('upstream_error').then(() => reply.send('my own'))
        return reply.forward('shop')
      })
    })
  })
  const client = await rawConnect(gateway.port)
  await client.write(request('GET', '/own'))
  const got = await client.readResponse()
  client.destroy()
  assert.deepEqual([got.status, got.text()], [200, 'my own'])
  const left = await leftover(gateway)
  assert.deepEqual([left.access['status'], left.access['reason'], asked()], [200, null, [0, 0]])
})
