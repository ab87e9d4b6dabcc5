import { deepEqual, equal, ok } from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { answer, rawUpstream, send, stall, type RawHandler } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway, type GatewayOptions } from '../../support/gateway.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { frame, handshake, rawTunnel, switched, switching } from './support.ts'

async function behind (t: TestContext, handler: RawHandler, options: GatewayOptions = {}, allowHalfOpen = false) {
  const upstream = await rawUpstream(handler, { allowHalfOpen })
  t.after(() => upstream.close())
  const gateway: Gateway = await startGateway(t, { upstreams: [upstream.url], ...options })
  return { upstream, gateway }
}

/** A close frame of a server. */
const goodbye = Buffer.of(0x88, 2, 3, 0xe8)

test('what the client sends with its handshake arrives, once the upstream has switched', async (t) => {
  let switchNow = (): void => {}
  const held = new Promise<void>((resolve) => { switchNow = resolve })
  const got: Buffer[] = []
  let early = -1
  const { gateway, upstream } = await behind(t, async (socket, request) => {
    socket.on('data', (chunk: Buffer) => { got.push(chunk) })
    await held
    early = Buffer.concat(got).length
    await send(socket, switching)
    await request.body()
    return stall(socket)
  })
  const client = await rawConnect(gateway.port)
  t.after(() => { client.destroy() })
  await client.write(`${handshake()}EARLY`)
  await until(() => upstream.requests.length === 1)
  await client.write('-LATER')
  switchNow()
  equal((await client.readHead()).status, 101)
  await until(() => Buffer.concat(got).toString().endsWith('EARLY-LATER'))
  equal(early, 0, 'nothing behind the head before the 101')
  client.destroy()
  await gateway.idle()
})

test('what the upstream sends with its 101 arrives', async (t) => {
  const { gateway } = await behind(t, switched((socket) => stall(socket), `${switching}EARLY`))
  const client = await rawTunnel(t, gateway)
  equal((await client.readBytes(5)).toString(), 'EARLY')
  client.destroy()
  await gateway.idle()
})

test('one side may end and still be sent to, whichever it is', async (t) => {
  const { gateway } = await behind(t, switched(async (socket: Socket) => {
    await new Promise((resolve) => { socket.once('end', resolve) })
    await send(socket, 'after the end')
    socket.end(goodbye)
  }), {}, true)
  const client = await rawTunnel(t, gateway, handshake(), { allowHalfOpen: true })
  client.end()
  equal((await client.readAll()).subarray(0, 13).toString(), 'after the end')
  const line = await gateway.left({ counted: 'success', status: 101, reason: 'client_cancelled', bytes: 17 })
  equal(line['bytes_in'], 0)

  const got: Buffer[] = []
  const other = await behind(t, switched(async (socket) => {
    socket.on('data', (chunk: Buffer) => { got.push(chunk) })
    socket.end(goodbye)
    await stall(socket)
  }), {}, true)
  const second = await rawTunnel(t, other.gateway, handshake(), { allowHalfOpen: true })
  equal(await second.closed, 'fin')
  await second.write('still here')
  await until(() => Buffer.concat(got).toString().endsWith('still here'))
  second.end()
  await other.gateway.left({ counted: 'success', status: 101, reason: null, bytes: 4 })
})

test('without a 101 nothing is passed on: the bytes behind the handshake are nobody\'s', async (t) => {
  const { gateway, upstream } = await behind(t, (socket) => send(socket, answer({ status: 200, body: 'no' })))
  const { status, text, header, responses, ended } = await rawRequest(gateway.port, [`${handshake()}GET /smuggled HTTP/1.1\r\nHost: shop\r\n\r\n`])
  deepEqual([status, text(), header('connection'), responses.length, ended], [200, 'no', 'close', 1, 'fin'])
  equal(upstream.requests.length, 1)
  await gateway.left({ counted: 'success', status: 200, bytes: 2 })
})

const others: Array<[string, string]> = [
  ['h2c', 'GET / HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n'],
  ['h2c with a body', 'POST / HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\nhello'],
  ['a WebSocket by POST', 'POST / HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\nhello'],
  ['a WebSocket by HTTP/1.0', 'GET / HTTP/1.0\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
  ['one of two protocols', 'GET / HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: h2c, websocket\r\n\r\n'],
  ['a WebSocket that the connection does not name', 'GET / HTTP/1.1\r\nHost: shop\r\nUpgrade: websocket\r\n\r\n']
]

for (const [what, bytes] of others) {
  test(`a request for ${what} is a request like any`, async (t) => {
    const { gateway, upstream } = await behind(t, async (socket, { body }) => send(socket, answer({ body: (await body()).body })))
    const { status, text } = await rawRequest(gateway.port, [bytes])
    deepEqual([status, text()], [200, bytes.includes('hello') ? 'hello' : ''])
    const [request] = upstream.requests
    deepEqual([request?.header('upgrade'), request?.header('http2-settings')], [undefined, undefined])
    ok(!(request?.header('connection') ?? '').toLowerCase().includes('upgrade'))
  })
}

const wrong: Array<[string, string]> = [
  ['switches to another protocol', 'HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nbytes'],
  ['switches to nothing', 'HTTP/1.1 101 Switching\r\n\r\n'],
  ['switches to two protocols', 'HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket, foo\r\n\r\nbytes']
]

for (const [what, head] of wrong) {
  test(`an upstream that ${what} has answered wrong`, async (t) => {
    const { gateway } = await behind(t, switched((socket) => stall(socket), head))
    const { status, json } = await rawRequest(gateway.port, [handshake()])
    deepEqual([status, (json() as { reason: string }).reason], [502, 'response_invalid'])
    await gateway.left({ counted: 'failure', status: 502, reason: 'response_invalid' })
  })
}

test('a 101 that nobody asked for is an invalid answer', async (t) => {
  for (const head of [switching, 'HTTP/1.1 101 Switching\r\n\r\n']) {
    const { gateway } = await behind(t, switched((socket) => stall(socket), head))
    equal((await rawRequest(gateway.port, ['GET / HTTP/1.1\r\nHost: shop\r\n\r\n'])).status, 502)
    await gateway.left({ counted: 'failure', status: 502, reason: 'response_invalid' })
  }
})

test('a client that leaves during the handshake is cancelled, and the upstream let go', async (t) => {
  for (const how of ['reset', 'end'] as const) {
    const { gateway, upstream } = await behind(t, (socket) => stall(socket))
    const client = await rawConnect(gateway.port)
    await client.write(handshake())
    await until(() => upstream.requests.length === 1)
    client[how]()
    await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled' })
    await until(() => upstream.open.size === 0)
    client.destroy()
  }
})

test('an upstream that breaks off in the middle ends the tunnel, and the line tells', async (t) => {
  for (const how of ['reset', 'fin'] as const) {
    const { gateway } = await behind(t, switched(async (socket) => {
      await send(socket, frame('hi'))
      if (how === 'fin') socket.end()
      else setTimeout(() => { socket.resetAndDestroy() }, 20)
    }))
    const client = await rawTunnel(t, gateway)
    deepEqual(await client.readAll(), frame('hi'))
    await gateway.left({ counted: 'success', status: 101, reason: 'body_truncated', bytes: 4 })
  }
})

test('a client that breaks off ends the tunnel, and the upstream is told', async (t) => {
  const { gateway, upstream } = await behind(t, switched((socket) => stall(socket)))
  const client = await rawTunnel(t, gateway)
  client.reset()
  await gateway.left({ counted: 'success', status: 101, reason: 'client_cancelled', bytes: 0 })
  await until(() => upstream.open.size === 0)
})

test('a client that does not read makes the upstream wait, and what waits is little', async (t) => {
  let sent = 0
  let blocked = false
  const chunk = Buffer.alloc(65536, 1)
  const total = 64 * 1024 * 1024
  const { gateway } = await behind(t, switched((socket) => {
    const fill = (): void => {
      while (sent < total && socket.write(chunk)) sent += chunk.length
      blocked = sent < total
    }
    socket.on('drain', fill)
    fill()
    return stall(socket)
  }))
  const client = await rawConnect(gateway.port)
  t.after(() => { client.destroy() })
  await client.write(handshake())
  client.socket.pause()
  let before = -1
  await until(() => {
    const still = blocked && sent === before
    before = sent
    return still
  }, { intervalMs: 200 })
  ok(sent < total / 2, `${sent} bytes were taken`)
  client.reset()
  await gateway.idle()
})

test('a handshake behind another request is answered in its turn', async (t) => {
  let answerNow = (): void => {}
  const held = new Promise<void>((resolve) => { answerNow = resolve })
  const { gateway, upstream } = await behind(t, async (socket, { target }) => {
    if (target === '/first') {
      await held
      return send(socket, answer({ body: 'first' }))
    }
    await send(socket, switching)
    await send(socket, frame('hi'))
    return stall(socket)
  })
  const client = await rawConnect(gateway.port)
  t.after(() => { client.destroy() })
  await client.write(`GET /first HTTP/1.1\r\nHost: shop\r\n\r\n${handshake('/second')}`)
  await until(() => upstream.requests.length === 1)
  answerNow()
  equal((await client.readResponse()).text(), 'first')
  equal((await client.readHead()).status, 101)
  deepEqual(await client.readBytes(4), frame('hi'))
})
