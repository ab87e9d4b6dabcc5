import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { answer, rawUpstream, stall, send, reset } from '../../support/faulty-upstream.ts'
import { startGateway } from '../../support/gateway.ts'
import { closedPort } from '../../support/ports.ts'
import { rawConnect } from '../../support/raw-client.ts'
import { until, within } from '../../support/wait.ts'
import { closing, connected, frame, handshake, inFrontOf, next, rawTunnel, refused, switched, webSockets } from './support.ts'

const reasonOf = ({ body }: { body: string }): unknown => (JSON.parse(body) as { reason: unknown }).reason

test('a WebSocket holds its place at the gate until it ends', async (t) => {
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream, { shedding: { maxInFlight: 1 } })
  const socket = await connected(t, gateway)
  const refusal = await refused(gateway)
  deepEqual([refusal.status, reasonOf(refusal)], [503, 'shed_capacity'])
  ok(refusal.headers['retry-after'] !== undefined)
  equal(upstream.handshakes.length, 1)
  socket.close()
  await closing(socket)
  await gateway.idle()
  await connected(t, gateway)
})

test('it holds a place at its upstream, and one of its connections', async (t) => {
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream, { pool: { maxInFlightPerUpstream: 1 } })
  await connected(t, gateway)
  deepEqual([gateway.upstream().inFlight, gateway.upstream().busyConnections], [1, 1])
  const refusal = await refused(gateway)
  deepEqual([refusal.status, reasonOf(refusal)], [503, 'upstream_capacity'])
})

test('handshakes that fail open the breaker, and none is sent while it is open', async (t) => {
  const upstream = await rawUpstream((socket) => { reset(socket) })
  t.after(() => upstream.close())
  const gateway = await startGateway(t, { upstreams: [upstream.url], pool: { breaker: { consecutiveFailures: 2 } } })
  deepEqual([reasonOf(await refused(gateway)), reasonOf(await refused(gateway))], ['connection_reset', 'connection_reset'])
  equal(reasonOf(await refused(gateway)), 'breaker_open')
  equal(upstream.requests.length, 2)
})

test('a handshake that could not be sent is tried at another upstream', async (t) => {
  const upstream = await webSockets(t)
  const nobody = `http://127.0.0.1:${await closedPort(t)}`
  const gateway = await startGateway(t, { upstreams: [nobody, upstream.url], pool: { retry: { retries: 1 } } })
  // Whoever is asked first the first time is not asked first the second time.
  for (let i = 0; i < 2; i++) {
    const socket = await connected(t, gateway)
    socket.send('hi')
    equal(String((await next(socket)).data), 'hi')
    const ended = closing(socket)
    socket.close()
    await ended
  }
  await until(() => gateway.lines.all('access').length === 2)
  const lines = gateway.lines.all('access')
  ok(lines.some(({ attempts }) => attempts === 2))
  ok(lines.every((line) => line['status'] === 101 && line['reason'] === null && line['upstream'] === upstream.url.slice(7)))
})

test('neither the limits of time nor of silence for answers cut a WebSocket', async (t) => {
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream, { pool: { timeouts: { headersMs: 100, bodyIdleMs: 100, totalMs: 100 } }, server: { requestTimeoutMs: 100, keepAliveTimeoutMs: 100 } })
  const socket = await connected(t, gateway)
  await new Promise((resolve) => { setTimeout(resolve, 500) })
  socket.send('hi')
  equal(String((await next(socket)).data), 'hi')
})

test('a silent handshake is cut by headersMs', async (t) => {
  const upstream = await rawUpstream((socket) => stall(socket))
  t.after(() => upstream.close())
  const gateway = await startGateway(t, { upstreams: [upstream.url], pool: { timeouts: { headersMs: 50 } } })
  const refusal = await refused(gateway)
  deepEqual([refusal.status, reasonOf(refusal)], [504, 'headers_timeout'])
})

test('a WebSocket in which nothing passes for upgradeIdleMs is closed on both sides', async (t) => {
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream, { routes: [{ path: '/*', pool: 'shop', upgradeIdleMs: 200 }] })
  const socket = await connected(t, gateway)
  const there = closing(upstream.sockets[0] as never)
  const here = closing(socket)
  for (let i = 0; i < 6; i++) {
    socket.send('busy')
    await next(socket)
    await new Promise((resolve) => { setTimeout(resolve, 50) })
  }
  equal((await within(here)).code, 1001)
  equal((await within(there)).code, 1001)
  await gateway.left({ counted: 'success', status: 101, reason: 'tunnel_idle_timeout' })
})

test('a drain closes WebSockets with 1001 on both sides, and is complete', async (t) => {
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream, { server: { shutdown: { graceMs: 5000 } } })
  const socket = await connected(t, gateway)
  const [here, there] = [closing(socket), closing(upstream.sockets[0] as never)]
  await within(gateway.close())
  deepEqual([(await here).code, (await there).code], [1001, 1001])
  equal(gateway.lines.find('shutdown_incomplete'), undefined)
  const line = gateway.lines.find('access')
  deepEqual([line?.['status'], line?.['reason']], [101, 'draining'])
})

test('on a drain a frame that is under way comes whole before the goodbye', async (t) => {
  let go = (): void => {}
  const more = new Promise<void>((resolve) => { go = resolve })
  const upstream = await rawUpstream(switched(async (socket) => {
    await send(socket, frame('hello').subarray(0, 4))
    await more
    await send(socket, Buffer.concat([frame('hello').subarray(4), frame('not any more')]))
    await stall(socket)
  }))
  t.after(() => upstream.close())
  const gateway = await startGateway(t, { upstreams: [upstream.url], server: { shutdown: { graceMs: 5000 } } })
  const client = await rawTunnel(t, gateway)
  deepEqual(await client.readBytes(4), frame('hello').subarray(0, 4))
  const closed = gateway.close()
  await until(() => gateway.app.lifecycle.phase === 'draining')
  await new Promise((resolve) => { setTimeout(resolve, 100) })
  go()
  deepEqual(await client.readAll(), Buffer.concat([frame('hello').subarray(4), Buffer.of(0x88, 2, 0x03, 0xe9)]))
  await within(closed)
})

test('a frame that never ends is cut at the end of the grace, which is incomplete then', async (t) => {
  const upstream = await rawUpstream(switched(async (socket) => {
    await send(socket, frame('hello').subarray(0, 4))
    await stall(socket)
  }))
  t.after(() => upstream.close())
  const gateway = await startGateway(t, { upstreams: [upstream.url], server: { shutdown: { graceMs: 300 } } })
  const client = await rawTunnel(t, gateway)
  await client.readBytes(4)
  const told: unknown[] = []
  gateway.app.events.subscribe(({ type, open, graceMs }) => { if (type === 'shutdown_incomplete') told.push([open, graceMs]) })
  const error = await within(gateway.close().then(() => null, (failed: Error) => failed))
  ok(error !== null && 'code' in error && error.code === 'BREAKWATER_SHUTDOWN_INCOMPLETE')
  equal(gateway.lines.find('shutdown_incomplete')?.['open'], 1)
  deepEqual(told, [[1, 300]])
})

test('a handshake while draining is refused', async (t) => {
  let answerNow = (): void => {}
  const held = new Promise<void>((resolve) => { answerNow = resolve })
  const upstream = await rawUpstream(async (socket) => {
    await held
    await send(socket, answer({ body: 'first' }))
  })
  t.after(() => upstream.close())
  const gateway = await startGateway(t, { upstreams: [upstream.url] })
  const client = await rawConnect(gateway.port)
  t.after(() => { client.destroy() })
  await client.write('GET /first HTTP/1.1\r\nHost: shop\r\n\r\n')
  await until(() => upstream.requests.length === 1)
  const closed = gateway.close()
  await until(() => gateway.app.lifecycle.phase === 'draining')
  await client.write(handshake())
  await until(() => gateway.app.server.listenerCount('upgrade') === 1)
  answerNow()
  equal((await client.readResponse()).text(), 'first')
  const second = await client.readResponse()
  deepEqual([second.status, (second.json() as { reason: string }).reason], [503, 'draining'])
  await within(closed)
  equal(upstream.requests.length, 1)
})

test('a reload leaves WebSockets alone, even where their upstream goes', async (t) => {
  const [first, second] = [await webSockets(t), await webSockets(t)]
  const gateway = await inFrontOf(t, first)
  const socket = await connected(t, gateway)
  const { current } = gateway.app.configuration
  const pool = current.pools['shop']
  const verdict = await gateway.app.configuration.apply({ ...current, pools: { shop: { ...pool, upstreams: [{ url: second.url }] } } })
  ok(verdict.valid, JSON.stringify(verdict))
  socket.send('still there')
  equal(String((await next(socket)).data), 'still there')
  const other = await connected(t, gateway)
  equal(second.handshakes.length, 1)
  for (const each of [socket, other]) {
    const ended = closing(each)
    each.close()
    await ended
  }
  await gateway.idle()
})
