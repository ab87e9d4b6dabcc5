import assert from 'node:assert/strict'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { setTimeout as delay } from 'node:timers/promises'
import { answer, answering, partOfBody, reset, send, stall } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { get, inFront, request } from './support.ts'

/** A kind of exchange that ends badly: what the upstream does, what the client sends, and when it leaves (never, if it waits for an end). */
interface Kind {
  handler: RawHandler
  bytes: Buffer
  leave?: 'asked' | 'head' | 'at once'
}

const upload = request('POST', '/', { 'Content-Length': '100000' }, 'x'.repeat(1000))
const begun: RawHandler = async (socket) => {
  await send(socket, answer({ headers: [['Content-Length', '1000000']], framing: 'none', body: 'x'.repeat(70_000) }))
  await stall(socket)
}

const kinds: Record<string, Kind> = {
  'a GET whose client leaves at once': { handler: answering(), bytes: get, leave: 'at once' },
  'a GET whose client leaves before the answer': { handler: stall, bytes: get, leave: 'asked' },
  'a POST whose client leaves before the answer': { handler: stall, bytes: request('POST', '/', {}, 'hello'), leave: 'asked' },
  'an upload whose client leaves': { handler: stall, bytes: upload, leave: 'asked' },
  'a download whose client leaves': { handler: begun, bytes: get, leave: 'head' },
  'a reset before the head': { handler: socket => { reset(socket) }, bytes: get },
  'a body that is cut': { handler: socket => partOfBody(socket, { ending: 'reset' }), bytes: get },
  'an answer that is none': { handler: answering(Buffer.from('nonsense\r\n\r\n')), bytes: get },
  'a status over 599 with a body': { handler: answering({ status: 700, body: 'x'.repeat(100_000) }), bytes: get },
  'a 304 with a length': { handler: answering({ status: 304, headers: [['Content-Length', '5']], framing: 'none' }), bytes: get },
  'an early answer to an upload': { handler: answering({ status: 403, body: 'no' }), bytes: upload },
  'no answer in time': { handler: stall, bytes: get },
  'a body over the limit': { handler: async (socket, { body }) => { if ((await body()).complete) await stall(socket) }, bytes: request('POST', '/', { 'Transfer-Encoding': 'chunked' }, `30d40\r\n${'x'.repeat(200_000)}\r\n`) }
}

const rounds = 50

for (const [name, { handler, bytes, leave }] of Object.entries(kinds)) {
  test(`${rounds} times ${name}: nothing is left over`, async (t) => {
    const { gateway, upstream } = await inFront(t, handler, { server: { maxBodyBytes: 150_000 }, pool: { timeouts: { headersMs: 300 } } })
    const one = async (): Promise<void> => {
      if (leave === undefined) {
        await rawRequest(gateway.port, bytes)
        return
      }
      const client = await rawConnect(gateway.port)
      await client.write(bytes)
      if (leave === 'head') await client.readHead()
      else if (leave === 'asked') await delay(5)
      client.reset()
    }
    for (let done = 0; done < rounds; done += 10) await Promise.all(Array.from({ length: 10 }, one))
    await until(() => gateway.lines.all('access').length === rounds || gateway.lines.all('access').length + 10 > rounds)
    await gateway.idle()
    assert.equal(gateway.lines.find('internal_error'), undefined)
    const { server } = gateway.app
    const connections = promisify(server.getConnections.bind(server))
    await until(async () => await connections() === 0, { what: 'every client connection closed' })

    // Whatever connections to the upstream are left are idle, and good for the next request.
    upstream.handle(answering({ body: 'well' }))
    const before = upstream.connections
    const open = upstream.open.size
    const again = await Promise.all(Array.from({ length: Math.max(1, open) }, () => rawRequest(gateway.port, request('POST', '/', {}, 'hello'))))
    assert.deepEqual(again.map(got => got.text()), again.map(() => 'well'))
    assert.ok(upstream.connections - before <= 1 || open > 0, 'idle connections are used')
    await gateway.idle()
    await gateway.close()
    await until(() => upstream.open.size === 0, { what: 'every upstream connection closed' })
  })
}
