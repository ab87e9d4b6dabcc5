import { createSocket, type Socket as Datagrams } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import ipaddr from 'ipaddr.js'

export type RecordType = 'A' | 'AAAA' | 'SRV'

export interface Srv { priority: number, weight: number, port: number, target: string }
/** `ttl` in seconds. */
export type AnyRecord = { ttl?: number } & ({ address: string } | Srv)

/** How a question is answered. */
export type Reply =
  | readonly AnyRecord[]
  | 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED'
  /** There is the name, but no such record. */
  | 'NODATA'
  /** Nothing comes. */
  | 'silence'
  /** Something that is no DNS. */
  | 'garbage'

const types: Record<number, RecordType> = { 1: 'A', 28: 'AAAA', 33: 'SRV' }
const numbers: Record<RecordType, number> = { A: 1, AAAA: 28, SRV: 33 }
const rcodes: Record<string, number> = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 }

/** A resolver on a loopback port, over UDP and TCP. What it was not told about is NXDOMAIN. */
export class DnsServer {
  /** Every question that came, like `shop.test A`, in order. */
  readonly asked: string[] = []
  /** UDP answers say only that they are cut, as those do that are too long for a datagram. */
  truncated = false
  readonly #replies = new Map<string, Reply>()
  readonly #sockets = new Set<Socket>()
  #udp: Datagrams | undefined
  #tcp: Server | undefined
  #port = 0

  /** The resolver as an option names it. */
  get address (): string { return `127.0.0.1:${this.#port}` }

  static async start (t: Pick<TestContext, 'after'>): Promise<DnsServer> {
    const server = new DnsServer()
    await server.open()
    t.after(() => server.close())
    return server
  }

  answer (name: string, type: RecordType, reply: Reply): void {
    this.#replies.set(`${name} ${type}`, reply)
  }

  /** The addresses of a name, in both families; an empty family has no records. */
  addresses (name: string, addresses: readonly string[], ttl = 0): void {
    for (const type of ['A', 'AAAA'] as const) {
      const records = addresses.filter((address) => address.includes(':') === (type === 'AAAA')).map((address) => ({ address, ttl }))
      this.answer(name, type, records.length > 0 ? records : 'NODATA')
    }
  }

  /** Both families of a name alike. */
  both (name: string, reply: Reply): void {
    this.answer(name, 'A', reply)
    this.answer(name, 'AAAA', reply)
  }

  count (question: string): number {
    return this.asked.filter((each) => each === question).length
  }

  /** Opens, on the same port again if it was open before. */
  async open (): Promise<void> {
    for (let tries = 0; ; tries++) {
      const udp = createSocket('udp4').bind(this.#port, '127.0.0.1')
      await once(udp, 'listening')
      const { port } = udp.address()
      const tcp = createServer((socket) => { this.#serve(socket) }).listen(port, '127.0.0.1')
      try {
        await once(tcp, 'listening')
      } catch (error) {
        // Somebody has the port for TCP.
        udp.close()
        if (this.#port !== 0 || tries === 20) throw error
        continue
      }
      udp.on('message', (message, { port: to, address }) => {
        const reply = this.#replyTo(message, this.truncated)
        if (reply !== null) udp.send(reply, to, address)
      })
      this.#udp = udp
      this.#tcp = tcp
      this.#port = (tcp.address() as AddressInfo).port
      return
    }
  }

  async close (): Promise<void> {
    const udp = this.#udp
    const tcp = this.#tcp
    this.#udp = this.#tcp = undefined
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all([udp && new Promise<void>((resolve) => { udp.close(() => { resolve() }) }), tcp && new Promise((resolve) => { tcp.close(resolve) })])
  }

  #serve (socket: Socket): void {
    this.#sockets.add(socket)
    let bytes = Buffer.alloc(0)
    socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket)).on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk])
      while (bytes.length >= 2 && bytes.length >= 2 + bytes.readUInt16BE(0)) {
        const end = 2 + bytes.readUInt16BE(0)
        const reply = this.#replyTo(bytes.subarray(2, end), false)
        bytes = bytes.subarray(end)
        if (reply !== null) socket.write(Buffer.concat([uint16(reply.length), reply]))
      }
    })
  }

  #replyTo (message: Buffer, truncated: boolean): Buffer | null {
    const [name, end] = readName(message, 12)
    const type = types[message.readUInt16BE(end)]
    const question = `${name} ${type ?? message.readUInt16BE(end)}`
    this.asked.push(question)
    const reply = this.#replies.get(question) ?? 'NXDOMAIN'
    if (reply === 'silence') return null
    if (reply === 'garbage') return Buffer.from('not DNS at all')
    const records = typeof reply === 'string' || truncated ? [] : reply.map((each) => record(type!, each))
    const flags = 0x8580 | (truncated ? 0x0200 : 0) | (typeof reply === 'string' ? rcodes[reply] ?? 0 : 0)
    return Buffer.concat([message.subarray(0, 2), uint16(flags, 1, records.length, 0, 0), message.subarray(12, end + 4), ...records])
  }
}

function uint16 (...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2)
  for (const [index, value] of values.entries()) bytes.writeUInt16BE(value, index * 2)
  return bytes
}

function readName (message: Buffer, start: number): [name: string, end: number] {
  const labels: string[] = []
  let at = start
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return [labels.join('.').toLowerCase(), at + 1]
}

const writeName = (name: string): Buffer =>
  Buffer.concat([...name.split('.').filter((label) => label !== '').map((label) => Buffer.from([label.length, ...Buffer.from(label, 'latin1')])), Buffer.from([0])])

function record (type: RecordType, each: AnyRecord): Buffer {
  const data = 'address' in each ? Buffer.from(ipaddr.parse(each.address).toByteArray()) : Buffer.concat([uint16(each.priority, each.weight, each.port), writeName(each.target)])
  const ttl = Buffer.alloc(4)
  ttl.writeUInt32BE(each.ttl ?? 0)
  // 0xc00c: the name of the question.
  return Buffer.concat([uint16(0xc00c, numbers[type], 1), ttl, uint16(data.length), data])
}
