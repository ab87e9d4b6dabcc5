import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mkdtempSync, rmSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { answer, rawUpstream, send, stall, type RawHandler } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { chunk, lastChunk } from '../../support/http-bytes.ts'
import { rawRequest } from '../../support/raw-client.ts'
import { continue100, withTrailers } from '../../support/strange-answers.ts'
import { until } from '../../support/wait.ts'
import { inFront, request } from './support.ts'

const echo: RawHandler = async (socket, { target, body }) => {
  const { body: bytes, complete } = await body()
  if (complete) await send(socket, answer({ body: `${target} ${bytes.toString()}` }))
}
const post = (path: string, body: string): Buffer => request('POST', path, {}, body)

test('pipelined requests with bodies, counted, in chunks and announced by Expect, each get their own answer', async (t) => {
  const { gateway } = await inFront(t, echo)
  const bytes = Buffer.concat([
    post('/1', 'one'), request('POST', '/2', { 'Transfer-Encoding': 'chunked' }), chunk('two'), lastChunk([['X-Sum', '1']]),
    request('POST', '/3', { Expect: '100-continue' }, 'three'), request('GET', '/4'), request('DELETE', '/5', {}, 'five')
  ])
  for (const parts of [[bytes], Array.from({ length: Math.ceil(bytes.length / 11) }, (_, i) => bytes.subarray(i * 11, i * 11 + 11))]) {
    const got = await rawRequest(gateway.port, parts, { methods: ['POST', 'POST', 'POST', 'GET', 'DELETE'] })
    assert.deepEqual(got.responses.map((each) => each.text()), ['/1 one', '/2 two', '/3 three', '/4 ', '/5 five'])
  }
})

test('of pipelined requests with a refused one in the middle the ones before it are answered, and those behind it not begun', async (t) => {
  const refused: Array<[bytes: Buffer, status: number]> = [
    [Buffer.from('GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'), 400], [request('GET', '/../a'), 400], [Buffer.from('POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx'), 400],
    [request('POST', '/big', { 'Content-Length': '100' }), 413], [Buffer.from('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'), 400]
  ]
  for (const [bytes, status] of refused) {
    const { gateway, upstream } = await inFront(t, echo, { server: { maxBodyBytes: 50 } })
    const got = await rawRequest(gateway.port, Buffer.concat([request('GET', '/1'), post('/2', 'two'), bytes, post('/never', 'never')]), { methods: ['GET', 'POST', 'GET', 'POST'], until: 'close' })
    assert.deepEqual([got.responses.map((each) => each.status), got.ended], [[200, 200, status], 'fin'], bytes.toString())
    assert.deepEqual(got.responses.slice(0, 2).map((each) => each.text()), ['/1 ', '/2 two'])
    await gateway.idle()
    assert.deepEqual(upstream.requests.map(({ target }) => target).toSorted(), ['/1', '/2'])
  }
})

test('an early 413 or 401 of the upstream arrives while the client still sends; the connection closes, and the next upload has its own', async (t) => {
  for (const status of [413, 401]) {
    const { gateway, upstream } = await inFront(t, async (socket, asked) => {
      if (asked.target !== '/early') {
        await echo(socket, asked)
        return
      }
      await send(socket, answer({ status, headers: [['WWW-Authenticate', 'Basic']], body: 'no' }))
      await stall(socket)
    })
    const got = await rawRequest(gateway.port, [request('POST', '/early', { 'Content-Length': '1000000' }), 'x'.repeat(100000), 50, 'x'.repeat(1000)], { until: 'close' })
    assert.deepEqual([got.status, got.text(), got.header('connection'), got.complete], [status, 'no', 'close', true])
    const next = await rawRequest(gateway.port, [post('/next', 'hello'), post('/next', 'again')], { methods: ['POST', 'POST'] })
    assert.deepEqual(next.responses.map((each) => each.text()), ['/next hello', '/next again'])
    assert.equal(upstream.requests.find(({ target }) => target === '/next')?.index, 1)
  }
})

test('an upstream that answers before the request is whole and closes is believed, and its bytes never reach another', async (t) => {
  const { gateway } = await inFront(t, async (socket, asked) => {
    if (asked.target !== '/early') {
      await echo(socket, asked)
      return
    }
    await send(socket, answer({ status: 503, headers: [['Connection', 'close']], body: 'busy' }))
    socket.end()
  })
  for (let turn = 0; turn < 5; turn++) {
    const got = await rawRequest(gateway.port, [request('POST', '/early', { 'Content-Length': '200000' }), 'x'.repeat(1000), 20, 'x'.repeat(1000)], { until: 'close' })
    assert.deepEqual([got.status, got.text()], [503, 'busy'])
    assert.equal((await rawRequest(gateway.port, post('/next', 'hello'))).text(), '/next hello')
  }
})

test('an upstream that says close with each answer is not used again, however many ask at once', async (t) => {
  const { gateway, upstream } = await inFront(t, async (socket, { target }) => {
    await send(socket, answer({ headers: [['Connection', 'close']], body: target }))
    // Not at once: whoever used the connection again would wait for ever.
    setTimeout(() => { socket.end() }, 50)
  })
  const got = await Promise.all(Array.from({ length: 20 }, (_, i) => rawRequest(gateway.port, request('POST', `/${i}`, {}, 'x'))))
  assert.deepEqual(got.map((each) => each.text()), Array.from({ length: 20 }, (_, i) => `/${i}`))
  assert.ok(upstream.requests.every(({ index }) => index === 1))
})

// ---- the same over a Unix socket

async function overUnixSocket (t: TestContext, handler: RawHandler): Promise<Gateway> {
  const folder = mkdtempSync(join(tmpdir(), 'bw-'))
  const path = join(folder, 'up.sock')
  const upstream = await rawUpstream(handler)
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    const through = socket.pipe(new (socket.constructor as typeof Socket)({ allowHalfOpen: true }).connect(upstream.port, '127.0.0.1'))
    through.pipe(socket)
    for (const [one, other] of [[socket, through], [through, socket]] as const) one.on('error', () => {}).on('close', () => { other.destroy() })
  })
  await new Promise<void>((resolve) => { server.listen(path, resolve) })
  t.after(async () => {
    server.close()
    for (const socket of open) socket.destroy()
    await upstream.close()
    rmSync(folder, { recursive: true })
  })
  return startGateway(t, { upstreams: [`unix:${path}`] })
}

const over: Record<string, (gateway: Gateway) => Promise<void>> = {
  'requests with bodies, counted and in chunks': async ({ port }) => {
    const got = await rawRequest(port, Buffer.concat([post('/echo', 'one'), request('POST', '/echo', { 'Transfer-Encoding': 'chunked' }), chunk('two'), lastChunk()]), { methods: ['POST', 'POST'] })
    assert.deepEqual(got.responses.map((each) => each.text()), ['/echo one', '/echo two'])
  },
  'trailers': async ({ port }) => {
    assert.deepEqual((await rawRequest(port, request('GET', '/trailers', { TE: 'trailers' }))).trailers, [['x-sum', '1']])
  },
  'a 100 that nobody asked for': async ({ port }) => {
    assert.equal((await rawRequest(port, request('GET', '/100'))).text(), 'after')
  },
  'HEAD and 304': async ({ port }) => {
    assert.equal((await rawRequest(port, request('HEAD', '/echo'))).status, 200)
    assert.equal((await rawRequest(port, request('GET', '/304'))).status, 304)
  },
  'an answer that ends with its connection': async ({ port }) => {
    const got = await rawRequest(port, request('GET', '/end'))
    assert.deepEqual([got.text(), got.complete], ['whole', true])
  },
  'OPTIONS *': async ({ port }) => {
    assert.equal((await rawRequest(port, request('OPTIONS', '*'))).text(), '* ')
  },
  'an invalid answer': async ({ port }) => {
    assert.equal((await rawRequest(port, request('POST', '/bad', {}, 'x'))).status, 502)
  },
  'a body that is cut': async ({ port }) => {
    assert.notEqual((await rawRequest(port, request('GET', '/cut'))).complete, true)
  }
}
for (const [name, check] of Object.entries(over)) {
  test(`over a Unix socket: ${name}`, async (t) => {
    const gateway = await overUnixSocket(t, async (socket, asked) => {
      switch (asked.target) {
        case '/trailers': return send(socket, withTrailers([['X-Sum', '1']]))
        case '/100': return send(socket, continue100, answer({ body: 'after' }))
        case '/304': return send(socket, answer({ status: 304, headers: [['Content-Length', '7']], framing: 'none' }))
        case '/end': {
          await send(socket, answer({ body: 'whole', framing: 'none' }))
          return socket.end()
        }
        case '/bad': return send(socket, 'HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nhi')
        case '/cut': {
          await send(socket, answer({ headers: [['Content-Length', '100']], body: 'part', framing: 'none' }))
          return socket.end()
        }
        default: return echo(socket, asked)
      }
    })
    await check(gateway)
    await gateway.idle()
    await until(() => gateway.lines.all('access').length > 0)
  })
}
