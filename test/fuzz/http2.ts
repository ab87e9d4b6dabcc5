/** Clients' bytes of HTTP/2, frame by frame. */
import type { Random } from '../../lib/random.ts'
import type { Report } from '../conformance/suite.ts'
import { startGateway } from '../support/gateway.ts'
import { recorder } from '../support/recorder.ts'
import { hurried, hurriedPool, linesOf, type Campaign } from './campaign.ts'
import { converse } from './client.ts'
import { below, mutate, oneOf, pieces } from './mutate.ts'

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

export function frame (type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Literal fields without indexing (RFC 7541 section 6.2.2); names and values below 127 bytes. */
export function block (fields: ReadonlyArray<readonly [string, string]>): Buffer {
  const text = (value: string): Buffer => Buffer.concat([Buffer.from([value.length]), Buffer.from(value, 'latin1')])
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]))
}

const odd: ReadonlyArray<readonly [string, string]> = [
  ['transfer-encoding', 'chunked'], ['content-length', '3'], ['content-length', '0'], ['connection', 'close'], ['te', 'trailers'], ['te', 'gzip'], ['Upper', '1'], ['x-crlf', 'a\r\nx-b: c'], ['x-nul', 'a\0b'],
  ['x\r\ny', '1'], ['x:y', '1'], ['', '1'], [':late', '1'], [':path', '/again'], ['host', 'other'], ['upgrade', 'websocket'], ['cookie', 'a=1'], ['cookie', 'b=2'], ['expect', '100-continue'], ['x-space ', '1'], ['x-ok', '1']
]

function requestFields (random: Random): Array<readonly [string, string]> {
  const fields: Array<readonly [string, string]> = [
    [':method', oneOf(random, ['GET', 'POST', 'HEAD', 'GET / HTTP/1.1', 'CONNECT', ''])], [':scheme', 'http'],
    [':path', oneOf(random, ['/a', '/a?b=1', '/a b', '/a\r\nx: y', '*', '', 'a', '/../a', '/a#b'])], [':authority', oneOf(random, ['shop', 'shop', 'shop', 'a b', 'u@shop', ''])]
  ]
  for (let count = below(random, 3); count > 0; count--) fields.splice(below(random, 2) === 0 ? fields.length : below(random, fields.length), 0, oneOf(random, odd))
  return fields
}

function frames (random: Random): Buffer {
  const parts = [preface, frame(4, 0, 0, Buffer.alloc(0))]
  let stream = 1
  for (let count = 1 + below(random, 6); count > 0; count--) {
    const payload = Buffer.alloc(oneOf(random, [0, 1, 4, 5, 8, 100]), below(random, 256))
    switch (below(random, 6)) {
      case 0: parts.push(frame(below(random, 12), below(random, 256), oneOf(random, [0, 1, 2, 3, stream]), payload)); break
      case 1: parts.push(frame(0, below(random, 2), oneOf(random, [1, stream]), payload)); break
      case 2: parts.push(frame(3, 0, oneOf(random, [1, stream]), Buffer.from([0, 0, 0, 8]))); break
      default: {
        const fields = random() < 0.5 ? [[':method', oneOf(random, ['GET', 'POST'])], [':scheme', 'http'], [':path', '/a'], [':authority', 'shop']] as const : requestFields(random)
        parts.push(frame(1, 4 | below(random, 2), stream, block(fields)))
        stream += 2
      }
    }
  }
  return Buffer.concat(parts)
}

/** How many HEADERS frames the bytes can be read as; no request comes of fewer. */
function headersIn (bytes: Buffer): number {
  let count = 0
  for (let at = preface.length; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) if (bytes[at + 3] === 1) count++
  return count
}

export const http2: Campaign = {
  name: 'http2',
  about: 'frames of HTTP/2 over a connection without TLS',
  async open (report: Report) {
    const upstream = await recorder(report)
    const gateway = await startGateway(report, { upstreams: [upstream.url], server: { ...hurried, http2: { cleartext: true } }, pool: hurriedPool })
    return {
      gateway,
      async step (random) {
        upstream.clear()
        const clean = frames(random)
        const bytes = random() < 0.5 ? clean : Buffer.concat([preface, mutate(clean.subarray(preface.length), random, 3)])
        const lines = await linesOf(gateway, async () => { await converse(gateway.port, pieces(bytes, random), oneOf(random, ['read', 'fin', 'leave', 'reset'] as const), 100) })
        await upstream.settled()
        const most = headersIn(bytes)
        if (upstream.problems.length > 0) throw new Error(`the upstream got what is no HTTP: ${upstream.problems.join('; ')}`)
        if (upstream.requests.length > most || lines.length > most + 1) throw new Error(`${most} heads, ${upstream.requests.length} requests and ${lines.length} access lines`)
        for (const { headers } of upstream.requests) if (headers.some(([name, value]) => /[\r\n\0]/.test(name + value) || name.startsWith(':'))) throw new Error(`arrived: ${JSON.stringify(headers)}`)
      }
    }
  }
}
