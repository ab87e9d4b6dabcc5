import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { patternByte } from '../../bin/upstream-bodies.ts'
import { startUpstream } from '../../bin/upstream.ts'
import type { UpstreamOptions } from '../../bin/upstream-options.ts'
import { spawnNode } from '../support/process.ts'
import { rawConnect, rawRequest } from '../support/raw-client.ts'
import type { RawResult } from '../support/raw-client.ts'
import { until } from '../support/wait.ts'

async function upstreamFor (t: TestContext, options: UpstreamOptions = {}) {
  const upstream = await startUpstream(options)
  t.after(() => upstream.close())
  const get = (path = '/'): Promise<RawResult> => rawRequest(upstream.port, `GET ${path} HTTP/1.1\r\nHost: up\r\n\r\n`)
  const post = (path: string, body: string, fields = ''): Promise<RawResult> =>
    rawRequest(upstream.port, `POST ${path} HTTP/1.1\r\nHost: up\r\n${fields}Content-Length: ${body.length}\r\n\r\n${body}`)
  const statuses = async (count: number): Promise<number[]> => {
    const seen: number[] = []
    for (let n = 0; n < count; n++) seen.push((await get()).status)
    return seen
  }
  /** Sends the request, sees that nothing comes while another request is answered, and leaves. */
  const leaveUnanswered = async (path: string, arrived: () => boolean): Promise<void> => {
    const client = await rawConnect(upstream.port)
    await client.write(`GET ${path} HTTP/1.1\r\nHost: up\r\n\r\n`)
    await until(arrived)
    await get('/__stats')
    assert.equal(client.reader.received.length, 0)
    client.destroy()
  }
  return { ...upstream, get, post, statuses, leaveUnanswered }
}

describe('without faults', () => {
  test('an answer tells what came', async t => {
    const up = await upstreamFor(t, { name: 'a' })
    await up.get()
    const result = await up.post('/x?y=1', 'hello', 'X-One: 1\r\n')
    const told = result.json() as Record<string, unknown>
    assert.deepEqual({ ...told, headers: undefined }, { upstream: 'a', method: 'POST', url: '/x?y=1', headers: undefined, bodyBytes: 5, count: 2 })
    assert.deepEqual(told['headers'], { host: 'up', 'x-one': '1', 'content-length': '5' })
    assert.equal(result.ended, 'open')
  })

  test('/echo sends the body back, counted or chunked, with its type', async t => {
    const up = await upstreamFor(t)
    const counted = await up.post('/echo', 'hello', 'Content-Type: text/x\r\n')
    assert.deepEqual([counted.text(), counted.header('content-type'), counted.header('content-length')], ['hello', 'text/x', '5'])
    const chunked = await rawRequest(up.port, ['POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n', 5, '3\r\nyou\r\n0\r\n\r\n'])
    assert.deepEqual([chunked.text(), chunked.header('content-length'), chunked.complete], ['hiyou', undefined, true])
  })

  test('/bytes/N sends N known bytes', async t => {
    const up = await upstreamFor(t)
    for (const size of [0, 1, 64256, 64257, 1_000_003]) {
      const { body, complete } = await up.get(`/bytes/${size}`)
      assert.deepEqual([body.length, complete], [size, true])
      assert.ok(body.every((byte, index) => byte === patternByte(index)))
    }
  })

  test('/bytes/N waits for a slow reader', async t => {
    const up = await upstreamFor(t)
    const client = await rawConnect(up.port)
    await client.write('GET /bytes/900719925474099 HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await client.readHead()).status, 200)
    await client.readBytes(1 << 20)
    client.destroy()
    await until(() => up.stats().aborted === 1)
  })

  test('/status/NNN answers so, without a body where there is none', async t => {
    const up = await upstreamFor(t)
    const results = await Promise.all([200, 204, 304, 404, 503].map(status => up.get(`/status/${status}`)))
    assert.deepEqual(results.map(({ status }) => status), [200, 204, 304, 404, 503])
    assert.deepEqual(results.map(({ body }) => body.length > 0), [true, false, false, true, true])
    assert.equal((await up.get('/status/101')).status, 400)
  })

  test('HEAD is framed like GET and has no body', async t => {
    const up = await upstreamFor(t)
    const result = await rawRequest(up.port, 'HEAD /bytes/10 HTTP/1.1\r\nHost: a\r\n\r\n', { methods: ['HEAD'] })
    assert.deepEqual([result.status, result.header('content-length'), result.ended], [200, '10', 'open'])
  })

  test('/sse goes on until the client leaves', async t => {
    const up = await upstreamFor(t, { name: 'a' })
    const client = await rawConnect(up.port)
    await client.write('GET /sse HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.match((await client.readHead()).text, /content-type: text\/event-stream/)
    assert.match((await client.reader.until('"id":2}\n\n')).toString(), /id: 1\ndata: \{"upstream":"a","id":1\}\n\n/)
    client.reset()
    await until(() => up.stats().inFlight === 0 && up.stats().openConnections === 0)
    assert.equal(up.stats().aborted, 1)
  })
})

describe('faults', () => {
  test('failEvery fails exactly each Nth, and health checks do not count', async t => {
    const up = await upstreamFor(t, { failEvery: 3, failStatus: 502 })
    await up.get('/healthz')
    assert.deepEqual(await up.statuses(7), [200, 200, 502, 200, 200, 502, 200])
    assert.deepEqual([up.stats().failed, up.stats().healthChecks, up.stats().requests], [2, 1, 7])
  })

  test('failRatio repeats with its seed, whatever else is switched on', async t => {
    const first = await (await upstreamFor(t, { failRatio: 0.5, seed: 7 })).statuses(30)
    const second = await (await upstreamFor(t, { failRatio: 0.5, seed: 7, jitterMs: 1 })).statuses(30)
    const other = await (await upstreamFor(t, { failRatio: 0.5, seed: 8 })).statuses(30)
    assert.deepEqual(second, first)
    assert.notDeepEqual(other, first)
    assert.ok(first.includes(200) && first.includes(500))
  })

  test('hang leaves requests alone and health well; hangHealth and refuseHealth do not', async t => {
    const up = await upstreamFor(t, { hang: true, healthPath: '/up' })
    await up.leaveUnanswered('/', () => up.stats().hung === 1)
    assert.equal((await up.get('/up')).status, 200)
    up.set({ refuseHealth: true })
    assert.equal((await up.get('/up')).status, 503)
    up.set({ hangHealth: true, hang: false })
    await up.leaveUnanswered('/up', () => up.stats().healthChecks === 3)
    assert.equal((await up.get()).status, 200)
    await until(() => up.stats().inFlight === 0)
    assert.deepEqual([up.stats().hung, up.stats().aborted], [1, 1])
  })

  test('truncateEvery and /cut stop midway, resetEvery and /reset before the head, /hang for good', async t => {
    const up = await upstreamFor(t, { truncateEvery: 2, resetEvery: 3, bodyBytes: 1000 })
    const results: RawResult[] = []
    for (const path of ['/', '/', '/', '/cut', '/reset']) results.push(await up.get(path))
    assert.deepEqual(results.map(({ status, complete, ended, body }) => [status, complete, ended, body.length]), [
      [200, true, 'open', 1000],
      [200, false, 'fin', 500],
      [0, false, 'reset', 0],
      [200, false, 'fin', 500],
      [0, false, 'reset', 0]
    ])
    await up.leaveUnanswered('/hang', () => up.stats().hung === 1)
    await until(() => up.stats().openConnections === 0)
    const { truncated, reset, hung, aborted } = up.stats()
    assert.deepEqual({ truncated, reset, hung, aborted }, { truncated: 2, reset: 2, hung: 1, aborted: 1 })
  })

  test('an echoed body is cut as well', async t => {
    const up = await upstreamFor(t, { truncateEvery: 1 })
    const { text, complete, ended } = await up.post('/echo', '0123456789')
    assert.deepEqual([text(), complete, ended], ['01234', false, 'fin'])
  })

  test('a delay, a slow path and a dripped body come late but whole', async t => {
    const up = await upstreamFor(t, { delayMs: 20, jitterMs: 10, slowBodyMs: 5 })
    const began = performance.now()
    const { complete, body } = await up.get('/bytes/5000')
    // Timers may fire up to a millisecond early.
    assert.ok(performance.now() - began >= 20 + 8 * 5 - 10)
    assert.ok(complete && body.every((byte, index) => byte === patternByte(index)))
    up.set({ delayMs: 0, jitterMs: 0, slowBodyMs: 0 })
    const slow = performance.now()
    assert.equal((await up.get('/slow/50')).status, 200)
    assert.ok(performance.now() - slow >= 49)
  })

  test('the head of a dripped body does not wait for its first piece', async t => {
    const up = await upstreamFor(t, { slowBodyMs: 60_000 })
    const client = await rawConnect(up.port)
    await client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await client.readHead()).status, 200)
    client.destroy()
  })

  test('status, fields and close are as told; a field that we would send is replaced', async t => {
    const up = await upstreamFor(t, { status: 418, close: true, headers: [['X-A', '1'], ['X-A', '2'], ['Content-Type', 'text/plain']] })
    const { status, ended, headers } = await up.get()
    assert.deepEqual([status, ended], [418, 'fin'])
    assert.deepEqual(headers.filter(([name]) => /^(x-a|content-type)$/i.test(name)), [['X-A', '1'], ['X-A', '2'], ['Content-Type', 'text/plain']])
  })

  test('an idle connection is closed after keepAliveMs', async t => {
    const up = await upstreamFor(t, { keepAliveMs: 20 })
    assert.equal((await rawRequest(up.port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', { until: 'close' })).ended, 'fin')
  })
})

describe('control', () => {
  test('changes faults while it runs, and shows what it counted', async t => {
    const up = await upstreamFor(t, { name: 'a' })
    const changed = await up.post('/__control', '{"failEvery":1,"headers":[["x-b","2"]]}')
    assert.deepEqual([changed.status, (changed.json() as { failEvery: number }).failEvery], [200, 1])
    const failed = await up.get()
    assert.deepEqual([failed.status, failed.header('x-b')], [500, '2'])
    const stats = (await up.get('/__stats')).json() as Record<string, unknown>
    assert.deepEqual([stats['name'], stats['requests'], stats['failed'], stats['inFlight']], ['a', 1, 1, 0])
  })

  test('takes all or nothing, and says everything that is wrong', async t => {
    const up = await upstreamFor(t)
    const refused = await up.post('/__control', '{"failEvery":1,"failRatio":2,"port":1,"nonsense":true}')
    assert.equal(refused.status, 400)
    assert.deepEqual(refused.json(), { errors: ['failRatio: must be a number from 0 to 1', 'port: cannot be changed while it runs', 'nonsense: there is no such option'] })
    assert.equal((await up.post('/__control', '{')).status, 400)
    assert.equal((await up.post('/__control', 'null')).status, 400)
    assert.equal((await up.post('/__control', ' '.repeat(70_000))).status, 413)
    assert.equal((await up.get('/__control')).status, 405)
    assert.equal((await up.get()).status, 200)
  })

  test('is refused to what a proxy on this machine passes on', async t => {
    const up = await upstreamFor(t)
    for (const field of ['Via: 1.1 breakwater', 'X-Forwarded-For: 10.0.0.1', 'Forwarded: for=10.0.0.1']) {
      assert.equal((await up.post('/__control', '{"hang":true}', `${field}\r\n`)).status, 403)
    }
    assert.equal((await up.get()).status, 200)
  })
})

test('unusable options and a taken port are refused', async t => {
  await assert.rejects(startUpstream({ failStatus: 99, healthPath: 'x', headers: [['a b', 'c']] }), {
    name: 'UpstreamOptionError',
    problems: ['failStatus: must be a whole number from 200 to 999', 'healthPath: must start with /', 'headers: must be a list of [name, value] with valid field names and values']
  })
  const { port } = await upstreamFor(t)
  await assert.rejects(startUpstream({ port }), { code: 'EADDRINUSE' })
})

test('closing cuts what is open, and may be done twice', async () => {
  const upstream = await startUpstream({ hang: true })
  const client = await rawConnect(upstream.port)
  await client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await until(() => upstream.stats().hung === 1)
  await upstream.close()
  await upstream.close()
  assert.notEqual(await client.closed, undefined)
  assert.equal(upstream.stats().openConnections, 0)
})

describe('the command', () => {
  const script = `import { upstreamCommand } from ${JSON.stringify(new URL('../../bin/upstream.js', import.meta.url).href)}
process.exitCode = await upstreamCommand(process.argv.slice(1))`
  const command = (t: TestContext, ...args: string[]) => spawnNode(t, ['--input-type=module', '-e', script, '--', ...args])

  test('takes every kind of flag, says where it listens, and ends at SIGTERM', async t => {
    const child = command(t, '--port', '0', '--name', 'b', '--fail-every=2', '--fail-ratio', '0.0', '--header', 'x-a: 1', '--header', 'x-b: 2:3', '--close')
    const line = await child.waitForLine('upstream listening')
    assert.equal(line['name'], 'b')
    const first = await rawRequest(Number(line['port']), 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.deepEqual([first.status, first.header('x-a'), first.header('x-b'), first.ended], [200, '1', '2:3', 'fin'])
    assert.equal((await rawRequest(Number(line['port']), 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')).status, 500)
    child.kill('SIGTERM')
    assert.deepEqual(await child.exit, { code: 0, signal: null })
  })

  test('explains itself', async t => {
    const child = command(t, '--help')
    assert.deepEqual(await child.exit, { code: 0, signal: null })
    const text = child.output.lines.map(line => String(line['text'])).join('\n')
    for (const flag of ['--fail-every N', '--hang-health ', '--header FIELD', '--keep-alive-ms N', '/__control']) assert.ok(text.includes(flag), flag)
  })

  const refused: Array<[string[], RegExp]> = [
    [['--nonsense'], /Unknown option '--nonsense'/],
    [['stray'], /stray/],
    [['--port'], /--port/],
    [['--port', 'x'], /--port: 'x' is not a number/],
    [['--port', '70000', '--fail-ratio', '2'], /--port: must be a whole number from 0 to 65535; --fail-ratio: must be a number from 0 to 1/],
    [['--header', 'nothing'], /is not 'name: value'/]
  ]
  for (const [args, message] of refused) {
    test(`refuses ${args.join(' ')} with exit code 2`, async t => {
      const child = command(t, ...args)
      assert.deepEqual(await child.exit, { code: 2, signal: null })
      assert.match(String(child.errors.lines[0]?.['text']), message)
    })
  }

  test('exits 1 when it cannot listen', async t => {
    const { port } = await upstreamFor(t)
    const child = command(t, '--port', String(port))
    assert.deepEqual(await child.exit, { code: 1, signal: null })
    assert.match(String(child.errors.lines[0]?.['text']), /EADDRINUSE/)
  })
})
