/** The commands that ask a running proxy: what they print, what they do there, and their exit codes. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { spawnSync } from 'node:child_process'
import type { Status, UpstreamStatus } from '../../../bin/cli/status-read.ts'
import { until } from '../../support/wait.ts'
import { proxy, run, type Ran } from './support.ts'

const cli = join(dirname(fileURLToPath(import.meta.url)), '../../../bin/breakwater.js')
const folder = mkdtempSync(join(tmpdir(), 'breakwater-cli-'))
after(() => { rmSync(folder, { recursive: true }) })

/** An address on which nobody listens. */
async function nobody (): Promise<string> {
  const gone = createServer().listen(0, '127.0.0.1')
  await once(gone, 'listening')
  const { port } = gone.address() as AddressInfo
  gone.close()
  await once(gone, 'close')
  return `http://127.0.0.1:${port}`
}

test('status tells each upstream\'s state and why it is so', async (t) => {
  const { app, admin, upstreams: [a], ids: [one = '', two = ''] } = await proxy(t, { health: { intervalMs: 10, fall: 1 }, maxInFlightPerUpstream: 7 })
  const state = async (): Promise<Status> => JSON.parse((await run(['status', '--json', '--admin', admin])).out.join('')) as Status
  const shown = async (): Promise<Array<string | number>> => {
    const first = (await state()).pools[0]?.upstreams.find(({ upstream }) => upstream === two)
    return [first?.state ?? '', first?.cause.replace(/\d{4}-.*Z/, 'T') ?? '', first?.limit ?? -1]
  }
  deepEqual(await shown(), ['up', '', 7])
  app.breakers.get('shop', two).force('open', 60_000, 'disk is full')
  deepEqual(await shown(), ['open', 'forced (disk is full), until T', 7])
  app.breakers.get('shop', two).reset('repaired')
  const up = (await state()).pools[0]?.upstreams.find(({ upstream }) => upstream === two)
  equal(up?.since, app.breakers.get('shop', two).snapshot().lastTransition?.at, 'up since its circuit is closed, not since its checks pass')
  app.pools.setDraining('shop', two, true, { reason: 'new\ndisk' })
  deepEqual(await shown(), ['draining', 'taken out by an operator (new\ndisk)', 7])
  a?.set({ refuseHealth: true })
  await until(() => app.health.get('shop', one)?.healthy === false)
  const { code, out } = await run(['status', '--check', '--admin', admin])
  equal(code, 1)
  const text = out.join('\n')
  match(text, /^ready {3}no: pool "shop": no_upstream_healthy\ngate {4}0 of 256 in flight\nconfig {2}version 1, from no file, for /)
  match(text, /unhealthy.*health check: status_503, \d+ in a row/)
  match(text, /draining.*taken out by an operator \(new\\u000adisk\)/)
  ok(!text.includes('\u001b'))
  equal((await run(['status', '--admin', admin])).code, 0)
  app.shedding.configure({ pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0, maxRssBytes: 1048576 } })
  await until(async () => /^gate .*, under pressure \(memory \d+ MiB, limit 1 MiB\)/m.test((await run(['status', '--admin', admin])).out.join('\n')))
  ok((await run(['status', '--admin', admin], { colors: true })).out.join('\n').includes('\u001b[31munhealthy\u001b[0m'))
})

test('status tells one that is held in, one that was ejected with what for and since when, and one whose breaker only observes', async (t) => {
  const { app, admin, upstreams, ids: [one = '', two = ''] } = await proxy(t, { health: { intervalMs: 10, fall: 1 }, breaker: { mode: 'observe', openMs: 60_000 }, ejection: { mode: 'enforce', consecutiveFailures: 3 } })
  const to = await app.listen({ port: 0 })
  const of = async (id: string): Promise<UpstreamStatus> => {
    const { pools: [pool] } = JSON.parse((await run(['status', '--json', '--admin', admin])).out.join('')) as Status
    return pool?.upstreams.find(({ upstream }) => upstream === id) as UpstreamStatus
  }
  const row = async (id: string): Promise<string> => (await run(['status', '--admin', admin])).out.find((line) => line.includes(id)) ?? ''
  const asking = (seen: () => Promise<boolean>): Promise<unknown> => until(async () => {
    await (await fetch(to)).text()
    return await seen()
  })
  match(await row(one), / up +\S+ +0 +closed \(observe\) 0\/0$/)

  upstreams[1]?.set({ failRatio: 1 })
  await asking(async () => (await of(two)).breaker?.state === 'open')
  const observed = await of(two)
  deepEqual([observed.state, observed.since], ['up', app.health.get('shop', two)?.since], 'its breaker has kept nobody away')
  match(await row(two), / open \(observe\), probes in [\dms ]+ {2}Open after 5 failures in a row .*: it would refuse everybody for another .* Observe mode: it refuses nobody\.$/)

  upstreams[1]?.set({ failRatio: 1, failStatus: 503 })
  await asking(async () => (await of(two)).state === 'ejected')
  const ejected = await of(two)
  match(ejected.cause, /^3 failures in a row, until 20/)
  const event = app.events.since(0).events.find(({ type }) => type === 'upstream_ejected')
  ok(Math.abs(Date.parse(ejected.since ?? '') - Date.parse(event?.at ?? '')) < 50, `${ejected.since} is when it was ejected`)

  // Without the other one the pool cannot do without it, and that is told.
  app.pools.setDraining('shop', one, true, {})
  await until(async () => (await of(two)).state === 'up')
  const ended = (await run(['events', '--type', 'ejection_ended', '--admin', admin])).out
  match(ended.join('\n'), new RegExp(`^\\d+ \\S+ ejection_ended pool=shop upstream=${two} earlyMs=[12]\\d{4}$`))
  app.pools.setDraining('shop', one, false, {})

  // The other one is the last that serves, and is held in.
  upstreams[1]?.set({ failRatio: 0, refuseHealth: true })
  await until(() => app.health.get('shop', two)?.healthy === false)
  upstreams[0]?.set({ refuseHealth: true })
  await until(async () => (await of(one)).state === 'held')
  match(await row(one), / held .* serves though its checks fail, as too many of its pool fell lately; health check: status_503, \d+ in a row$/)
})

test('status --watch looks again until it is stopped, also while the proxy is away', async (t) => {
  const { app, admin } = await proxy(t)
  const stop = new AbortController()
  const seen: Ran = { code: null, out: [], errors: [] }
  const done = run(['status', '--watch', '--interval', '200ms', '--admin', admin], { stopped: stop.signal }, seen)
  await until(() => seen.out.filter((line) => line.startsWith('ready')).length > 1, { what: 'a second look' })
  await app.close()
  await until(() => seen.out.some((line) => line.includes('cannot be reached')), { what: 'that it is away' })
  stop.abort()
  equal((await done).code, 0)
  ok(!seen.out.join('').includes('\u001b'), 'no redrawing where there is no terminal')
})

test('force, reset, drain and ready do what they say, and the journal has their reasons', async (t) => {
  const { app, admin, ids: [id = ''] } = await proxy(t)
  const done = async (...argv: string[]): Promise<string> => {
    const { code, out, errors } = await run([...argv, '--admin', admin])
    equal(code, 0, errors.join('\n'))
    return out.join('\n').replaceAll(id, 'ID').replaceAll(/\d{4}-\S*Z/g, 'T')
  }
  equal(await done('force', 'shop', id, 'open', '--ttl', '5m', '--reason', 'disk is full'), 'ID of pool shop: breaker open, forced until T')
  equal(app.breakers.get('shop', id).breaker.state, 'open')
  equal(await done('force', 'shop', id, 'auto'), 'ID of pool shop: breaker closed')
  equal(await done('reset', 'shop', id, '--reason', 'repaired'), 'ID of pool shop: breaker closed')
  equal(await done('drain', 'shop', id, '--ttl=1h', '--reason', 'new disk'), 'ID of pool shop: draining until T, 0 in flight')
  equal(app.pools.find('shop', id)?.draining, true)
  equal(await done('ready', 'shop', id), 'ID of pool shop: in rotation, healthy')
  match(await done('health-check', 'shop', id), /^ID of pool shop: passed \(check_passed\) after [\d.]+ ms; healthy$/)
  equal((JSON.parse(await done('reset', 'shop', id, '--json')) as { state: string }).state, 'closed')
  const writes = await run(['events', '--type', 'admin_write', '--json', '--admin', admin])
  deepEqual(writes.out.map((line) => JSON.parse(line) as { action: string, reason: string | null }).map(({ action, reason }) => [action, reason]), [
    ['breaker_force', 'disk is full'], ['breaker_force', null], ['breaker_reset', 'repaired'], ['upstream_drain', 'new disk'], ['upstream_ready', null], ['health_check', null], ['breaker_reset', null]
  ])
})

test('exit codes tell who was wrong: the arguments, the proxy, or the way there', async (t) => {
  const { admin, ids: [id = ''] } = await proxy(t, {}, 'secret')
  const file = join(folder, 'token')
  writeFileSync(file, 'secret\n')
  const env = { BREAKWATER_ADMIN_URL: admin, BREAKWATER_ADMIN_TOKEN: 'secret' }
  const table: Array<[string[], Record<string, string>, number, RegExp]> = [
    [['status', '--admin', admin, '--token-file', file], {}, 0, /^$/],
    [['status'], env, 0, /^$/],
    [['status', '--admin', admin], {}, 3, /it answers 401: Authorization/],
    [['status', '--admin', admin], { BREAKWATER_ADMIN_TOKEN: 'wrong' }, 3, /it answers 401: the token is not/],
    [['events', '--follow', '--admin', admin], {}, 3, /it answers 401; the token comes from BREAKWATER_ADMIN_TOKEN or --token-file/],
    [['status', '--admin', await nobody()], {}, 3, /cannot be reached: ECONNREFUSED/],
    [['events', '-f', '--admin', await nobody()], {}, 3, /cannot be reached: ECONNREFUSED/],
    [['reset', 'shop', 'nobody:1'], env, 1, /it answers 404: there is no breaker/],
    [['explain', 'nothing-such'], env, 1, /it answers 404/],
    [['force', 'shop', id, 'open'], env, 2, /open needs --ttl/],
    [['force', 'shop', id, 'open', '--ttl', '5'], env, 2, /--ttl must be a time/],
    [['reload'], env, 2, /nobody can be asked/],
    [['status', '--interval', '1s'], env, 2, /goes with --watch/],
    [['status', '--admin', 'http://u:p@127.0.0.1'], env, 2, /without credentials/],
    [['status', '--token-file', join(folder, 'none')], env, 2, /cannot be read: ENOENT/],
    [['stauts'], env, 2, /unknown command "stauts"; did you mean status\?/],
    [[], env, 2, /which command\?/],
    [['--help'], env, 0, /^$/]
  ]
  for (const [argv, variables, code, message] of table) {
    const done = await run(argv, { env: variables })
    equal(done.code, code, `${argv.join(' ')}: ${done.errors.join('\n')}`)
    match(done.errors[0] ?? '', message)
    ok(!done.errors.join('\n').includes('secret'), 'no token is printed')
  }
})

test('another program at that address is told from a proxy', async (t) => {
  const server = createServer((_request, response) => { response.end('hello') }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => { server.close().closeAllConnections() })
  const other = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  equal((await run(['reload', '--yes', '--admin', other])).code, 3)
  equal((await run(['explain', 'x', '--json', '--admin', other])).code, 3)
  equal((await run(['events', '--follow', '--admin', other])).code, 3)
})

test('explain prints the proxy\'s text, without what would move the cursor, or its JSON', async (t) => {
  const asked: string[] = []
  const server = createServer(({ url, headers }, response) => {
    asked.push(`${url} ${headers.accept}`)
    response.end(headers.accept === 'text/plain' ? 'request a/b was refused\n  reason \u001b[2Jshed\n' : '{"requestId":"a/b"}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => { server.close().closeAllConnections() })
  const admin = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ops`
  deepEqual((await run(['explain', 'a/b', '--admin', admin])).out, ['request a/b was refused', '  reason \\u001b[2Jshed'])
  deepEqual((await run(['explain', 'a/b', '--json', '--admin', admin])).out, ['{"requestId":"a/b"}'])
  deepEqual(asked, ['/ops/requests/a%2Fb text/plain', '/ops/requests/a%2Fb application/json'])
})

test('requests tells one of each kind, with how many there are, or every one; and without what would move the cursor', async (t) => {
  const { app, upstreams, admin } = await proxy(t, { breaker: { mode: 'observe' } })
  const to = `http://127.0.0.1:${app.server.address() === null ? new URL(await app.listen({ port: 0 })).port : 0}`
  deepEqual((await run(['requests', '--admin', admin])).out, ['none that was refused or failed is recorded'])
  for (const each of upstreams) each.set({ failRatio: 1 })
  for (let i = 0; i < 3; i++) await (await fetch(`${to}/orders/${i}`)).text()
  await until(() => app.recorder.view().records === 3)
  const { out } = await run(['requests', '--admin', admin])
  equal(out.length, 2)
  match(out[0] ?? '', /^failed by the upstream 500, pool shop, 3 alike; the latest [\d.]+m?s ago: \S+ GET \/orders\/2$/)
  match(out[1] ?? '', /^ {2}\S.*500/)
  equal((await run(['requests', '--each', '--limit', '2', '--admin', admin])).out.length, 4)
  deepEqual((await run(['requests', '--kept', 'refused', '--admin', admin])).out, ['none is recorded'])
  deepEqual((await run(['requests', '--pool', 'other', '--since', '1h', '--admin', admin])).out, ['none that was refused or failed is recorded'])
  const json = (await run(['requests', '--json', '--admin', admin])).out.map((line) => JSON.parse(line) as { alike: { count: number } })
  deepEqual(json.map(({ alike }) => alike.count), [3])
  equal((await run(['requests', '--for', 'odd', '--admin', admin])).code, 1)
  for (const wrong of [['--limit', '0'], ['--limit', 'x'], ['--kept', 'odd'], ['--since', 'yesterday']]) equal((await run(['requests', ...wrong, '--admin', admin])).code, 2, wrong.join(' '))

  const server = createServer((_request, response) => { response.end(JSON.stringify({ requests: [{ kept: 'failed', path: '/\u001b[2J', requestId: '\u009b1', explanation: 'a\nb', status: 0, at: 'no time' }, { kept: 'failed', status: 'x\u001b[2J', alike: { count: '\u001b' } }] })) }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => { server.close().closeAllConnections() })
  // oxlint-disable-next-line no-control-regex
  for (const line of (await run(['requests', '--admin', `http://127.0.0.1:${(server.address() as AddressInfo).port}`])).out) ok(!/[\u0000-\u001f\u007f-\u009f]|NaN|undefined/.test(line), line)
})

test('events --follow makes a lost connection again and goes on from the last event', async (t) => {
  const asked: Array<string | undefined> = []
  const open: ServerResponse[] = []
  const server = createServer((request, response) => {
    asked.push(request.headers['last-event-id'] as string | undefined)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const from = Number(asked.at(-1)) + 1
    response.write(`: breakwater events\n\nid: ${from}\ndata: ${JSON.stringify({ seq: from, at: 'T', type: from % 2 === 0 ? 'even' : 'odd' })}\n\n`)
    open.push(response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => { server.close().closeAllConnections() })
  const stop = new AbortController()
  const seen: Ran = { code: null, out: [], errors: [] }
  const done = run(['events', '--follow', '--since', '4', '--admin', `http://127.0.0.1:${(server.address() as AddressInfo).port}`], { stopped: stop.signal }, seen)
  await until(() => seen.out.length === 1)
  open[0]?.destroy()
  await until(() => seen.out.length === 2)
  open[1]?.end()
  await until(() => seen.out.length === 3)
  stop.abort()
  equal((await done).code, 0)
  deepEqual([asked, seen.out], [['4', '5', '6'], ['5 T odd', '6 T even', '7 T odd']])
  match(seen.errors[0] ?? '', /trying again in 250 ms$/)
})

test('events --follow tells what a proxy streams: what is kept, then each event as it comes', async (t) => {
  const { app, admin } = await proxy(t)
  app.events.record('tick', { i: 1 })
  const stop = new AbortController()
  const seen: Ran = { code: null, out: [], errors: [] }
  const done = run(['events', '--follow', '--type', 'tick', '--admin', admin], { stopped: stop.signal }, seen)
  await until(() => seen.out.length === 1)
  app.events.record('tick', { i: 2 })
  await until(() => seen.out.length === 2)
  stop.abort()
  equal((await done).code, 0)
  deepEqual([seen.out.map((line) => line.split(' ').slice(2).join(' ')), seen.errors], [['tick i=1', 'tick i=2'], []])
})

test('events --since tells what came after, page by page', async (t) => {
  const { app, admin } = await proxy(t)
  const before = app.events.lastSeq
  for (let i = 0; i < 1500; i++) app.events.record('tick', { i })
  const { out, errors } = await run(['events', '--since', '1', '--type', 'tick', '--json', '--admin', admin])
  deepEqual(out.map((line) => (JSON.parse(line) as { seq: number }).seq), Array.from({ length: 1000 }, (_, i) => before + 501 + i))
  match(errors[0] ?? '', /^breakwater events: events 2 to \d+ are no longer kept$/)
})

test('reload shows what changes before it asks, and takes nothing without a yes', async (t) => {
  const { app, admin, upstreams } = await proxy(t)
  let headersMs = 5000
  const config = (): object => ({ admin: { port: 0 }, shedding: { pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 } }, pools: { shop: { upstreams: upstreams.map(({ url }) => ({ url })), timeouts: { headersMs } } } })
  const { parseConfig } = await import('../../../config/parse.ts')
  app.configuration.follow({ load: () => ({ config: parseConfig(config(), 'file') }).config, file: null } as never)
  headersMs = 3000
  const questions: string[] = []
  const answering = (answer: string) => ({ ask: async (question: string): Promise<string> => { questions.push(question); return answer } })
  const no = await run(['reload', '--admin', admin], answering('n'))
  deepEqual([no.code, no.out, no.errors, questions], [1, ['~ pools.shop.timeouts.headersMs changes'], ['nothing is taken'], ['take it? [y/N] ']])
  equal(app.configuration.current.pools['shop']?.timeouts.headersMs, 5000)
  const yes = await run(['reload', '--reason', 'quicker', '--admin', admin], answering('y'))
  deepEqual([yes.code, yes.out], [0, ['~ pools.shop.timeouts.headersMs changes', 'taken: version 2']])
  equal(app.configuration.current.pools['shop']?.timeouts.headersMs, 3000)
  headersMs = -1
  const wrong = await run(['reload', '--yes', '--admin', admin])
  equal(wrong.code, 1)
  match(wrong.errors.join('\n'), /^the configuration is refused:\n {2}- pools\.shop\.timeouts\.headersMs: must be/)
})

test('a reader that has read enough ends the command without a word', async (t) => {
  const { app, admin } = await proxy(t)
  for (let i = 0; i < 900; i++) app.events.record('tick', { filler: 'x'.repeat(2000) })
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env
  const { exec } = await import('node:child_process')
  const result = await new Promise<{ stdout: string, stderr: string }>((resolve) => {
    exec(`"${process.execPath}" "${cli}" events --admin ${admin} | head -n 1`, { env }, (_error, stdout, stderr) => { resolve({ stdout, stderr }) })
  })
  match(result.stdout, /^1 \S+ health_changed /)
  equal(result.stderr, '')
})

test('as a process it ends with the exit code, and help goes to standard output', () => {
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env
  const help = spawnSync(process.execPath, [cli, 'status', '--help'], { encoding: 'utf8', env })
  deepEqual([help.status, help.stderr], [0, ''])
  match(help.stdout, /^usage: breakwater status \[options\]\n/)
  const wrong = spawnSync(process.execPath, [cli, 'status', '--bogus'], { encoding: 'utf8', env })
  deepEqual([wrong.status, wrong.stdout, wrong.stderr], [2, '', 'breakwater status: unknown option --bogus\nbreakwater status --help says more.\n'])
})
