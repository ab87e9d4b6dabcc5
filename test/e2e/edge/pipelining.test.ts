import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answer, partOfBody, send, stall } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { accessLines, head, startBoth } from './support.ts'

const get = (path: string): string => head(`GET ${path} HTTP/1.1`, 'Host: shop')

test('pipelined requests are answered in their order, though the upstream answers them in another', async (t) => {
  const order: string[] = []
  const gateway = await startBoth(t, {}, async (socket, { target }) => {
    if (target === '/1') await until(() => order.length === 2)
    order.push(target)
    await send(socket, answer({ body: target }))
  })
  const response = await rawRequest(gateway.port, get('/1') + get('/2') + get('/3'), { methods: ['GET', 'GET', 'GET'] })
  assert.deepEqual(response.responses.map((each) => each.text()), ['/1', '/2', '/3'])
  assert.equal((await accessLines(gateway, 3)).length, 3)
})

const garbage: Record<string, { bytes: string, method?: string }> = {
  'garbage': { bytes: '\0\0garbage\r\n\r\n' },
  'a bad head': { bytes: head('GET /b HTTP/1.1', 'Host: shop', 'X Y: 1') },
  'a head that is too large': { bytes: head('GET /b HTTP/1.1', 'Host: shop', `X: ${'x'.repeat(70000)}`) },
  'half a head and the end': { bytes: 'GET /b HTTP' }
}
for (const [name, { bytes }] of Object.entries(garbage)) {
  for (const together of [true, false]) {
    test(`the answer of a good request is its own, though ${name} follows ${together ? 'with it' : 'behind it'}`, async (t) => {
      const gateway = await startBoth(t, {}, async (socket) => {
        await until(() => gateway.lines.find((line) => line['method'] === null))
        await send(socket, answer({ body: 'good' }))
      })
      const parts = together ? [get('/a') + bytes] : [get('/a'), () => until(() => gateway.behind.requests.length === 1), bytes]
      const response = await rawRequest(gateway.port, parts, { methods: ['GET', 'GET'], until: 'close', allowHalfOpen: true, end: name.endsWith('the end') })
      const status = name.includes('too large') ? 431 : 400
      assert.deepEqual(response.responses.map((each) => each.status), [200, status], response.raw.toString('latin1'))
      assert.equal(response.responses[0]?.text(), 'good')
      assert.equal(response.raw.toString('latin1').split('HTTP/1.1 ').length, 3, 'two answers')
      const lines = await accessLines(gateway, 2)
      assert.deepEqual(lines.map((line) => [line['method'], line['status']]).toSorted(), [['GET', 200], [null, status]].toSorted())
    })
  }
}

test('a bad body behind a good request is refused in its turn', async (t) => {
  const gateway = await startBoth(t, {}, async (socket, request) => {
    if (request.method === 'POST') return stall(socket)
    await until(() => gateway.lines.find((line) => line['msg'] === 'go') ?? gateway.behind.requests.length === 1)
    await send(socket, answer({ body: 'good' }))
  })
  const response = await rawRequest(gateway.port, get('/a') + head('POST /b HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked') + 'zz\r\n', { methods: ['GET', 'POST'], until: 'close' })
  assert.deepEqual(response.responses.map((each) => each.status), [200, 400], response.raw.toString('latin1'))
  const lines = await accessLines(gateway, 2)
  assert.deepEqual(lines.map(({ path, status }) => [path, status]), [['/a', 200], ['/b', 400]])
})

test('an earlier answer comes whole, though a request behind it was refused and its body is malformed', async (t) => {
  const gateway = await startBoth(t, {}, async (socket) => {
    await until(() => gateway.lines.find((line) => line['path'] === '/b') ?? gateway.behind.requests.length === 1)
    await send(socket, answer({ body: 'good' }))
  })
  // A coding that is not chunked: the head is refused by us, and what follows it by the parser.
  const bad = head('POST /b HTTP/1.1', 'Host: shop', 'Transfer-Encoding: gzip') + '5\r\nhello\r\n0\r\n\r\n'
  const response = await rawRequest(gateway.port, get('/a') + bad + get('/c'), { methods: ['GET', 'POST'], until: 'close' })
  assert.deepEqual([response.responses.map((each) => each.status), response.text(), response.ended], [[200, 400], 'good', 'fin'], response.raw.toString('latin1'))
  const lines = await accessLines(gateway, 2)
  assert.deepEqual(lines.map(({ path, status }) => [path, status]).toSorted(), [['/a', 200], ['/b', 400]])
})

test('an answer that is already half sent is broken off when its request turns out malformed', async (t) => {
  const gateway = await startBoth(t, {}, (socket) => partOfBody(socket, { declared: 100000, sent: 10, ending: 'stall' }))
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  await client.write(head('POST /a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked') + '2\r\nhi\r\n')
  assert.equal((await client.readHead()).status, 200)
  await client.write('zz\r\n')
  assert.equal(await client.closed, 'reset')
  await gateway.left({ counted: 'neutral', status: 200, reason: 'bad_request' })
})

test('when a connection with several waiting requests breaks, each of them ends: its line, its place, its upstream', async (t) => {
  const gateway = await startBoth(t, { shedding: { maxInFlight: 3 } }, stall)
  for (const ending of ['reset', 'destroy'] as const) {
    const client = await rawConnect(gateway.port)
    await client.write(get('/1') + get('/2') + get('/3'))
    const asked = gateway.behind.requests.length + 3
    await until(() => gateway.behind.requests.length === asked)
    const held = [...gateway.behind.open]
    assert.equal(gateway.app.shedding.view().inFlight, 3)
    client[ending]()
    await until(() => held.every(({ closed }) => closed))
    await gateway.idle()
  }
  const lines = await accessLines(gateway, 6)
  assert.deepEqual(lines.map(({ status, reason }) => [status, reason]), Array.from({ length: 6 }, () => [499, 'client_cancelled']))
  assert.deepEqual(lines.map(({ path }) => path).toSorted(), ['/1', '/1', '/2', '/2', '/3', '/3'])
})

test('when the first of several pipelined answers is cut, the others end too', async (t) => {
  const gateway = await startBoth(t, {}, (socket, { target }) => target === '/1'
    ? until(() => gateway.behind.requests.length === 3).then(() => partOfBody(socket, { ending: 'reset' }))
    : stall(socket))
  const response = await rawRequest(gateway.port, get('/1') + get('/2') + get('/3'), { methods: ['GET', 'GET', 'GET'] })
  assert.deepEqual([response.status, response.complete, response.responses.length], [200, false, 1])
  await gateway.idle()
  const lines = await accessLines(gateway, 3)
  assert.deepEqual(lines.map(({ path, reason }) => `${path} ${reason}`).toSorted(), ['/1 body_truncated', '/2 body_truncated', '/3 body_truncated'])
})

test('many pipelined requests are served one after the other', async (t) => {
  const gateway = await startBoth(t)
  const count = 100
  const response = await rawRequest(gateway.port, Array.from({ length: count }, (_, i) => get(`/${i}`)).join(''), { methods: Array.from({ length: count }, () => 'GET'), timeoutMs: 20000 })
  assert.equal(response.responses.length, count)
  const refused = response.responses.filter(({ status }) => status !== 200)
  assert.ok(refused.every(({ status }) => status === 503))
  assert.equal((await accessLines(gateway, count)).length, count)
})

test('of a flood of pipelined requests 128 are begun, whoever answers them, and the last of them closes', async (t) => {
  let answerNow = (): void => {}
  const asked = new Promise<void>((resolve) => { answerNow = resolve })
  const gateway = await startBoth(t, { shedding: { maxInFlight: 20 } }, async (socket, { target }) => {
    if (target === '/0') await asked
    await send(socket, answer({ body: target }))
  })
  let begun = 0
  gateway.app.server.on('request', () => { begun++ })
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  // Thousands are in what the parser has in hand at once.
  await client.write(Array.from({ length: 5000 }, (_, i) => get(i % 3 === 1 ? '/livez' : `/${i}`)).join(''))
  await until(() => begun === 128)
  answerNow()
  const got = (await client.readAll()).toString('latin1')
  const statuses = got.match(/(?<=HTTP\/1\.1 )\d{3}/g) ?? []
  assert.deepEqual([statuses.length, [...new Set(statuses)].toSorted(), got.match(/connection: close\r\n/gi)?.length], [128, ['200', '204', '503'], 1])
  await gateway.idle()
  assert.equal(begun, 128)
})

test('CONNECT behind a request that waits does not take its place', async (t) => {
  const gateway = await startBoth(t, {}, async (socket) => {
    await until(() => gateway.lines.find((line) => line['method'] === 'CONNECT'))
    await send(socket, answer({ body: 'good' }))
  })
  const response = await rawRequest(gateway.port, get('/a') + head('CONNECT x:1 HTTP/1.1', 'Host: x'), { methods: ['GET', 'CONNECT'], until: 'close' })
  assert.deepEqual(response.responses.map(({ status }) => status), [200, 400], response.raw.toString('latin1'))
  await gateway.idle()
  assert.equal((await accessLines(gateway, 2)).length, 2)
})

test('CONNECT behind a large download does not make it stand still', async (t) => {
  const body = Buffer.alloc(8 << 20, 'x')
  const gateway = await startBoth(t, {}, (socket) => send(socket, answer({ body })))
  const response = await rawRequest(gateway.port, get('/a') + head('CONNECT x:1 HTTP/1.1', 'Host: x'), { methods: ['GET', 'CONNECT'], until: 'close', timeoutMs: 10000 })
  assert.deepEqual(response.responses.map((each) => [each.status, each.body.length > 1000000]), [[200, true], [400, false]])
  assert.equal((await accessLines(gateway, 2)).length, 2)
})

const put = (path: string): string => head(`PUT ${path} HTTP/1.1`, 'Host: shop', 'Content-Length: 5') + 'hello'

test('a pipelined request that is not safe, or comes behind one, is not begun before the answer to the one before it', async (t) => {
  const open = new Set<string>()
  const beside: string[] = []
  const gateway = await startBoth(t, {}, async (socket, { target }) => {
    open.add(target)
    for (const other of open) if (other !== target) beside.push([other, target].toSorted().join())
    // Time enough for whoever would not wait.
    await new Promise((resolve) => { setTimeout(resolve, 20) })
    open.delete(target)
    await send(socket, answer({ body: target }))
  })
  const response = await rawRequest(gateway.port, get('/1') + get('/2') + put('/3') + put('/4') + get('/5') + get('/6'), { methods: ['GET', 'GET', 'PUT', 'PUT', 'GET', 'GET'] })
  assert.deepEqual(response.responses.map((each) => each.text()), ['/1', '/2', '/3', '/4', '/5', '/6'])
  assert.deepEqual(beside.filter((pair) => pair !== '/1,/2' && pair !== '/5,/6'), [])
  assert.deepEqual(gateway.behind.requests.slice(2, 5).map(({ target }) => target), ['/3', '/4', '/5'])
  assert.equal((await accessLines(gateway, 6)).length, 6)
})

test('pipelined requests that wait are given up with their connection, and none of them is sent', async (t) => {
  const gateway = await startBoth(t, {}, (socket) => stall(socket))
  const client = await rawConnect(gateway.port)
  await client.write(put('/1') + put('/2') + put('/3'))
  await until(() => gateway.behind.requests.length === 1)
  client.reset()
  const lines = await accessLines(gateway, 3)
  assert.deepEqual(lines.map(({ path, status, attempts }) => [path, status, attempts]).toSorted(), [['/1', 499, 1], ['/2', 499, 0], ['/3', 499, 0]])
  assert.equal(gateway.behind.requests.length, 1)
})
