import { deepEqual } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parseConfig } from '../../config/parse.ts'
import { certificate, type Pair } from './certificate.ts'
import { linesOf, withShop } from './support.ts'

const folder = mkdtempSync(join(tmpdir(), 'breakwater-certificates-'))
after(() => { rmSync(folder, { recursive: true }) })
const write = (name: string, text: string): string => {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}
const files = (name: string, pair: Pair) => ({ cert: write(`${name}.pem`, pair.cert), key: write(`${name}.key`, pair.key) })

const one = files('one', certificate({ name: 'one', names: ['one.example', '*.one.example'] }))
const two = files('two', certificate({ name: 'two', names: ['two.example'] }))
const nameless = files('nameless', certificate({ name: 'nameless' }))
const junk = write('junk.pem', 'SECRET')

/** Without the code in parentheses, which is OpenSSL's. */
const bad = (tls: unknown, server: Record<string, unknown> = {}, routes: unknown[] = []): string[] =>
  linesOf(() => parseConfig(withShop({}, { server: { tls, ...server }, ...routes.length === 0 ? {} : { routes } }), 'test')).map(line => line.split(' (')[0] as string)
const certificates = (...list: unknown[]): string[] => bad({ certificates: list })
const first = 'server.tls.certificates[0]'

test('certificates of the listener: files that are there and fit together', () => {
  deepEqual(certificates(one, two), [])
  deepEqual(certificates(nameless, one), [], 'the first one needs no name')
  deepEqual(certificates({ cert: one.cert, key: two.key }), [`${first}.cert: must be a PEM certificate with its unencrypted key in ${first}.key, got ${JSON.stringify(one.cert)}`])
  deepEqual(certificates({ cert: junk, key: one.key }), [`${first}.cert: must be a PEM certificate with its unencrypted key in ${first}.key, got ${JSON.stringify(junk)}`])
  deepEqual(certificates({ cert: '/no/such/file', key: folder }, { cert: one.cert, key: '/no/such/key' }), [
    `${first}.cert: must be a readable file, got "/no/such/file": no such file`,
    `${first}.key: must be a readable file, got ${JSON.stringify(folder)}: it is a directory`,
    'server.tls.certificates[1].key: must be a readable file, got "/no/such/key": no such file'
  ])
})

test('certificates of the listener: names by which they can be chosen', () => {
  deepEqual(certificates({ ...one, names: ['a.example', '*.b.example', 'C.example.'] }), [])
  deepEqual(certificates({ ...one, names: ['*', 'a b', '10.0.0.1/8', 'a.*.b'] }), [
    `${first}.names[0]: must be a host name, or "*." and one, got "*"`,
    `${first}.names[1]: must be a host name, or "*." and one, got "a b"`,
    `${first}.names[2]: must be a host name, or "*." and one, got "10.0.0.1/8"`,
    `${first}.names[3]: must be a host name, or "*." and one, got "a.*.b"`
  ])
  deepEqual(certificates(one, nameless), ['server.tls.certificates[1].names: is required: the certificate itself has none, and only the first one is for clients without a name'])
  deepEqual(certificates(one, two, { ...two, names: ['ONE.example'] }), [`server.tls.certificates[2]: would never be used: ${first} is for its names`])
  deepEqual(certificates(one, { ...two, names: ['one.example', 'more.example'] }), [], 'one name of its own is enough')
})

test('certificates of clients: an authority, and a header of its own', () => {
  const clients = (clientCertificates: Record<string, unknown>, server: Record<string, unknown> = {}, routes: unknown[] = []): string[] => bad({ certificates: [one], clientCertificates }, server, routes)
  const path = 'server.tls.clientCertificates'
  deepEqual(clients({ ca: one.cert }), [])
  deepEqual(clients({ ca: junk }), [`${path}.ca: must hold a PEM certificate, got ${JSON.stringify(junk)}`])
  deepEqual(clients({ ca: write('second.pem', `${certificate({ name: 'a' }).cert}${'-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'}`) }), [`${path}.ca: must hold a PEM certificate, got ${JSON.stringify(join(folder, 'second.pem'))}`])
  for (const header of ['host', 'X-Forwarded-For', 'x_real_ip', 'content-length', 'x-request-id']) {
    deepEqual(clients({ ca: one.cert, header }), [`${path}.header: must be a header of its own, got ${JSON.stringify(header)}, which has a meaning already`])
  }
  const asks = { path: '/*', pool: 'shop', headers: { 'Client-Cert': '*' } }
  deepEqual(clients({ ca: one.cert }, {}, [asks]), ['routes[0].headers.Client-Cert: must not be a field that the proxy itself writes or that frames the message, got "Client-Cert"'])
  deepEqual(clients({ ca: one.cert, header: 'x-cert' }, {}, [asks]), [])
})

test('a listener with TLS has no connections without', () => {
  deepEqual(bad({ certificates: [one] }, { http2: { cleartext: true } }), ['server.http2.cleartext: must not be true with server.tls: then every connection is TLS'])
})
