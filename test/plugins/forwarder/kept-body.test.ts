import { deepEqual, equal, ok } from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { KeptBody } from '../../../plugins/forwarder/kept-body.ts'

/** What Node's http makes of a client's body: a stream that tells whether all of it came. */
class Client extends Readable {
  complete = false

  constructor () { super({ highWaterMark: 65536 }) }
  override _read (): void {}

  sends (...chunks: Array<string | Buffer>): this {
    for (const chunk of chunks) this.push(chunk)
    return this
  }

  ends (): this {
    this.complete = true
    this.push(null)
    return this
  }

  leaves (): void { this.destroy() }
}

function kept (options: { limit?: number, keep?: number, contentLength?: number } = {}): { client: Client, body: KeptBody } {
  const client = new Client()
  client.on('error', () => {})
  return { client, body: new KeptBody(client as unknown as IncomingMessage, { limit: 0, keep: 100, contentLength: -1, ...options }, performance.now()) }
}

const text = async (stream: Readable): Promise<string> => (await buffer(stream)).toString()
const next = (stream: Readable): Promise<Buffer> => new Promise((resolve, reject) => { stream.once('data', (chunk: Buffer) => { stream.pause(); resolve(chunk) }).once('error', reject) })
const failure = (stream: Readable): Promise<string> => new Promise((resolve) => { stream.on('error', ({ name, message }) => { resolve(`${name}: ${message}`) }).resume() })

describe('a body that may be sent more than once', () => {
  it('is not taken from the client before somebody reads it', async () => {
    const { client, body } = kept()
    client.sends('hello').ends()
    deepEqual([body.state, body.given, body.inMemory], ['untouched', false, false])
    equal(client.readableFlowing, null)
    equal(await text(body.stream()), 'hello')
    deepEqual([body.state, body.given, body.inMemory], ['whole', true, true])
  })

  it('is there again, as often as it is asked for', async () => {
    const { client, body } = kept()
    client.sends('he', 'llo').ends()
    for (let i = 0; i < 3; i++) equal(await text(body.stream()), 'hello')
  })

  it('goes on to be received where the reader is given up in the middle', async () => {
    const { client, body } = kept()
    client.sends('he')
    const first = body.stream()
    equal((await next(first)).toString(), 'he')
    first.destroy()
    client.sends('ll')
    await new Promise(setImmediate)
    equal(body.state, 'whole')
    const second = text(body.stream())
    client.sends('o').ends()
    equal(await second, 'hello')
  })

  for (const [what, options] of Object.entries({ 'told by its length': { contentLength: 101 }, 'of unknown length': {} })) {
    it(`that is larger than what is kept (${what}) streams once, and is gone then`, async () => {
      const { client, body } = kept(options)
      const first = text(body.stream())
      for (let i = 0; i < 10; i++) client.sends('0123456789')
      client.sends('x').ends()
      equal((await first).length, 101)
      deepEqual([body.state, body.inMemory], ['touched', false])
    })

    it(`that is larger than what is kept (${what}) may still be sent elsewhere while nothing was taken from it`, async () => {
      const { client, body } = kept(options)
      client.sends('x'.repeat(101)).ends()
      body.stream().destroy()
      equal(body.state, 'untouched')
      equal((await text(body.stream())).length, 101)
    })
  }

  it('that has exactly the size that is kept is kept', async () => {
    for (const contentLength of [-1, 100]) {
      const { client, body } = kept({ contentLength })
      client.sends('x'.repeat(60), 'y'.repeat(40)).ends()
      equal((await text(body.stream())).length, 100)
      equal(body.state, 'whole')
      equal(await text(body.stream()), 'x'.repeat(60) + 'y'.repeat(40))
    }
  })

  it('is held back, not lost, where it grows too large while nobody reads', async () => {
    const { client, body } = kept()
    client.sends('x'.repeat(50))
    const first = body.stream()
    await next(first)
    first.destroy()
    client.sends('y'.repeat(60), 'z'.repeat(60))
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    equal(body.state, 'whole')
    ok(client.isPaused())
    const second = text(body.stream())
    client.ends()
    equal(await second, 'x'.repeat(50) + 'y'.repeat(60) + 'z'.repeat(60))
    equal(body.state, 'touched')
  })

  it('that is larger than allowed fails, also where it grew so while nobody read', async () => {
    const { client, body } = kept({ limit: 5 })
    client.sends('hello!')
    equal(await failure(body.stream()), 'Error: the request body is larger than 5 bytes')
    equal(await failure(body.stream()), 'Error: the request body is larger than 5 bytes')
  })

  it('fails where the client leaves, also while nobody reads', async () => {
    const { client, body } = kept()
    client.sends('he')
    const first = body.stream()
    await next(first)
    client.leaves()
    equal(await failure(first), 'Error: the client left before its request was complete')
    equal(await failure(body.stream()), 'Error: the client left before its request was complete')
  })

  it('tells whom it waits for', async () => {
    const { client, body } = kept()
    const reader = body.stream()
    reader.read(0)
    equal(body.waitingForClient, true)
    const before = body.lastActivity
    client.sends('x')
    await next(reader)
    equal(body.waitingForClient, true)
    ok(body.lastActivity >= before)
    client.ends()
    await new Promise(setImmediate)
    equal(body.waitingForClient, false)
  })

  it('leaves the client alone once there will be no further attempt', async () => {
    const { client, body } = kept()
    client.sends('hello')
    const reader = body.stream()
    await next(reader)
    body.forget()
    reader.destroy()
    deepEqual(['data', 'end'].map((event) => client.listenerCount(event)), [0, 0])
  })

  it('goes on to the last attempt after it was forgotten', async () => {
    const { client, body } = kept()
    client.sends('he')
    const reader = text(body.stream())
    await new Promise(setImmediate)
    body.forget()
    client.sends('llo').ends()
    equal(await reader, 'hello')
  })

  it('tells when it is whole, once, and not where it could not be kept', async () => {
    for (const [size, expected] of [[0, 1], [100, 1], [101, 0]] as const) {
      const { client, body } = kept()
      const got: string[] = []
      body.whole = (bytes) => { got.push(bytes.toString()) }
      if (size > 0) client.sends('x'.repeat(size))
      client.ends()
      await text(body.stream())
      await text(body.stream()).catch(() => {})
      deepEqual(got, expected === 1 ? ['x'.repeat(size)] : [])
    }
  })

  it('arrives byte for byte, however it comes, is read and is given up', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 8 })
    await fc.assert(fc.asyncProperty(sizes, fc.array(fc.nat(10), { maxLength: 4 }), fc.integer({ min: 0, max: 200 }), fc.boolean(), async (chunks, cuts, keep, told) => {
      const whole = Buffer.from(chunks.map((size, i) => String.fromCharCode(97 + i).repeat(size)).join(''))
      const { client, body } = kept({ keep, contentLength: told ? whole.length : -1 })
      let at = 0
      const waiting = chunks.map((size) => whole.subarray(at, at += size))
      for (const cut of cuts) {
        if (body.state === 'touched') break
        const reader = body.stream()
        for (let i = 0; i < cut && waiting.length > 0; i++) {
          client.sends(waiting.shift() as Buffer)
          reader.read()
          await Promise.resolve()
        }
        await new Promise(setImmediate)
        reader.read()
        reader.destroy()
        await new Promise(setImmediate)
      }
      client.sends(...waiting).ends()
      if (body.state === 'touched') return ok(body.given && whole.length > keep)
      equal(await text(body.stream()), whole.toString())
      equal(body.state === 'whole', whole.length <= keep)
    }), { numRuns: 300 })
  })
})
