import { deepEqual, equal, match } from 'node:assert/strict'
import { connect as connectTcp } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { WebSocket } from 'ws'
import { until, within } from '../../support/wait.ts'
import { Folder } from '../listener/support.ts'
import { closing, handshake, inFrontOf, next, webSockets } from './support.ts'

test('WebSockets pass over TLS: messages both ways, an orderly close, and every place given back', async (t) => {
  const folder = new Folder(t)
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream, { server: { tls: { certificates: [folder.issue('shop.example')] } } })
  const socket = new WebSocket(`wss://127.0.0.1:${gateway.port}/chat`, { rejectUnauthorized: false })
  t.after(() => { socket.terminate() })
  await within(new Promise((resolve, reject) => { socket.once('open', resolve).once('error', reject) }))
  equal(upstream.handshakes[0]?.headers['x-forwarded-proto'], 'https')

  const large = Buffer.alloc(300_000, 'x')
  for (const [data, binary] of [[Buffer.from('hello'), false], [large, true]] as const) {
    const answered = next(socket)
    socket.send(data, { binary })
    const got = await within(answered)
    deepEqual([got.data.equals(data), got.binary], [true, binary])
  }
  const closed = closing(socket)
  socket.close(1000, 'done')
  deepEqual(await within(closed), { code: 1000, reason: 'done' })
  await gateway.idle()
  equal((await until(() => gateway.lines.all('access')[0]))['status'], 101)
})

test('on a stop a WebSocket over TLS is told that we go away', async (t) => {
  const folder = new Folder(t)
  const gateway = await inFrontOf(t, await webSockets(t), { server: { tls: { certificates: [folder.issue('shop.example')] }, shutdown: { graceMs: 5000 } } })
  const socket = new WebSocket(`wss://127.0.0.1:${gateway.port}/`, { rejectUnauthorized: false })
  t.after(() => { socket.terminate() })
  await within(new Promise((resolve, reject) => { socket.once('open', resolve).once('error', reject) }))
  const closed = closing(socket)
  const stopped = gateway.close()
  equal((await within(closed)).code, 1001)
  await within(stopped)
})

test('a handshake comes behind a PROXY header and TLS, and what was sent with it arrives', async (t) => {
  const folder = new Folder(t)
  const upstream = await webSockets(t)
  const gateway = await inFrontOf(t, upstream, { server: { proxyProtocolFrom: ['127.0.0.1'], tls: { certificates: [folder.issue('shop.example')] } } })
  const under = connectTcp(gateway.port, '127.0.0.1')
  t.after(() => { under.destroy() })
  under.write('PROXY TCP4 192.0.2.7 10.0.0.2 1 443\r\n')
  const socket = connectTls({ socket: under, rejectUnauthorized: false })
  socket.on('error', () => {})
  let text = ''
  socket.on('data', (bytes: Buffer) => { text += bytes.toString('latin1') })
  // A masked text frame, "hi".
  socket.write(Buffer.concat([Buffer.from(handshake()), Buffer.of(0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69)]))
  await until(() => text.endsWith('\x81\x02hi'), { what: 'the echo' })
  match(text, /^HTTP\/1\.1 101 /)
  equal(upstream.handshakes[0]?.headers['x-forwarded-for'], '192.0.2.7')
  socket.destroy()
  await gateway.idle()
})
