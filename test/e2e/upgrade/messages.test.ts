import { deepEqual, equal, ok } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'node:test'
import { until } from '../../support/wait.ts'
import { closing, connected, echo, inFrontOf, next, refused, webSockets } from './support.ts'

test('messages pass both ways, in any size and in fragments, text and binary', async (t) => {
  const upstream = await webSockets(t, echo, { maxPayload: 32 * 1024 * 1024 })
  const gateway = await inFrontOf(t, upstream)
  const socket = await connected(t, gateway, '/', { maxPayload: 32 * 1024 * 1024 })
  for (const size of [0, 1, 125, 126, 65535, 65536, 16 * 1024 * 1024]) {
    const sent = randomBytes(size)
    socket.send(sent)
    const { data, binary } = await next(socket)
    ok(binary && data.equals(sent), `${size} bytes`)
  }
  socket.send('Grü', { fin: false })
  socket.send('ße', { fin: false })
  socket.send('!', { fin: true })
  deepEqual(String((await next(socket)).data), 'Grüße!')
  socket.close()
  await closing(socket)
  const line = await gateway.left({ counted: 'success', status: 101, bytes: (bytes) => bytes > 16 * 1024 * 1024 })
  ok((line['bytes_in'] as number) > 16 * 1024 * 1024)
})

test('compression is agreed upon end to end', async (t) => {
  const upstream = await webSockets(t, echo, { perMessageDeflate: { threshold: 0 } })
  const gateway = await inFrontOf(t, upstream)
  const socket = await connected(t, gateway, '/', { perMessageDeflate: { threshold: 0 } })
  ok(socket.extensions.includes('permessage-deflate'))
  const text = 'again and '.repeat(10000)
  socket.send(text)
  equal(String((await next(socket)).data), text)
  socket.close()
  await closing(socket)
  await gateway.left({ counted: 'success', status: 101, bytes: (bytes) => bytes < 10000 })
})

test('pings and pongs pass both ways', async (t) => {
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream)
  const socket = await connected(t, gateway)
  socket.ping('one')
  equal(String((await once(socket, 'pong'))[0]), 'one')
  const pinged = once(socket, 'ping')
  const ponged = once(upstream.sockets[0] as NodeJS.EventEmitter, 'pong')
  upstream.sockets[0]?.ping('two')
  equal(String((await pinged)[0]), 'two')
  equal(String((await ponged)[0]), 'two')
})

test('close codes and reasons pass both ways', async (t) => {
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream)
  const first = await connected(t, gateway)
  const there = closing(upstream.sockets[0] as never)
  const here = closing(first)
  first.close(4001, 'enough')
  deepEqual(await there, { code: 4001, reason: 'enough' })
  equal((await here).code, 4001)
  await gateway.left({ counted: 'success', status: 101 })
  const second = await connected(t, gateway)
  const ended = closing(second)
  upstream.sockets[1]?.close(1013, 'later')
  deepEqual(await ended, { code: 1013, reason: 'later' })
  await gateway.left({ counted: 'success', status: 101 })
})

test('the upstream gets the whole handshake, and its choice comes back', async (t) => {
  const upstream = await webSockets(t, echo, { handleProtocols: (protocols) => [...protocols][1] as string })
  const gateway = await inFrontOf(t, upstream, { routes: [{ path: '/api/*', pool: 'shop', stripPrefix: '/api', requestHeaders: { set: { 'x-route': 'yes' } }, responseHeaders: { set: { 'x-answer': 'yes' } } }] })
  const socket = connected(t, gateway, '/api/chat?room=1', {
    origin: 'https://shop.example', headers: { Authorization: 'Bearer abc', Cookie: 'a=1; b=2', 'X-Own': 'mine' }
  }, ['v1.chat', 'v2.chat', 'v3.chat'])
  const { protocol } = await socket
  equal(protocol, 'v2.chat')
  const [request] = upstream.handshakes
  ok(request !== undefined)
  const { headers } = request
  deepEqual([request.url, headers.authorization, headers.cookie, headers.origin, headers['x-own'], headers['sec-websocket-protocol'], headers['x-route']],
    ['/chat?room=1', 'Bearer abc', 'a=1; b=2', 'https://shop.example', 'mine', 'v1.chat,v2.chat,v3.chat', 'yes'])
  ok(headers['sec-websocket-extensions']?.includes('permessage-deflate'))
  deepEqual([headers['x-forwarded-for'], headers['x-forwarded-prefix'], typeof headers['x-request-id']], ['127.0.0.1', '/api', 'string'])
})

test('a refusal comes with its fields and its body', async (t) => {
  const upstream = await webSockets(t, echo, {
    verifyClient: (_info, done) => { done(false, 401, '{"error":"who are you?"}', { 'WWW-Authenticate': 'Bearer' }) }
  })
  const gateway = await inFrontOf(t, upstream)
  const answer = await refused(gateway)
  deepEqual([answer.status, answer.body, answer.headers['www-authenticate'], answer.headers.connection], [401, '{"error":"who are you?"}', 'Bearer', 'close'])
  await gateway.left({ counted: 'success', status: 401, bytes: answer.body.length })
})

test('many WebSockets at once, and each gets what is its own', async (t) => {
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream)
  const sockets = await Promise.all(Array.from({ length: 50 }, () => connected(t, gateway)))
  equal(gateway.upstream().inFlight, 50)
  equal(gateway.app.shedding.view().inFlight, 50)
  await Promise.all(sockets.map(async (socket, index) => {
    for (let i = 0; i < 20; i++) {
      socket.send(`${index}:${i}`)
      equal(String((await next(socket)).data), `${index}:${i}`)
    }
  }))
  for (const socket of sockets) socket.close()
  await until(() => gateway.lines.all('access').length === 50)
  await gateway.idle()
  ok(gateway.lines.all('access').every(({ status, reason }) => status === 101 && reason === null))
})
