import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { answer, answering, rawUpstream, reset, send, stall, type RawHandler } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { block, codeOf, codes, data, flags, frame, frameClient, headers, requestFields, rstStream, settings, statusOf, uint32, type Frame, type FrameConnection } from '../../support/http2-frames.ts'
import { until } from '../../support/wait.ts'

async function facing (t: TestContext, handler: RawHandler, server: Record<string, unknown> = {}, pool: Record<string, unknown> = {}, own?: Buffer): Promise<{ gateway: Gateway, client: FrameConnection }> {
  const upstream = await rawUpstream(handler)
  t.after(() => upstream.close())
  const gateway = await startGateway(t, { upstreams: [upstream.url], pool, server: { ...server, http2: { cleartext: true, ...server['http2'] as object } } })
  return { gateway, client: await frameClient(t, gateway.port, own) }
}

const request = (id: number, path = '/', more: Array<readonly [string, string]> = [], method = 'GET'): Buffer => headers(id, requestFields(path, method, more), true)

/** @param firstEndsAll later Nodes than 20 end the connection with the first of what it sends */
async function isCalmed (client: FrameConnection, firstEndsAll = false): Promise<void> {
  const code = codeOf(await client.first('GOAWAY'))
  if (!firstEndsAll || code !== codes.INTERNAL_ERROR) assert.equal(code, codes.ENHANCE_YOUR_CALM)
  await until(() => client.ended)
}

const upload = (id: number, more: Array<readonly [string, string]> = []): Buffer => headers(id, requestFields('/', 'POST', more))

/** Streams that end by the client's doing, without an answer; by whom they are reset makes no difference (CVE-2023-44487, CVE-2025-8671). */
const resets: Array<[string, (id: number) => Buffer[], boolean?]> = [
  ...Object.entries(codes).map(([name, code]): [string, (id: number) => Buffer[]] => [`requests that it resets with ${name}`, (id) => [request(id), rstStream(id, code)]]),
  ['a HEAD that it resets without an error', (id) => [request(id, '/', [], 'HEAD'), rstStream(id, codes.NO_ERROR)]],
  ['uploads that it resets', (id) => [upload(id), data(id, 'a'), rstStream(id, codes.CANCEL)]],
  ['a body shorter than told', (id) => [upload(id, [['content-length', '5']]), data(id, 'four', true)]],
  ['a body longer than told', (id) => [upload(id, [['content-length', '5']]), data(id, 'sixsix')], true],
  ['trailers that do not end the body', (id) => [upload(id), headers(id, [['x-a', '1']])]],
  ['trailers that are none', (id) => [upload(id), headers(id, [['X-A', '1']], true)]]
]

describe('a client that floods', () => {
  it('with streams that end unanswered is told to calm down, whoever resets them; the log has one line, and everything is given back', async (t) => {
    const { gateway } = await facing(t, stall, { http2: { maxResetsPerSecond: 20 } })
    for (const [what, frames, firstEndsAll] of resets) {
      const client = await frameClient(t, gateway.port)
      for (let i = 0; i < 60; i++) client.send(...frames(2 * i + 1))
      await isCalmed(client, firstEndsAll).catch((error: unknown) => { throw new Error(what, { cause: error }) })
    }
    const packet = await frameClient(t, gateway.port)
    packet.send(...Array.from({ length: 60 }, (_, i) => [request(2 * i + 1), rstStream(2 * i + 1, codes.CANCEL)]).flat())
    await isCalmed(packet)
    await gateway.idle()
    assert.deepEqual(gateway.lines.all('http2_flood').map(({ what, client_ip: address, count, level }) => [what, address, count, level]), [['resets', '127.0.0.1', 1, 40]])
  })

  it('with pings, settings or priorities is told to calm down', async (t) => {
    const { gateway } = await facing(t, answering(), { http2: { maxResetsPerSecond: 2 } })
    for (const flood of [frame('PING', 0, 0, Buffer.alloc(8)), settings([4, 65535]), frame('PRIORITY', 0, 1, uint32(0, 0).subarray(0, 5))]) {
      const client = await frameClient(t, gateway.port)
      // Of priorities later Nodes than 20 do not tell; nghttp2 itself allows ten thousand at once, and some hundreds a second.
      client.send(...Array.from({ length: 20_000 }, () => flood))
      await isCalmed(client)
    }
    await gateway.idle()
    assert.deepEqual(gateway.lines.all('http2_flood').map(({ what }) => what), ['frames'])
  })

  it('is not one whose answers the upstream breaks off', async (t) => {
    const { gateway, client } = await facing(t, async (socket) => {
      await send(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome')
      setTimeout(() => { reset(socket) }, 30)
      await stall(socket)
    }, { http2: { maxResetsPerSecond: 2 } })
    for (let i = 0; i < 20; i++) client.send(request(2 * i + 1))
    await until(() => client.count('RST_STREAM') === 20)
    await gateway.idle()
    assert.equal(client.count('GOAWAY'), 0)
    assert.deepEqual(gateway.lines.all('http2_flood'), [])
  })

  it('with empty DATA or without an end of its head (CONTINUATION) is cut off by Node itself', async (t) => {
    const { client, gateway } = await facing(t, stall)
    client.send(headers(1, requestFields('/', 'POST')))
    for (let i = 0; i < 10000; i++) client.send(data(1, ''))
    await until(() => client.ended)
    const other = await frameClient(t, gateway.port)
    other.send(frame('HEADERS', 0, 1, block(requestFields())))
    for (let i = 0; i < 100; i++) other.send(frame('CONTINUATION', 0, 1, block([['x-a', 'a']])))
    await until(() => other.ended)
    await gateway.idle()
  })

  it('with more streams than allowed has the further ones refused', async (t) => {
    const { client } = await facing(t, stall, { http2: { maxConcurrentStreams: 2 } })
    client.send(request(1), request(3), request(5))
    assert.equal(codeOf(await client.first('RST_STREAM', 5)), codes.REFUSED_STREAM)
  })
})

describe('a client over HTTP/2 that is malformed', () => {
  const refused: Array<[string, number, Array<readonly [string, string]>]> = [
    ['another Host than its authority', 400, requestFields('/', 'GET', [['host', 'other.example']])],
    ['dot segments', 400, requestFields('/../a')],
    ['CONNECT', 400, [[':method', 'CONNECT'], [':authority', 'a:1']]],
    ['TRACE', 405, requestFields('/', 'TRACE')],
    ['a head over its limit', 431, requestFields('/', 'GET', [['x-a', 'a'.repeat(3000)]])]
  ]
  for (const [what, status, fields] of refused) {
    it(`by ${what} is answered with ${status}, and logged`, async (t) => {
      const { client, gateway } = await facing(t, answering(), { maxHeaderBytes: 2048 })
      client.send(headers(1, fields, true))
      assert.equal(statusOf(await client.first('HEADERS', 1)), status)
      await until(() => gateway.lines.all('access').length === 1)
      assert.equal(gateway.lines.all('access')[0]?.['status'], status)
      client.send(request(3))
      assert.equal(statusOf(await client.first('HEADERS', 3)), 200)
    })
  }

  it('by user information in its authority is answered with 400, and logged, or has that stream reset where nghttp2 sees it first', async (t) => {
    const { client, gateway } = await facing(t, answering())
    client.send(headers(1, [[':method', 'GET'], [':scheme', 'http'], [':authority', 'a@b'], [':path', '/']], true))
    const first = await until(() => client.frames.find(({ type, id }) => id === 1 && (type === 'HEADERS' || type === 'RST_STREAM')))
    client.send(request(3))
    assert.equal(statusOf(await client.first('HEADERS', 3)), 200)
    const answered = first.type === 'HEADERS'
    if (answered) assert.equal(statusOf(first), 400)
    else assert.equal(codeOf(first), codes.PROTOCOL_ERROR)
    await until(() => gateway.lines.all('access').length === (answered ? 2 : 1))
    assert.deepEqual(gateway.lines.all('access').map(({ status }) => status), answered ? [400, 200] : [200])
  })

  for (const [what, field] of [['a name in upper case', ['X-One', '1']], ['a field of the connection', ['connection', 'close']], ['TE that is not trailers', ['te', 'gzip']], ['transfer-encoding', ['transfer-encoding', 'chunked']]] as Array<[string, [string, string]]>) {
    it(`by ${what} has that stream reset`, async (t) => {
      const { client } = await facing(t, answering())
      client.send(request(1, '/', [field]))
      assert.equal(codeOf(await client.first('RST_STREAM', 1)), codes.PROTOCOL_ERROR)
      client.send(request(3))
      assert.equal(statusOf(await client.first('HEADERS', 3)), 200)
    })
  }
})

describe('a client over HTTP/2 that is slow', () => {
  it('to end its head is cut off', async (t) => {
    const { client } = await facing(t, answering(), { headersTimeoutMs: 200 })
    client.send(frame('HEADERS', 0, 1, block(requestFields())))
    await until(() => client.ended)
  })

  it('to begin its first request, or to go on, has its connection closed in order', async (t) => {
    const { client, gateway } = await facing(t, answering(), { headersTimeoutMs: 200, keepAliveTimeoutMs: 200 })
    assert.equal(codeOf(await client.first('GOAWAY')), codes.NO_ERROR)
    await until(() => client.ended)
    const other = await frameClient(t, gateway.port)
    other.send(request(1))
    assert.equal(statusOf(await other.first('HEADERS', 1)), 200)
    await until(() => other.ended)
  })

  it('to send its body is answered with 408', async (t) => {
    const { client, gateway } = await facing(t, async (_socket, { body }) => { await body() }, { headersTimeoutMs: 200, requestTimeoutMs: 300 })
    client.send(headers(1, requestFields('/', 'POST')), data(1, 'some'))
    assert.equal(statusOf(await client.first('HEADERS', 1)), 408)
    await gateway.left({ counted: 'neutral', status: 408, reason: 'request_timeout' })
  })

  it('but steady may take longer where its route says so, and is answered with 408 where it trickles', async (t) => {
    const { client, gateway } = await facing(t, async (socket, { body }) => {
      const { complete } = await body()
      if (complete) await send(socket, answer({ body: 'thanks' }))
    }, { headersTimeoutMs: 200, requestTimeoutMs: 300 }, { timeouts: { requestMs: 0, bodyIdleMs: 400, minUploadBytesPerSecond: 1000 } })
    client.send(headers(1, requestFields('/', 'POST')))
    for (let i = 0; i < 16; i++) {
      client.send(data(1, 'x'.repeat(1000)))
      await sleep(50)
    }
    client.send(data(1, '', true))
    assert.equal(statusOf(await client.first('HEADERS', 1)), 200)
    await gateway.left({ counted: 'success', status: 200 })
    client.send(headers(3, requestFields('/', 'POST')))
    await until(() => {
      client.send(data(3, 'x'))
      return client.count('HEADERS') > 1
    }, { intervalMs: 40 })
    assert.equal(statusOf(await client.first('HEADERS', 3)), 408)
    await gateway.left({ counted: 'neutral', status: 408, reason: 'request_timeout' })
  })

  it('to take its answer (a window of nothing) is given up after the idle limit, and its place is free', async (t) => {
    const { client, gateway } = await facing(t, answering({ body: Buffer.alloc(300000) }), {}, { timeouts: { bodyIdleMs: 200 } }, settings([4, 0]))
    client.send(request(1))
    assert.equal(codeOf(await client.first('RST_STREAM', 1)), codes.INTERNAL_ERROR)
    await gateway.idle()
    assert.equal(gateway.lines.all('access')[0]?.['reason'], 'body_idle_timeout')
  })

  it('or was given up by nghttp2 for DATA behind its end, and leaves, gives its place back', async (t) => {
    const { client, gateway } = await facing(t, stall, { headersTimeoutMs: 200 }, { timeouts: { headersMs: 0, bodyIdleMs: 0, totalMs: 0 } })
    client.send(request(1), data(1, 'more', true))
    assert.equal(codeOf(await client.first('GOAWAY')), codes.STREAM_CLOSED)
    client.close()
    await gateway.idle()
    assert.equal((await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled' }))['attempts'], 1)
  })

  it('to answer a PING is cut off where nothing else comes, and one that answers is not', async (t) => {
    const { client, gateway } = await facing(t, stall, { headersTimeoutMs: 200 }, { timeouts: { headersMs: 0, bodyIdleMs: 0, totalMs: 0 } })
    const alive = await frameClient(t, gateway.port)
    alive.socket.on('frame', ({ type, flags: set, payload }: Frame) => { if (type === 'PING' && set === 0) alive.send(frame('PING', flags.ACK, 0, payload)) })
    client.send(request(1))
    alive.send(request(1))
    await client.first('PING')
    await until(() => client.ended)
    await until(() => alive.count('PING') >= 3)
    assert.ok(!alive.ended)
  })

  it('asks for another connection where it was counted out', async (t) => {
    const { client } = await facing(t, answering(), { maxRequestsPerConnection: 1 })
    client.send(request(1))
    assert.equal(statusOf(await client.first('HEADERS', 1)), 200)
    assert.equal(codeOf(await client.first('GOAWAY')), codes.NO_ERROR)
  })
})

it('END_STREAM stands on an answer without a body', async (t) => {
  const { client } = await facing(t, answering())
  client.send(request(1))
  const head = await client.first('HEADERS', 1)
  assert.equal(head.flags & flags.END_STREAM, flags.END_STREAM)
})

describe('a client that leaves in an odd way', () => {
  for (const [when, handler] of [['before the answer', stall], ['behind the answer that its window does not let through', answering()]] as Array<[string, RawHandler]>) {
    it(`with a reset without an error ${when}: its place comes back, and there is one line`, async (t) => {
      const { gateway, client } = await facing(t, handler)
      client.send(settings([4, 0]), request(1))
      if (handler === stall) await until(() => gateway.app.shedding.inFlight === 1)
      else await client.first('HEADERS', 1)
      client.send(rstStream(1, 0))
      await gateway.idle()
      assert.equal(gateway.lines.all('access').length, 1)
      assert.equal(gateway.app.shedding.inFlight, 0)
    })
  }

  it('with a body longer than told, for which later Nodes than 20 end its connection: each exchange on it has its line', async (t) => {
    const { gateway, client } = await facing(t, stall)
    client.send(request(1), upload(3, [['content-length', '5']]))
    await until(() => gateway.app.shedding.inFlight === 2)
    client.send(data(3, 'sixsix'))
    await client.first('RST_STREAM', 3)
    client.close()
    await gateway.idle()
    assert.deepEqual(gateway.lines.all('access').map(({ status, reason }) => [status, reason]), [[499, 'client_cancelled'], [499, 'client_cancelled']])
  })

  it('with requests behind its GOAWAY, in one packet: they are refused or answered, and others are served', async (t) => {
    const { gateway, client } = await facing(t, answering())
    client.send(Buffer.concat([request(1), frame('GOAWAY', 0, 0, uint32(0, 0)), request(3), request(5)]))
    await until(() => client.ended)
    await gateway.idle()
    const other = await frameClient(t, gateway.port)
    other.send(request(1))
    assert.equal(statusOf(await other.first('HEADERS', 1)), 200)
  })
})

it('a PROXY header before bytes that tell the protocol: both are read, for HTTP/1.1 and HTTP/2', async (t) => {
  const upstream = await rawUpstream(answering())
  t.after(() => upstream.close())
  const gateway = await startGateway(t, { upstreams: [upstream.url], server: { proxyProtocolFrom: ['127.0.0.1'], http2: { cleartext: true } } })
  const answerTo = async (bytes: Buffer): Promise<Buffer> => {
    const socket = connect(gateway.port, '127.0.0.1')
    t.after(() => { socket.destroy() })
    socket.write(Buffer.concat([Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n'), bytes]))
    return (await once(socket, 'data') as [Buffer])[0]
  }
  const first = await answerTo(Buffer.from('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'))
  assert.match(first.toString('latin1'), /^HTTP\/1.1 200 /)
  // Its SETTINGS.
  assert.equal((await answerTo(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings(), request(1)])))[3], 4)
  await until(() => gateway.lines.all('access').length === 2)
  assert.deepEqual(gateway.lines.all('access').map((line) => line['client_ip']), ['192.0.2.1', '192.0.2.1'])
})
