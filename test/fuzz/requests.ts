/** Clients' bytes: HTTP/1, and what stands before it or comes after it. */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { Random } from '../../lib/random.ts'
import { judge } from '../conformance/arrivals.ts'
import { draw } from '../conformance/differential/grammar.ts'
import { framingCases } from '../conformance/smuggling/framing.ts'
import { headCases } from '../conformance/smuggling/heads.ts'
import type { Report } from '../conformance/suite.ts'
import { lastRequest } from '../conformance/talk.ts'
import { startGateway } from '../support/gateway.ts'
import { recorder } from '../support/recorder.ts'
import { strictAnswers } from '../support/strict-answers.ts'
import { strictRequests } from '../support/strict-http.ts'
import { hurried, hurriedPool, linesOf, quiet, type Campaign } from './campaign.ts'
import { converse, drawEnding } from './client.ts'
import { below, mutate, oneOf, pieces } from './mutate.ts'

const known = [...framingCases, ...headCases].map(([, bytes]) => bytes + lastRequest)

function requestBytes (random: Random): Buffer {
  return mutate(Buffer.from(random() < 0.6 ? draw(random).bytes : oneOf(random, known), 'latin1'), random, 4)
}

export const http1: Campaign = {
  name: 'http1',
  about: 'requests of HTTP/1, in pieces, from clients that stay, end or break off',
  async open (report: Report) {
    const upstream = await recorder(report)
    const gateway = await startGateway(report, { upstreams: [upstream.url], server: hurried, pool: hurriedPool })
    return {
      gateway,
      async step (random) {
        upstream.clear()
        const ending = drawEnding(random)
        const parts = pieces(requestBytes(random), random)
        let got: Buffer = Buffer.alloc(0)
        let sent: Buffer = got
        const lines = await linesOf(gateway, async () => { ({ got, sent } = await converse(gateway.port, parts, ending)) })
        await upstream.settled()
        // Of a client that left it cannot be said what it should have got.
        judge({ sent, got: ending === 'read' ? got : Buffer.alloc(0), upstream })
        const { requests } = strictRequests(sent, true)
        if (lines.length > requests.length + 1) throw new Error(`${lines.length} access lines for ${requests.length} requests`)
        const { answers } = strictAnswers(got, requests.map(({ method }) => method))
        if (answers.length > lines.length) throw new Error(`${answers.length} answers and ${lines.length} access lines`)
        // A connection that the upstream had closed is tried once more; here none does that.
        const attempts = lines.reduce((sum, line) => sum + (line['attempts'] as number), 0)
        if (upstream.requests.length > attempts) throw new Error(`${upstream.requests.length} requests arrived, and the lines tell of ${attempts}`)
      }
    }
  }
}

const v2 = (command: number, family: number, addresses: Buffer): Buffer => {
  const head = Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, 0x20 | command, family, 0, 0])
  head.writeUInt16BE(addresses.length, 14)
  return Buffer.concat([head, addresses])
}
const openings: readonly Buffer[] = [
  Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n'),
  Buffer.from('PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n'),
  Buffer.from('PROXY UNKNOWN\r\n'),
  v2(1, 0x11, Buffer.from('c0000201c633640186a001bb', 'hex').subarray(0, 12)),
  v2(1, 0x21, Buffer.alloc(36, 1)),
  v2(0, 0, Buffer.alloc(0)),
  v2(1, 0x11, Buffer.concat([Buffer.alloc(12, 2), Buffer.from([0x04, 0, 4, 1, 2, 3, 4])]))
]

export const proxyHeaders: Campaign = {
  name: 'proxy',
  about: 'headers of the PROXY protocol, versions 1 and 2, before a request',
  async open (report: Report) {
    const upstream = await recorder(report)
    const gateway = await startGateway(report, { upstreams: [upstream.url], server: { ...hurried, proxyProtocolFrom: ['127.0.0.1'] }, pool: hurriedPool })
    return {
      gateway,
      async step (random) {
        upstream.clear()
        const whole = random() < 0.2
        const opening = whole ? oneOf(random, openings) : mutate(oneOf(random, openings), random, 3)
        const bytes = Buffer.concat([opening, Buffer.from(lastRequest)])
        const ending = drawEnding(random)
        const { got } = await converse(gateway.port, pieces(bytes, random), ending)
        await quiet(gateway, 'PROXY UNKNOWN\r\n')
        if (upstream.problems.length > 0 || upstream.requests.length > bytes.toString('latin1').split(' HTTP/1.').length - 1) throw new Error(`arrived: ${JSON.stringify(upstream.problems)}, ${upstream.requests.length} requests`)
        if (whole && ending === 'read' && !got.toString('latin1').startsWith('HTTP/1.1 200 ')) throw new Error(`a good header, and the answer ${JSON.stringify(got.toString('latin1').slice(0, 100))}`)
      }
    }
  }
}

const handshake = 'GET /socket HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n'
const switched = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n'

/** A frame of a client, masked with zeros. */
function frame (random: Random): Buffer {
  const payload = Buffer.alloc(oneOf(random, [0, 1, 125, 126, 1000]), 97)
  const length = payload.length < 126 ? Buffer.from([0x80 | payload.length]) : Buffer.from([0x80 | 126, payload.length >> 8, payload.length & 255])
  return Buffer.concat([Buffer.from([oneOf(random, [0x81, 0x82, 0x01, 0x80, 0x88, 0x89, 0x8a, 0xc1, 0x83])]), length, Buffer.alloc(4), payload])
}

/** Whether these are the first of those bytes, perhaps with a close frame of so many bytes behind them. */
function isPart (bytes: Buffer, whole: Buffer, goodbye: number): boolean {
  const begins = (part: Buffer): boolean => part.equals(whole.subarray(0, part.length))
  return begins(bytes) || (bytes.length >= goodbye && bytes[bytes.length - goodbye] === 0x88 && begins(bytes.subarray(0, bytes.length - goodbye)))
}

export const tunnels: Campaign = {
  name: 'tunnel',
  about: 'bytes behind a 101: what one side sends the other gets, unchanged, whatever it is',
  async open (report: Report) {
    let received: Buffer[] = []
    const open = new Set<Socket>()
    const server = createServer((socket) => {
      open.add(socket)
      let head = ''
      socket.on('error', () => {}).on('close', () => { open.delete(socket) })
      socket.on('data', (bytes: Buffer) => {
        if (head.endsWith('\r\n\r\n')) {
          received.push(bytes)
          socket.write(bytes)
          return
        }
        head += bytes.toString('latin1')
        if (head.endsWith('\r\n\r\n')) socket.write(switched)
      })
    })
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
    report.after(() => { server.close(); for (const socket of open) socket.destroy() })
    const gateway = await startGateway(report, { upstreams: [`http://127.0.0.1:${(server.address() as AddressInfo).port}`], server: hurried, routes: [{ path: '/*', pool: 'shop', upgradeIdleMs: 50 }] })
    return {
      gateway,
      async step (random) {
        received = []
        const frames = Buffer.concat(Array.from({ length: 1 + below(random, 4) }, () => frame(random)))
        const bytes = mutate(frames, random, 4)
        // One that stays is only closed for its silence.
        const ending = random() < 0.1 ? 'read' : oneOf(random, ['fin', 'leave', 'reset'] as const)
        const { got } = await converse(gateway.port, [Buffer.from(handshake), ...pieces(bytes, random)], ending)
        await quiet(gateway)
        const arrived = Buffer.concat(received)
        // At its end a tunnel may say goodbye: 1001, to the upstream with a mask.
        if (!isPart(arrived, bytes, 8)) throw new Error(`sent ${bytes.toString('hex')}, arrived ${arrived.toString('hex')}`)
        const end = got.indexOf('\r\n\r\n')
        const back = end === -1 ? Buffer.alloc(0) : got.subarray(end + 4)
        if (!isPart(back, bytes, 4)) throw new Error(`sent ${bytes.toString('hex')}, came back ${back.toString('hex')}`)
      }
    }
  }
}
