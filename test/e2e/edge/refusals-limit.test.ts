import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type ClientHttp2Session } from 'node:http2'
import { test } from 'node:test'
import { answer, send, stall } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { accessLines, head, startBoth } from './support.ts'

const get = (path: string, ...fields: string[]): string => head(`GET ${path} HTTP/1.1`, 'Host: shop', ...fields)
const server = { maxRequestsPerConnection: 3 }
const closes = (responses: ReadonlyArray<{ header: (name: string) => string | undefined }>): boolean[] => responses.map((each) => each.header('connection') === 'close')

test('the last request that a connection may have is answered with a close, one after the other and pipelined', async (t) => {
  const gateway = await startBoth(t, { server })
  for (const parts of [[get('/1'), 30, get('/2'), 30, get('/3')], [get('/1') + get('/2') + get('/3')]]) {
    const { responses, ended } = await rawRequest(gateway.port, parts, { methods: ['GET', 'GET', 'GET'], until: 'close' })
    assert.deepEqual([responses.map(({ status }) => status), closes(responses), ended], [[200, 200, 200], [false, false, true], 'fin'])
  }
  assert.deepEqual((await accessLines(gateway, 6)).map(({ path, status, reason }) => [path, status, reason]),
    ['/1', '/2', '/3', '/1', '/2', '/3'].map((path) => [path, 200, null]))
})

test('what is pipelined behind the last one is not begun, forwarded or logged, in one packet and in later ones', async (t) => {
  const gateway = await startBoth(t, { server }, async (socket, request) => {
    await request.body()
    await send(socket, answer({ body: 'done' }))
  })
  const charge = head('POST /charge HTTP/1.1', 'Host: shop', 'Content-Length: 2') + 'hi'
  for (const parts of [[get('/1') + get('/2') + get('/3') + charge.repeat(20)], [get('/1') + get('/2') + get('/3'), 20, charge, 20, charge, '\0garbage']]) {
    const { responses, ended } = await rawRequest(gateway.port, parts, { methods: ['GET', 'GET', 'GET', 'POST'], until: 'close', allowHalfOpen: true })
    assert.deepEqual([responses.map((each) => each.text()), closes(responses), ended], [['done', 'done', 'done'], [false, false, true], 'fin'])
  }
  assert.equal((await accessLines(gateway, 6)).length, 6)
  assert.equal(gateway.behind.requests.some(({ method }) => method === 'POST'), false)
})

test('an answer that comes later than those behind it still ends the connection in its turn', async (t) => {
  let goOn = (): void => {}
  const released = new Promise<void>((resolve) => { goOn = resolve })
  const gateway = await startBoth(t, { server: { maxRequestsPerConnection: 2 } }, async (socket, { target }) => {
    if (target === '/1') await released
    await send(socket, answer({ body: target }))
  })
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  await client.write(get('/1') + get('/2') + get('/3'))
  await until(() => gateway.behind.requests.length === 2)
  goOn()
  const responses = [await client.readResponse(), await client.readResponse()]
  assert.deepEqual([responses.map((each) => each.text()), closes(responses)], [['/1', '/2'], [false, true]])
  assert.equal(await client.closed, 'fin')
  assert.deepEqual((await accessLines(gateway, 2)).map(({ path }) => path).toSorted(), ['/1', '/2'])
})

test('one request a connection: each answer closes it, with a body, a question before it, and a refusal as well', async (t) => {
  const gateway = await startBoth(t, { server: { maxRequestsPerConnection: 1, maxBodyBytes: 10 } }, async (socket, request) => {
    const { body } = await request.body()
    await send(socket, answer({ body }))
  })
  const asked: Array<[bytes: string | string[], status: number]> = [
    [get('/a'), 200],
    [head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 5') + 'hello', 200],
    [head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 5', 'Expect: 100-continue') + 'hello', 200],
    [head('POST /a HTTP/1.1', 'Host: shop', 'Content-Length: 50'), 413],
    [head('GET /a HTTP/1.0', 'Connection: keep-alive'), 200],
    [head('TRACE /a HTTP/1.1', 'Host: shop'), 405]
  ]
  for (const [bytes, status] of asked) {
    const got = await rawRequest(gateway.port, [...[bytes].flat(), get('/behind')], { until: 'close', methods: [String(bytes).split(' ', 1)[0] as string, 'GET'] })
    assert.deepEqual([got.responses.map((each) => each.status), got.header('connection'), got.ended], [[status], 'close', 'fin'], String(bytes))
  }
  await accessLines(gateway, asked.length)
  assert.equal(gateway.behind.requests.some(({ target }) => target === '/behind'), false)
})

test('each connection has its own count, and 0 sets no limit', async (t) => {
  const limited = await startBoth(t, { server: { maxRequestsPerConnection: 2 } })
  for (let turn = 0; turn < 3; turn++) assert.equal((await rawRequest(limited.port, get('/a'))).header('connection') === 'close', false)
  const free = await startBoth(t)
  const { responses, ended } = await rawRequest(free.port, get('/a').repeat(50), { methods: Array.from({ length: 50 }, () => 'GET') })
  assert.deepEqual([responses.length, ended], [50, 'open'])
})

test('a client that leaves behind the last one is told as leaving, and gives its places back', async (t) => {
  const gateway = await startBoth(t, { server: { maxRequestsPerConnection: 1 } }, stall)
  const client = await rawConnect(gateway.port)
  await client.write(get('/a') + get('/b'))
  await until(() => gateway.behind.requests.length === 1)
  client.reset()
  assert.deepEqual((await accessLines(gateway, 1)).map(({ status, reason }) => [status, reason]), [[499, 'client_cancelled']])
})

test('over HTTP/2 the session goes away with the last request that it may have, whose answer arrives', async (t) => {
  const gateway = await startBoth(t, { server: { maxRequestsPerConnection: 3, http2: { cleartext: true } } })
  const session = connect(`http://127.0.0.1:${gateway.port}`)
  t.after(() => { session.destroy() })
  const away = once(session, 'goaway')
  const closed = once(session, 'close')
  for (let turn = 0; turn < 3; turn++) assert.equal(await ask(session), 204)
  assert.equal((await away)[0], 0)
  await closed
})

async function ask (session: ClientHttp2Session): Promise<unknown> {
  const stream = session.request({ ':path': '/livez' })
  const [headers] = await once(stream, 'response') as [Record<string, unknown>]
  await once(stream.resume(), 'close')
  return headers[':status']
}
