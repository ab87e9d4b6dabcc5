/** How connections of clients end: whatever a client does or does not do, they do end. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { answer, answering, rawUpstream, send, stall, type RawHandler } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway, type GatewayOptions } from '../../support/gateway.ts'
import { codeOf, codes, frame, frameClient, headers, requestFields, settings, statusOf, uint32, type FrameClientOptions, type FrameConnection } from '../../support/http2-frames.ts'
import { until, within } from '../../support/wait.ts'
import { Folder } from '../listener/support.ts'
import { assertCut, connectStuck, endless, stuck } from './stuck.ts'

const untimed = { timeouts: { headersMs: 0, bodyIdleMs: 0, totalMs: 0 } }
const get = (path = '/'): Buffer => headers(1, requestFields(path), true)

async function listening (t: TestContext, handler: RawHandler, tls: boolean, { server, ...options }: GatewayOptions = {}): Promise<Gateway> {
  const upstream = await rawUpstream(handler)
  t.after(() => upstream.close())
  const how = tls ? { tls: { certificates: [new Folder(t).issue('shop.example')] } } : { http2: { cleartext: true } }
  return startGateway(t, { upstreams: [upstream.url], server: { ...server, ...how }, pool: untimed, ...options })
}

const connections = ({ app }: Gateway): Promise<number> => new Promise((resolve, reject) => {
  app.server.getConnections((error, count) => { if (error === null) resolve(count); else reject(error) })
})

for (const tls of [false, true]) {
  describe(`over ${tls ? 'TLS' : 'clear text'}`, { concurrency: true }, () => {
    const options: FrameClientOptions = { tls }

    it('the end of the grace cuts every client that is stuck, whatever it is stuck in; each exchange has its line', async (t) => {
      const gateway = await listening(t, endless, tls, { server: { shutdown: { graceMs: 400 } } })
      const requests = stuck.filter(({ status }) => status !== null).length
      for (const each of stuck) await connectStuck(t, gateway.port, each, options)
      // What has come is in flight, or has its line.
      await until(() => gateway.lines.all('access').some(({ path }) => path === '/small') && gateway.app.shedding.inFlight + gateway.lines.all('access').length === requests)
      let open = 0
      await assert.rejects(within(gateway.close()), ({ message }: Error) => (open = Number(/^(\d+) connections with an unanswered/.exec(message)?.[1])) > 0)
      await gateway.idle()
      assertCut(gateway.lines.all('access'), open)
      assert.equal(await connections(gateway).catch(() => 0), 0)
    })

    it('clients to whom nothing is owed hold up no stop, though they never end their side', async (t) => {
      const gateway = await listening(t, endless, tls, { server: { shutdown: { graceMs: 60_000 } } })
      for (const each of stuck.slice(-2)) await (await connectStuck(t, gateway.port, each, options)).first('SETTINGS')
      await until(() => gateway.lines.all('access').length === 1)
      await within(gateway.close())
    })

    it('a connection that is closed for its silence is gone, though its client never ends its side', async (t) => {
      // Both ends are in this process, which stands still while the others here make their certificates: the client, too, is late then.
      const gateway = await listening(t, answering(), tls, { server: { headersTimeoutMs: 2000, keepAliveTimeoutMs: 200 } })
      const unused = await frameClient(t, gateway.port, settings(), { ...options, allowHalfOpen: true })
      const used = await frameClient(t, gateway.port, Buffer.concat([settings(), get()]), { ...options, allowHalfOpen: true })
      assert.equal(statusOf(await used.first('HEADERS', 1)), 200)
      await until(() => unused.ended && used.ended)
      await until(async () => await connections(gateway) === 0)
    })
  })
}

describe('a connection that takes no more requests', { concurrency: true }, () => {
  const server = { headersTimeoutMs: 200 }

  /** An answer that comes when it is told to, at the earliest once its client was asked for a second sign of life. */
  function held (): { handler: RawHandler, tell: (client: FrameConnection) => Promise<void> } {
    let release = (): void => {}
    const told = new Promise<void>((resolve) => { release = resolve })
    return {
      handler: (socket) => told.then(() => send(socket, answer({ body: 'late' }))),
      tell: async (client) => {
        // Two come at the beginning: the server's own, and its word to the client's.
        await until(() => client.count('SETTINGS') >= 4, { what: 'SETTINGS that want an answer' })
        release()
      }
    }
  }

  for (const [why, more, bytes] of [
    ['it has had its last one', { maxRequestsPerConnection: 1 }, get()],
    ['its client has said GOAWAY', {}, Buffer.concat([get(), frame('GOAWAY', 0, 0, uint32(0, 0))])]
  ] as Array<[string, Record<string, unknown>, Buffer]>) {
    it(`because ${why} lives until its answer is there, however late that is`, async (t) => {
      const { handler, tell } = held()
      const gateway = await listening(t, handler, false, { server: { ...server, ...more } })
      const client = await frameClient(t, gateway.port, Buffer.concat([settings(), bytes]))
      await tell(client)
      await until(() => client.body(1).toString() === 'late')
      await gateway.left({ counted: 'success', status: 200 })
      await until(() => client.ended)
    })
  }

  it('because of a stop lives until its answer is there', async (t) => {
    const { handler, tell } = held()
    const gateway = await listening(t, handler, false, { server: { ...server, shutdown: { graceMs: 60_000 } } })
    const client = await frameClient(t, gateway.port, Buffer.concat([settings(), get()]))
    await until(() => gateway.app.shedding.inFlight === 1)
    const closed = gateway.close()
    await tell(client)
    await within(closed)
    assert.equal(client.body(1).toString(), 'late')
    assert.equal(codeOf(await client.first('GOAWAY')), codes.NO_ERROR)
  })

  it('is cut where its client gives no sign of life', async (t) => {
    const gateway = await listening(t, stall, false, { server: { ...server, maxRequestsPerConnection: 1 } })
    const client = await frameClient(t, gateway.port, Buffer.concat([settings(), get()]))
    await client.first('GOAWAY')
    client.socket.pause()
    await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled' })
    await until(async () => await connections(gateway) === 0)
  })
})
