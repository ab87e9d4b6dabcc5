import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'undici'
import { exactConnector } from '../../../plugins/upstream-pools/connector.ts'
import { answer, answering, rawUpstream, reset, send } from '../../support/faulty-upstream.ts'
import type { RawHandler } from '../../support/faulty-upstream.ts'
import { until } from '../../support/wait.ts'

/** Sends one request over the connector, with a reader that takes the first piece of the body and then no more. */
async function pausedReader (t: TestContext, handler: RawHandler): Promise<{ error: Error | null, broken: boolean, connects: number }> {
  const upstream = await rawUpstream(handler)
  t.after(() => upstream.close())
  const seen = { error: null as Error | null, broken: false, connects: 0 }
  const connector = exactConnector({}, 1000, () => { seen.connects++ })
  const client = new Client(upstream.url, { connect: connector.connect, bodyTimeout: 0, headersTimeout: 0 })
  t.after(() => client.destroy())
  let ended = false
  client.dispatch({ method: 'GET', path: '/' }, {
    onConnect () {},
    onHeaders: () => true,
    onData: () => false,
    onComplete () {
      seen.broken = connector.broken
      ended = true
    },
    onError (error: Error) {
      seen.error = error
      ended = true
    }
  })
  await until(() => ended)
  return seen
}

for (const [name, headers] of Object.entries<Array<[string, string]>>({
  'ends with its connection': [],
  'has a length, on a connection that is not kept': [['Content-Length', '10000'], ['Connection', 'close']],
  'comes in chunks, on a connection that is not kept': [['Transfer-Encoding', 'chunked'], ['Connection', 'close']]
})) {
  test(`a reset while nobody reads a body that ${name} is an error of that request, and ends nothing else`, async (t) => {
    const { error } = await pausedReader(t, async (socket) => {
      await send(socket, answer({ headers, framing: 'none' }), name.includes('chunks') ? '5\r\nhello\r\n' : 'hello')
      await delay(50)
      reset(socket)
    })
    assert.match(error?.message ?? 'none', /ECONNRESET/)
  })
}

test('a reset that arrives with the last bytes is told from an orderly end', async (t) => {
  for (const cut of [true, false]) {
    const upstream = await rawUpstream(async (socket) => {
      await send(socket, answer({ body: 'hello', framing: 'none' }))
      if (cut) reset(socket)
      else socket.end()
    })
    t.after(() => upstream.close())
    const connector = exactConnector({}, 0, () => {})
    const client = new Client(upstream.url, { connect: connector.connect })
    t.after(() => client.destroy())
    const whole = await new Promise<boolean>((resolve) => {
      client.dispatch({ method: 'GET', path: '/' }, {
        onConnect () {},
        onHeaders: () => true,
        onData: () => true,
        onComplete () { resolve(!connector.broken) },
        onError () { resolve(false) }
      })
    })
    assert.equal(whole, !cut)
    assert.equal(connector.broken, false, 'only while it ends')
  }
})

test('each connection that was made is counted, one that was not is not', async (t) => {
  const { connects } = await pausedReader(t, async (socket) => {
    await answering({ body: '' })(socket, undefined as never)
  })
  assert.equal(connects, 1)
})
