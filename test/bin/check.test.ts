/** `breakwater check`: what it prints, where, and its exit code. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { askAdmin } from '../../bin/ask-admin.ts'
import { checkCommand } from '../../bin/check.ts'
import { diffConfig } from '../../config/diff.ts'
import { ConfigError } from '../../config/error.ts'
import { parseConfig } from '../../config/parse.ts'
import { redactConfig } from '../../config/redact.ts'
import { withShop } from '../config/support.ts'
import { spawnNode } from '../support/process.ts'

const cli = join(dirname(fileURLToPath(import.meta.url)), '../../bin/breakwater.js')
const folder = mkdtempSync(join(tmpdir(), 'breakwater-check-'))
after(() => { rmSync(folder, { recursive: true }) })

const write = (name: string, content: unknown): string => {
  const file = join(folder, name)
  writeFileSync(file, JSON.stringify(content))
  return file
}

/** What it prints, line by line, and its exit code. */
const check = async (args: string[], env: Record<string, string> = {}) => {
  const lines = { out: [] as string[], errors: [] as string[] }
  const code = await checkCommand(args, {
    env,
    out: (...text) => { lines.out.push(...text.join('\n').split('\n')) },
    complain: (...text) => { lines.errors.push(...text.join('\n').split('\n')) }
  })
  return { code, ...lines }
}

const valid = write('valid.yaml', withShop({ timeouts: { headersMs: 3000 } }, { admin: { token: 'file-token' } }))
const invalid = write('invalid.yaml', withShop({ balancer: 'fair' }))
const isValid = `${valid} is valid: 1 pool, 1 route`
const before = parseConfig(withShop({}, { admin: { token: 'file-token' } }), 'running')

interface Answer { status: number, body: unknown, headers?: Record<string, string> }
interface Asked { method: string | undefined, url: string | undefined, token: string | undefined, body: unknown }

/** An admin listener by script: the answer to POST /config/validate, and the one to GET /config. */
const admin = async (t: TestContext, validate: (body: unknown) => Answer, config: Answer = { status: 200, body: redactConfig(before) }) => {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const body = await readJson(request)
    asked.push({ method: request.method, url: request.url, token: request.headers.authorization, body })
    const answer = request.method === 'POST' ? validate(body) : config
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
    response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => { server.close().closeAllConnections() })
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const readJson = async (request: IncomingMessage): Promise<unknown> => {
  let text = ''
  for await (const part of request.setEncoding('utf8')) text += String(part)
  return text === '' ? null : JSON.parse(text)
}

/** What a running proxy answers that has `before`. */
const judge = (body: unknown): Answer => {
  try {
    return { status: 200, body: { valid: true, diff: { ...diffConfig(before, parseConfig(body, 'body')), impact: { upstreams: [{ pool: 'shop', upstream: '127.0.0.1:9001', inFlight: 2 }], exchanges: 2 } } } }
  } catch (error) {
    return { status: 422, body: { valid: false, errors: (error as ConfigError).errors } }
  }
}

test('a valid file is told and nothing else', async () => {
  deepEqual(await check([valid]), { code: 0, out: [isValid], errors: [] })
})

test('as a process it ends with its exit code', async (t) => {
  const run = async (file: string) => {
    const child = spawnNode(t, [cli, 'check', file], { env: { BREAKWATER_ADMIN_TOKEN: undefined, BREAKWATER_ADMIN_PORT: undefined, BREAKWATER_MAX_IN_FLIGHT: undefined } })
    const { code } = await child.exit
    return { code, out: child.output.lines.map(({ text }) => text), errors: child.errors.lines.length }
  }
  deepEqual(await run(valid), { code: 0, out: [isValid], errors: 0 })
  deepEqual(await run(invalid), { code: 2, out: [], errors: 2 })
})

test('everything that is wrong with a file is told, with exit code 2', async () => {
  const { code, out, errors } = await check([invalid])
  equal(code, 2)
  deepEqual(out, [])
  equal(errors[0], `1 error in ${invalid}`)
  match(String(errors[1]), /pools\.shop\.balancer: must be one of/)
})

test('wrong arguments are told with the usage and exit code 2, and help helps', async () => {
  const twoWords = join(folder, 'two-words')
  writeFileSync(twoWords, 'two words\n')
  const table: [string[], RegExp][] = [
    [[], /FILE is missing$/],
    [[valid, valid], /one argument too many$/],
    [[valid, '--bogus'], /--bogus/],
    [[valid, '--agianst', valid], /did you mean --against\?$/],
    [[valid, '--against', valid, '--admin', 'http://127.0.0.1:1'], /--admin and --against exclude each other$/],
    [[valid, '--token-file', 'x'], /--token-file goes with --admin$/],
    [[valid, '--admin', '127.0.0.1:9090'], /--admin must be a URL/],
    [[valid, '--admin', 'http://user:pass@127.0.0.1:9090'], /--admin must be a URL/],
    [[valid, '--admin', 'http://127.0.0.1:1', '--token-file', twoWords], /the admin token must be of visible ASCII/],
    [[valid, '--admin', 'http://127.0.0.1:1', '--token-file', join(folder, 'nothing')], /cannot be read: ENOENT$/]
  ]
  for (const [args, message] of table) {
    const { code, errors } = await check(args)
    equal(code, 2, args.join(' '))
    match(String(errors[0]), message)
    ok(errors.some((line) => String(line).startsWith('usage: breakwater check')))
  }
  const { code, out } = await check(['--help'])
  equal(code, 0)
  match(String(out[0]), /^usage: breakwater check/)
})

test('--against compares with another file', async () => {
  const old = write('old.yaml', withShop({}, { admin: { token: 'another' }, server: { maxHeaderBytes: 4096 } }))
  deepEqual(await check([valid, '--against', old]), {
    code: 0,
    out: [isValid, `against ${old}:`, '~ pools.shop.timeouts.headersMs 5000 -> 3000', '! server.maxHeaderBytes needs a restart (4096 -> 65536)', '! admin.token needs a restart'],
    errors: []
  })
  deepEqual((await check([valid, '--against', valid])).out, [isValid, `against ${valid}:`, 'nothing would change'])
  const broken = await check([valid, '--against', invalid])
  equal(broken.code, 2)
  equal(broken.errors[0], `1 error in ${invalid}`)
})

test('--admin asks a running proxy, with the whole configuration and the token of the file', async (t) => {
  const { url, asked } = await admin(t, judge)
  const { code, out, errors } = await check([valid, '--admin', url])
  deepEqual({ code, out, errors }, { code: 0, out: [isValid, `against ${url}:`, '~ pools.shop.timeouts.headersMs 5000 -> 3000'], errors: [] })
  deepEqual(asked.map(({ method, url: path, token }) => ({ method, path, token })), [
    { method: 'POST', path: '/config/validate', token: 'Bearer file-token' },
    { method: 'GET', path: '/config', token: 'Bearer file-token' }
  ])
  deepEqual(asked[0]?.body, parseConfig(withShop({ timeouts: { headersMs: 3000 } }, { admin: { token: 'file-token' } }), 'file'))
})

test('--admin: exchanges in flight at what goes, a prefix, a token of its own', async (t) => {
  const { url, asked } = await admin(t, judge)
  const other = write('other.yaml', withShop({ upstreams: [{ url: 'http://127.0.0.1:9002' }] }))
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, 'given\n')
  const { code, out } = await check([other, '--admin', `${url}/admin`, '--token-file', tokenFile])
  equal(code, 0)
  deepEqual(out.slice(2), ['+ upstream 127.0.0.1:9002 in pool shop', '- upstream 127.0.0.1:9001 in pool shop (2 exchanges in flight)', '! admin.token needs a restart ("[redacted]" -> "")'])
  deepEqual(asked.map(({ url: path, token }) => [path, token]), [['/admin/config/validate', 'Bearer given'], ['/admin/config', 'Bearer given']])
  await check([other, '--admin', url], { BREAKWATER_ADMIN_TOKEN: 'variable' })
  equal(asked[2]?.token, 'Bearer variable')
})

test('--admin: without the configuration in force the places are told without values', async (t) => {
  const { url } = await admin(t, judge, { status: 404, body: {} })
  deepEqual((await check([valid, '--admin', url])).out.slice(2), ['~ pools.shop.timeouts.headersMs changes'])
})

test('--admin: what the running proxy finds wrong has exit code 2', async (t) => {
  const { url } = await admin(t, () => ({ status: 422, body: { valid: false, errors: [{ path: 'pools.shop.tls.ca', message: 'must be a readable file' }] } }))
  const { code, out, errors } = await check([valid, '--admin', url])
  deepEqual({ code, out, errors }, { code: 2, out: [isValid], errors: [`1 error in ${url}`, '  - pools.shop.tls.ca: must be a readable file'] })
})

test('--admin: an invalid file is not sent anywhere', async (t) => {
  const { url, asked } = await admin(t, judge)
  equal((await check([invalid, '--admin', url])).code, 2)
  deepEqual(asked, [])
})

test('--admin: a proxy that cannot be asked has exit code 3', async (t) => {
  const answers: [Answer, RegExp][] = [
    [{ status: 401, body: { detail: 'the token is not the admin token' } }, /it answers 401: the token is not the admin token$/],
    [{ status: 404, body: 'not json' }, /it answers 404$/],
    [{ status: 307, body: '', headers: { location: '/elsewhere' } }, /it answers 307$/],
    [{ status: 422, body: { errors: ['odd'] } }, /it answers 422$/],
    [{ status: 200, body: 'not json' }, /no admin route of this version/],
    [{ status: 200, body: { valid: true, diff: { same: false, pools: {} } } }, /no admin route of this version/]
  ]
  for (const [answer, message] of answers) {
    const { url, asked } = await admin(t, () => answer)
    const { code, errors } = await check([valid, '--admin', url])
    equal(code, 3)
    match(String(errors[0]), message)
    equal(asked.length, 1)
  }
  // A port that nobody listens on: that of a listener that has just gone.
  const gone = createServer().listen(0, '127.0.0.1')
  await once(gone, 'listening')
  const { port } = gone.address() as AddressInfo
  gone.close()
  await once(gone, 'close')
  const { code, errors } = await check([valid, '--admin', `http://127.0.0.1:${port}`])
  equal(code, 3)
  match(String(errors[0]), /could not judge it: it cannot be reached: ECONNREFUSED$/)
})

test('--admin: a proxy that does not answer is not waited for without end', async (t) => {
  const server = createServer(() => {}).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => { server.close().closeAllConnections() })
  deepEqual(await askAdmin(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, '', before, 50), { kind: 'refused', why: 'it cannot be reached: no answer in time' })
})

test('--admin: a connection that is cut is told like one that cannot be made', async (t) => {
  const server = createServer((request) => { request.socket.destroy() }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => { server.close() })
  const { code, errors } = await check([valid, '--admin', `http://127.0.0.1:${(server.address() as AddressInfo).port}`])
  equal(code, 3)
  match(String(errors[0]), /it cannot be reached: \w+$/)
  ok(!errors.join('\n').includes('file-token'))
})
