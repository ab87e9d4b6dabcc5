import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { answering, rawUpstream } from '../../support/faulty-upstream.ts'
import { block, codeOf, codes, data, flags, frame, frameUpstream, goAway, headers, rstStream, settings, type Frame, type FrameConnection } from '../../support/http2-frames.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { request } from '../forwarder/support.ts'
import { http2Upstream, priorKnowledge } from './support.ts'

const get = request()
const ok = [[':status', '200']] as const
const isRequest = ({ type }: Frame): boolean => type === 'HEADERS'
const answerAll = (id: number, connection: FrameConnection): void => { connection.send(headers(id, ok), data(id, 'hello', true)) }

describe('an upstream that breaks HTTP/2 off', () => {
  it('by a reset before the answer fails that exchange and no other', async (t) => {
    const upstream = await frameUpstream(t, (next, connection) => {
      if (!isRequest(next)) return
      if (next.id === 1) return
      connection.send(rstStream(next.id, codes.INTERNAL_ERROR), headers(1, ok), data(1, 'hello', true))
    })
    const gateway = await priorKnowledge(t, upstream.url)
    const first = rawRequest(gateway.port, get)
    await until(() => upstream.connections[0]?.frames.some(isRequest))
    const second = await rawRequest(gateway.port, request('POST'))
    assert.equal(second.status, 502)
    assert.match(second.text(), /connection_reset/)
    assert.equal((await first).text(), 'hello')
    assert.equal(upstream.connections.length, 1)
    assert.match(String(gateway.lines.find(({ msg }) => msg === 'upstream_error')?.['error']), /INTERNAL_ERROR/)
    await gateway.skip()
  })

  for (const code of [codes.INTERNAL_ERROR, codes.CANCEL, codes.NO_ERROR]) {
    it(`by a reset with ${code} in the middle of a body cuts the answer`, async (t) => {
      const upstream = await frameUpstream(t, (next, connection) => {
        if (!isRequest(next)) return
        connection.send(headers(next.id, ok), data(next.id, 'hel'))
        setTimeout(() => { connection.send(rstStream(next.id, code)) }, 30)
      })
      const gateway = await priorKnowledge(t, upstream.url)
      const answer = await rawRequest(gateway.port, get)
      assert.equal(answer.status, 200)
      assert.equal(answer.complete, false)
      assert.equal(answer.ended, 'reset')
      await gateway.left({ counted: 'failure', status: 200, reason: 'body_truncated', bytes: 3 })
    })
  }

  it('by a GOAWAY finishes what it has taken, and the rest goes to another connection, whatever its method', async (t) => {
    const upstream = await frameUpstream(t, (next, connection, number) => {
      if (!isRequest(next)) return
      if (number > 1) answerAll(next.id, connection)
      else if (next.id === 3) {
        connection.send(goAway(1))
        setTimeout(() => { answerAll(1, connection) }, 30)
      }
    })
    const gateway = await priorKnowledge(t, upstream.url)
    const first = rawRequest(gateway.port, request('POST'))
    await until(() => upstream.connections[0]?.frames.some(isRequest))
    const second = rawRequest(gateway.port, request('POST'))
    assert.deepEqual([(await first).text(), (await second).text()], ['hello', 'hello'])
    assert.equal(upstream.connections.length, 2)
    await until(() => upstream.connections[0]?.ended)
    assert.equal(gateway.lines.find(({ msg }) => msg === 'upstream_error'), undefined)
  })

  it('by GOAWAY with an error fails what it may have seen', async (t) => {
    const upstream = await frameUpstream(t, (next, connection) => {
      if (isRequest(next)) connection.send(goAway(1, codes.INTERNAL_ERROR))
    })
    const gateway = await priorKnowledge(t, upstream.url)
    assert.match((await rawRequest(gateway.port, request('POST'))).text(), /connection_reset/)
    await gateway.left({ counted: 'failure', status: 502, reason: 'connection_reset' })
  })

  it('by REFUSED_STREAM has seen nothing: with retries configured another upstream gets it, whatever its method', async (t) => {
    const busy = await frameUpstream(t, (next, connection) => { if (isRequest(next)) connection.send(rstStream(next.id, codes.REFUSED_STREAM)) })
    const other = await http2Upstream(t, (stream) => {
      stream.respond({ ':status': 200 })
      stream.end('other')
    })
    const gateway = await priorKnowledge(t, busy.url)
    assert.match((await rawRequest(gateway.port, request('POST'))).text(), /connection_reset/)
    await gateway.left({ counted: 'failure', status: 502, reason: 'connection_reset' })
    const { port } = await priorKnowledge(t, '', {
      pools: { shop: { http2: 'prior-knowledge', health: { enabled: false }, retry: { retries: 1 }, upstreams: [{ url: busy.url }, { url: other.url, priority: 1 }] } }
    })
    assert.equal((await rawRequest(port, request('POST', '/', {}, 'body'))).text(), 'other')
  })

  it('by its connection fails each exchange on it once', async (t) => {
    const upstream = await frameUpstream(t, (next, connection) => {
      if (isRequest(next) && connection.count('HEADERS') === 3) connection.socket.destroy()
    })
    const gateway = await priorKnowledge(t, upstream.url)
    const answers = await Promise.all([1, 2, 3].map(() => rawRequest(gateway.port, request('POST'))))
    assert.deepEqual(answers.map(({ status }) => status), [502, 502, 502])
    await gateway.idle()
    assert.equal(gateway.breaker().window.failures, 3)
    assert.equal(gateway.lines.all('upstream_error').length, 3)
  })

  it('by an orderly end of its connection behind whole answers loses nothing of them to a slow client', async (t) => {
    const upstream = await frameUpstream(t, (next, connection) => {
      if (!isRequest(next)) return
      connection.send(headers(next.id, ok), ...Array.from({ length: 10 }, () => data(next.id, Buffer.alloc(16000, 'x'))))
      setTimeout(() => {
        connection.send(data(next.id, 'end', true), goAway(next.id))
        connection.socket.end()
      }, 50)
    })
    const gateway = await priorKnowledge(t, upstream.url)
    const client = await rawConnect(gateway.port)
    client.socket.pause()
    await client.write(get)
    await until(() => upstream.connections[0]?.ended)
    client.socket.resume()
    const answer = await client.readResponse()
    assert.equal(answer.complete, true)
    assert.equal(answer.body.length, 160003)
    client.destroy()
    await gateway.left({ counted: 'success', status: 200 })
  })
})

describe('an upstream that sends what is no HTTP/2', () => {
  it('but HTTP/1 is an invalid answer, and nothing was sent to it', async (t) => {
    const upstream = await rawUpstream(answering())
    t.after(() => upstream.close())
    const gateway = await priorKnowledge(t, upstream.url)
    assert.match((await rawRequest(gateway.port, request('POST'))).text(), /response_invalid|connection_reset/)
    await gateway.skip()
  })

  const invalid: Array<[string, (id: number) => Buffer]> = [
    ['no status', (id) => headers(id, [['x-one', '1']])],
    ['a field of the connection', (id) => headers(id, [...ok, ['connection', 'close']])],
    ['a name in upper case', (id) => headers(id, [...ok, ['X-One', '1']])],
    ['a pseudo field of requests', (id) => headers(id, [...ok, [':path', '/']])],
    ['a head over 64 KiB', (id) => Buffer.concat([frame('HEADERS', 0, id, block([...ok, ['x-a', 'a'.repeat(16000)]])), ...[1, 2, 3, 4, 5].map((i) => frame('CONTINUATION', i === 5 ? flags.END_HEADERS : 0, id, block([[`x-${i}`, 'a'.repeat(16000)]])))])]
  ]
  for (const [what, bytes] of invalid) {
    it(`with ${what} is an invalid answer of that stream alone`, async (t) => {
      const upstream = await frameUpstream(t, (next, connection) => {
        if (!isRequest(next)) return
        if (next.id === 1) connection.send(bytes(next.id))
        else answerAll(next.id, connection)
      })
      const gateway = await priorKnowledge(t, upstream.url)
      const answer = await rawRequest(gateway.port, get)
      assert.equal(answer.status, 502)
      assert.match(answer.text(), /response_invalid/)
      await gateway.left({ counted: 'failure', status: 502, reason: 'response_invalid' })
      assert.equal((await rawRequest(gateway.port, get)).text(), 'hello')
      assert.equal(upstream.connections.length, 1)
    })
  }

  for (const [method, status] of [['HEAD', '200'], ['GET', '204'], ['GET', '304']] as const) {
    it(`but no end of an answer that has no body (${method}, ${status}): it is whole, and its place is free`, async (t) => {
      const upstream = await frameUpstream(t, (next, connection) => { if (isRequest(next)) connection.send(headers(next.id, [[':status', status]])) })
      const gateway = await priorKnowledge(t, upstream.url)
      assert.equal((await rawRequest(gateway.port, request(method))).status, Number(status))
      await gateway.left({ counted: 'success', status: Number(status), bytes: 0 })
      assert.equal(codeOf(await (upstream.connections[0] as FrameConnection).first('RST_STREAM', 1)), codes.CANCEL)
    })
  }

  it('but more bytes than it promised cuts the answer', async (t) => {
    const upstream = await frameUpstream(t, (next, connection) => {
      if (!isRequest(next)) return
      connection.send(headers(next.id, [...ok, ['content-length', '4']]), data(next.id, 'abc'))
      setTimeout(() => { connection.send(data(next.id, 'defgh', true)) }, 30)
    })
    const gateway = await priorKnowledge(t, upstream.url)
    const answer = await rawRequest(gateway.port, get)
    assert.equal(answer.complete, false)
    await gateway.left({ counted: 'failure', status: 200, reason: 'body_truncated' })
  })
})

describe('towards an upstream over HTTP/2', () => {
  it('a client that leaves resets its stream, with CANCEL, and an upload that it cut does not look whole', async (t) => {
    const upstream = await frameUpstream(t, (next, connection) => { if (isRequest(next) && next.id !== 1) answerAll(next.id, connection) })
    const gateway = await priorKnowledge(t, upstream.url)
    const client = await rawConnect(gateway.port)
    await client.write(request('POST', '/', { 'Content-Length': '100' }, 'some'))
    const connection = await until(() => upstream.connections[0])
    await connection.first('DATA', 1)
    client.destroy()
    const reset = await connection.first('RST_STREAM', 1)
    assert.equal(codeOf(reset), codes.CANCEL)
    assert.deepEqual(connection.frames.filter(({ type, flags: flag }) => type === 'DATA' && (flag & flags.END_STREAM) !== 0), [])
    await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled' })
    assert.equal((await rawRequest(gateway.port, get)).text(), 'hello')
    assert.equal(upstream.connections.length, 1)
  })

  it('an answer that comes before the upload is whole ends the upload, which does not look whole', async (t) => {
    const upstream = await frameUpstream(t, (next, connection) => { if (next.type === 'DATA') answerAll(next.id, connection) })
    const gateway = await priorKnowledge(t, upstream.url)
    const client = await rawConnect(gateway.port)
    await client.write(request('POST', '/', { 'Content-Length': '100' }, 'some'))
    const answer = await client.readResponse()
    assert.equal(answer.text(), 'hello')
    const connection = upstream.connections[0] as FrameConnection
    await connection.first('RST_STREAM', 1)
    assert.ok(!connection.frames.some(({ type, flags: flag }) => type === 'DATA' && (flag & flags.END_STREAM) !== 0))
    client.destroy()
    await gateway.left({ counted: 'success', status: 200 })
  })

  it('a time limit that is reached resets the stream, and a silent connection is asked and replaced', async (t) => {
    const upstream = await frameUpstream(t, (next, connection, number) => { if (isRequest(next) && number > 1) answerAll(next.id, connection) })
    const gateway = await priorKnowledge(t, upstream.url, { pool: { http2: 'prior-knowledge', timeouts: { headersMs: 200, connectMs: 300 } } })
    assert.equal((await rawRequest(gateway.port, request('POST'))).status, 504)
    const first = upstream.connections[0] as FrameConnection
    await first.first('PING')
    assert.equal((await rawRequest(gateway.port, get)).text(), 'hello')
    await until(() => first.ended)
    assert.equal(upstream.connections.length, 2)
    await gateway.skip()
  })

  it('a connection without exchanges is closed after its time, in order', async (t) => {
    const upstream = await frameUpstream(t, (next, connection) => { if (isRequest(next)) answerAll(next.id, connection) })
    const gateway = await priorKnowledge(t, upstream.url, { pool: { http2: 'prior-knowledge', connections: { keepAliveMs: 100 } } })
    await rawRequest(gateway.port, get)
    const connection = upstream.connections[0] as FrameConnection
    assert.equal(codeOf(await connection.first('GOAWAY')), codes.NO_ERROR)
    await until(() => connection.ended)
    assert.equal((await rawRequest(gateway.port, get)).text(), 'hello')
  })

  it('waits where the upstream takes no streams, and goes on when it does', async (t) => {
    const upstream = await frameUpstream(t, (next, connection) => { if (isRequest(next)) answerAll(next.id, connection) }, settings([3, 0]))
    const gateway = await priorKnowledge(t, upstream.url)
    const asked = rawRequest(gateway.port, get)
    const connection = await until(() => upstream.connections[0])
    await connection.first('SETTINGS')
    connection.send(settings([3, 10]))
    assert.equal((await asked).text(), 'hello')
  })
})
