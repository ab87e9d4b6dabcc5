/** How connections to upstreams end: whatever an upstream does or does not do, they do end, and nobody waits for that. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { codeOf, codes, data, frame, frameUpstream, goAway, headers, settings, uint32, type Frame, type FrameConnection } from '../../support/http2-frames.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { request } from '../forwarder/support.ts'
import { priorKnowledge } from './support.ts'

const get = request()
const isRequest = ({ type }: Frame): boolean => type === 'HEADERS'
const answerAll = (id: number, connection: FrameConnection): void => { connection.send(headers(id, [[':status', '200']]), data(id, 'hello', true)) }
const one = (more: Record<string, unknown> = {}): Record<string, unknown> => ({ http2: 'prior-knowledge', connections: { max: 1, ...more['connections'] as object }, timeouts: more['timeouts'] ?? {} })

/** Resolves when our end of a connection is closed for good: what comes to it then is answered with a reset. */
async function isGone (connection: FrameConnection): Promise<void> {
  await until(() => {
    connection.send(frame('PING', 0, 0, Buffer.alloc(8)))
    return connection.socket.destroyed
  }, { what: 'a reset of what the upstream sends' })
}

describe('a connection to an upstream that never ends its side', { concurrency: true }, () => {
  it('is gone soon after the upstream has said GOAWAY', async (t) => {
    const upstream = await frameUpstream(t, (next, connection) => {
      if (!isRequest(next)) return
      answerAll(next.id, connection)
      connection.send(goAway(next.id))
    }, settings(), { allowHalfOpen: true })
    const gateway = await priorKnowledge(t, upstream.url, { pool: one() })
    assert.equal((await rawRequest(gateway.port, get)).text(), 'hello')
    // Nobody waits for its end, though there may be only one.
    assert.equal((await rawRequest(gateway.port, get)).text(), 'hello')
    await isGone(upstream.connections[0] as FrameConnection)
  })

  it('is gone soon after its time without exchanges', async (t) => {
    const upstream = await frameUpstream(t, (next, connection) => { if (isRequest(next)) answerAll(next.id, connection) }, settings(), { allowHalfOpen: true })
    const gateway = await priorKnowledge(t, upstream.url, { pool: one({ connections: { keepAliveMs: 100 } }) })
    assert.equal((await rawRequest(gateway.port, get)).text(), 'hello')
    await isGone(upstream.connections[0] as FrameConnection)
  })

  it('or has ended it, and reads no more, is gone when its exchange is given up', async (t) => {
    const upstream = await frameUpstream(t, (next, connection) => {
      if (!isRequest(next)) return
      connection.socket.pause()
      connection.socket.end()
    }, settings(), { allowHalfOpen: true })
    const gateway = await priorKnowledge(t, upstream.url, { pool: one() })
    assert.equal((await rawRequest(gateway.port, request('POST'))).status, 502)
    await gateway.left({ counted: 'failure', status: 502, reason: 'connection_reset' })
    const connection = upstream.connections[0] as FrameConnection
    connection.socket.resume()
    await until(() => connection.ended)
  })

  it('and reads no more makes nobody wait: the next exchange gets a connection of its own', async (t) => {
    const wide = Buffer.concat([settings([4, 0x7fffffff]), frame('WINDOW_UPDATE', 0, 0, uint32(0x7fff0000 - 65535))])
    const upstream = await frameUpstream(t, (next, connection, number) => {
      if (!isRequest(next)) return
      if (number === 1) connection.socket.pause()
      else answerAll(next.id, connection)
    }, wide, { allowHalfOpen: true })
    const gateway = await priorKnowledge(t, upstream.url, { pool: one({ timeouts: { totalMs: 1000, connectMs: 100 } }) })
    const client = await rawConnect(gateway.port)
    await client.write(request('POST', '/', { 'Content-Length': '100000000' }, ''))
    void client.write(Buffer.alloc(100_000_000)).catch(() => {})
    // A busy machine may not have filled all buffers by then, and it is the client that is late.
    assert.match(String((await client.readResponse('POST')).status), /^(?:504|408)$/)
    client.destroy()
    await gateway.idle()
    assert.equal((await rawRequest(gateway.port, get)).text(), 'hello')
    assert.equal(upstream.connections.length, 2)
  })
})

it('an exchange that is given up on a connection that takes no more leaves the others on it alone', async (t) => {
  const upstream = await frameUpstream(t, (next, connection) => {
    if (next.type === 'RST_STREAM') answerAll(3, connection)
    if (isRequest(next) && next.id === 3) connection.send(goAway(3))
  })
  const gateway = await priorKnowledge(t, upstream.url)
  const client = await rawConnect(gateway.port)
  await client.write(request('POST'))
  const connection = await until(() => upstream.connections[0])
  await connection.first('HEADERS', 1)
  const other = rawRequest(gateway.port, request('POST'))
  await connection.first('HEADERS', 3)
  await connection.first('GOAWAY')
  // So long that the upstream is doubted.
  await new Promise((resolve) => { setTimeout(resolve, 150) })
  client.destroy()
  assert.equal(codeOf(await connection.first('RST_STREAM', 1)), codes.CANCEL)
  assert.equal((await other).text(), 'hello')
  await until(() => connection.ended)
})
