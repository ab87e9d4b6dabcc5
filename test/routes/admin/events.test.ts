/** The journal over HTTP, and as a stream. */
import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import eventJournal from '../../../plugins/event-journal.ts'
import { EventStreams, type EventStreamsOptions } from '../../../routes/admin/event-streams.ts'
import adminRoutes from '../../../routes/admin/index.ts'
import { rawConnect, type RawConnection } from '../../support/raw-client.ts'
import { until, within } from '../../support/wait.ts'

async function listening (t: TestContext, capacity = 1000): Promise<{ app: FastifyInstance, port: number }> {
  const app = Fastify()
  t.after(() => app.close())
  await app.register(eventJournal, { capacity })
  await app.register(adminRoutes, { prefix: '/admin', loopbackOnly: true })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { app, port: (app.server.address() as AddressInfo).port }
}

/** A stream that is being read: its text so far. */
async function stream (t: TestContext, port: number, fields = '', query = ''): Promise<{ connection: RawConnection, text: () => string }> {
  const connection = await rawConnect(port)
  t.after(() => connection.destroy())
  await connection.write(`GET /admin/events/stream${query} HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n`)
  const text = (): string => connection.reader.received.toString()
  await until(() => text().includes('\n\n'), { what: 'the first comment' })
  return { connection, text }
}

const idsIn = (text: string): number[] => Array.from(text.matchAll(/^id: (\d+)\n/gm), ([, id]) => Number(id))

test('events are paged by number, oldest first, and a gap shows', async (t) => {
  const { app } = await listening(t, 5)
  assert.deepEqual((await app.inject('/admin/events')).json(), { run: app.events.run, events: [], firstSeq: 1, lastSeq: 0 })
  for (let index = 1; index <= 8; index++) app.events.record('x', { index })
  const page = (await app.inject('/admin/events?since=1&limit=2')).json()
  assert.deepEqual([page.events.map(({ seq, type, index }: Record<string, unknown>) => [seq, type, index]), page.firstSeq, page.lastSeq], [[[4, 'x', 4], [5, 'x', 5]], 4, 8])
  assert.deepEqual((await app.inject('/admin/events?since=7')).json().events, app.events.since(7).events)
})

test('a stream begins with what is kept and goes on with what comes', async (t) => {
  const { app, port } = await listening(t)
  app.events.record('before', { n: 1 })
  const { text } = await stream(t, port)
  assert.match(text(), /^HTTP\/1\.1 200 OK\r\n/)
  assert.match(text(), /content-type: text\/event-stream\r\n/i)
  assert.match(text(), /cache-control: no-store\r\n/i)
  const { seq } = app.events.record('after', { n: 2 })
  await until(() => text().includes(`id: ${seq}\n`))
  for (const event of app.events.since(0).events) assert.ok(text().includes(`id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`), event.type)
})

test('Last-Event-ID goes before since, and what is lost is said', async (t) => {
  const { app, port } = await listening(t, 5)
  for (let index = 0; index < 8; index++) app.events.record('x')
  assert.deepEqual(idsIn((await stream(t, port, '', '?since=6')).text()), [7, 8])
  assert.deepEqual(idsIn((await stream(t, port, 'Last-Event-ID: 7\r\n', '?since=5')).text()), [8])
  const late = (await stream(t, port, 'Last-Event-ID: 1\r\n')).text()
  assert.match(late, /^: events 2 to 3 are no longer kept$/m)
  assert.deepEqual(idsIn(late), [4, 5, 6, 7, 8])
  // An id of an earlier run of the process, which had come further.
  assert.deepEqual(idsIn((await stream(t, port, 'Last-Event-ID: 4711\r\n')).text()), [4, 5, 6, 7, 8])
  const wrong = await app.inject({ url: '/admin/events/stream', headers: { 'last-event-id': 'x' } })
  assert.equal(wrong.statusCode, 400)
})

test('a stream says first which run it is of, and what is lost, without disturbing who only takes events', async (t) => {
  const { app, port } = await listening(t, 5)
  for (let index = 0; index < 8; index++) app.events.record('x')
  const told = async (fields: string): Promise<unknown> => {
    const text = (await stream(t, port, fields)).text()
    const [, data] = /\r\n\r\n[0-9a-f]+\r\nevent: stream\ndata: (.*)\n\n/.exec(text) ?? []
    assert.ok(data !== undefined, text)
    return JSON.parse(data)
  }
  const { run } = app.events
  assert.deepEqual(await told(''), { run, firstSeq: 4, lastSeq: 8, lost: null, restarted: false })
  assert.deepEqual(await told('Last-Event-ID: 1\r\n'), { run, firstSeq: 4, lastSeq: 8, lost: [2, 3], restarted: false })
  // It had come further in an earlier run.
  assert.deepEqual(await told('Last-Event-ID: 4711\r\n'), { run, firstSeq: 4, lastSeq: 8, lost: null, restarted: true })
  await until(() => Date.now() > Date.parse(run))
  assert.notEqual((await listening(t)).app.events.run, run, 'another run of the process has another journal')
})

test('no more than 16 streams are served, and one that ends makes room', async (t) => {
  const { app, port } = await listening(t)
  const streams = await Promise.all(Array.from({ length: 16 }, async () => stream(t, port)))
  const refused = await app.inject('/admin/events/stream')
  assert.deepEqual([refused.statusCode, refused.headers['content-type']], [503, 'application/problem+json'])
  streams[0]?.connection.destroy()
  const { text } = await until(async () => {
    const again = await stream(t, port)
    return again.text().startsWith('HTTP/1.1 200') ? again : null
  })
  app.events.record('x')
  await until(() => idsIn(text()).length === 1)
})

test('open streams do not hold up the close', async (t) => {
  const { app, port } = await listening(t)
  const { connection } = await stream(t, port)
  await within(app.close(), { what: 'the close' })
  await within(connection.closed, { what: 'the end of the stream' })
})

/** Streams on a bare server, with other limits. */
async function bare (t: TestContext, options: EventStreamsOptions): Promise<{ app: FastifyInstance, streams: EventStreams, port: number }> {
  const app = Fastify()
  await app.register(eventJournal)
  const streams = new EventStreams(app.events, options)
  const server = createServer((_request, response: ServerResponse) => { streams.open(response, {}, 0) })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await app.close()
  })
  return { app, streams, port: (server.address() as AddressInfo).port }
}

test('an idle stream gets comments', async (t) => {
  const { port } = await bare(t, { heartbeatMs: 10 })
  const { text } = await stream(t, port)
  await until(() => (text().match(/^:$/gm)?.length ?? 0) >= 2, { what: 'two heartbeats' })
})

test('a client that does not read is dropped, and harms no other', async (t) => {
  const drops: number[] = []
  const { app, streams, port } = await bare(t, { onDrop: () => { drops.push(1) } })
  let last = 0
  const [reading, stuck] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
  for (const socket of [reading, stuck]) {
    t.after(() => socket.destroy())
    socket.on('error', () => {})
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  }
  const ended = once(stuck, 'close')
  reading.on('data', (chunk) => { last = idsIn(chunk.toString()).at(-1) ?? last })
  await until(() => streams.size === 2)
  const text = 'x'.repeat(65536)
  let sent = 0
  // What the system itself buffers on the way comes on top, and is bounded too.
  for (; sent < 1000 && drops.length === 0; sent++) {
    app.events.record('big', { text })
    await until(() => last === sent + 1)
  }
  assert.equal(drops.length, 1)
  assert.equal(streams.size, 1)
  stuck.resume()
  await within(ended, { what: 'the end of the dropped stream' })
  const { seq } = app.events.record('last')
  await until(() => last === seq)
})
