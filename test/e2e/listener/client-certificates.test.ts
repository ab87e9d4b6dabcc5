import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { connect, type ConnectionOptions } from 'node:tls'
import { certificate, type Pair } from '../../config/certificate.ts'
import type { Gateway } from '../../support/gateway.ts'
import { until } from '../../support/wait.ts'
import { ask, Folder, get, startListener } from './support.ts'

const authority = certificate({ name: 'our clients', authority: true })
const by = { pair: authority, name: 'our clients' }
const known = certificate({ name: 'known', by })
const expired = certificate({ name: 'expired', by, notAfter: '20210101000000Z' })
const stranger = certificate({ name: 'stranger', by: { pair: certificate({ name: 'our clients', authority: true }), name: 'our clients' } })
const self = certificate({ name: 'self' })

const start = (t: TestContext, clientCertificates: Record<string, unknown> = {}, more: Record<string, unknown> = {}): Promise<Gateway> => {
  const folder = new Folder(t)
  const ca = folder.write('clients.pem', authority.cert)
  return startListener(t, { tls: { certificates: [folder.issue('shop.example'), folder.issue('other.example')], clientCertificates: { ca, ...clientCertificates } }, ...more })
}

/** What came of a request; '' where the connection was refused. */
async function answerTo (port: number, options: ConnectionOptions, request = get): Promise<string> {
  return ask(port, options, request).then(({ text }) => text, () => '')
}
const value = ({ cert }: Pair): string => `:${new X509Certificate(cert).raw.toString('base64')}:`

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
  for (const servername of ['shop.example', 'other.example']) {
    test(`required: no connection without a valid certificate (${maxVersion}, ${servername})`, async (t) => {
      const gateway = await start(t)
      const { port } = gateway
      assert.match(await answerTo(port, { ...known, maxVersion, servername }), /^HTTP\/1\.1 200 /)
      for (const pair of [undefined, expired, stranger, self]) assert.equal(await answerTo(port, { ...pair, maxVersion, servername }), '')
      await until(() => gateway.lines.find(({ failure }) => failure === 'tls_handshake' || failure === 'client_certificate'))
      assert.equal(gateway.lines.all('access').length, 1)
    })

    test(`requested: one that is shown must be valid (${maxVersion}, ${servername})`, async (t) => {
      const gateway = await start(t, { mode: 'request' })
      const { port } = gateway
      assert.match(await answerTo(port, { ...known, maxVersion, servername }), /client-cert: :/)
      const without = await answerTo(port, { maxVersion, servername })
      assert.match(without, /^HTTP\/1\.1 200 /)
      assert.doesNotMatch(without, /client-cert/i)
      for (const pair of [expired, stranger, self]) assert.equal(await answerTo(port, { ...pair, maxVersion, servername }), '')
      const told = await until(() => gateway.lines.find(({ failure }) => failure === 'client_certificate'))
      assert.equal(told['error'], 'CERT_HAS_EXPIRED')
    })
  }

  for (const mode of ['require', 'request']) {
    test(`${mode}: whoever was refused does not get in by resuming a session, and whoever was not keeps its certificate (${maxVersion})`, async (t) => {
      const { port } = await start(t, { mode })
      for (const pair of [stranger, expired, self]) {
        const refused = await talk(t, port, { ...pair, maxVersion })
        assert.doesNotMatch(refused.text, /HTTP/)
        for (const session of refused.sessions) assert.doesNotMatch((await talk(t, port, { maxVersion, session })).text, /HTTP/)
      }
      const first = await talk(t, port, { ...known, maxVersion })
      assert.ok(first.sessions.length > 0)
      const again = await talk(t, port, { ...known, maxVersion, session: first.sessions[0] as Buffer })
      assert.equal(again.reused, true)
      assert.ok(again.text.includes(`client-cert: ${value(known)}`))
    })
  }
}

interface Talk { text: string, reused: boolean, sessions: Buffer[] }

/** All that came over a connection, however it ended. */
async function talk (t: TestContext, port: number, options: ConnectionOptions): Promise<Talk> {
  const sessions: Buffer[] = []
  let text = ''
  let reused = false
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
  t.after(() => socket.destroy())
  socket.on('session', (session: Buffer) => { sessions.push(session) }).on('data', (bytes: Buffer) => { text += bytes.toString('latin1') }).on('error', () => {})
  socket.on('secureConnect', () => {
    reused = socket.isSessionReused()
    socket.write(get)
  })
  await until(() => socket.closed, { what: 'the end of the connection' })
  return { text, reused, sessions }
}

test('the upstream is told the certificate as RFC 9440 says, and nobody else can say one', async (t) => {
  const { port } = await start(t, { mode: 'request' })
  const lies = 'GET /a HTTP/1.1\r\nHost: shop\r\nClient-Cert: :bGll:\r\nclient_cert: :bGll:\r\nCLIENT-CERT: x\r\nConnection: close, client-cert\r\n\r\n'
  assert.doesNotMatch(await answerTo(port, {}, lies), /client.cert/i)
  const told = await answerTo(port, { ...known }, lies)
  assert.deepEqual(told.match(/^client.cert: .*$/gim), [`client-cert: ${value(known)}`])
})

test('the header is the one that is configured, and a trusted proxy cannot say it either', async (t) => {
  const { port } = await start(t, { header: 'X-Client-Cert' }, { trustedProxies: ['127.0.0.1'] })
  const told = await answerTo(port, { ...known }, 'GET /a HTTP/1.1\r\nHost: shop\r\nX-Client-Cert: :bGll:\r\nX_Client_Cert: a\r\nClient-Cert: theirs\r\nConnection: close\r\n\r\n')
  assert.deepEqual(told.match(/^.*client.cert: .*$/gim), ['Client-Cert: theirs', `x-client-cert: ${value(known)}`])
})

test('every request of a connection has it', async (t) => {
  const { port } = await start(t)
  const one = 'GET /a HTTP/1.1\r\nHost: shop\r\n\r\n'
  const told = await answerTo(port, { ...known }, one + one + get)
  assert.equal(told.match(/^client-cert: /gm)?.length, 3)
})
