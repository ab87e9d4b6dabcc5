import { test, type TestContext } from 'node:test'
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { Connection, type Ending } from '../../../bin/load/connection.ts'
import { rawUpstream, send, type RawHandler } from '../../support/faulty-upstream.ts'
import { closedPort } from '../../support/ports.ts'

/** What the client makes of each answer in turn, all over one connection while that can be used. */
async function endings (t: TestContext, handler: RawHandler, requests = 1): Promise<{ endings: Ending[], connections: number }> {
  const upstream = await rawUpstream(handler)
  t.after(() => upstream.close())
  let connection = new Connection(upstream.port)
  t.after(() => connection.destroy('cut'))
  const found: Ending[] = []
  for (let i = 0; i < requests; i++) {
    if (!connection.usable) connection = new Connection(upstream.port)
    found.push(await new Promise<Ending>(resolve => { connection.send(`GET /${i} HTTP/1.1\r\nhost: x\r\n\r\n`, resolve) }))
  }
  return { endings: found, connections: upstream.connections }
}

const answering = (...parts: string[]): RawHandler => async socket => {
  for (const part of parts) await send(socket, part)
}

test('answers of a known length keep the connection', async t => {
  const found = await endings(t, answering('HTTP/1.1 200 OK\r\nContent-', 'Length: 4\r\n\r\nab', 'cd'), 3)
  assert.deepEqual(found, { endings: Array.from({ length: 3 }, () => ({ status: 200, failure: '', reason: '' })), connections: 1 })
})

test('chunks end with the last one', async t => {
  const found = await endings(t, answering('HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n', '0\r\n\r\n'), 2)
  assert.deepEqual(found, { endings: Array.from({ length: 2 }, () => ({ status: 503, failure: '', reason: '' })), connections: 1 })
})

test('an answer that says close is the last of its connection', async t => {
  const found = await endings(t, answering('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'), 2)
  assert.deepEqual(found, { endings: Array.from({ length: 2 }, () => ({ status: 200, failure: '', reason: '' })), connections: 2 })
})

test('without a length the end of the connection is the end of the answer', async t => {
  const handler: RawHandler = async (socket: Socket) => {
    await send(socket, 'HTTP/1.0 502 Bad Gateway\r\n\r\nsorry')
    socket.end()
  }
  assert.deepEqual((await endings(t, handler)).endings, [{ status: 502, failure: '', reason: '' }])
})

test('an answer that breaks off is cut, whatever its status', async t => {
  const handler: RawHandler = async (socket: Socket) => {
    await send(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc')
    socket.destroySoon()
  }
  assert.deepEqual((await endings(t, handler)).endings, [{ status: 0, failure: 'cut', reason: '' }])
})

test('nobody listens: the connection failed, and it can take nothing more', async t => {
  const connection = new Connection(await closedPort(t))
  const ending = await new Promise<Ending>(resolve => { connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n', resolve) })
  assert.deepEqual(ending, { status: 0, failure: 'connect', reason: '' })
  assert.equal(connection.usable, false)
})

test('what is given up ends once, and its late answer ends nothing', async t => {
  const upstream = await rawUpstream(() => {})
  t.after(() => upstream.close())
  const connection = new Connection(upstream.port)
  const found: Ending[] = []
  connection.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n', ending => { found.push(ending) })
  connection.destroy('timeout')
  connection.destroy('cut')
  assert.deepEqual(found, [{ status: 0, failure: 'timeout', reason: '' }])
  assert.equal(connection.usable, false)
})
