/**
 * Many bytes through the gateway in each direction, with a slow reader at the end: memory stays flat, whoever is slow makes the other
 * side wait, and the connections serve on. `npm test` sends 256 MiB each way; `npm run soak:bytes` 10 GiB.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, createServer, request as httpRequest, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Writable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { seededRandom } from '../../lib/random.ts'
import type { NodeProcess } from '../support/process.ts'
import { until } from '../support/wait.ts'
import { portOf, spawnApp } from './lifecycle/support.ts'

const MiB = 2 ** 20
const total = Number(process.env['BREAKWATER_SOAK_BYTES'] ?? 256 * MiB)
/** After so many bytes memory is what it will be. */
const warm = 64 * MiB
/** The reader rests when so much is left: more than all buffers of the system hold. */
const rest = 96 * MiB
const maxGrowth = 112 * MiB

const random = seededRandom(20261130)
const period = 65536
/** What is sent, over and over; twice, so that a piece of it may begin anywhere. */
const pattern = Buffer.alloc(2 * period)
for (let i = 0; i < period; i++) pattern[i] = pattern[i + period] = Math.floor(random() * 256)

/** Sends `total` bytes, no faster than they are taken. */
class Sender {
  sent = 0
  readonly #to: Writable

  constructor (to: Writable) {
    this.#to = to
    to.on('drain', this.#send)
    this.#send()
  }

  readonly #send = (): void => {
    let more = true
    while (more && this.sent < total) {
      const size = Math.min(period, total - this.sent)
      this.sent += size
      more = this.#to.write(pattern.subarray(0, size))
    }
    if (this.sent < total || this.#to.writableEnded) return
    this.#to.end()
  }
}

/** Reads all of a body, and rests once until `rested` resolves. */
async function receive (body: IncomingMessage, passed: (bytes: number) => void, rested: () => Promise<void>): Promise<number> {
  let bytes = 0
  let restedAlready = false
  for await (const chunk of body as AsyncIterable<Buffer>) {
    for (let at = 0; at < chunk.length; at += period) {
      const piece = chunk.subarray(at, at + period)
      const from = (bytes + at) % period
      if (piece.compare(pattern, from, from + piece.length) !== 0) throw new Error(`other bytes than were sent, from ${bytes + at} on`)
    }
    bytes += chunk.length
    passed(bytes)
    if (restedAlready || bytes < total - rest) continue
    restedAlready = true
    await rested()
  }
  return bytes
}

/** Resolves when a sender has not been able to send any more for half a second. */
async function stopped (sender: () => Sender | null): Promise<void> {
  let before = -1
  await until(() => {
    const sent = sender()?.sent ?? -1
    const still = sent >= 0 && sent === before
    before = sent
    return still
  }, { intervalMs: 500, timeoutMs: 15000, what: 'the sender having to wait' })
  assert.ok(before < total, 'the sender had not sent all')
}

/** Resident memory of the gateway, as it tells it itself. */
class Memory {
  readonly #child: NodeProcess
  readonly #t: TestContext
  #from = 0
  #told = 0

  constructor (child: NodeProcess, t: TestContext) {
    this.#child = child
    this.#t = t
  }

  /** Resolves with the next reading. */
  async now (): Promise<number> {
    const seen = this.#child.errors.lines.length
    return until(() => this.#child.errors.lines.slice(seen).map(({ rss }) => rss as number).at(-1))
  }

  begin (): void { this.#from = this.#told = 0 }

  passed (bytes: number): void {
    if (this.#from === 0 && bytes >= warm) this.#from = this.#child.errors.lines.length
    if (bytes < this.#told + 1024 * MiB) return
    this.#told += 1024 * MiB
    this.#t.diagnostic(`${this.#told / MiB / 1024} GiB: ${Math.round((this.#child.errors.lines.at(-1)?.['rss'] as number) / MiB)} MiB resident`)
  }

  /** How much more than at the end of the warm-up it was at most. */
  growth (): number {
    const readings = this.#child.errors.lines.slice(Math.max(0, this.#from - 1)).map(({ rss }) => rss as number)
    return Math.max(...readings) - (readings[0] ?? 0)
  }
}

const readings = 'data:text/javascript,setInterval(()=>{process.stderr.write(JSON.stringify({rss:process.memoryUsage.rss()})+"\\n")},100).unref()'

test(`${total / MiB} MiB down and up: memory stays flat, a slow reader stops the sender, and the connections are used again`, { timeout: 900_000 }, async (t) => {
  let down: Sender | null = null
  let up: Sender | null = null
  let memory: Memory | null = null
  let connections = 0
  let received = -1
  const upstream = createServer(async (request, response) => {
    if (request.url === '/down') {
      response.writeHead(200, { 'content-length': total })
      down = new Sender(response)
    } else if (request.url === '/up') {
      received = await receive(request, bytes => { memory?.passed(bytes) }, () => stopped(() => up))
      response.end('thanks')
    } else {
      response.end('ok')
    }
  })
  upstream.requestTimeout = 0
  upstream.on('connection', () => { connections++ })
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  t.after(() => { upstream.close(); upstream.closeAllConnections() })

  const child = spawnApp(t, [`http://127.0.0.1:${(upstream.address() as AddressInfo).port}`], {
    pool: { timeouts: { requestMs: 0, totalMs: 0 } },
    node: ['--import', readings]
  })
  const port = await portOf(child)
  memory = new Memory(child, t)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => { agent.destroy() })
  const ask = async (options: RequestOptions, body?: (request: ClientRequest) => void): Promise<IncomingMessage> => {
    const request = httpRequest({ host: '127.0.0.1', port, agent, ...options })
    if (body === undefined) request.end()
    else body(request)
    const [response] = await once(request, 'response') as [IncomingMessage]
    return response
  }
  const text = async (response: IncomingMessage): Promise<string> => (await response.setEncoding('utf8').toArray()).join('')

  memory.begin()
  const answer = await ask({ path: '/down' })
  assert.equal(await receive(answer, bytes => { memory.passed(bytes) }, () => stopped(() => down)), total)
  assert.equal(answer.complete, true)
  const downGrowth = memory.growth()
  assert.equal(await text(await ask({ path: '/' })), 'ok')

  memory.begin()
  const thanks = await ask({ path: '/up', method: 'PUT', headers: { 'content-length': total } }, (request) => { up = new Sender(request) })
  assert.equal(await text(thanks), 'thanks')
  assert.equal(received, total)
  const upGrowth = memory.growth()
  assert.equal(await text(await ask({ path: '/' })), 'ok')

  await until(() => child.output.all('access').length === 4)
  assert.equal(connections, 1, 'one connection to the upstream for all')
  assert.deepEqual(child.output.all('access').map(({ status, bytes, reason }) => [status, bytes, reason]), [[200, total, null], [200, 2, null], [200, 6, null], [200, 2, null]])
  t.diagnostic(`${Math.round(await memory.now() / MiB)} MiB resident at the end; at most ${Math.round(downGrowth / MiB)} MiB more while downloading, ${Math.round(upGrowth / MiB)} MiB while uploading`)
  assert.ok(downGrowth < maxGrowth && upGrowth < maxGrowth, `grew by ${downGrowth} bytes down, ${upGrowth} up`)
})
