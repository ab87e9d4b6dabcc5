import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { WebSocket, WebSocketServer, type PerMessageDeflateOptions } from 'ws'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { rawConnect } from '../../support/raw-client.ts'
import { within } from '../../support/wait.ts'
import type { Report, Suite } from '../suite.ts'
import { inLanes } from '../talk.ts'
import { frameCases } from './frames.ts'

const maxPayload = 32 << 20
const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const asking = `GET / HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n\r\n`

/** A server that echoes what `ws` takes, and closes by the rules where it does not. */
async function echoing (report: Report, perMessageDeflate: PerMessageDeflateOptions | false): Promise<number> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', maxPayload, perMessageDeflate })
  server.on('connection', (socket) => {
    socket.on('error', () => {})
    socket.on('message', (data, binary) => { socket.send(data, { binary, compress: true }) })
  })
  await once(server, 'listening')
  report.after(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** All that a server says behind its 101, as hex, until it ends. */
async function heard (port: number, pieces: readonly Buffer[]): Promise<string> {
  const client = await rawConnect(port, { timeoutMs: 10_000 })
  try {
    await client.write(asking)
    const { status } = await client.readHead()
    assert.equal(status, 101)
    for (const piece of pieces) await client.write(piece)
    return (await client.readAll()).toString('hex')
  } finally {
    client.destroy()
  }
}

/** What `ws` as a client makes of the bytes of a server: its messages, pings and its end. */
async function events (port: number): Promise<string[]> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { maxPayload, generateMask: (mask) => { mask.fill(1) } })
  const list: string[] = []
  socket.on('message', (data, binary) => { list.push(`${binary ? 'binary' : 'text'} ${(data as Buffer).length} ${(data as Buffer).toString('hex').slice(0, 200)}`) })
  socket.on('ping', (data: Buffer) => { list.push(`ping ${data.toString('hex')}`) }).on('pong', (data: Buffer) => { list.push(`pong ${data.toString('hex')}`) })
  socket.on('error', (error) => { list.push(`error ${error.message}`) })
  // An error is an event like any here.
  const closed = new Promise<[number, Buffer]>((resolve) => { socket.once('close', (...args) => { resolve(args) }) })
  const [code, reason] = await within(closed, { timeoutMs: 10_000, what: 'the close of the WebSocket' }).finally(() => { socket.terminate() })
  return [...list, `close ${code} ${reason.toString('hex')}`]
}

/** A server that takes any handshake with our key's answer, says these bytes, and ends. */
async function saying (report: Report): Promise<{ port: number, say: (pieces: readonly Buffer[]) => void }> {
  let pieces: readonly Buffer[] = []
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {}).on('close', () => { open.delete(socket) })
    socket.once('data', (head: Buffer) => {
      const asked = /sec-websocket-key: (\S+)/i.exec(head.toString('latin1'))?.[1] ?? ''
      const accept = createHash('sha1').update(`${asked}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`)
      for (const piece of pieces) socket.write(piece)
    })
    // The client's close, or its refusal, is the end.
    socket.on('data', (bytes: Buffer) => { if ((bytes[0] as number) === 0x88) socket.end() })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  report.after(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, say: (next) => { pieces = next } }
}

const gatewayFor = (report: Report, port: number): Promise<Gateway> => startGateway(report, { upstreams: [`http://127.0.0.1:${port}`] })

/** With `ws` on both ends: sizes, fragments, compression. */
async function messages (report: Report): Promise<void> {
  const settings: Record<string, PerMessageDeflateOptions | false> = {
    'no compression': false,
    'compression': { threshold: 0 },
    'compression without context': { threshold: 0, serverNoContextTakeover: true, clientNoContextTakeover: true },
    'compression with small windows': { threshold: 0, serverMaxWindowBits: 9, clientMaxWindowBits: 9 },
    'compression above 1 KiB': { threshold: 1024 }
  }
  for (const [name, perMessageDeflate] of Object.entries(settings)) {
    const gateway = await gatewayFor(report, await echoing(report, perMessageDeflate))
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/`, { maxPayload, perMessageDeflate })
    report.after(() => { socket.terminate() })
    await once(socket, 'open')
    const echoed = async (data: Buffer | string): Promise<void> => {
      const [back] = await within(once(socket, 'message') as Promise<[Buffer]>, { what: 'the echo', timeoutMs: 20_000 })
      assert.ok(back.equals(Buffer.from(data as string)))
    }
    for (const size of [0, 1, 100, 1023, 1024, 65535, 65536, 1 << 20, ...name.includes(' ') && name !== 'no compression' ? [] : [16 << 20]]) {
      await report.check(`12, ${name}, ${size} bytes`, async () => {
        const data = size > 1 << 20 ? Buffer.alloc(size, 'again and ') : randomBytes(size)
        socket.send(data)
        await echoed(data)
      })
    }
    await report.check(`12, ${name}, a hundred fragments`, async () => {
      for (let i = 0; i < 100; i++) socket.send(`part ${i}, `, { fin: i === 99 })
      await echoed(Array.from({ length: 100 }, (_, i) => `part ${i}, `).join(''))
    })
    await report.check(`12, ${name}, whether it is agreed upon`, () => { assert.equal(socket.extensions.includes('permessage-deflate'), perMessageDeflate !== false) })
    socket.close()
    await once(socket, 'close')
  }
}

export const websocket: Suite = {
  name: 'websocket',
  about: 'frames good and bad, of clients and of servers: through the gateway they have the outcome that they have without it',
  needs: [],
  quick: true,
  async run (report) {
    const port = await echoing(report, false)
    const gateway = await gatewayFor(report, port)
    await inLanes([1, 2, 3, 4, 5, 6, 7, 8], frameCases(true), (_lane, [name, pieces]) => report.check(`of a client: ${name}`, async () => {
      const [direct, through] = await Promise.all([heard(port, pieces), heard(gateway.port, pieces)])
      assert.equal(through, direct)
    }))
    const lanes = await Promise.all(Array.from({ length: 8 }, async () => {
      const upstream = await saying(report)
      return { ...upstream, gateway: await gatewayFor(report, upstream.port) }
    }))
    await inLanes(lanes, frameCases(false), (lane, [name, pieces]) => report.check(`of a server: ${name}`, async () => {
      lane.say(pieces)
      const [direct, through] = await Promise.all([events(lane.port), events(lane.gateway.port)])
      assert.deepEqual(through, direct)
    }))
    await messages(report)
    await gateway.idle()
    for (const lane of lanes) await lane.gateway.idle()
  }
}
