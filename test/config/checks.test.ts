import { deepEqual } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parseConfig } from '../../config/parse.ts'
import { selfSigned } from './certificate.ts'
import { linesOf, withShop } from './support.ts'

const bad = (input: unknown) => linesOf(() => parseConfig(input, 'test'))
const urls = (...texts: string[]) => ({ upstreams: texts.map(url => ({ url })) })

test('upstreams: URLs, duplicates and weights', () => {
  deepEqual(bad(withShop(urls('http://user:secret@a'))), ['pools.shop.upstreams[0].url: must not have credentials, got "http://[redacted]@a"'])
  deepEqual(bad(withShop(urls('http://a', 'https://b', 'http://A:80/', 'http://b:443/x'))), [
    'pools.shop.upstreams[2].url: is the same upstream (a:80) as pools.shop.upstreams[0].url',
    'pools.shop.upstreams[3].url: is the same upstream (b:443) as pools.shop.upstreams[1].url'
  ])
  deepEqual(bad(withShop(urls('unix:/run/a.sock', 'unix:///run/a.sock'))), ['pools.shop.upstreams[1].url: is the same upstream (/run/a.sock) as pools.shop.upstreams[0].url'])
  deepEqual(bad(withShop({ upstreams: [{ url: 'http://a', weight: 0 }, { url: 'http://b', weight: 0 }] })), ['pools.shop.upstreams: must have an upstream with a weight above 0, got only weights of 0'])
  deepEqual(bad(withShop({ upstreams: [{ url: 'http://a', weight: 0 }, { url: 'http://b' }] })), [])
  const pool = urls('http://a')
  deepEqual(bad({ pools: { x: pool, y: pool }, routes: [{ path: '/*', pool: 'x' }] }), [], 'two pools may share an upstream')
})

test('metrics: buckets rise', () => {
  const buckets = (...durationBuckets: number[]) => bad({ ...withShop(urls('http://a')), metrics: { durationBuckets } })
  deepEqual(buckets(0.5, 1), [])
  deepEqual(buckets(1, 1, 0.5), ['metrics.durationBuckets[1]: must be above the one before (1), got 1', 'metrics.durationBuckets[2]: must be above the one before (1), got 0.5'])
  deepEqual(buckets(), ['metrics.durationBuckets: must be a list of 1 to 50, each a number above 0 and at most 86400, got a list of 0'])
})

test('health and breaker: options that contradict each other', () => {
  deepEqual(bad(withShop({ health: { statuses: [299, 200] } })), ['pools.shop.health.statuses: must be a range from low to high, got [299, 200]'])
  deepEqual(bad(withShop({ health: { statuses: [204, 204], path: '/health?deep=1' } })), [])
  deepEqual(bad(withShop({ health: { path: '/a b' } })), ['pools.shop.health.path: must be of visible ASCII characters without "#", others percent-encoded, got "/a b"'])
  deepEqual(bad(withShop({ health: { intervalMs: 100, timeoutMs: 1000 } })), [], 'checks never overlap')
  deepEqual(bad(withShop({ breaker: { openMs: 2000, maxOpenMs: 1000 } })), ['pools.shop.breaker.maxOpenMs: must be at least pools.shop.breaker.openMs (2000), got 1000'])
  deepEqual(bad(withShop({ breaker: { openMs: 2000, maxOpenMs: 2000 } })), [])
  deepEqual(bad(withShop({}, { server: { headersTimeoutMs: 60000, requestTimeoutMs: 30000 } })), [], 'the smaller holds')
})

test('server: proxies that are trusted and headers that are not', () => {
  const lines = bad(withShop({}, { server: { trustedProxies: ['10.0.0.0/8', '::1', 'fd00::/8', '192.0.2.1', '10.0.0.0/33', 'fd00::/129', '127.1', 'localhost', '1.2.3.4/8/8', ''] } }))
  deepEqual(lines, ['"10.0.0.0/33"', '"fd00::/129"', '"127.1"', '"localhost"', '"1.2.3.4/8/8"', '""'].map((text, index) =>
    `server.trustedProxies[${index + 4}]: must be an IP address, a CIDR like 10.0.0.0/8 or unix, got ${text}`))
  deepEqual(bad(withShop({}, { server: { stripRequestHeaders: ['x-user-id', 'Host', 'content-length', 'transfer-encoding'], requestIdHeader: 'Host' } })), [
    'server.stripRequestHeaders[1]: must not be a header that HTTP itself needs, got "Host"',
    'server.stripRequestHeaders[2]: must not be a header that HTTP itself needs, got "content-length"',
    'server.stripRequestHeaders[3]: must not be a header that HTTP itself needs, got "transfer-encoding"',
    'server.requestIdHeader: must not be a header that HTTP itself needs, got "Host"'
  ])
})

test('admin: only loopback goes without a token', () => {
  for (const host of ['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1', 'localhost', 'LocalHost']) deepEqual(bad(withShop({}, { admin: { host } })), [], host)
  for (const host of ['0.0.0.0', '::', '10.0.0.1', 'admin.internal', 'localhost.example']) {
    deepEqual(bad(withShop({}, { admin: { host } })), [`admin.token: is required when admin.host is not loopback; it is "${host}"`])
    deepEqual(bad(withShop({}, { admin: { host, token: 'secret' } })), [])
    deepEqual(bad(withShop({}, { admin: { host, enabled: false } })), [])
  }
  deepEqual(bad(withShop({}, { admin: { host: '[::1]' } })), ['admin.host: must be an IP address (without brackets and port) or a host name, got "[::1]"'])
  deepEqual(bad(withShop({}, { admin: { token: 'two words' } })), ['admin.token: must be of visible ASCII characters without spaces, as it travels in a header (the value is not shown)'])
})

const folder = mkdtempSync(join(tmpdir(), 'breakwater-tls-'))
after(() => { rmSync(folder, { recursive: true }) })
const write = (name: string, text: string): string => {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

const tls = (options: Record<string, unknown>) => bad(withShop({ ...urls('https://a'), tls: options }))
/** Without the code in parentheses, which is OpenSSL's. */
const start = (lines: string[]) => lines.map(line => line.split(' (')[0])

test('tls: the files are read and understood', () => {
  const one = selfSigned('one')
  const two = selfSigned('two')
  const cert = write('one.pem', one.cert)
  const key = write('one.key', one.key)
  const otherKey = write('two.key', two.key)
  const junk = write('junk.pem', 'SECRET')
  const missing = join(folder, 'missing.pem')
  deepEqual(tls({ ca: cert, cert, key, servername: 'shop.internal' }), [])
  deepEqual(tls({}), [])
  deepEqual(tls({ ca: missing, cert: folder, key }), [
    `pools.shop.tls.ca: must be a readable file, got ${JSON.stringify(missing)}: no such file`,
    `pools.shop.tls.cert: must be a readable file, got ${JSON.stringify(folder)}: it is a directory`
  ])
  deepEqual(tls({ cert }), ['pools.shop.tls.key: is required with a cert'])
  deepEqual(tls({ key }), ['pools.shop.tls.cert: is required with a key'])
  deepEqual(tls({ servername: '10.0.0.1' }), ['pools.shop.tls.servername: must be a host name, got "10.0.0.1"'])
  deepEqual(start(tls({ ca: junk })), [`pools.shop.tls.ca: must hold a PEM certificate, got ${JSON.stringify(junk)}`])
  deepEqual(start(tls({ cert, key: otherKey })), [`pools.shop.tls.cert: must be a PEM certificate with its unencrypted key in pools.shop.tls.key, got ${JSON.stringify(cert)}`])
  deepEqual(start(tls({ cert: junk, key })), [`pools.shop.tls.cert: must be a PEM certificate with its unencrypted key in pools.shop.tls.key, got ${JSON.stringify(junk)}`])
})

test('tls: only for https upstreams', () => {
  deepEqual(bad(withShop({ tls: {} })), ['pools.shop.tls: is only for pools with an https upstream, and this one has none'])
  deepEqual(bad(withShop({ ...urls('http://a', 'https://b'), tls: {} })), [])
})
