import { deepEqual, equal, ok } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { loadConfig } from '../../config/load.ts'
import { parseConfig } from '../../config/parse.ts'
import { linesOf, withShop } from './support.ts'

const folder = mkdtempSync(join(tmpdir(), 'breakwater-config-'))
after(() => { rmSync(folder, { recursive: true }) })

const write = (text: string | Buffer, name = 'test.yaml'): string => {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}
const load = (text: string, env: Record<string, string> = {}) => loadConfig({ ...env, BREAKWATER_CONFIG: write(text) })
const bad = (text: string, env: Record<string, string> = {}) => linesOf(() => load(text, env))
const shop = 'pools: { shop: { upstreams: [{ url: "http://127.0.0.1:9001" }] } }\n'

test('a YAML file', () => {
  const loaded = load(`${shop}server:\n  # nothing\nadmin: { port: 0 }\n`)
  equal(loaded.source, 'file')
  equal(loaded.file, join(folder, 'test.yaml'))
  deepEqual(loaded.config, parseConfig(withShop({}, { admin: { port: 0 } }), 'test'))
})

test('a JSON file, with tabs and a byte order mark', () => {
  const file = write(`\uFEFF${JSON.stringify(withShop({}, { admin: { token: 'a"b\\c' } }), null, '\t')}`, 'test.json')
  equal(loadConfig({ BREAKWATER_CONFIG: file }).config.admin.token, 'a"b\\c')
})

test('a named file wins over the environment, a file over a list of upstreams', () => {
  const file = write(shop)
  equal(loadConfig({ BREAKWATER_CONFIG: '/nowhere' }, { file }).source, 'file')
  equal(loadConfig({ BREAKWATER_CONFIG: file, BREAKWATER_UPSTREAMS: 'http://other' }).config.routes[0]?.pool, 'shop')
})

test('a list of upstreams makes one pool and one route', () => {
  const { config, source, file } = loadConfig({ BREAKWATER_UPSTREAMS: 'http://127.0.0.1:9001, http://127.0.0.1:9002', BREAKWATER_MAX_IN_FLIGHT: '64' })
  equal(source, 'environment')
  equal(file, null)
  deepEqual(config.pools['default']?.upstreams.map(upstream => upstream.url), ['http://127.0.0.1:9001', 'http://127.0.0.1:9002'])
  deepEqual(config.routes, [{ path: '/*', pool: 'default' }])
  equal(config.shedding.maxInFlight, 64)
})

test('without either it is the demo, which the app completes', () => {
  const { config, source } = loadConfig({ BREAKWATER_MAX_IN_FLIGHT: '8', BREAKWATER_ADMIN_PORT: '0', BREAKWATER_ADMIN_TOKEN: '${x}' })
  equal(source, 'demo')
  deepEqual(config.pools, {})
  deepEqual(config.routes, [])
  const complete = parseConfig({ ...config, pools: withShop().pools }, 'demo')
  equal(complete.shedding.maxInFlight, 8)
  equal(complete.admin.port, 0)
  equal(complete.admin.token, '${x}')
  deepEqual(complete.routes, [{ path: '/*', pool: 'shop' }])
})

test('three variables override a file', () => {
  const { config } = load(`${shop}admin: { port: "\${UNSET}" }\nshedding:\n`, { BREAKWATER_ADMIN_PORT: '7', BREAKWATER_ADMIN_TOKEN: 'secret', BREAKWATER_MAX_IN_FLIGHT: '9' })
  equal(config.admin.port, 7)
  equal(config.admin.token, 'secret')
  equal(config.shedding.maxInFlight, 9)
})

test('an empty token variable overrides nothing', () => {
  equal(load(`${shop}admin: { token: kept }`, { BREAKWATER_ADMIN_TOKEN: '' }).config.admin.token, 'kept')
})

test('variables that cannot be used', () => {
  const table: [Record<string, string>, string[]][] = [
    [{ BREAKWATER_CONFIG: '' }, ['must be the path of a YAML or JSON file, got nothing; unset it if it is not meant']],
    [{ BREAKWATER_UPSTREAMS: ' ' }, ['must be a list of URLs with commas between them, got nothing; unset it if it is not meant']],
    [{ BREAKWATER_UPSTREAMS: 'nonsense' }, ['pools.default.upstreams[0].url: must be http://host:port, https://host:port or unix:/path/to.sock, got "nonsense"']],
    [{ BREAKWATER_UPSTREAMS: 'http://a,' }, ['pools.default.upstreams[1].url: must be text that is not empty, got ""']],
    [{ BREAKWATER_UPSTREAMS: 'http://a,http://a:80' }, ['pools.default.upstreams[1].url: is the same upstream (a:80) as pools.default.upstreams[0].url']],
    [{ BREAKWATER_UPSTREAMS: 'http://${HOME}' }, ['pools.default.upstreams[0].url: must be http://host:port, https://host:port or unix:/path/to.sock with a valid host and a port from 1 to 65535, got "http://${HOME}"']],
    [{ BREAKWATER_UPSTREAMS: 'http://a', BREAKWATER_MAX_IN_FLIGHT: '0' }, ['shedding.maxInFlight: must be a whole number from 1 to 2147483647, got 0 (from BREAKWATER_MAX_IN_FLIGHT)']],
    [{ BREAKWATER_MAX_IN_FLIGHT: 'many' }, ['shedding.maxInFlight: must be a whole number from 1 to 2147483647, got "many" (from BREAKWATER_MAX_IN_FLIGHT)']],
    [{ BREAKWATER_MAX_IN_FLIGHT: '' }, ['shedding.maxInFlight: needs the variable BREAKWATER_MAX_IN_FLIGHT, which is empty']],
    [{ BREAKWATER_ADMIN_PORT: '-1' }, ['admin.port: must be a whole number from 0 to 65535, got -1 (from BREAKWATER_ADMIN_PORT)']],
    [{ BREAKWATER_ADMIN_TOKEN: 'a secret' }, ['admin.token: must be of visible ASCII characters without spaces, as it travels in a header (the value is not shown) (from BREAKWATER_ADMIN_TOKEN)']]
  ]
  for (const [env, lines] of table) deepEqual(linesOf(() => loadConfig(env)), lines, JSON.stringify(env))
})

test('files that cannot be read', () => {
  const missing = join(folder, 'missing.yaml')
  deepEqual(linesOf(() => loadConfig({ BREAKWATER_CONFIG: missing })), ['cannot be read: no such file'])
  deepEqual(linesOf(() => loadConfig({ BREAKWATER_CONFIG: folder })), ['cannot be read: it is a directory'])
  deepEqual(linesOf(() => loadConfig({ BREAKWATER_CONFIG: write(Buffer.from([0x61, 0x3a, 0xff])) })), ['must be UTF-8 text'])
  deepEqual(bad(`#${' '.repeat(1048576)}`), ['cannot be read: it has more than 1048576 bytes'])
})

test('YAML that is wrong, with its place and without its text', () => {
  const table: [string, string[]][] = [
    ['', ['must be a mapping, got nothing']],
    ['- a', ['must be a mapping, got a list']],
    ['just text', ['must be a mapping, got a string']],
    [`${shop}admin:\n  port: 1\n  port: 2\n`, ['line 4, column 3: the key "port" stands twice in one mapping']],
    ['1: a\n"1": b\n', ['line 2, column 1: the key "1" stands twice in one mapping']],
    ['{a: b}: 1', ['line 1, column 1: a key must be text']],
    ['a: !secret x', ['line 1, column 4: a tag that is not known; text that starts with "!" needs quotes']],
    ['a: *nowhere', ['has an alias without an anchor before it']],
    ['a: 1\n---\nb: 2', ['line 2, column 1: a second document; there must be one']],
    ['admin:\n\tport: 1', ['line 2, column 1: Tabs are not allowed as indentation']],
    ['['.repeat(5000), ['is nested too deep']],
    [`a: &a [x, x, x]\n${Array.from({ length: 12 }, (_, index) => `k${index}: &${'bcdefghijklm'[index]} [${`*${'abcdefghijklm'[index]}, `.repeat(9)}]`).join('\n')}`, ['has aliases that expand to too much']]
  ]
  for (const [text, lines] of table) deepEqual(bad(text), lines, text.slice(0, 60))
  for (const token of ['"SECRET', "'SECRET", '|SECRET', '!SECRET x', '!SECRET!', '*SECRET', '"\\SECRET"', '@SECRET', '[SECRET', '{SECRET', 'a: SECRET', 'x #\nSECRET', '>1SECRET', '&SECRET &SECRET x', '%SECRET: SECRET: [', '"a" SECRET']) {
    const lines = bad(`admin:\n  token: ${token}\n`)
    ok(lines.length > 0 && lines.every(line => !line.includes('SECRET')), `${token}\n${lines.join('\n')}`)
  }
})

test('what is no regular file is refused, and not waited for', () => {
  const pipe = join(folder, 'pipe.yaml')
  execFileSync('mkfifo', [pipe])
  symlinkSync(pipe, join(folder, 'link.yaml'))
  for (const file of [pipe, join(folder, 'link.yaml'), '/dev/zero', '/dev/null']) deepEqual(linesOf(() => loadConfig({ BREAKWATER_CONFIG: file })), ['cannot be read: it is not a regular file'], file)
  const lines = bad(`pools: { shop: { upstreams: [{ url: "https://a" }], tls: { ca: ${pipe}, cert: /dev/zero, key: ${write(Buffer.alloc(1048577), 'large.pem')} } } }`)
  deepEqual(lines.map(line => line.replace(/, got .*:/, ':')), [
    'pools.shop.tls.ca: must be a readable file: it is not a regular file',
    'pools.shop.tls.cert: must be a readable file: it is not a regular file',
    'pools.shop.tls.key: must be a readable file: it has more than 1048576 bytes'
  ])
})

test('off, no and yes are texts; anchors may be used', () => {
  equal(load('pools: { shop: { upstreams: [{ url: "http://a" }], breaker: { mode: off } } }').config.pools['shop']?.breaker.mode, 'off')
  const { config } = load('pools:\n  a: { upstreams: [{ url: "http://a" }], health: &health { intervalMs: 77 } }\n  b: { upstreams: [{ url: "http://b" }], health: *health }\nroutes: [{ path: "/*", pool: a }]\n')
  equal(config.pools['b']?.health.intervalMs, 77)
})

test('variables in values', () => {
  const env = { PORT: '7', YES: 'true', HOST: 'example', MANY: '8', NAME: 'x', TEXT: '123', NESTED: '${PORT}', EMPTY: '' }
  const { config } = load(`
pools:
  shop:
    upstreams:
      - { url: "http://\${HOST}-\${NAME}:\${PORT}/a" }
      - { url: "\${OTHER:-http://b:1}" }
    breaker: { mode: "\${MODE:-off}", halfOpen: { probes: "\${PROBES:-auto}" }, jitter: "\${JITTER:-0.2}" }
    health: { enabled: "\${NO:-false}", statuses: ["\${LOW:-204}", 299] }
server: { probes: "\${YES}" }
admin: { port: "\${PORT}", token: "\${TEXT}", host: "\${EMPTY:-127.0.0.1}" }
shedding:
  maxInFlight: \${MANY}
`, env)
  deepEqual(config.pools['shop']?.upstreams.map(({ url }) => url), ['http://example-x:7/a', 'http://b:1'])
  equal(config.pools['shop']?.breaker.mode, 'off')
  equal(config.pools['shop']?.breaker.halfOpen.probes, 'auto')
  equal(config.pools['shop']?.breaker.jitter, 0.2)
  equal(config.pools['shop']?.health.enabled, false)
  deepEqual(config.pools['shop']?.health.statuses, [204, 299])
  equal(config.server.probes, true)
  equal(config.admin.port, 7)
  equal(config.admin.token, '123')
  equal(config.shedding.maxInFlight, 8)
  equal(load(shop + 'admin: { token: "$${a}$b${NESTED}" }', env).config.admin.token, '${a}$b${PORT}')
  equal(load(shop + 'admin: { token: "${EMPTY:-}" }', env).config.admin.token, '')
})

test('variables that are missing or do not fit', () => {
  const table: [string, string[]][] = [
    ['admin: { port: "${NOPE}" }', ['admin.port: needs the variable NOPE, which is not set; ${NOPE:-default} would give it a default']],
    ['admin: { token: "${EMPTY}" }', ['admin.token: needs the variable EMPTY, which is empty']],
    ['admin: { host: "${NOPE}" }', ['admin.host: needs the variable NOPE, which is not set; ${NOPE:-default} would give it a default']],
    ['admin: { port: "1${ONE}" }', ['admin.port: must be a whole number from 0 to 65535, got "11" (from ONE)']],
    ['admin: { port: "${WORD}" }', ['admin.port: must be a whole number from 0 to 65535, got "word" (from WORD)']],
    ['admin: { host: "0.0.0.0", token: "${NOPE:-}" }', ['admin.token: is required when admin.host is not loopback; it is "0.0.0.0" (from NOPE)']],
    ['server: { probes: "${ONE}" }', ['server.probes: must be true or false, got "1" (from ONE)']],
    ['server: { probes: "true" }', ['server.probes: must be true or false, got "true"']],
    ['server: { trustedProxies: ["${NOPE}", "${WORD}"] }', [
      'server.trustedProxies[0]: needs the variable NOPE, which is not set; ${NOPE:-default} would give it a default',
      'server.trustedProxies[1]: must be an IP address, a CIDR like 10.0.0.0/8 or unix, got "word" (from WORD)'
    ]],
    ...['"${}"', '"${a-b}"', '"${open"', '"${1}"'].map((text): [string, string[]] =>
      [`admin: { host: ${text} }`, ['admin.host: has a "${" that is not ${NAME} or ${NAME:-default}; a plain one is written "$${"']])
  ]
  for (const [text, lines] of table) deepEqual(bad(shop + text, { EMPTY: '', ONE: '1', WORD: 'word' }), lines, text)
  deepEqual(bad('pools: { shop: { upstreams: [{ url: "http://${U}:${P}@a" }] } }', { U: 'user', P: 'SECRET' }),
    ['pools.shop.upstreams[0].url: must not have credentials, got "http://[redacted]@a" (from U, P)'])
})
