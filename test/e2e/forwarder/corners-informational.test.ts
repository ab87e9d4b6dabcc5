import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, answering, send } from '../../support/faulty-upstream.ts'
import { toBytes } from '../../support/http-bytes.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { continue100, earlyHints103 } from '../../support/strange-answers.ts'
import { inFront, request } from './support.ts'

const hello = answer({ body: 'hello' })
const interim = (status: number, ...fields: string[]): Buffer => toBytes([`HTTP/1.1 ${status} Interim`, ...fields, '', ''].join('\r\n'))

const ignored: Record<string, Buffer> = {
  '100': continue100,
  'two 100': Buffer.concat([continue100, continue100]),
  '100 with fields': interim(100, 'X-A: 1'),
  '102': interim(102),
  '104, which nobody knows': interim(104, 'Upload-Resumption-Supported: 1'),
  '199': interim(199),
  '103 without a link': interim(103, 'X-A: 1'),
  '100, 102 and 100': Buffer.concat([continue100, interim(102), continue100])
}
for (const [name, bytes] of Object.entries(ignored)) {
  for (const together of [true, false]) {
    test(`an upstream's ${name} that nobody asked for is left out, and the answer behind it passes (${together ? 'with it' : 'later'})`, async (t) => {
      const { gateway, upstream } = await inFront(t, async (socket, { body }) => {
        await body()
        if (together) return send(socket, bytes, hello)
        for (let i = 0; i < bytes.length; i += 7) {
          await send(socket, bytes.subarray(i, i + 7))
          await new Promise((resolve) => { setImmediate(resolve) })
        }
        await send(socket, hello)
      })
      for (const asked of [request(), request('POST', '/', {}, 'body'), request()]) {
        const got = await rawRequest(gateway.port, asked)
        assert.deepEqual([got.interim, got.status, got.text(), got.header('x-a')], [[], 200, 'hello', undefined])
        await gateway.left({ counted: 'success', status: 200, bytes: 5 })
      }
      assert.equal(upstream.connections, 1)
    })
  }
}

test('a 100 in the place of an answer is none: the upstream that ends behind it has not answered', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    await send(socket, continue100)
    socket.end()
  })
  const got = await rawRequest(gateway.port, request('POST', '/', {}, 'body'))
  assert.equal(got.status, 502)
  await gateway.left({ counted: 'failure', status: 502, reason: 'connection_reset' })
})

test('several 103 pass, each in its turn, also between others', async (t) => {
  const { gateway } = await inFront(t, async (socket) => {
    for (const name of ['a', 'b', 'c']) {
      await send(socket, interim(103, `Link: </${name}.css>; rel=preload`, `Link: </${name}.js>; rel=preload`, 'Set-Cookie: a=1', 'X-A: 1'), interim(102))
      await new Promise((resolve) => { setTimeout(resolve, 10) })
    }
    await send(socket, continue100, hello)
  })
  const got = await rawRequest(gateway.port, request())
  assert.deepEqual([got.status, got.text()], [200, 'hello'])
  assert.deepEqual(got.interim.map(({ status, headers }) => [status, headers.map(([name, value]) => `${name}: ${value}`)]),
    ['a', 'b', 'c'].map((name) => [103, [`Link: </${name}.css>; rel=preload, </${name}.js>; rel=preload`]]))
})

test('a 103 to a request with a body that is still being sent does not end the upload', async (t) => {
  const { gateway } = await inFront(t, async (socket, { body }) => {
    await send(socket, earlyHints103)
    const { body: bytes } = await body()
    await send(socket, answer({ body: bytes }))
  })
  const got = await rawRequest(gateway.port, [request('POST', '/', { 'Content-Length': '10' }), 'hello', 50, 'world'])
  assert.deepEqual([got.interim.map(({ status }) => status), got.status, got.text()], [[103], 200, 'helloworld'])
})

for (const [name, fields] of Object.entries({ 'to websocket': ['Upgrade: websocket', 'Connection: Upgrade'], 'to nothing': [], 'to h2c': ['Upgrade: h2c', 'Connection: Upgrade'] })) {
  test(`a switch ${name} that nobody asked for is an invalid answer`, async (t) => {
    const { gateway } = await inFront(t, answering(Buffer.concat([interim(101, ...fields), hello])))
    const got = await rawRequest(gateway.port, request())
    assert.deepEqual([got.status, got.responses.length], [502, 1])
    await gateway.left({ counted: 'failure', status: 502, reason: 'response_invalid' })
  })
}

test('the upstream\'s own 100 does not answer a client that asked first: ours does, once', async (t) => {
  const { gateway } = await inFront(t, async (socket, { body }) => {
    await send(socket, continue100)
    const { body: bytes } = await body()
    await send(socket, continue100, answer({ body: bytes }))
  })
  const got = await rawRequest(gateway.port, [request('POST', '/', { 'Content-Length': '5', 'Expect': '100-continue' }), 100, 'hello'])
  assert.deepEqual([got.interim.map(({ status }) => status), got.status, got.text()], [[100], 200, 'hello'])
})
