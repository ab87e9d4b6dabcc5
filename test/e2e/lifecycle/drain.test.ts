import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import type { AddressInfo } from 'node:net'
import { setTimeout as later } from 'node:timers/promises'
import Fastify from 'fastify'
import lifecycle from '../../../plugins/lifecycle.ts'
import readiness from '../../../plugins/readiness.ts'
import upstreamPools from '../../../plugins/upstream-pools.ts'
import probes from '../../../routes/probes.ts'
import { answer, partOfBody, send, stall } from '../../support/faulty-upstream.ts'
import { codeOf, codes, flags, frameClient, headers, requestFields, settings } from '../../support/http2-frames.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until, within } from '../../support/wait.ts'
import { head, startBoth } from '../edge/support.ts'
import { Folder } from '../listener/support.ts'

const get = (path: string): string => head(`GET ${path} HTTP/1.1`, 'Host: shop')

test('a request on a kept connection after the listener closed is refused as draining, and the connection closed', async (t) => {
  let answerNow = (): void => {}
  const asked = new Promise<void>((resolve) => { answerNow = resolve })
  const gateway = await startBoth(t, {}, async (socket) => {
    await asked
    await send(socket, answer({ body: 'first' }))
  })
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  await client.write(get('/1'))
  await until(() => gateway.behind.requests.length === 1)
  const closed = gateway.close()
  await until(() => gateway.app.lifecycle.phase === 'draining')
  const arrived = once(gateway.app.server, 'request')
  await client.write(get('/2'))
  await arrived
  answerNow()
  const first = await client.readResponse()
  assert.deepEqual([first.status, first.text()], [200, 'first'])
  const second = await client.readResponse()
  assert.deepEqual([second.status, (second.json() as { reason: string }).reason, second.header('connection')], [503, 'draining', 'close'])
  assert.match(second.header('retry-after') ?? '', /^[1-9][0-9]*$/)
  assert.equal(await client.closed, 'fin')
  await within(closed)
  assert.deepEqual(gateway.lines.all('access').map(({ path, status, reason }) => [path, status, reason]), [['/1', 200, null], ['/2', 503, 'draining']])
  assert.equal(gateway.behind.requests.length, 1)
})

test('probes are answered to the end: alive, but not ready', async (t) => {
  let answerNow = (): void => {}
  const asked = new Promise<void>((resolve) => { answerNow = resolve })
  const gateway = await startBoth(t, {}, async (socket) => {
    await asked
    await send(socket, answer({ body: 'first' }))
  })
  const clients = await Promise.all([rawConnect(gateway.port), rawConnect(gateway.port)])
  for (const client of clients) {
    t.after(() => client.destroy())
    await client.write(get('/1'))
  }
  await until(() => gateway.behind.requests.length === 2)
  const closed = gateway.close()
  await until(() => gateway.app.lifecycle.phase === 'draining')
  for (const [index, path] of ['/livez', '/readyz'].entries()) {
    const arrived = once(gateway.app.server, 'request')
    await clients[index]?.write(get(path))
    await arrived
  }
  answerNow()
  const [live, ready] = clients
  for (const client of [live, ready]) assert.equal((await client.readResponse()).status, 200)
  assert.equal((await live.readResponse()).status, 204)
  const notReady = await ready.readResponse()
  assert.deepEqual([notReady.status, (notReady.json() as { reason: string }).reason], [503, 'draining'])
  await within(closed)
})

test('a head that was half sent when the stop began may still be completed, in time', async (t) => {
  let answerNow = (): void => {}
  const asked = new Promise<void>((resolve) => { answerNow = resolve })
  const gateway = await startBoth(t, {}, async (socket) => {
    await asked
    await send(socket, answer({ body: 'x' }))
  })
  const busy = await rawConnect(gateway.port)
  t.after(() => busy.destroy())
  await busy.write(get('/busy'))
  await until(() => gateway.behind.requests.length === 1)
  const half = await rawConnect(gateway.port)
  t.after(() => half.destroy())
  await half.write('GET /half HTTP/1.1\r\n')
  // Its bytes have arrived once those of a later connection were served.
  assert.equal((await rawRequest(gateway.port, get('/livez'))).status, 204)
  const closed = gateway.close()
  await until(() => gateway.app.lifecycle.phase === 'draining')
  await half.write('Host: shop\r\n\r\n')
  assert.equal((await half.readResponse()).status, 503)
  answerNow()
  await within(closed)
})

test('a head of which nothing more comes does not hold the stop up until the end of the grace', async (t) => {
  const gateway = await startBoth(t, { server: { shutdown: { graceMs: 30000 } } })
  const half = await rawConnect(gateway.port)
  t.after(() => half.destroy())
  await half.write('GET /half HTTP/1.1\r\n')
  assert.equal((await rawRequest(gateway.port, get('/livez'))).status, 204)
  await within(gateway.close(), { timeoutMs: 20000 })
  assert.equal(await half.closed, 'fin')
})

test('the plugin works alone, on both servers that Fastify opens for "localhost"', async (t) => {
  let answerNow = (): void => {}
  const asked = new Promise<void>((resolve) => { answerNow = resolve })
  const app = Fastify({ return503OnClosing: false })
  t.after(() => app.close())
  await app.register(lifecycle, { graceMs: 10000 })
  app.get('/work', async () => {
    await asked
    return 'done'
  })
  app.get('/quick', async () => 'quick')
  await app.listen({ port: 0 })
  const { port } = app.server.address() as AddressInfo
  const opened = await Promise.all(['127.0.0.1', '::1'].map((host) => rawConnect(port, { host }).catch(() => null)))
  const clients = opened.filter((client) => client !== null)
  for (const client of clients) {
    t.after(() => client.destroy())
    await client.write(get('/quick'))
    assert.equal((await client.readResponse()).text(), 'quick')
    await client.write(get('/work'))
  }
  assert.equal((await rawRequest(port, get('/quick'))).text(), 'quick')
  const closed = app.close()
  await until(() => app.lifecycle.phase === 'draining')
  // Two sweeps and more: nobody who waits for an answer is closed, on neither server.
  await new Promise((resolve) => { setTimeout(resolve, 150) })
  assert.equal(await Promise.race([closed, 'not yet']), 'not yet')
  answerNow()
  for (const client of clients) {
    assert.equal((await client.readResponse()).text(), 'done')
    assert.equal(await client.closed, 'fin')
  }
  await within(closed)
})

test('what is still open at the end of the grace is cut, and close() tells', async () => {
  const app = Fastify({ return503OnClosing: false })
  await app.register(lifecycle, { graceMs: 100 })
  app.get('/never', () => new Promise(() => {}))
  await app.listen({ port: 0, host: '127.0.0.1' })
  const client = await rawConnect((app.server.address() as AddressInfo).port)
  await client.write(get('/never'))
  await rawRequest((app.server.address() as AddressInfo).port, get('/other'))
  await assert.rejects(within(app.close()), { code: 'BREAKWATER_SHUTDOWN_INCOMPLETE' })
  assert.notEqual(await client.closed, 'timeout')
})

test('what the end of the grace cuts is logged as ours: 503 where nothing was sent, else the status that was', async (t) => {
  const gateway = await startBoth(t, { server: { shutdown: { graceMs: 150 } } }, (socket, { target }) => target === '/half' ? partOfBody(socket, { ending: 'stall' }) : stall(socket))
  const clients = await Promise.all([rawConnect(gateway.port), rawConnect(gateway.port)])
  const [first, second] = clients
  for (const client of clients) t.after(() => client.destroy())
  await first.write(get('/half'))
  assert.equal((await first.readHead()).status, 200)
  // Of pipelined requests each is told of, the one in front too.
  await second.write(get('/a') + get('/b') + get('/c'))
  await until(() => gateway.behind.requests.length === 4)
  await assert.rejects(within(gateway.close()), { code: 'BREAKWATER_SHUTDOWN_INCOMPLETE' })
  await until(() => gateway.lines.all('access').length === 4)
  assert.deepEqual(gateway.lines.all('access').map(({ path, status, reason }) => [path, status, reason]).toSorted(),
    [['/a', 503, 'draining'], ['/b', 503, 'draining'], ['/c', 503, 'draining'], ['/half', 200, 'draining']])
  assert.deepEqual(gateway.app.breakers.snapshots().map(({ window }) => window.total), [0])
})

test('what the end of the grace cuts is taken for whole by nobody, even where only the end of the connection ends it', async (t) => {
  const gateway = await startBoth(t, { server: { shutdown: { graceMs: 100 } } }, async (socket) => {
    await send(socket, 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
    await stall(socket)
  })
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  await client.write(head('GET /log HTTP/1.0', 'Host: shop'))
  await until(() => client.reader.received.toString('latin1').endsWith('abc'))
  await assert.rejects(within(gateway.close()), { code: 'BREAKWATER_SHUTDOWN_INCOMPLETE' })
  assert.equal(await client.closed, 'reset')
})

test('nor over HTTP/2, where a stream that is reset without an error has ended well', async (t) => {
  const gateway = await startBoth(t, { server: { tls: { certificates: [new Folder(t).issue('shop.example')] }, shutdown: { graceMs: 100 } } }, async (socket) => {
    await send(socket, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
    while (!socket.destroyed) await Promise.all([send(socket, '1\r\nx\r\n'), later(1)])
  })
  const client = await frameClient(t, gateway.port, Buffer.concat([settings(), ...[1, 3, 5].map((id) => headers(id, requestFields('/log'), true))]), { tls: true })
  await until(() => client.body(1).length > 3)
  await assert.rejects(within(gateway.close()), { code: 'BREAKWATER_SHUTDOWN_INCOMPLETE' })
  await until(() => client.ended)
  assert.deepEqual(client.frames.filter(({ type, flags: set }) => type === 'DATA' && (set & flags.END_STREAM) !== 0), [])
  // Where the connection ends before the reset is written, there is none.
  assert.deepEqual(client.frames.filter((each) => each.type === 'RST_STREAM' && codeOf(each) !== codes.CANCEL), [])
})

test('a client that leaves during the grace is still one that left', async (t) => {
  const gateway = await startBoth(t, {}, stall)
  const client = await rawConnect(gateway.port)
  await client.write(get('/a'))
  await until(() => gateway.behind.requests.length === 1)
  const closed = gateway.close()
  await until(() => gateway.app.lifecycle.phase === 'draining')
  client.destroy()
  await within(closed)
  assert.deepEqual(gateway.lines.all('access').map(({ status, reason }) => [status, reason]), [[499, 'client_cancelled']])
})

test('Retry-After of a draining refusal is spread, so that the refused do not all come back together', async (t) => {
  const app = Fastify({ return503OnClosing: false })
  t.after(() => app.close())
  const drawn = [0, 0.9, 0, 0.9]
  const random = (): number => drawn.shift() ?? 0
  await app.register(lifecycle, { random })
  await app.register(upstreamPools, { pools: { shop: { upstreams: ['http://127.0.0.1:9'] } } })
  await app.register(readiness)
  await app.register(probes, { random })
  let asked = 0
  let release = (): void => {}
  const released = new Promise<string>((resolve) => { release = () => { resolve('held') } })
  app.get('/hold', () => {
    asked++
    return released
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  // The first request keeps each connection open until the second has been refused.
  const paths = ['/readyz', '/readyz', '/a', '/a']
  const clients = await Promise.all(paths.map(() => rawConnect(port)))
  for (const client of clients) {
    t.after(() => client.destroy())
    await client.write(get('/hold'))
  }
  await until(() => asked === 4)
  const closed = app.close()
  await until(() => app.lifecycle.phase === 'draining')
  for (const [index, path] of paths.entries()) {
    await clients[index]?.write(get(path))
    await until(() => drawn.length === 3 - index)
  }
  release()
  for (const [index, client] of clients.entries()) {
    assert.equal((await client.readResponse()).text(), 'held')
    const refused = await client.readResponse()
    assert.deepEqual([refused.status, refused.header('retry-after')], [503, ['1', '2'][index % 2]])
  }
  await within(closed)
})

test('an app that never listened closes at once', async () => {
  const app = Fastify()
  await app.register(lifecycle, {})
  app.get('/a', async () => 'a')
  assert.equal((await app.inject('/a')).body, 'a')
  await within(app.close())
})

test('a connection that cannot be accepted ends nothing but is told of, though not each time', async (t) => {
  const gateway = await startBoth(t)
  const failed = Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' })
  for (let turn = 0; turn < 100; turn++) gateway.app.server.emit('error', failed)
  assert.equal((await rawRequest(gateway.port, get('/a'))).status, 200)
  assert.equal(gateway.lines.all('listener_error').length, 1)
})
