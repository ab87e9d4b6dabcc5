import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, answering, reset, send } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { rawRequest } from '../../support/raw-client.ts'
import type { RawResult } from '../../support/raw-client.ts'
import { hugeHead, invalidAnswers, invalidChunks } from '../../support/strange-answers.ts'
import { get, inFront, request } from './support.ts'

/** A refusal of ours tells its reason and nothing of the upstream. */
function assertRefused (got: RawResult, status: number, reason: string, port: number): void {
  assert.equal(got.status, status)
  assert.equal(got.header('content-type'), 'application/problem+json')
  assert.match(got.header('proxy-status') ?? '', new RegExp(`^breakwater; error=\\w+; details="${reason}"$`))
  const document = got.json() as Record<string, unknown>
  assert.equal(document['reason'], reason)
  assert.equal(document['requestId'], got.header('x-request-id'))
  assert.doesNotMatch(got.raw.toString('latin1'), new RegExp(`127\\.0\\.0\\.1:${port}|:${port}`))
  assert.equal(got.header('x-own'), undefined)
}

for (const [name, bytes] of Object.entries(invalidAnswers)) {
  test(`an answer that is not HTTP (${name}) is refused with 502, and its connection is not used again`, async (t) => {
    const { gateway, upstream } = await inFront(t, async (socket) => {
      await send(socket, bytes)
      if (name === 'headCutShort') socket.end()
    })
    for (let i = 1; i <= 2; i++) {
      const got = await rawRequest(gateway.port, get)
      const reason = name === 'headCutShort' ? 'connection_reset' : 'response_invalid'
      assertRefused(got, 502, reason, upstream.port)
      assert.equal(got.ended, 'open', 'the client\'s connection stays')
      await gateway.left({ counted: 'failure', status: 502, reason })
      assert.equal(upstream.connections, i)
    }
  })
}

for (const [name, bytes] of Object.entries(invalidChunks)) {
  test(`a body with broken chunks (${name}) never becomes a whole answer`, async (t) => {
    const { gateway } = await inFront(t, answering(bytes))
    const got = await rawRequest(gateway.port, get)
    // The head and the first piece may come with the fault: then it is refused, else cut.
    if (got.status === 502) assert.equal(got.complete, true)
    else assert.deepEqual([got.status, got.complete, got.ended], [200, false, 'reset'])
    await gateway.left({ counted: 'failure', status: got.status, reason: 'body_truncated' })
  })
}

for (const status of [600, 999]) {
  test(`status ${status} is an invalid answer`, async (t) => {
    const { gateway, upstream } = await inFront(t, answering({ status, reason: 'Odd', headers: [['X-Own', 'yes']], body: 'x'.repeat(1_000_000) }))
    const got = await rawRequest(gateway.port, get)
    assertRefused(got, 502, 'response_invalid', upstream.port)
    await gateway.left({ counted: 'failure', status: 502, reason: 'response_invalid' })
  })
}

for (const oneField of [true, false]) {
  test(`a head just below 64 KiB passes, one above is invalid (${oneField ? 'one field' : 'many fields'})`, async (t) => {
    const { gateway, upstream } = await inFront(t, answering(hugeHead(60_000, oneField)))
    const fits = await rawRequest(gateway.port, get)
    assert.deepEqual([fits.status, fits.text()], [200, 'hello'])
    await gateway.left({ counted: 'success', status: 200 })
    upstream.handle(answering(hugeHead(70_000, oneField)))
    const got = await rawRequest(gateway.port, get)
    assertRefused(got, 502, 'response_invalid', upstream.port)
    await gateway.left({ counted: 'failure', status: 502, reason: 'response_invalid' })
  })
}

const endings: Record<string, RawHandler> = {
  'a reset before the head': socket => { reset(socket) },
  'a FIN before the head': socket => { socket.end() },
  'a reset in the middle of the head': async socket => {
    await send(socket, 'HTTP/1.1 200 OK\r\nX-Own: yes\r\n')
    setTimeout(() => { reset(socket) }, 10)
  },
  'a FIN in the middle of the head': async socket => {
    await send(socket, 'HTTP/1.1 200 OK\r\nX-Own: yes\r\n')
    socket.end()
  }
}
for (const [name, handler] of Object.entries(endings)) {
  for (const method of ['GET', 'POST']) {
    test(`${name} is answered 502 (${method})`, async (t) => {
      const { gateway, upstream } = await inFront(t, handler)
      const got = await rawRequest(gateway.port, request(method, '/', {}, method === 'POST' ? 'hello' : ''))
      assertRefused(got, 502, 'connection_reset', upstream.port)
      assert.equal(got.ended, 'open')
      await gateway.left({ counted: 'failure', status: 502, reason: 'connection_reset' })
      assert.equal(upstream.requests.length, 1, 'sent once, as the connection was fresh')
    })
  }
}

test('bytes behind a whole answer are not taken for the next one', async (t) => {
  const poison = answer({ body: 'poison' })
  const { gateway, upstream } = await inFront(t, answering(Buffer.concat([answer({ body: 'right' }), poison])))
  for (let i = 1; i <= 3; i++) {
    const got = await rawRequest(gateway.port, get)
    assert.deepEqual([got.status, got.text()], [200, 'right'])
    await gateway.left({ counted: 'success', status: 200, bytes: 5 })
  }
  assert.equal(upstream.requests.length, 3)
})

test('a folded field or a bare carriage return never reaches the client as a line of its own', async (t) => {
  for (const field of ['X-Own: a\r\n b', 'X-Own: a\rX-Injected: b', 'X-Own: a\nX-Injected: b']) {
    const { gateway } = await inFront(t, answering(Buffer.from(`HTTP/1.1 200 OK\r\n${field}\r\nContent-Length: 2\r\n\r\nhi`)))
    const got = await rawRequest(gateway.port, get)
    assert.ok(got.status === 200 || got.status === 502, String(got.status))
    assert.doesNotMatch(got.header('x-own') ?? '', /[\r\n]/)
    await gateway.left(got.status === 200 ? { counted: 'success', status: 200 } : { counted: 'failure', status: 502, reason: 'response_invalid' })
  }
})
