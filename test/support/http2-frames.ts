/** HTTP/2 frame by frame (RFC 9113), for what no library would send. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { until } from './wait.ts'

export const types = { DATA: 0, HEADERS: 1, PRIORITY: 2, RST_STREAM: 3, SETTINGS: 4, PUSH_PROMISE: 5, PING: 6, GOAWAY: 7, WINDOW_UPDATE: 8, CONTINUATION: 9 } as const
export const flags = { END_STREAM: 1, ACK: 1, END_HEADERS: 4, PADDED: 8 } as const
export const codes = { NO_ERROR: 0, PROTOCOL_ERROR: 1, INTERNAL_ERROR: 2, STREAM_CLOSED: 5, REFUSED_STREAM: 7, CANCEL: 8, ENHANCE_YOUR_CALM: 11 } as const
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

export type FrameType = keyof typeof types

export interface Frame {
  type: FrameType
  flags: number
  /** Of the stream. */
  id: number
  payload: Buffer
}

const nameOf = new Map<number, FrameType>(Object.entries(types).map(([name, code]) => [code, name as FrameType]))

export function frame (type: FrameType, flag = 0, id = 0, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = types[type]
  head[4] = flag
  head.writeUInt32BE(id, 5)
  return Buffer.concat([head, payload])
}

const integer = (value: number): Buffer => {
  if (value < 127) return Buffer.from([value])
  const bytes = [127]
  let rest = value - 127
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128)
  return Buffer.from([...bytes, rest])
}

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value, 'latin1')
  return Buffer.concat([integer(bytes.length), bytes])
}

/** A header block of literals that nobody indexes (RFC 7541 section 6.2.2). */
export const block = (fields: ReadonlyArray<readonly [string, string]>): Buffer =>
  Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]))

/** The fields of a request. */
export const requestFields = (path = '/', method = 'GET', more: ReadonlyArray<readonly [string, string]> = []): Array<readonly [string, string]> =>
  [[':method', method], [':scheme', 'http'], [':authority', 'shop.example'], [':path', path], ...more]

export const uint32 = (...values: number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length)
  values.forEach((value, i) => bytes.writeUInt32BE(value, 4 * i))
  return bytes
}

export const rstStream = (id: number, code: number): Buffer => frame('RST_STREAM', 0, id, uint32(code))
export const goAway = (last: number, code: number = codes.NO_ERROR): Buffer => frame('GOAWAY', 0, 0, uint32(last, code))
export const headers = (id: number, fields: ReadonlyArray<readonly [string, string]>, end = false): Buffer =>
  frame('HEADERS', flags.END_HEADERS | (end ? flags.END_STREAM : 0), id, block(fields))
export const data = (id: number, payload: string | Buffer, end = false): Buffer => frame('DATA', end ? flags.END_STREAM : 0, id, Buffer.from(payload as string))
export const settings = (...pairs: Array<[id: number, value: number]>): Buffer => frame('SETTINGS', 0, 0, Buffer.concat(pairs.map(([id, value]) => {
  const bytes = Buffer.alloc(6)
  bytes.writeUInt16BE(id)
  bytes.writeUInt32BE(value, 2)
  return bytes
})))

/** Code of RST_STREAM or GOAWAY. */
export const codeOf = ({ type, payload }: Frame): number => payload.readUInt32BE(type === 'GOAWAY' ? 4 : 0)

const digits = ['00000', '00001', '00010', '011001', '011010', '011011', '011100', '011101', '011110', '011111']
const indexed: Record<number, number> = { 0x88: 200, 0x89: 204, 0x8a: 206, 0x8b: 304, 0x8c: 400, 0x8d: 404, 0x8e: 500 }

/** The status of an answer: `:status` is its first field, whose name is in the static table. */
export function statusOf ({ payload }: Frame): number {
  let at = 0
  while (((payload[at] as number) & 0xe0) === 0x20) at++
  const known = indexed[payload[at] as number]
  if (known !== undefined) return known
  const length = payload[at + 1] as number
  const bytes = payload.subarray(at + 2, at + 2 + (length & 127))
  if ((length & 128) === 0) return Number(bytes.toString())
  let bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  let status = ''
  while (status.length < 3) {
    const digit = digits.findIndex((code) => bits.startsWith(code))
    if (digit === -1) return 0
    status += String(digit)
    bits = bits.slice((digits[digit] as string).length)
  }
  return Number(status)
}

export interface FrameConnection {
  readonly socket: Socket
  /** All that has come, in order. */
  readonly frames: Frame[]
  /** The other side has closed. */
  readonly ended: boolean
  send (...parts: Buffer[]): void
  /** The first frame of a type, on a stream if that is given; waited for. */
  first (type: FrameType, id?: number): Promise<Frame>
  count (type: FrameType): number
  /** The bytes of a stream's DATA so far. */
  body (id: number): Buffer
  close (): void
}

/** @param expectPreface the other side is a client */
function converse (socket: Socket, expectPreface: boolean): FrameConnection {
  const frames: Frame[] = []
  let rest = Buffer.alloc(0)
  let waitsForPreface = expectPreface
  let ended = false
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    if (waitsForPreface && rest.length >= preface.length) {
      rest = rest.subarray(preface.length)
      waitsForPreface = false
    }
    if (waitsForPreface) return
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const end = 9 + rest.readUIntBE(0, 3)
      const next: Frame = { type: nameOf.get(rest[3] as number) as FrameType, flags: rest[4] as number, id: rest.readUInt32BE(5) & 0x7fffffff, payload: Buffer.from(rest.subarray(9, end)) }
      rest = rest.subarray(end)
      frames.push(next)
      if (next.type === 'SETTINGS' && (next.flags & flags.ACK) === 0 && socket.writable) socket.write(frame('SETTINGS', flags.ACK))
      socket.emit('frame', next)
    }
  })
  socket.on('end', () => { ended = true }).on('close', () => { ended = true }).on('error', () => { ended = true })
  const find = (type: FrameType, id?: number): Frame | undefined => frames.find((each) => each.type === type && (id === undefined || each.id === id))
  return {
    socket,
    frames,
    get ended () { return ended },
    send (...parts) { if (socket.writable) socket.write(Buffer.concat(parts)) },
    first: (type, id) => until(() => find(type, id)).catch((error: unknown) => {
      const there = frames.map(({ type: each, id: on }) => `${each}#${on}`).join(' ')
      throw new Error(`no ${type} on ${String(id)}; there are ${there}${ended ? ', and the end' : ''}`, { cause: error })
    }),
    count: (type) => frames.filter((each) => each.type === type).length,
    body: (id) => Buffer.concat(frames.filter((each) => each.type === 'DATA' && each.id === id).map(({ payload }) => payload)),
    close () { socket.destroy() }
  }
}

export interface FrameClientOptions {
  /** false */
  tls?: boolean
  /** Keeps its side open when the other side has ended its own. false */
  allowHalfOpen?: boolean
}

/** A client that has sent its preface and settings. */
export async function frameClient (t: Pick<TestContext, 'after'>, port: number, own: Buffer = settings(), { tls = false, allowHalfOpen = false }: FrameClientOptions = {}): Promise<FrameConnection> {
  const to = { port, host: '127.0.0.1', noDelay: true, allowHalfOpen }
  const socket = tls ? connectTls({ ...to, rejectUnauthorized: false, ALPNProtocols: ['h2'] }) : connect(to)
  t.after(() => { socket.destroy() })
  await new Promise<void>((resolve, reject) => { socket.once(tls ? 'secureConnect' : 'connect', resolve).once('error', reject) })
  const connection = converse(socket, false)
  connection.send(preface, own)
  return connection
}

export interface FrameUpstream {
  readonly url: string
  readonly connections: FrameConnection[]
}

/** A server whose frames the test writes. @param onFrame called for each one that comes */
export async function frameUpstream (t: Pick<TestContext, 'after'>, onFrame: (frame: Frame, connection: FrameConnection, number: number) => unknown, own: Buffer = settings(), { allowHalfOpen = false }: Pick<FrameClientOptions, 'allowHalfOpen'> = {}): Promise<FrameUpstream> {
  const connections: FrameConnection[] = []
  const server = createServer({ noDelay: true, allowHalfOpen }, (socket) => {
    const connection = converse(socket, true)
    connections.push(connection)
    const number = connections.length
    socket.on('frame', (next: Frame) => onFrame(next, connection, number))
    connection.send(own)
  })
  t.after(() => {
    server.close()
    for (const { socket } of connections) socket.destroy()
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections }
}
