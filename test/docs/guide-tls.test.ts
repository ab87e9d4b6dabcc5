/** docs/guide-tls.md, done: its configurations are valid, and its HAProxy tells the client's address. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { parseText } from '../../config/file.ts'
import { parseConfig } from '../../config/parse.ts'
import { certificate } from '../config/certificate.ts'
import { startListener } from '../e2e/listener/support.ts'
import { rawRequest } from '../support/raw-client.ts'
import { skipWithout } from '../support/tools.ts'
import { until } from '../support/wait.ts'
import { pageOf } from './pages.ts'

const { blocks } = pageOf('docs/guide-tls.md')

function folderFor (t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-guide-'))
  t.after(() => { rmSync(folder, { recursive: true }) })
  return folder
}

test('docs/guide-tls.md: its configurations are valid', (t) => {
  const folder = folderFor(t)
  for (const name of ['www', 'shop', 'client']) {
    const { cert, key } = certificate({ name, names: [`${name}.example`] })
    writeFileSync(join(folder, `${name}.pem`), cert)
    writeFileSync(join(folder, `${name}.key`), key)
  }
  for (const name of ['clients-ca', 'internal-ca']) writeFileSync(join(folder, `${name}.pem`), certificate({ name, authority: true }).cert)
  const configurations = blocks.filter(({ language }) => language === 'yaml')
  assert.deepEqual(configurations.map(({ info }) => info), ['certificates', 'clients', 'proxy', 'cleartext', 'upstreams'])
  for (const { text, info } of configurations) parseConfig(parseText(text.replaceAll('/etc/breakwater', folder), info), info)
})

test('docs/guide-tls.md: behind its HAProxy the client keeps its address', async (t) => {
  if (spawnSync('haproxy', ['-v']).error !== undefined) return skipWithout('haproxy', t)
  const gateway = await startListener(t, { proxyProtocolFrom: ['127.0.0.1'] })
  // Its listening socket is made here and handed over, so that nobody else can have its port.
  const listening: Server & { _handle?: { fd: number } } = createServer().listen(0, '127.0.0.1')
  await once(listening, 'listening')
  const { port } = listening.address() as AddressInfo
  const [configuration] = blocks.filter(({ language }) => language === 'haproxy')
  const text = (configuration?.text ?? '').replace('127.0.0.1:8000', 'fd@3').replace('127.0.0.1:8080', `127.0.0.1:${gateway.port}`)
  const file = join(folderFor(t), 'haproxy.cfg')
  writeFileSync(file, text)
  const haproxy = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'ignore', listening['_handle']?.fd] })
  listening.close()
  const ended = once(haproxy, 'exit')
  t.after(async () => {
    haproxy.kill('SIGTERM')
    await ended
  })
  const { body } = await until(async () => {
    const answer = await rawRequest(port, 'GET /a HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n', { localAddress: '127.0.0.2' }).catch(() => null)
    return answer?.status === 200 ? answer : null
  }, { what: 'an answer through HAProxy', intervalMs: 50, timeoutMs: 10_000 })
  assert.match(body.toString(), /x-forwarded-for: 127\.0\.0\.2\r\n/i)
})
