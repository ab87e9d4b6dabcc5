/** `breakwater drill`: each drill at small scale against a running gateway, whom it refuses, and that all is as it was afterwards. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import breakwater from '../../../breakwater.ts'
import { drills, type Claim } from '../../../bin/drill/drills.ts'
import type { Watch } from '../../../bin/drill/seen.ts'
import { loopbackOf, type Promises } from '../../../bin/drill/target.ts'
import { startUpstream, type ScriptedUpstream } from '../../../bin/scripted-upstream.ts'
import type { Sample } from '../../../bin/load/load.ts'
import { parseConfig } from '../../../config/parse.ts'
import { serverOptions } from '../../../server.ts'
import { spawnNode } from '../../support/process.ts'
import { until } from '../../support/wait.ts'
import { shipped } from '../../config/support.ts'
import { guide, run, type Ran } from './support.ts'

interface Small { app: FastifyInstance, upstreams: ScriptedUpstream[], argv: string[] }

/** A gateway whose times are short, with scripted upstreams. */
async function small (t: TestContext, { urls, token = '' }: { urls?: string[], token?: string } = {}): Promise<Small> {
  const upstreams = urls !== undefined ? [] : await Promise.all(['a', 'b', 'c'].map((name) => startUpstream({ name })))
  const config = parseConfig({
    admin: { port: 0, token },
    shedding: { maxInFlight: 20, pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 } },
    pools: {
      shop: {
        upstreams: (urls ?? upstreams.map(({ url }) => url)).map((url) => ({ url })),
        health: { intervalMs: 1000, timeoutMs: 1000 },
        breaker: { openMs: 1000, maxOpenMs: 1000, consecutiveFailures: 5 },
        timeouts: { headersMs: 2000 }
      }
    }
  }, 'test')
  const app = Fastify({ ...serverOptions(config), logger: false })
  t.after(async () => {
    await app.close()
    await Promise.all(upstreams.map((each) => each.close()))
  })
  await app.register(breakwater, config)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return { app, upstreams, argv: ['--for', '1s', '--admin', `http://127.0.0.1:${app.adminAddress?.port}`, '--url', `http://127.0.0.1:${port}/`] }
}

/** What is expected of a drill, and what it makes of a time in which nothing was seen. */
function judgedOf (name: string, changes: Partial<Promises>, faultMs = 3000, samples: readonly Sample[] = []): { expected: string[], claims: Claim[] } {
  const promises: Promises = {
    consecutiveFailures: 5, failureRatio: 0.5, windowSeconds: 60, minimumRequests: 10, minimumShare: 0.1, stallOutstanding: 8, mode: 'enforce', openMs: 1000, maxOpenMs: 1000,
    probeTimeoutMs: 10_000, headersMs: 0, intervalMs: 1000, health: true, checkTimeoutMs: 1000, fall: 1, rise: 1, retries: 0, maxInFlight: 20, ...changes
  }
  const plan = { promises, upstreams: 2, rate: 60, faultMs, ratio: 0.8 }
  const watch = { events: [], left: () => false, openings: () => [], unready: false, peakInFlight: 0 } as unknown as Watch
  const drill = drills.find((each) => each.name === name)
  return { expected: drill?.expected(plan) ?? [], claims: drill?.claims({ ...plan, watch, victims: ['a'], others: ['b'], samples }) ?? [] }
}

/** What a drill judges, without its numbers. */
const claimsOf = (lines: readonly string[]): string[] => lines.filter((line) => line.startsWith('pass  ')).map((line) => line.replace(/^pass {2}([^:]*):.*$/, '$1').replaceAll(/[\d.]+s|\d+/g, 'N'))
const shownDrill = (/^\$ .*drill upstream-dies\n([^]*?)^```$/m.exec(readFileSync(shipped('README.md'), 'utf8'))?.[1] ?? '').split('\n')

test('the guide has every drill with its title', () => {
  const rows = [...guide().matchAll(/^\| `([\w-]+)` \| (.*) \|$/gm)].map(([, name, title]) => [name, title?.replaceAll('`', '')])
  deepEqual(rows, drills.map(({ name, title }) => [name, title]))
})

test('without a time limit for heads a slow upstream is slow all the same, and nobody is expected to notice a silent one', () => {
  deepEqual(judgedOf('slows', {}).expected[0], 'no request is lost: 300 ms are no failure')
  deepEqual(judgedOf('hangs', {}).expected[1], 'at most 90 requests are lost of the 90 that are its share')
})

test('with consecutiveFailures 0 a drill goes by the ratio of the window, and says what it cannot judge', () => {
  const off = { consecutiveFailures: 0 }
  const short = { ...off, windowSeconds: 2 }
  const nothing = { ...off, health: false, failureRatio: 0, stallOutstanding: 0 }
  const unsure = 'whether its circuit opens cannot be judged'
  const cases: Array<[string, Partial<Promises>, number, string, boolean | null]> = [
    ['upstream-dies', { health: false }, 3000, 'its circuit opens, or its checks fail', false],
    ['upstream-dies', off, 3000, 'its circuit opens, or its checks fail', false],
    ['upstream-dies', { ...off, intervalMs: 5000 }, 3000, unsure, null],
    ['upstream-dies', { ...off, health: false }, 3000, unsure, null],
    ['upstream-dies', { ...off, health: false }, 31000, 'its circuit opens, or its checks fail', false],
    ['upstream-dies', { ...short, health: false }, 3000, 'its circuit opens, or its checks fail', false],
    ['upstream-dies', nothing, 60000, unsure, null],
    ['all-die', { ...off, health: false }, 3000, 'whether the proxy is ready cannot be judged', null],
    ['flaps', off, 3000, unsure, null],
    ['flaps', short, 3000, 'its circuit opens, or its checks fail', false],
    ['hangs', off, 3000, 'its circuit opens: by silence, or when requests have waited for too long', false],
    ['hangs', nothing, 60000, unsure, null],
    ['hangs', { ...short, stallOutstanding: 0, headersMs: 1000 }, 3000, 'its circuit opens: by silence, or when requests have waited for too long', false],
    ['errors', off, 3000, 'its circuit may open', null],
    ['errors', short, 3000, 'its circuit opens', false]
  ]
  for (const [name, promises, faultMs, first, holds] of cases) {
    const { expected, claims } = judgedOf(name, promises, faultMs)
    const about = claims.find(({ what }) => what.startsWith('its circuit opened'))
    deepEqual([expected[0], about?.holds ?? null], [first, holds], JSON.stringify([name, promises, faultMs]))
  }
  deepEqual(judgedOf('upstream-dies', short).expected[1], 'at most 60 requests are lost of the 90 that are its share')
  match(judgedOf('upstream-dies', nothing).claims[0]?.seen ?? '', /^not judged: /)
})

test('what is refused while the machine starves the proxy or the load, is no upstream\'s doing, and is not judged', () => {
  const pressed: Sample = { id: 'a', at: 0, ms: 1, status: 503, failure: '', reason: 'shed_pressure' }
  const unsent: Sample = { ...pressed, status: 0, failure: 'unsent', reason: '' }
  const samples = [...Array(100)].flatMap(() => [pressed, unsent])
  for (const name of ['upstream-dies', 'hangs', 'slows', 'flaps', 'errors', 'all-die']) {
    deepEqual(judgedOf(name, {}, 3000, samples).claims.filter(({ what }) => what === 'lost' || what === 'failed' || what === 'tried in vain').map(({ seen }) => seen.split(',')[0]), ['0'], name)
  }
  deepEqual(judgedOf('overload', {}, 3000, samples).claims.filter(({ holds }) => !holds).map(({ what }) => what), ['some were answered'])
})

for (const { name } of drills) {
  test(`the drill ${name} passes at small scale, and leaves all as it was`, async (t) => {
    const { app, upstreams, argv } = await small(t)
    upstreams[0]?.set({ delayMs: 1 })
    const { code, out, errors } = await run(['drill', name, '--rate', name === 'hangs' ? '20' : '40', ...argv])
    equal(code, 0, [...out, ...errors].join('\n'))
    equal(out.at(-1), `drill ${name}: pass`)
    ok(out.filter((line) => line.startsWith('pass  ')).length >= 4)
    if (name === 'upstream-dies') deepEqual(claimsOf(shownDrill), claimsOf(out), 'README.md shows another drill than this')
    for (const { url } of upstreams) {
      equal((await fetch(url)).status, 200)
      // The hold is gone: another may have it.
      equal((await fetch(`${url}/__drill`, { method: 'POST', body: '{"ttlMs":1000}' })).status, 201)
    }
    await until(() => app.pools.list().every((pool) => pool.upstreams.every(({ inFlight }) => inFlight === 0)))
  })
}

test('a drill that the proxy fails says so and ends with 1', async (t) => {
  const { app, argv, upstreams } = await small(t)
  const seen: Ran = { code: null, out: [], errors: [] }
  const done = run(['drill', 'slows', '--rate', '40', ...argv], {}, seen)
  await until(() => seen.out.some((line) => line.includes('the fault begins')), { timeoutMs: 20_000 })
  // The first of the seed is the second one; this is another, of which nobody expects it.
  app.breakers.get('shop', new URL(upstreams[2]?.url ?? '').host)?.force('open', 1500)
  equal((await done).code, 1)
  match(seen.out.at(-1) ?? '', /^drill slows: FAIL$/)
})

test('while others send as well, what is in flight is not judged', async (t) => {
  const { app, argv } = await small(t)
  const url = argv.at(-1) as string
  const timer = setInterval(() => { fetch(url).then((response) => response.text(), () => '').catch(() => {}) }, 20)
  t.after(() => { clearInterval(timer) })
  // Of others, too, and longer than the drill looks.
  const upstream = app.pools.get('shop')?.upstreams[0]
  if (upstream !== undefined) upstream.inFlight++
  const { code, out, errors } = await run(['drill', 'slows', '--rate', '10', ...argv])
  clearInterval(timer)
  equal(code, 0, [...out, ...errors].join('\n'))
  ok(out.some((line) => /^ {2}-- {2}nothing is left in flight at the pool: \d+, which is not judged: \d+ requests of others came meanwhile$/.test(line)), out.join('\n'))
})

test('Ctrl-C ends a drill, and what was dead lives', async (t) => {
  const { argv, upstreams } = await small(t)
  const stop = new AbortController()
  const seen: Ran = { code: null, out: [], errors: [] }
  const done = run(['drill', 'all-die', '--rate', '40', '--for', '60s', ...argv.slice(2)], { stopped: stop.signal }, seen)
  await until(() => seen.out.some((line) => line.includes('the fault begins')), { timeoutMs: 20_000 })
  await until(() => fetch(upstreams[0]?.url ?? '').then(() => false, () => true), { what: 'that it is dead' })
  stop.abort()
  equal((await done).code, 130)
  for (const { url } of upstreams) await until(() => fetch(url).then(({ status }) => status === 200, () => false), { what: `${url} to be back` })
})

test('a pool with anything but scripted upstreams of this machine is refused, and not touched', async (t) => {
  const asked: string[] = []
  const real = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(real, 'listening')
  t.after(() => { real.close().closeAllConnections() })
  const scripted = await startUpstream()
  t.after(() => scripted.close())
  const url = `http://127.0.0.1:${(real.address() as AddressInfo).port}`
  const { argv } = await small(t, { urls: [scripted.url, url, 'http://192.0.2.1:80'] })
  const { code, errors } = await run(['drill', 'upstream-dies', ...argv])
  equal(code, 1)
  match(errors.join('\n'), new RegExp(`a drill is for scripted upstreams only: ${new URL(url).host} is no scripted upstream .*; 192\\.0\\.2\\.1:80 is not an address of this machine`))
  deepEqual([...new Set(asked)].toSorted(), ['GET /__stats', 'GET /healthz'])
  equal((await fetch(`${scripted.url}/__drill`, { method: 'POST', body: '{"ttlMs":1000}' })).status, 201, 'nobody is held')
})

test('--start begins the upstreams of a pool where nothing listens, and ends them', async (t) => {
  const free = await Promise.all([startUpstream(), startUpstream()])
  const urls = free.map(({ url }) => url)
  await Promise.all(free.map((each) => each.close()))
  const { argv } = await small(t, { urls })
  const without = await run(['drill', 'upstream-dies', '--rate', '40', ...argv])
  equal(without.code, 1)
  match(without.errors.join('\n'), /--start begins a scripted upstream there/)
  const { code, out, errors } = await run(['drill', 'upstream-dies', '--rate', '40', '--start', ...argv])
  equal(code, 0, [...out, ...errors].join('\n'))
  for (const url of urls) equal(await fetch(url).then(() => 'there', () => 'gone'), 'gone')
})

test('wrong arguments, another machine\'s admin routes, and requests that go elsewhere are refused before anything happens', async (t) => {
  const { argv, upstreams } = await small(t)
  const table: Array<[string[], number, RegExp]> = [
    [['drill', 'hang'], 2, /NAME must be .*; did you mean hangs\?/],
    [['drill', 'hangs', '--admin', 'http://192.0.2.1:9090'], 2, /not on this machine's loopback: --yes/],
    [['drill', 'hangs', '--rate', '501'], 2, /--rate must be a whole number from 10 to 500/],
    [['drill', 'hangs', '--for', '2m'], 2, /--for must be from 1s to 1m/],
    [['drill', 'hangs', '--url', 'https://127.0.0.1'], 2, /--url must be like/],
    [['drill', 'hangs', ...argv.slice(0, -2), '--url', 'http://127.0.0.1:9/'], 3, /http:\/\/127\.0\.0\.1:9, where requests are to be sent, cannot be reached: ECONNREFUSED; --url says where the public listener is/],
    [['drill', 'hangs', '--pool', 'nothing', ...argv], 1, /there is no pool "nothing": it has shop/]
  ]
  for (const [line, code, message] of table) {
    const done = await run(line)
    equal(done.code, code, line.join(' '))
    match(done.errors[0] ?? '', message)
  }
  for (const each of upstreams) equal(each.stats().requests, 0)
})

test('a hold ends by itself, and its faults with it', async (t) => {
  const upstream = await startUpstream({ delayMs: 0 })
  t.after(() => upstream.close())
  const begin = (ttlMs: unknown) => fetch(`${upstream.url}/__drill`, { method: 'POST', body: JSON.stringify({ ttlMs }) })
  equal((await begin(0)).status, 400)
  equal((await begin(3_600_000)).status, 400)
  const first = await begin(700)
  equal(first.status, 201)
  equal((await begin(700)).status, 409)
  const { control } = await first.json() as { control: string }
  equal((await fetch(control.slice(0, -1), { method: 'POST', body: '{"dead":true}' })).status, 404)
  equal((await fetch(control, { method: 'POST', body: '{"faults":{"nothing":1}}' })).status, 400)
  equal((await fetch(control, { method: 'POST', body: '{"faults":{"status":418}}' })).status, 200)
  upstream.set({ status: 203 })
  equal((await fetch(upstream.url)).status, 418, 'the drill lies over what it was told')
  equal((await fetch(control, { method: 'POST', body: '{"dead":true}' })).status, 200)
  equal(await fetch(upstream.url).then(() => 'there', () => 'gone'), 'gone')
  await until(() => fetch(upstream.url).then(({ status }) => status === 203, () => false), { what: 'that it is as it was told to be' })
  equal(await fetch(control).then(() => 'there', () => 'gone'), 'gone')
})

test('each word from its drill keeps a hold, and its end is told to that drill', async (t) => {
  const upstream = await startUpstream()
  t.after(() => upstream.close())
  const { control } = await (await fetch(`${upstream.url}/__drill`, { method: 'POST', body: '{"ttlMs":1000}' })).json() as { control: string }
  const until3s = performance.now() + 3000
  while (performance.now() < until3s) {
    equal((await fetch(control)).status, 200)
    await sleep(100)
  }
  const { argv, upstreams } = await small(t)
  const seen: Ran = { code: null, out: [], errors: [] }
  const done = run(['drill', 'slows', '--rate', '10', '--for', '60s', ...argv.slice(2)], {}, seen)
  await until(() => seen.out.some((line) => line.includes('the fault begins')), { timeoutMs: 20_000 })
  await upstreams[1]?.close()
  equal((await done).code, 1)
  match(seen.errors.join('\n'), /the hold on 127\.0\.0\.1:\d+ has ended/)
})

test('an upstream that is a process of its own outlives its time of being dead', async (t) => {
  const script = `import { upstreamCommand } from '${new URL('../../../bin/upstream.js', import.meta.url).href}'
process.exitCode = await upstreamCommand(process.argv.slice(1))`
  const upstream = spawnNode(t, ['--input-type=module', '-e', script, '--', '--port', '0'])
  const { url } = await upstream.waitForLine('upstream listening') as unknown as { url: string }
  const { control } = await (await fetch(`${url}/__drill`, { method: 'POST', body: '{"ttlMs":2000}' })).json() as { control: string }
  equal((await fetch(control, { method: 'POST', body: '{"dead":true}' })).status, 200)
  equal(await fetch(url).then(() => 'there', () => 'gone'), 'gone')
  // Nobody says another word, as when the drill was killed.
  await until(() => fetch(url).then(({ status }) => status === 200, () => false), { what: 'that it is back' })
})

test('an address of this machine is told by its bits, never by a name', () => {
  deepEqual(loopbackOf('127.0.0.1:80'), { host: '127.0.0.1', port: 80 })
  deepEqual(loopbackOf('[::1]:8080'), { host: '::1', port: 8080 })
  for (const id of ['localhost:80', '127.evil.example:80', '10.0.0.1:80', '/run/app.sock', '[::2]:1', '127.0.0.1']) equal(loopbackOf(id), null, id)
})
