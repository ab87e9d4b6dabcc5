import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { seededRandom } from '../../../lib/random.ts'
import { answer, answering, partOfBody, reset, send, stall } from '../../support/faulty-upstream.ts'
import { chunk, lastChunk } from '../../support/http-bytes.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { accessLines, head, startBoth } from '../edge/support.ts'

const get = head('GET /a HTTP/1.1', 'Host: shop')
const names = ['request_id', 'method', 'path', 'status', 'bytes', 'duration_ms', 'client_ip', 'route', 'pool', 'upstream', 'attempts', 'reason']

/** The fields of our own in a line: without those that pino adds. */
function ownFields (line: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(line).filter(([name]) => !['level', 'time', 'pid', 'hostname', 'msg'].includes(name)))
}

test('an access line has the fields of the contract, in their order and types', async (t) => {
  const gateway = await startBoth(t)
  await rawRequest(gateway.port, head('GET /a?secret=1 HTTP/1.1', 'Host: shop'))
  await rawRequest(gateway.port, 'garbage\r\n\r\n')
  await rawRequest(gateway.port, head('GET /%zz HTTP/1.1', 'Host: shop'))
  const lines = await accessLines(gateway, 3)
  for (const line of lines) {
    const own = ownFields(line)
    assert.deepEqual(Object.keys(own), names)
    assert.deepEqual([line['level'], typeof line['time'], typeof own['request_id'], typeof own['status'], typeof own['bytes'], typeof own['client_ip'], typeof own['attempts']], [30, 'number', 'string', 'number', 'number', 'string', 'number'])
    assert.ok((own['duration_ms'] as number) >= 0 && (own['duration_ms'] as number) < 5000)
  }
  const { request_id: id, duration_ms: _duration, ...rest } = ownFields(lines[0] ?? {})
  assert.match(String(id), /^[0-9a-f-]{36}$/)
  assert.deepEqual(rest, { method: 'GET', path: '/a', status: 200, bytes: 5, client_ip: '127.0.0.1', route: '/*', pool: 'shop', upstream: `127.0.0.1:${gateway.behind.port}`, attempts: 1, reason: null })
})

test('one line for each request of a kept connection, with the bytes of its body', async (t) => {
  const gateway = await startBoth(t, {}, (socket, { method, target }) => {
    if (target === '/chunked') return send(socket, answer({ headers: [['Transfer-Encoding', 'chunked']], framing: 'none' }), chunk('abc'), chunk('de'), lastChunk())
    if (target === '/none') return send(socket, answer({ status: 204, framing: 'none' }))
    if (target === '/same') return send(socket, answer({ status: 304, headers: [['Content-Length', '5']], framing: 'none' }))
    if (method === 'HEAD') return send(socket, answer({ headers: [['Content-Length', '5']], framing: 'none' }))
    return send(socket, answer({ body: target === '/large' ? Buffer.alloc(300000) : 'hello' }))
  })
  const client = await rawConnect(gateway.port)
  t.after(() => client.destroy())
  const cases: Array<[string, string, number, number]> = [
    ['GET', '/a', 200, 5], ['HEAD', '/a', 200, 0], ['GET', '/none', 204, 0], ['GET', '/same', 304, 0], ['GET', '/chunked', 200, 5], ['GET', '/large', 200, 300000], ['DELETE', '/a', 200, 5]
  ]
  for (const [method, path] of cases) {
    await client.write(head(`${method} ${path} HTTP/1.1`, 'Host: shop'))
    await client.readResponse(method)
  }
  const lines = await accessLines(gateway, cases.length)
  assert.deepEqual(lines.map(({ method, path, status, bytes, reason }) => [method, path, status, bytes, reason]), cases.map((each) => [...each, null]))
})

test('a client that leaves is 499, at whatever stage', async (t) => {
  const gateway = await startBoth(t, {}, async (socket, { target }) => {
    if (target === '/body') await send(socket, answer({ headers: [['Content-Length', '1000']], body: 'x'.repeat(10), framing: 'none' }))
    await stall(socket)
  })
  const stages: Array<[string, () => Promise<void>]> = [
    ['before the answer', async () => {
      const client = await rawConnect(gateway.port)
      await client.write(head('GET /wait HTTP/1.1', 'Host: shop'))
      await until(() => gateway.behind.requests.some(({ target }) => target === '/wait'))
      client.destroy()
    }],
    ['before the answer, by a reset', async () => {
      const client = await rawConnect(gateway.port)
      await client.write(head('GET /wait2 HTTP/1.1', 'Host: shop'))
      await until(() => gateway.behind.requests.some(({ target }) => target === '/wait2'))
      client.reset()
    }],
    ['in the middle of the answer', async () => {
      const client = await rawConnect(gateway.port)
      await client.write(head('GET /body HTTP/1.1', 'Host: shop'))
      assert.equal((await client.readHead()).status, 200)
      client.destroy()
    }],
    ['in the middle of its own body', async () => {
      const client = await rawConnect(gateway.port)
      await client.write(head('POST /upload HTTP/1.1', 'Host: shop', 'Content-Length: 100') + 'hello')
      await until(() => gateway.behind.requests.some(({ target }) => target === '/upload'))
      client.end()
    }],
    ['in the middle of its own chunks', async () => {
      const client = await rawConnect(gateway.port)
      await client.write(head('POST /chunks HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked') + '5\r\nhello\r\n')
      await until(() => gateway.behind.requests.some(({ target }) => target === '/chunks'))
      client.end()
    }]
  ]
  for (const [stage, leave] of stages) {
    await gateway.skip()
    await leave()
    const line = await gateway.left({ counted: 'neutral', status: 499, reason: 'client_cancelled' }).catch((error: Error) => { throw new Error(`${stage}: ${error.message}`) })
    assert.equal(line['bytes'], stage === 'in the middle of the answer' ? 10 : 0, stage)
  }
})

test('what breaks behind the proxy is told by its reason', async (t) => {
  const gateway = await startBoth(t, { pool: { timeouts: { headersMs: 200 } } }, (socket, { target }) => {
    if (target === '/reset') return reset(socket)
    if (target === '/cut') return partOfBody(socket, { declared: 100, sent: 50 })
    if (target === '/fail') return send(socket, answer({ status: 503, reason: 'Busy', body: 'busy' }))
    return stall(socket)
  })
  const cases: Array<[string, number, string | null, number]> = [
    ['/reset', 502, 'connection_reset', -1], ['/cut', 200, 'body_truncated', 50], ['/fail', 503, null, 4], ['/slow', 504, 'headers_timeout', -1]
  ]
  for (const [path, status, reason, bytes] of cases) {
    const response = await rawRequest(gateway.port, head(`GET ${path} HTTP/1.1`, 'Host: shop'))
    const lines = await accessLines(gateway, 1 + cases.findIndex(([each]) => each === path))
    const line = lines.at(-1) ?? {}
    assert.deepEqual([line['path'], line['status'], line['reason'], line['bytes'], line['attempts'], line['route'], line['pool']], [path, status, reason, bytes === -1 ? response.body.length : bytes, 1, '/*', 'shop'])
  }
})

test('the path is told without its query and fragment, and cut at 2048', async (t) => {
  const gateway = await startBoth(t)
  const targets: Array<[string, string]> = [
    ['/a?token=secret', '/a'], ['/a#token=secret', '/a'], ['/?', '/'], [`/${'x'.repeat(5000)}?secret`, `/${'x'.repeat(2047)}`],
    ['http://user:secret@shop/a?secret', '/a'], ['http://shop?secret', '/'], ['/a%3Fb', '/a%3Fb'], ['/%zz?secret', '/%zz'], ['/../a?secret', '/../a']
  ]
  for (const [target] of targets) await rawRequest(gateway.port, head(`GET ${target} HTTP/1.1`, 'Host: shop'))
  const lines = await accessLines(gateway, targets.length)
  assert.deepEqual(lines.map(({ path }) => path), targets.map(([, path]) => path))
  assert.equal(JSON.stringify(gateway.lines.lines).includes('secret'), false)
})

test('probes are not logged, other requests for things of that name are', async (t) => {
  const gateway = await startBoth(t)
  for (const start of ['GET /livez', 'GET /readyz', 'HEAD /livez', 'GET /livez?x']) await rawRequest(gateway.port, head(`${start} HTTP/1.1`, 'Host: shop'))
  await rawRequest(gateway.port, head('POST /livez HTTP/1.1', 'Host: shop', 'Content-Length: 0'))
  const lines = await accessLines(gateway, 1)
  assert.deepEqual(lines.map(({ method, path }) => [method, path]), [['POST', '/livez']])
})

test('nothing that a client sends breaks a line, or gets into one where it does not belong', async (t) => {
  const gateway = await startBoth(t, { server: { trustedProxies: ['127.0.0.1'] } }, (socket, { header }) => send(socket, answer({ headers: [['X-Echo', header('x-note') ?? '']], body: 'SECRET-ANSWER' })))
  const paths = ['/%0A%7B%22msg%22%3A%22access%22%7D', '/%0D%0Ax', '/a"b', '/\'{}', '/%E2%80%A8', '/%00', '/\u007c', '/<script>', '/%1B[31m', '/${jndi:x}', '/%22%2C%22status%22%3A200', `/${'"'.repeat(3000)}`]
  const secrets = ['Authorization: Bearer SECRET-TOKEN', 'Cookie: sid=SECRET-COOKIE', 'Proxy-Authorization: Basic SECRET-PROXY', 'X-Api-Key: SECRET-KEY', 'X-Note: SECRET-NOTE\xe9', 'User-Agent: SECRET-AGENT', 'X-Forwarded-For: SECRET-FOR', 'X-Request-Id: SECRET ID']
  for (const path of paths) {
    const response = await rawRequest(gateway.port, [head(`POST ${path}?q=SECRET-QUERY HTTP/1.1`, 'Host: SECRET-HOST', ...secrets, 'Content-Length: 11'), 'SECRET-BODY'])
    assert.equal(response.status, 200, path.slice(0, 50))
  }
  // Failing ones are told of in more lines than one.
  gateway.behind.handle((socket) => reset(socket))
  await rawRequest(gateway.port, [head('POST /fail?q=SECRET-QUERY HTTP/1.1', 'Host: shop', ...secrets, 'Content-Length: 11'), 'SECRET-BODY'])
  gateway.behind.handle(answering(Buffer.from('SECRET-NO-HTTP\r\n\r\n')))
  await rawRequest(gateway.port, head('GET /fail2?q=SECRET-QUERY HTTP/1.1', 'Host: shop', ...secrets))
  await rawRequest(gateway.port, `SECRET-GARBAGE ${'x'.repeat(100)}\r\n\r\n`)
  await rawRequest(gateway.port, head('GET /bad HTTP/1.1', 'Host: shop', ...secrets, 'X SECRET: 1'))
  const lines = await accessLines(gateway, paths.length + 4)
  assert.deepEqual(lines.slice(0, paths.length).map(({ path }) => path), paths.map((path) => path.slice(0, 2048)))
  const all = JSON.stringify(gateway.lines.lines)
  assert.equal(all.includes('SECRET'), false, all.match(/.{100}SECRET.{100}/)?.[0])
  // Not one line that is no JSON object, and none that a client made up.
  assert.equal(gateway.lines.lines.some((line) => 'text' in line), false)
  assert.equal(lines.length, paths.length + 4)
})

test('a refused request is logged like any other', async (t) => {
  const gateway = await startBoth(t, { server: { maxBodyBytes: 3 }, shedding: { maxInFlight: 1 } }, (socket, { target }) => target === '/hold' ? stall(socket) : send(socket, answer()))
  const large = await rawRequest(gateway.port, [head('POST /large HTTP/1.1', 'Host: shop', 'Content-Length: 4'), 'body'])
  assert.equal(large.status, 413)
  await gateway.left({ counted: 'neutral', status: 413, reason: 'body_too_large', attempts: 0, upstream: null, bytes: large.body.length })
  const chunked = await rawRequest(gateway.port, [head('POST /large HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked'), '4\r\nbody\r\n0\r\n\r\n'])
  assert.equal(chunked.status, 413)
  await gateway.left({ counted: 'neutral', status: 413, reason: 'body_too_large', bytes: chunked.body.length })
  const holder = await rawConnect(gateway.port)
  await holder.write(head('GET /hold HTTP/1.1', 'Host: shop'))
  await until(() => gateway.app.shedding.view().inFlight === 1)
  const shed = await rawRequest(gateway.port, get)
  assert.equal(shed.status, 503)
  const line = await gateway.lines.waitFor(({ msg, reason }) => msg === 'access' && reason === 'shed_capacity')
  assert.deepEqual([line['status'], line['bytes'], line['attempts'], line['route'], line['pool'], line['upstream']], [503, shed.body.length, 0, null, null, null])
  holder.destroy()
  assert.equal((await accessLines(gateway, 4)).length, 4)
})

test('each request whose head was whole has one line, however early its client leaves', async (t) => {
  const gateway = await startBoth(t)
  const seen: string[] = []
  gateway.app.server.on('request', ({ url }: { url: string }) => { seen.push(url) })
  const random = seededRandom(7)
  let count = 0
  const path = (): string => `/r${count++}`
  const sends: Array<() => string> = [
    () => '',
    () => 'GET /half HTTP/1.1\r\nHo',
    () => head(`GET ${path()} HTTP/1.1`, 'Host: shop'),
    () => `${head(`POST ${path()} HTTP/1.1`, 'Host: shop', 'Content-Length: 1000')}xx`,
    () => `${head(`POST ${path()} HTTP/1.1`, 'Host: shop', 'Transfer-Encoding: chunked')}5\r\nab`,
    () => [1, 2, 3].map(() => head(`GET ${path()} HTTP/1.1`, 'Host: shop')).join(''),
    () => [1, 2, 3].map(() => `${head(`POST ${path()} HTTP/1.1`, 'Host: shop', 'Content-Length: 2')}ab`).join(''),
    () => head(`PUT ${path()} HTTP/1.1`, 'Host: shop', 'Content-Length: 5', 'Expect: 100-continue')
  ]
  const leave = async (): Promise<void> => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.resume()
    await once(socket, 'connect')
    socket.write(sends[Math.floor(random() * sends.length)]?.() ?? '')
    if (random() < 0.5) await sleep(5 * random())
    const closed = once(socket, 'close')
    if (random() < 0.5) socket.resetAndDestroy()
    else socket.destroy()
    await closed
  }
  for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 10 }, leave))
  const paths = (): string[] => gateway.lines.all('access').flatMap((line) => line['path'] === null ? [] : [String(line['path'])])
  // The system may still hold connections that the process has not been given: what it has been given is compared.
  await until(() => seen.length > 100 && isDeepStrictEqual(paths().toSorted(), seen.toSorted()), { timeoutMs: 60_000, what: 'one line for each' })
})
