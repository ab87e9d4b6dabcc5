import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { answering, rawUpstream, reset, stall } from '../../support/faulty-upstream.ts'
import type { NodeProcess } from '../../support/process.ts'
import { rawConnect, rawRequest } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'
import { head } from '../edge/support.ts'
import { portOf, spawnApp, type StartOptions } from '../lifecycle/support.ts'

const get = head('GET /a?token=SECRET HTTP/1.1', 'Host: shop', 'Authorization: Bearer SECRET')

/** Lets a test break the process: SIGWINCH throws, SIGURG exits with 7. */
const breakable = ['--import', `data:text/javascript,${encodeURIComponent('process.on("SIGWINCH", () => { throw new Error("boom") }); process.on("SIGURG", () => { process.exit(7) })')}`]

async function start (t: TestContext, options: StartOptions = {}): Promise<{ child: NodeProcess, port: number }> {
  const behind = await rawUpstream(answering({ body: 'hello' }))
  t.after(() => behind.close())
  const child = spawnApp(t, [behind.url], options)
  return { child, port: await portOf(child) }
}

/** Sends `count` requests over one connection and reads their answers. */
async function sendMany (port: number, count: number): Promise<void> {
  const client = await rawConnect(port)
  for (let i = 0; i < count; i++) {
    await client.write(get)
    assert.equal((await client.readResponse()).status, 200)
  }
  client.destroy()
}

const endings: Array<[name: string, signal: NodeJS.Signals, code: number]> = [
  ['a signal', 'SIGTERM', 0],
  ['an uncaught exception', 'SIGWINCH', 1],
  ['process.exit', 'SIGURG', 7]
]
for (const [name, signal, code] of endings) {
  test(`no line is lost when the process ends by ${name}`, async (t) => {
    const { child, port } = await start(t, { node: breakable })
    const count = 300
    await sendMany(port, count)
    child.kill(signal)
    assert.deepEqual(await child.exit, { code, signal: null })
    const lines = child.output.all('access')
    assert.equal(lines.length, count)
    assert.equal(new Set(lines.map((line) => line['request_id'])).size, count)
    assert.equal(child.output.lines.some((line) => 'text' in line), false)
    if (signal === 'SIGWINCH') assert.ok(child.output.find(({ level, msg }) => level === 50 && msg === 'boom'))
    assert.equal(JSON.stringify(child.output.lines).includes('SECRET'), false)
  })
}

test('lines appear while the process runs, without more of them having to follow', async (t) => {
  const { child, port } = await start(t)
  await sendMany(port, 1)
  const line = await child.waitForLine('access')
  assert.deepEqual([line['level'], line['path'], line['status']], [30, '/a', 200])
})

test('lines in flight at a second signal are not lost', async (t) => {
  const behind = await rawUpstream((socket, { target }) => target === '/stall' ? stall(socket) : reset(socket))
  t.after(() => behind.close())
  const child = spawnApp(t, [behind.url], { pool: { breaker: { mode: 'off' } } })
  const port = await portOf(child)
  for (let i = 0; i < 20; i++) assert.equal((await rawRequest(port, get)).status, 502)
  const held = await rawConnect(port)
  await held.write(head('GET /stall HTTP/1.1', 'Host: shop'))
  await until(() => behind.requests.some(({ target }) => target === '/stall'))
  child.kill()
  await child.waitForLine('shutdown_started')
  child.kill()
  assert.equal((await child.exit).code, 1)
  assert.deepEqual([child.output.all('access').length, child.output.all('upstream_error').length], [20, 20])
})

test('a reader that does not read the log stops neither the service nor, once it reads again, a single line', async (t) => {
  const { child, port } = await start(t)
  const stdout = child.child.stdout
  assert.ok(stdout !== null)
  stdout.unpipe(child.output)
  stdout.pause()
  // Several times what a pipe and the socket buffers of the system hold.
  const count = 4000
  await Promise.all(Array.from({ length: 4 }, () => sendMany(port, count / 4)))
  assert.equal((await rawRequest(port, head('GET /livez HTTP/1.1', 'Host: shop'))).status, 204)
  stdout.pipe(child.output)
  await until(() => child.output.all('access').length === count, { timeoutMs: 20000, what: 'all lines' })
  child.kill()
  assert.deepEqual(await child.exit, { code: 0, signal: null })
  assert.equal(child.output.all('access').length, count)
})

test('what is wrong at the start is told on the error stream, in words', async (t) => {
  const child = spawnApp(t, ['http://127.0.0.1:9', 'nonsense'], {})
  assert.equal((await child.exit).code, 2)
  assert.match(JSON.stringify(child.errors.lines), /pools\.shop\.upstreams\[1\]/)
})
