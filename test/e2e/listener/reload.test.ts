import assert from 'node:assert/strict'
import { renameSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { connect } from 'node:tls'
import adminRoutes from '../../../routes/admin/index.ts'
import { certificate } from '../../config/certificate.ts'
import { until, within } from '../../support/wait.ts'
import { ask, Folder, startListener } from './support.ts'

test('files that change are taken for new handshakes, and connections stay', async (t) => {
  const folder = new Folder(t)
  const files = folder.issue('first.example')
  const gateway = await startListener(t, { tls: { certificates: [files, folder.issue('other.example')] } })
  const kept = connect({ port: gateway.port, host: '127.0.0.1', rejectUnauthorized: false })
  t.after(() => kept.destroy())
  await within(new Promise((resolve, reject) => { kept.on('secureConnect', resolve).on('error', reject) }))
  assert.equal((await ask(gateway.port)).name, 'first.example')

  const next = certificate({ name: 'second.example', names: ['second.example'] })
  // As renewal tools do it: one file after the other, renamed over.
  for (const [file, text] of [[files.cert, next.cert], [files.key, next.key]] as const) {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  await until(async () => (await ask(gateway.port)).name === 'second.example', { what: 'the new certificate' })
  assert.equal((await ask(gateway.port, { servername: 'other.example' })).name, 'other.example')
  assert.deepEqual(gateway.app.listener.certificates().map(({ names }) => names), [['second.example'], ['other.example']])
  assert.equal(gateway.lines.all('certificates_reloaded').length, 1)
  assert.deepEqual(gateway.lines.all('certificates_rejected'), [], 'half of a change is nobody\'s news')
  assert.deepEqual(gateway.app.events.since(0).events.map(({ type }) => type).filter((type) => type.startsWith('certificates_')), ['certificates_reloaded'])

  let text = ''
  kept.on('data', (bytes: Buffer) => { text += bytes.toString() })
  kept.write('GET /a HTTP/1.1\r\nHost: shop\r\n\r\n')
  await until(() => text.startsWith('HTTP/1.1 200 '), { what: 'an answer on the connection of before' })
})

test('no handshake fails while certificates change under it', async (t) => {
  const folder = new Folder(t)
  const files = folder.issue('first.example')
  const gateway = await startListener(t, { tls: { certificates: [files, folder.issue('other.example')] } })
  const names = new Set<string>()
  for (let i = 0; i < 20; i++) {
    const next = certificate({ name: `${i}.example`, names: ['first.example'] })
    const asked = Array.from({ length: 6 }, async (_, n) => {
      const { name, text } = await ask(gateway.port, { servername: n % 3 === 0 ? 'other.example' : 'first.example', maxVersion: n % 2 === 0 ? 'TLSv1.2' : 'TLSv1.3' })
      assert.match(text, /^HTTP\/1\.1 200 /)
      names.add(name)
    })
    writeFileSync(files.cert, next.cert)
    writeFileSync(files.key, next.key)
    gateway.app.listener.reloadCertificates()
    await Promise.all(asked)
  }
  assert.ok(names.size > 10, `${names.size} certificates were seen`)
  assert.deepEqual(gateway.lines.all('connection_failed'), [])
})

test('a pair that does not fit changes nothing, and is told of', async (t) => {
  const folder = new Folder(t)
  const files = folder.issue('first.example')
  const gateway = await startListener(t, { tls: { certificates: [files] } })
  writeFileSync(files.key, certificate({ name: 'other' }).key)
  await until(() => gateway.lines.all('certificates_rejected').length > 0, { what: 'the rejection' })
  assert.equal((await ask(gateway.port)).name, 'first.example')
  const [event] = gateway.app.events.since(0).events.filter(({ type }) => type === 'certificates_rejected')
  assert.equal(event?.['cause'], 'file')
  assert.match(String(event?.['error']), /key/i)
  assert.ok(String(event?.['error']).includes(files.cert), 'which of many files it is')
  assert.doesNotMatch(JSON.stringify(gateway.lines.all('certificates_rejected')), /PRIVATE|BEGIN/)
})

test('a reload of the configuration reads the certificates again', async (t) => {
  const folder = new Folder(t)
  const files = folder.issue('first.example')
  const gateway = await startListener(t, { tls: { certificates: [files] } })
  const { configuration } = gateway.app
  configuration.follow({ load: () => configuration.current, file: null })
  const next = certificate({ name: 'second.example' })
  writeFileSync(files.cert, next.cert)
  writeFileSync(files.key, next.key)
  assert.equal((await configuration.reload('signal')).valid, true)
  assert.equal((await ask(gateway.port)).name, 'second.example')
  assert.equal(gateway.lines.all('certificates_reloaded')[0]?.['cause'], 'reload')
  assert.equal((await configuration.reload('signal')).valid, true)
  assert.equal(gateway.lines.all('certificates_reloaded').length, 1, 'the same again is no change')
})

test('who was let in by an authority that is trusted no more does not come back by resuming', async (t) => {
  const folder = new Folder(t)
  const [old, fresh] = [certificate({ name: 'old', authority: true }), certificate({ name: 'fresh', authority: true })]
  const client = certificate({ name: 'client', by: { pair: old, name: 'old' } })
  const ca = folder.write('ca.pem', old.cert)
  const { port, app } = await startListener(t, { tls: { certificates: [folder.issue('shop.example')], clientCertificates: { ca } } })
  let session: Buffer | undefined
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...client })
  t.after(() => socket.destroy())
  socket.on('session', (got: Buffer) => { session = got }).resume()
  await until(() => session)
  writeFileSync(ca, fresh.cert)
  app.listener.reloadCertificates()
  const again = await ask(port, { ...client, session: session as Buffer }).catch(() => null)
  assert.equal(again?.text ?? '', '')
  assert.match((await ask(port, certificate({ name: 'client', by: { pair: fresh, name: 'fresh' } }))).text, /^HTTP\/1\.1 200 /)
})

test('GET /config shows the certificates that are in use', async (t) => {
  const folder = new Folder(t)
  const files = folder.issue('first.example')
  const { port, app } = await startListener(t, { tls: { certificates: [files] } }, {
    async extend (instance) {
      await instance.register(adminRoutes, { source: instance, loopbackOnly: true, prefix: '/ops', config: () => ({}) })
    }
  })
  const { text } = await ask(port, {}, 'GET /ops/config HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  const { status } = JSON.parse(text.slice(text.indexOf('\r\n\r\n'))) as { status: { certificates: object[] } }
  assert.deepEqual(status.certificates, JSON.parse(JSON.stringify(app.listener.certificates())))
  assert.equal(status.certificates.length, 1)
})
