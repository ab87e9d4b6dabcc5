import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { answer, answering, reset, send, stall } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import type { RawConnection } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, inFront, request } from './support.ts'

const ways: Record<string, (client: RawConnection) => void> = {
  reset: client => { client.reset() },
  FIN: client => { client.end() }
}
const requests: Record<string, Buffer> = { GET: get, POST: request('POST', '/', {}, 'hello') }

for (const [way, leave] of Object.entries(ways)) {
  for (const [method, bytes] of Object.entries(requests)) {
    test(`a client that leaves by ${way} before its ${method} is answered ends the upstream's work at once, and is nobody's failure`, async (t) => {
      const { gateway, upstream } = await inFront(t, stall)
      const client = await rawConnect(gateway.port)
      await client.write(bytes)
      await until(() => upstream.requests.length === 1)
      await until(() => gateway.breaker().outstanding.count === 1)
      leave(client)
      await until(() => upstream.open.size === 0, { what: 'the upstream\'s connection closed' })
      await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled', bytes: 0 })
      if (way === 'FIN') assert.equal((await client.readAll()).length, 0, 'nothing is sent to who has left')
      client.destroy()
      assert.equal(upstream.connections, 1, 'no new connection is made for nobody')
    })

    test(`a client that leaves by ${way} in the middle of its download (${method}) ends the upstream's work, and is nobody's failure`, async (t) => {
      const { gateway, upstream } = await inFront(t, async (socket) => {
        await send(socket, answer({ headers: [['Content-Length', '1000000']], framing: 'none', body: 'x'.repeat(1000) }))
        await stall(socket)
      })
      const client = await rawConnect(gateway.port)
      await client.write(bytes)
      assert.equal((await client.readHead()).status, 200)
      await client.readBytes(1000)
      leave(client)
      await until(() => upstream.open.size === 0, { what: 'the upstream\'s connection closed' })
      await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled', bytes: 1000 })
      client.destroy()
      assert.equal(upstream.connections, 1, 'no new connection is made for nobody')
    })
  }

  for (const framing of ['a length', 'chunks']) {
    test(`a client that leaves by ${way} in the middle of its upload (${framing}) is nobody's failure, and the upstream never takes the rest for whole`, async (t) => {
      let whole: boolean | undefined
      const { gateway, upstream } = await inFront(t, async (_socket, { body }) => { whole = (await body()).complete })
      const client = await rawConnect(gateway.port)
      const fields: Record<string, string> = framing === 'chunks' ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': '100000' }
      await client.write(request('POST', '/', fields))
      await client.write(framing === 'chunks' ? `3e8\r\n${'x'.repeat(1000)}\r\n` : 'x'.repeat(1000))
      await until(() => upstream.requests.length === 1)
      leave(client)
      await until(() => upstream.open.size === 0 && whole !== undefined, { what: 'the upstream\'s connection closed' })
      assert.equal(whole, false)
      await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled', bytes: 0 })
      client.destroy()
      assert.equal(upstream.connections, 1, 'no new connection is made for nobody')
    })
  }

  test(`a client that leaves by ${way} while it waits for a connection leaves the queue`, async (t) => {
    const { gateway, upstream } = await inFront(t, stall, { pool: { connections: { max: 1 } } })
    const first = await rawConnect(gateway.port)
    await first.write(get)
    await until(() => upstream.requests.length === 1)
    const second = await rawConnect(gateway.port)
    await second.write(get)
    await until(() => gateway.upstream().waiting === 1)
    leave(second)
    await until(() => gateway.upstream().waiting === 0)
    await until(() => gateway.lines.find('access'))
    assert.deepEqual([gateway.upstream().inFlight, gateway.upstream().busyConnections], [1, 1])
    const line = gateway.lines.find('access')
    assert.deepEqual([line?.['status'], line?.['reason'], line?.['bytes']], [499, 'client_cancelled', 0])
    first.destroy()
    second.destroy()
    await gateway.idle()
    assert.equal(upstream.requests.length, 1, 'the second one was never sent')
    assert.equal(gateway.breaker().window.total, 0)
  })
}

test('a client that leaves after its answer leaves nothing behind', async (t) => {
  const { gateway } = await inFront(t, answering({ body: 'hello' }))
  const client = await rawConnect(gateway.port)
  await client.write(get)
  assert.equal((await client.readResponse()).text(), 'hello')
  client.reset()
  await gateway.left({ counted: 'success', status: 200, bytes: 5 })
})

test('an upstream that resets in the very moment in which the client leaves is settled once', async (t) => {
  for (let i = 0; i < 20; i++) {
    let cut: () => void = () => {}
    const { gateway, upstream } = await inFront(t, async (socket) => {
      cut = () => { reset(socket) }
      await stall(socket)
    })
    const client = await rawConnect(gateway.port)
    await client.write(get)
    await until(() => upstream.requests.length === 1)
    if (i % 2 === 0) {
      client.reset()
      cut()
    } else {
      cut()
      client.reset()
    }
    await gateway.idle()
    await until(() => gateway.lines.all('access').length === 1)
    assert.ok(gateway.breaker().window.total <= 1)
  }
})

test('a pipelined second request is answered after the first, and both go when the client does', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket, { total }) => {
    if (total < 3) {
      await delay(20)
      await send(socket, answer({ body: `answer ${total}` }))
    } else {
      await stall(socket)
    }
  })
  const got = await rawRequest(gateway.port, Buffer.concat([get, get]), { methods: ['GET', 'GET'] })
  assert.deepEqual(got.responses.map(each => each.status), [200, 200])
  await until(() => gateway.lines.all('access').length === 2)
  const client = await rawConnect(gateway.port)
  await client.write(Buffer.concat([get, get]))
  await until(() => upstream.requests.length === 4)
  client.reset()
  await gateway.idle()
  await until(() => gateway.lines.all('access').length === 4)
  assert.equal(gateway.breaker().window.total, 2)
})
