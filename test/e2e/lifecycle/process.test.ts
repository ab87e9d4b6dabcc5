import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { answer, answering, rawUpstream, send, stall, type RawHandler, type RawUpstream } from '../../support/faulty-upstream.ts'
import { chunk, lastChunk } from '../../support/http-bytes.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import type { NodeProcess } from '../../support/process.ts'
import { until, within } from '../../support/wait.ts'
import { head } from '../edge/support.ts'
import { assertCut, connectStuck, endless, stuck } from '../http2/stuck.ts'
import { Folder } from '../listener/support.ts'
import { portOf, spawnApp, type StartOptions } from './support.ts'

const get = head('GET /a HTTP/1.1', 'Host: shop')

async function start (t: TestContext, options: StartOptions = {}, handler: RawHandler = answering({ body: 'hello' })): Promise<{ child: NodeProcess, port: number, behind: RawUpstream }> {
  const behind = await rawUpstream(handler)
  t.after(() => behind.close())
  const child = spawnApp(t, [behind.url], options)
  return { child, port: await portOf(child), behind }
}

async function refusesConnections (port: number): Promise<boolean> {
  return rawRequest(port, head('GET /livez HTTP/1.1', 'Host: shop')).then(({ status }) => status === 0, () => true)
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`after ${signal} idle and never used connections are closed at once, and the exit is clean`, async (t) => {
    const { child, port } = await start(t, { server: { shutdown: { graceMs: 15000 } } })
    const idle = await rawConnect(port)
    await idle.write(get)
    assert.equal((await idle.readResponse()).status, 200)
    const unused = await rawConnect(port)
    const partial = await rawConnect(port)
    await partial.write('GET /half')
    assert.equal((await rawRequest(port, get)).status, 200)
    child.kill(signal)
    assert.deepEqual(await Promise.all([idle.closed, unused.closed, partial.closed]), ['fin', 'fin', 'fin'])
    assert.deepEqual(await child.exit, { code: 0, signal: null })
    assert.equal(child.output.all('shutdown_started').length, 1)
    assert.equal(child.output.find('shutdown_incomplete'), undefined)
    assert.deepEqual(child.errors.lines, [])
  })
}

test('a request that is under way finishes, then the process ends with 0', async (t) => {
  let answerNow = (): void => {}
  const asked = new Promise<void>((resolve) => { answerNow = resolve })
  const { child, port, behind } = await start(t, {}, async (socket) => {
    await send(socket, answer({ headers: [['Transfer-Encoding', 'chunked']], framing: 'none' }), chunk('before '))
    await asked
    await send(socket, chunk('after'), lastChunk())
  })
  const client = await rawConnect(port)
  await client.write(get)
  await until(() => behind.requests.length === 1)
  child.kill()
  await until(() => refusesConnections(port), { what: 'a closed listener' })
  answerNow()
  const response = await client.readResponse()
  assert.deepEqual([response.status, response.text(), response.complete], [200, 'before after', true])
  assert.equal(await client.closed, 'fin')
  assert.deepEqual(await child.exit, { code: 0, signal: null })
  const [line] = child.output.all('access')
  assert.deepEqual([line?.['status'], line?.['bytes'], line?.['reason']], [200, 12, null])
})

test('an upload that is under way finishes too', async (t) => {
  const { child, port, behind } = await start(t, {}, async (socket, request) => {
    const { body } = await request.body()
    await send(socket, answer({ body }))
  })
  const client = await rawConnect(port)
  await client.write(head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 10') + 'hello')
  await until(() => behind.requests.length === 1)
  child.kill()
  await until(() => refusesConnections(port))
  await client.write('world')
  assert.equal((await client.readResponse('POST')).text(), 'helloworld')
  assert.deepEqual(await child.exit, { code: 0, signal: null })
})

test('during the delay all is served while readiness is off; then the listener closes', async (t) => {
  const { child, port } = await start(t, { server: { shutdown: { delayMs: 1500, graceMs: 5000 } } })
  const probe = async (path: string): Promise<number> => (await rawRequest(port, head(`GET ${path} HTTP/1.1`, 'Host: shop'))).status
  assert.deepEqual([await probe('/readyz'), await probe('/livez')], [204, 204])
  const kept = await rawConnect(port)
  await kept.write(get)
  await kept.readResponse()
  child.kill()
  await child.waitForLine('shutdown_started')
  const ready = await rawRequest(port, head('GET /readyz HTTP/1.1', 'Host: shop'))
  assert.deepEqual([ready.status, (ready.json() as { reason: string }).reason], [503, 'draining'])
  assert.deepEqual([await probe('/livez'), await probe('/a')], [204, 200])
  await kept.write(get)
  assert.equal((await kept.readResponse()).status, 200)
  assert.deepEqual(await child.exit, { code: 0, signal: null })
  assert.equal(await refusesConnections(port), true)
})

test('a stream without end is cut at the end of the grace, and the exit code tells', async (t) => {
  const { child, port, behind } = await start(t, { server: { shutdown: { graceMs: 500 } } }, async (socket) => {
    await send(socket, answer({ headers: [['Content-Type', 'text/event-stream'], ['Transfer-Encoding', 'chunked']], framing: 'none' }))
    while (!socket.destroyed) {
      await send(socket, chunk('data: x\n\n'))
      await new Promise((resolve) => { setTimeout(resolve, 20) })
    }
  })
  const client = await rawConnect(port)
  await client.write(get)
  assert.equal((await client.readHead()).status, 200)
  child.kill()
  await client.closed
  assert.deepEqual(await child.exit, { code: 1, signal: null })
  const incomplete = child.output.find('shutdown_incomplete')
  assert.deepEqual([incomplete?.['open'], incomplete?.['level']], [1, 50])
  assert.equal(child.output.all('access').length, 1)
  await until(() => behind.open.size === 0)
})

test('a request that hangs is cut at the end of the grace', async (t) => {
  const { child, port, behind } = await start(t, { server: { shutdown: { graceMs: 300 } } }, stall)
  const client = await rawConnect(port)
  await client.write(get)
  await until(() => behind.requests.length === 1)
  child.kill()
  assert.deepEqual(await child.exit, { code: 1, signal: null })
  assert.equal(child.output.all('shutdown_incomplete').length, 1)
  assert.equal(child.output.all('access').length, 1)
})

test('clients over HTTP/2 that are stuck are cut at the end of the grace, and the process ends', async (t) => {
  const tls = { certificates: [new Folder(t).issue('shop.example')] }
  const { child, port } = await start(t, { server: { tls, shutdown: { graceMs: 500 } } }, endless)
  for (const each of stuck) await connectStuck(t, port, each, { tls: true })
  await until(() => child.output.all('access').some(({ path }) => path === '/small'))
  child.kill()
  assert.deepEqual(await within(child.exit, { timeoutMs: 10_000, what: 'the exit, before fastify-cli makes one' }), { code: 1, signal: null })
  assertCut(child.output.all('access'), Number(child.output.find('shutdown_incomplete')?.['open']))
})

test('a second signal ends the process at once with 1', async (t) => {
  for (const signals of [['SIGTERM', 'SIGTERM'], ['SIGTERM', 'SIGINT']] as const) {
    const { child, port, behind } = await start(t, { server: { shutdown: { graceMs: 15000 } } }, stall)
    const client = await rawConnect(port)
    await client.write(get)
    await until(() => behind.requests.length === 1)
    child.kill(signals[0])
    await child.waitForLine('shutdown_started')
    child.kill(signals[1])
    assert.deepEqual(await child.exit, { code: 1, signal: null })
    assert.equal(await client.closed, 'reset', 'an answer that is not whole does not end in order')
  }
})

test('a client that was refused and goes on sending does not hold the process up', async (t) => {
  const { child, port } = await start(t, { server: { maxBodyBytes: 10, shutdown: { graceMs: 1000 } } })
  const client = await rawConnect(port, { allowHalfOpen: true })
  t.after(() => client.destroy())
  await client.write(head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 1000'))
  assert.equal((await client.readResponse('POST')).status, 413)
  child.kill()
  assert.deepEqual(await child.exit, { code: 0, signal: null })
})

test('a signal in the middle of the start ends the process, at whatever moment it comes', async (t) => {
  const behind = await rawUpstream(stall)
  t.after(() => behind.close())
  const pool = { health: { enabled: true } }
  for (const wait of [100, 400]) {
    const child = spawnApp(t, [behind.url], { pool })
    await new Promise((resolve) => { setTimeout(resolve, wait) })
    child.kill()
    const { code, signal } = await child.exit
    // Before anybody listens to signals the system's own way holds.
    assert.ok(code === 0 || signal === 'SIGTERM', JSON.stringify({ wait, code, signal, errors: child.errors.lines }))
  }
  // Between the moment from which on signals are heard and the one in which the listener is open.
  const kill = 'process.kill(process.pid, "SIGTERM")'
  for (const then of [`process.nextTick(() => ${kill})`, `setImmediate(() => ${kill})`, `setImmediate(() => setImmediate(() => ${kill}))`]) {
    const code = `const { once } = process; process.once = function (event, listener) { if (event === 'SIGTERM') ${then}; return once.call(this, event, listener) }`
    const child = spawnApp(t, [behind.url], { pool, node: ['--import', `data:text/javascript,${encodeURIComponent(code)}`] })
    assert.deepEqual(await child.exit, { code: 0, signal: null }, JSON.stringify(child.errors.lines))
  }
})

test('on "localhost" every connection is drained', async (t) => {
  const { child, port } = await start(t, { address: 'localhost' })
  const hosts = ['127.0.0.1', '::1']
  const clients = await Promise.all(hosts.map((host) => rawConnect(port, { host }).catch(() => null)))
  const open = clients.filter((client) => client !== null)
  assert.ok(open.length >= 1)
  for (const client of open) {
    await client.write(get)
    assert.equal((await client.readResponse()).status, 200)
  }
  child.kill()
  for (const client of open) assert.equal(await client.closed, 'fin')
  assert.deepEqual(await child.exit, { code: 0, signal: null })
})

test('a port that is taken ends the start with 1', async (t) => {
  const { port } = await start(t)
  const behind = await rawUpstream(answering())
  t.after(() => behind.close())
  const second = spawnApp(t, [behind.url], { env: { PORT: String(port) } })
  assert.equal((await second.exit).code, 1)
  assert.match(JSON.stringify([...second.output.lines, ...second.errors.lines]), /EADDRINUSE/)
})
