import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { answer, partOfBody, reset, send, stall } from '../../support/faulty-upstream.ts'
import { chunk } from '../../support/http-bytes.ts'
import type { FieldList } from '../../support/http-bytes.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { unlessStalled } from '../../support/gateway.ts'
import { until } from '../../support/wait.ts'
import { get, inFront, request } from './support.ts'

const framings: Record<string, FieldList> = {
  'a length': [['Content-Length', '100000']],
  'chunks': [['Transfer-Encoding', 'chunked']],
  'the end of the connection': []
}

async function begin (socket: Socket, framing: string, body: string): Promise<void> {
  await send(socket, answer({ headers: framings[framing] as FieldList, framing: 'none' }), framing === 'chunks' ? chunk(body) : body)
}

for (const framing of Object.keys(framings)) {
  for (const [ending, after] of [['fin', 0], ['fin', 30], ['reset', 0], ['reset', 30]] as const) {
    // An orderly end is what this framing means by the end.
    if (framing === 'the end of the connection' && ending === 'fin') continue
    for (const version of ['1.1', '1.0']) {
      test(`a body framed by ${framing} that the upstream cuts by a ${ending} (${after} ms after its bytes) is cut for an HTTP/${version} client, too`, async (t) => {
        const { gateway, upstream } = await inFront(t, async (socket) => {
          await begin(socket, framing, 'x'.repeat(5000))
          if (after > 0) await delay(after)
          if (ending === 'fin') socket.end()
          else reset(socket)
        })
        const got = await rawRequest(gateway.port, `GET / HTTP/${version}\r\nHost: shop.example\r\n\r\n`)
        if (got.status === 502) assert.equal(after, 0, 'it had reached the client before')
        else assert.deepEqual([got.status, got.complete, got.ended], [200, false, 'reset'])
        await gateway.left({ counted: 'failure', status: got.status, reason: 'body_truncated', bytes: bytes => bytes <= 5000 })
        assert.equal(upstream.requests.length, 1)
      })
    }
  }
}

test('a body cut in the middle of a download is cut for the client after what had arrived', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: [['Content-Length', '1000000']], framing: 'none' }))
    for (let i = 0; i < 5; i++) {
      await send(socket, 'x'.repeat(100_000))
      await delay(5)
    }
    socket.end()
  })
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.complete, got.ended], [200, false, 'reset'])
  await gateway.left({ counted: 'failure', status: 200, reason: 'body_truncated', bytes: 500_000 })
})

test('a body of too few bytes with an orderly end of the message is not taken for whole', async (t) => {
  const { gateway } = await inFront(t, socket => partOfBody(socket, { declared: 10, sent: 9, headers: [['Connection', 'close']] }))
  const got = await rawRequest(gateway.port, get)
  assert.ok(got.status === 502 || !got.complete)
  await gateway.left({ counted: 'failure', status: got.status, reason: 'body_truncated' })
})

for (const framing of Object.keys(framings)) {
  test(`a body framed by ${framing} that stalls is cut after bodyIdleMs`, async (t) => {
    const { gateway, upstream } = await inFront(t, async (socket) => {
      await begin(socket, framing, 'x'.repeat(5000))
      await stall(socket)
    }, { pool: { timeouts: { bodyIdleMs: 200 } } })
    await unlessStalled(async () => {
      const got = await rawRequest(gateway.port, get)
      assert.deepEqual([got.status, got.complete, got.ended], [200, false, 'reset'])
      await gateway.left({ counted: 'failure', status: 200, reason: 'body_idle_timeout', bytes: 5000 })
    })
    await until(() => upstream.open.size === 0, { what: 'the upstream\'s connection closed' })
  })
}

test('a body that keeps coming, each piece within bodyIdleMs, is not cut', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: [['Content-Length', '10']], framing: 'none' }))
    for (let i = 0; i < 10; i++) {
      await delay(80)
      await send(socket, 'x')
    }
  }, { pool: { timeouts: { bodyIdleMs: 600 } } })
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.complete, got.text()], [200, true, 'xxxxxxxxxx'])
  await gateway.left({ counted: 'success', status: 200, bytes: 10 })
})

test('a 500 whose body is cut is one failure', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ status: 500, headers: [['Content-Length', '100']], framing: 'none', body: 'half' }))
    await delay(30)
    reset(socket)
  })
  const got = await rawRequest(gateway.port, get)
  assert.deepEqual([got.status, got.complete, got.ended], [500, false, 'reset'])
  await gateway.left({ counted: 'failure', status: 500, reason: 'body_truncated', bytes: 4 })
})

test('the answer to a HEAD is whole with its head, whatever becomes of the connection', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, answer({ headers: [['Content-Length', '100']], framing: 'none' }))
    reset(socket)
  })
  const got = await rawRequest(gateway.port, request('HEAD'))
  assert.equal(got.status, 200)
  await gateway.left({ counted: 'success', status: 200, bytes: 0 })
})
