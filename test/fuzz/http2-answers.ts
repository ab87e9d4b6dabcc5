/** An upstream's bytes of HTTP/2: answers frame by frame, whole, broken, and in floods. */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { Random } from '../../lib/random.ts'
import type { Report } from '../conformance/suite.ts'
import { startGateway } from '../support/gateway.ts'
import { valuesOf } from '../support/http-bytes.ts'
import { strictAnswers } from '../support/strict-answers.ts'
import { until } from '../support/wait.ts'
import { hurried, hurriedPool, linesOf, type Campaign } from './campaign.ts'
import { converse } from './client.ts'
import { block, frame } from './http2.ts'
import { below, mutate, oneOf, pieces } from './mutate.ts'

type Field = readonly [string, string]

const DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PUSH_PROMISE = 5, PING = 6, GOAWAY = 7, WINDOW_UPDATE = 8, CONTINUATION = 9
const endStream = 1, endHeaders = 4

const uint32 = (...values: number[]): Buffer => Buffer.concat(values.map((value) => { const bytes = Buffer.alloc(4); bytes.writeUInt32BE(value >>> 0); return bytes }))
const setting = (id: number, value: number): Buffer => Buffer.concat([Buffer.from([0, id]), uint32(value)])
const many = (random: Random, part: () => Buffer): Buffer => Buffer.concat(Array.from({ length: oneOf(random, [2, 20, 300]) }, part))
const randomBytes = (random: Random, length: number): Buffer => Buffer.from(Array.from({ length }, () => below(random, 256)))

const statuses = ['200', '200', '200', '404', '500', '204', '304', '206', '100', '103', '101', '', 'abc', '99', '1000', '20']
const fields: readonly Field[] = [
  ['content-length', '5'], ['content-length', '0'], ['content-length', '-1'], ['content-length', '99999999999999999999'], ['content-type', 'text/plain'], ['transfer-encoding', 'chunked'], ['connection', 'close'],
  ['x-split', 'a\r\nx-injected: 1'], ['x-nul', 'a\0b'], ['x\r\nx-injected', '1'], ['Upper', '1'], ['', '1'], ['x:y', '1'], [':status', '500'], [':path', '/'], ['set-cookie', 'a=1'], ['set-cookie', 'b=2'],
  ['te', 'trailers'], ['upgrade', 'websocket'], ['via', '1.1 other'], ['retry-after', '1'], ['x-long', 'y'.repeat(120)], ['trailer', 'x-t']
]

function headBlock (random: Random): Buffer {
  switch (below(random, 10)) {
    case 0: return randomBytes(random, below(random, 60))
    // A table as large as can be, an index behind its end, text cut in the midst of its coding.
    case 1: return Buffer.concat([oneOf(random, [Buffer.from([0x3f, 0xff, 0xff, 0xff, 0x7f]), Buffer.from([0xff, 0xff, 0xff, 0x7f]), Buffer.from([0x88, 0x00, 0xff])]), block([['x-a', '1']])])
    default: {
      const found: Field[] = [[':status', oneOf(random, statuses)]]
      for (let count = below(random, 3); count > 0; count--) found.splice(below(random, 2) === 0 ? found.length : below(random, found.length + 1), 0, oneOf(random, fields))
      return block(found)
    }
  }
}

function head (random: Random, id: number): Buffer {
  const bytes = headBlock(random)
  const end = below(random, 4) === 0 ? endStream : 0
  if (below(random, 6) > 0) return frame(HEADERS, endHeaders | end, id, bytes)
  const cut = below(random, bytes.length + 1)
  return Buffer.concat([frame(HEADERS, end, id, bytes.subarray(0, cut)), frame(CONTINUATION, below(random, 5) === 0 ? 0 : endHeaders, id, bytes.subarray(cut))])
}

/** What comes on a connection in any order; `id` is the stream of a request. */
const parts: ReadonlyArray<(random: Random, id: number) => Buffer> = [
  head, head,
  (random, id) => frame(HEADERS, endHeaders, id, block([[':status', '200']])),
  (random, id) => frame(DATA, oneOf(random, [0, 0, endStream]), id, Buffer.alloc(oneOf(random, [0, 1, 5, 1000, 16384, 20000]), 97)),
  (random, id) => frame(DATA, endStream, id, Buffer.from('hello')),
  (random, id) => frame(DATA, 8 | below(random, 2), id, Buffer.concat([Buffer.from([below(random, 256)]), Buffer.alloc(20)])),
  // Trailers, and what is none.
  (random, id) => frame(HEADERS, endHeaders | oneOf(random, [endStream, endStream, 0]), id, block([oneOf(random, [['x-t', '1'], ['content-length', '9'], [':status', '200'], ['X-T', '1']] as const)])),
  (random, id) => frame(RST_STREAM, 0, oneOf(random, [id, id, id + 2, 0]), uint32(below(random, 15))),
  (random, id) => frame(GOAWAY, 0, 0, uint32(oneOf(random, [0, id, id - 2, 0x7fffffff]), oneOf(random, [0, 0, 1, 2, 11]))),
  (random) => frame(SETTINGS, oneOf(random, [0, 0, 1]), 0, setting(below(random, 9), oneOf(random, [0, 1, 100, 16384, 0x7fffffff, 0xffffffff]))),
  (random, id) => frame(WINDOW_UPDATE, 0, oneOf(random, [0, id]), uint32(oneOf(random, [0, 1, 65535, 0x7fffffff, 0xffffffff]))),
  (random) => frame(PING, below(random, 2), 0, Buffer.alloc(oneOf(random, [8, 8, 7]))),
  (random, id) => frame(PUSH_PROMISE, endHeaders, id, Buffer.concat([uint32(2), block([[':method', 'GET'], [':path', '/']])])),
  (random) => frame(below(random, 14), below(random, 256), below(random, 4), Buffer.alloc(below(random, 20))),
  // A length that is not the payload's.
  (random, id) => { const bytes = head(random, id); bytes.writeUIntBE(below(random, 70000), 0, 3); return bytes },
  // Floods.
  (random) => many(random, () => frame(SETTINGS, 0, 0, setting(oneOf(random, [3, 4]), below(random, 200)))),
  (random) => many(random, () => frame(PING, 0, 0, Buffer.alloc(8))),
  (random, id) => many(random, () => frame(WINDOW_UPDATE, 0, oneOf(random, [0, id]), uint32(1))),
  (random, id) => many(random, () => frame(DATA, 0, id, Buffer.alloc(0))),
  (random, id) => many(random, () => frame(HEADERS, endHeaders, id, block([[':status', '103']]))),
  (random, id) => Buffer.concat([frame(HEADERS, 0, id, block([[':status', '200']])), many(random, () => frame(CONTINUATION, 0, id, block([['x-a', '1']])))])
]

interface Script {
  opening: Buffer
  /** The answer to a request on a stream. */
  answer (id: number): Buffer[]
  end: 'keep' | 'fin' | 'reset'
}

function draw (random: Random): Script {
  const opening = random() < 0.85 ? frame(SETTINGS, 0, 0, below(random, 3) === 0 ? setting(3, below(random, 4)) : Buffer.alloc(0)) : mutate(frame(SETTINGS, 0, 0, setting(4, 65535)), random, 2)
  const chosen = Array.from({ length: 1 + below(random, 5) }, () => oneOf(random, parts))
  const begins = random() < 0.6
  // For as many streams as a step may need.
  const drawn = Array.from({ length: 6 }, (_, i) => {
    const id = 2 * i + 1
    const bytes = Buffer.concat([...begins ? [frame(HEADERS, endHeaders, id, block([[':status', '200']]))] : [], ...chosen.map((part) => part(random, id))])
    return pieces(random() < 0.5 ? bytes : mutate(bytes, random, 3), random)
  })
  return { opening, answer: (id) => drawn[(id - 1) / 2] ?? [], end: oneOf(random, ['keep', 'keep', 'fin', 'reset'] as const) }
}

/** Whether a frame among these could end an answer. */
const couldEnd = (bytes: Buffer): boolean => {
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) if ((bytes[at + 3] === DATA || bytes[at + 3] === HEADERS) && ((bytes[at + 4] as number) & endStream) !== 0) return true
  return false
}

const methods = ['GET', 'GET', 'HEAD', 'POST', 'DELETE']

export const http2Answers: Campaign = {
  name: 'http2answers',
  about: 'frames of an upstream that speaks HTTP/2, mutated, cut, out of order and in floods',
  async open (report: Report) {
    let script: Script = draw(() => 0)
    let heads = 0
    /** What was said on each connection. */
    const said = new Map<Socket, Buffer[]>()
    const open = new Set<Socket>()
    const server = createServer({ noDelay: true }, (socket) => {
      open.add(socket)
      socket.on('error', () => {}).on('close', () => { open.delete(socket) })
      let rest: Buffer = Buffer.alloc(0)
      // The preface is no frame.
      let skip = 24
      socket.on('data', (bytes: Buffer) => {
        rest = Buffer.concat([rest, bytes])
        if (rest.length < skip) return
        if (skip > 0) put(socket, script.opening)
        rest = rest.subarray(skip)
        skip = 0
        while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
          const [type, id] = [rest[3], rest.readUInt32BE(5)]
          rest = rest.subarray(9 + rest.readUIntBE(0, 3))
          if (type !== HEADERS) continue
          heads++
          void say(socket, id)
        }
      })
    })
    const put = (socket: Socket, bytes: Buffer, done?: () => void): void => {
      said.set(socket, [...said.get(socket) ?? [], bytes])
      socket.write(bytes, done)
    }
    async function say (socket: Socket, id: number): Promise<void> {
      const { answer, end } = script
      for (const part of answer(id)) {
        if (!socket.writable) return
        await new Promise<void>((resolve) => { put(socket, part, resolve) })
        await new Promise((resolve) => { setTimeout(resolve, 1) })
      }
      // Node fails to reset one that is ending, and keeps it for ever.
      if (!socket.writable) return
      if (end === 'fin') socket.end()
      else if (end === 'reset') socket.resetAndDestroy()
    }
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
    report.after(() => { server.close(); for (const socket of open) socket.destroy() })
    const gateway = await startGateway(report, { upstreams: [`http://127.0.0.1:${(server.address() as AddressInfo).port}`], server: hurried, pool: { http2: 'prior-knowledge', ...hurriedPool } })
    return {
      gateway,
      async step (random) {
        script = draw(random)
        heads = 0
        said.clear()
        const asked = Array.from({ length: 1 + below(random, 3) }, () => oneOf(random, methods))
        const leaves = below(random, 10) === 0
        let got: Buffer[] = []
        const lines = await linesOf(gateway, async () => {
          const talks = asked.map((method) => {
            const request = `${method} /a HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n${method === 'POST' ? 'Content-Length: 5\r\n\r\nhello' : '\r\n'}`
            return converse(gateway.port, [Buffer.from(request)], leaves ? 'leave' : 'read')
          })
          got = (await Promise.all(talks)).map((talk) => talk.got)
        })
        // The next step begins with a connection of its own; and whatever came on these, they end when the upstream ends them.
        for (const socket of open) socket.end()
        await until(() => open.size === 0, { what: 'no connection to the upstream', timeoutMs: 10_000, intervalMs: 1 })
        // Where this process stood still for longer than a head may take, a connection ends before its request was read.
        const unread = got.filter((bytes) => bytes.length === 0 || bytes.toString('latin1', 0, 12) === 'HTTP/1.1 408').length
        if (lines.length > asked.length || lines.length < asked.length - unread) throw new Error(`${asked.length} requests and ${lines.length} access lines`)
        // What the upstream says that it has not begun is sent once more.
        if (heads > 2 * asked.length) throw new Error(`${asked.length} requests, and the upstream got ${heads}`)
        const ends = [...said.values()].some((bytes) => couldEnd(Buffer.concat(bytes)))
        for (const [index, method] of asked.entries()) judge(got[index] as Buffer, method, leaves, ends)
      }
    }
  }
}

function judge (got: Buffer, method: string, leaves: boolean, ends: boolean): void {
  const { answers, rest } = strictAnswers(got, [method])
  const shown = (): string => JSON.stringify(got.toString('latin1').slice(0, 600))
  if (answers.length > 1 || (answers.length === 0 && rest !== '' && !leaves)) throw new Error(`${answers.length} answers, ${rest}: ${shown()}`)
  const [own] = answers
  if (own === undefined) return
  if (own.headers.some(([name, value]) => /^x-injected/i.test(name) || /[\r\n\0]/.test(name + value) || name.startsWith(':'))) throw new Error(`a field that nobody sent: ${shown()}`)
  if (rest === '' && !ends && valuesOf(own.headers, 'transfer-encoding').length > 0) throw new Error(`an answer without an end looks whole: ${shown()}`)
}
