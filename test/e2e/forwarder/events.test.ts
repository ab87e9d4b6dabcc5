/** Event streams through the gateway: at once, for as long as they last, and how they end. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { answer, reset, send, stall, type RawHandler } from '../../support/faulty-upstream.ts'
import { chunk, lastChunk, type FieldList } from '../../support/http-bytes.ts'
import { rawConnect, rawRequest, type RawConnection } from '../../support/raw-client.ts'
import { until, within } from '../../support/wait.ts'
import { inFront, request } from './support.ts'

const events: FieldList = [['Content-Type', 'text/event-stream'], ['Transfer-Encoding', 'chunked']]
const begin = (socket: Socket): Promise<void> => send(socket, answer({ headers: events, framing: 'none' }))
const listen = (headers: Record<string, string> = {}): Buffer => request('GET', '/events', { Accept: 'text/event-stream', ...headers })

/** Begins a stream, hands its connection out, and says no more. */
const begun = (open: Socket[]): RawHandler => async (socket) => {
  await begin(socket)
  open.push(socket)
  await stall(socket)
}

async function listener (port: number): Promise<RawConnection> {
  const client = await rawConnect(port)
  await client.write(listen())
  assert.equal((await client.readHead()).status, 200)
  return client
}

test('no event waits for another one: each arrives before the next is sent', async (t) => {
  let sendNext: () => void = () => {}
  const { gateway } = await inFront(t, async (socket) => {
    await begin(socket)
    for (let i = 0; i < 200 && !socket.destroyed; i++) {
      await send(socket, chunk(`id: ${i}\ndata: x\n\n`))
      await new Promise<void>((resolve) => { sendNext = resolve })
    }
    await send(socket, lastChunk())
  })
  const client = await listener(gateway.port)
  for (let i = 0; i < 200; i++) {
    assert.match((await client.reader.until('\n\n')).toString(), new RegExp(`id: ${i}\n`))
    sendNext()
  }
  await gateway.left({ counted: 'success', status: 200, bytes: bytes => bytes > 200 * 10 })
  client.destroy()
})

test('a client that comes back says where it was', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket, { header }) => {
    await begin(socket)
    await send(socket, chunk(`id: ${Number(header('last-event-id') ?? 0) + 1}\n\n`), lastChunk())
  })
  assert.match((await rawRequest(gateway.port, listen())).text(), /^id: 1\n/)
  assert.match((await rawRequest(gateway.port, listen({ 'Last-Event-ID': '41' }))).text(), /^id: 42\n/)
  assert.equal(upstream.connections, 1, 'a stream that ended well leaves its connection')
})

for (const [name, end, reason] of [
  ['its upstream ends it', (socket: Socket) => { void send(socket, lastChunk()) }, null],
  ['its upstream breaks off', (socket: Socket) => { reset(socket) }, 'body_truncated']
] as const) {
  test(`an event stream has one access line, when it has ended, and that says how: ${name}`, async (t) => {
    const open: Socket[] = []
    const { gateway } = await inFront(t, begun(open))
    const client = await listener(gateway.port)
    await until(() => gateway.breaker().window.total === 1)
    assert.equal(gateway.lines.find('access'), undefined, 'not while it lasts')
    end(open[0] as Socket)
    // It was counted as a success at its head, whatever becomes of it.
    await gateway.left({ counted: 'success', status: 200, reason, error: reason })
    client.destroy()
  })
}

test('each idle event stream holds its place at the gate and at its upstream until it ends', async (t) => {
  const count = 300
  const open: Socket[] = []
  const { gateway } = await inFront(t, begun(open), { shedding: { maxInFlight: count }, pool: { connections: { max: count }, timeouts: { totalMs: 1000 } } })
  const startedAt = performance.now()
  const clients: RawConnection[] = []
  while (clients.length < count) clients.push(...await Promise.all(Array.from({ length: 30 }, () => listener(gateway.port))))
  t.after(() => { for (const client of clients) client.destroy() })
  assert.deepEqual([gateway.app.shedding.view().inFlight, gateway.upstream().inFlight, gateway.upstream().busyConnections], [count, count, count])
  assert.equal((await rawRequest(gateway.port, listen())).status, 503)
  clients.pop()?.destroy()
  await until(() => gateway.app.shedding.view().inFlight === count - 1 && gateway.upstream().busyConnections === count - 1)
  clients.push(await listener(gateway.port))
  await until(() => performance.now() - startedAt > 1200)
  assert.deepEqual([gateway.app.shedding.view().inFlight, gateway.lines.all(line => line['reason'] === 'deadline_exceeded').length], [count, 0])
})

test('a reload leaves event streams alone, also where their upstream has left', async (t) => {
  const open: Socket[] = []
  const { gateway } = await inFront(t, begun(open))
  const { gateway: other } = await inFront(t, begun([]))
  const client = await listener(gateway.port)
  const before = gateway.upstream()
  const verdict = await gateway.app.configuration.apply({
    admin: { enabled: false },
    shedding: { pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 } },
    pools: { shop: { health: { enabled: false }, upstreams: [{ url: `http://127.0.0.1:${other.port}` }] } }
  })
  assert.ok(verdict.valid)
  await until(() => gateway.upstream().id !== before.id)
  await send(open[0] as Socket, chunk('data: still here\n\n'))
  await client.reader.until('still here\n\n')
  assert.equal(before.inFlight, 1)
  client.destroy()
  await until(() => before.inFlight === 0)
})

test('while draining an event stream goes on within the grace, and a stop waits for its end', async (t) => {
  const open: Socket[] = []
  const { gateway } = await inFront(t, begun(open), { server: { shutdown: { graceMs: 10_000 } } })
  const client = await listener(gateway.port)
  const closed = gateway.close()
  await until(() => gateway.app.lifecycle.phase === 'draining')
  await send(open[0] as Socket, chunk('data: still here\n\n'))
  await client.reader.until('still here\n\n')
  await send(open[0] as Socket, lastChunk())
  await within(closed)
  assert.deepEqual(gateway.lines.all('access').map(({ status, reason }) => [status, reason]), [[200, null]])
})

test('an event stream that is still open at the end of the grace is cut, and its line says that we did', async (t) => {
  const { gateway, upstream } = await inFront(t, begun([]), { server: { shutdown: { graceMs: 150 } } })
  const client = await listener(gateway.port)
  await assert.rejects(within(gateway.close()), { code: 'BREAKWATER_SHUTDOWN_INCOMPLETE' })
  assert.notEqual(await client.closed, 'timeout')
  await until(() => upstream.open.size === 0)
  assert.deepEqual(gateway.lines.all('access').map(({ status, reason }) => [status, reason]), [[200, 'draining']])
})
