/** docs/guide-nginx.md, done: its configuration runs in nginx, and the proxy serves from both servers and notices when one goes away. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { build } from '../../examples/whole-gateway.ts'
import { ask, listen } from '../examples/support.ts'
import { skipWithout } from '../support/tools.ts'
import { until } from '../support/wait.ts'
import { pageOf } from './pages.ts'

const [configuration] = pageOf('docs/guide-nginx.md').blocks.filter(({ language }) => language === 'nginx')

test('docs/guide-nginx.md: nginx takes the configuration, both servers are asked in turn, and one that goes away is left alone', async (t) => {
  if (spawnSync('nginx', ['-v']).error !== undefined) return skipWithout('nginx', t)
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-nginx-'))
  t.after(() => { rmSync(folder, { recursive: true, force: true }) })
  mkdirSync(join(folder, 'tmp'))
  // Sockets in the place of the ports, which somebody else may have.
  const text = (configuration?.text ?? '').replace(/127\.0\.0\.1:(900[12])/g, (_all, port) => `unix:${join(folder, `${port}.sock`)}`)
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, text)
  const args = ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr']
  const nginx = spawn('nginx', [...args, '-g', 'daemon off;'], { stdio: 'ignore' })
  const ended = once(nginx, 'exit')
  t.after(async () => {
    nginx.kill('SIGQUIT')
    await ended
  })

  const app = await build(['9001', '9002'].map((port) => `unix:${join(folder, `${port}.sock`)}`), 0)
  app.log.level = 'silent'
  const url = await listen(t, app)
  await until(async () => {
    for (const { pool, upstream } of app.health.list()) await app.health.checkNow(pool, upstream)
    return app.health.list().every(({ healthy }) => healthy)
  }, { what: 'two healthy servers', intervalMs: 50, timeoutMs: 10_000 })
  /** A busy test machine may be a reason to shed, and none to fail. */
  const served = (): Promise<string> => until(async () => {
    const { status, text: said } = await ask(`${url}/api/`)
    return status === 503 && said.includes('shed_pressure') ? null : said
  }, { what: 'an answer of the upstream', intervalMs: 50, timeoutMs: 20_000 })
  const answers = [await served(), await served()]
  assert.deepEqual(answers.toSorted(), ['from nginx 1\n', 'from nginx 2\n'])

  writeFileSync(file, text.split('\n').filter((line) => !line.includes('9002')).join('\n'))
  assert.equal(spawnSync('nginx', [...args, '-s', 'reload']).status, 0)
  await until(async () => {
    for (const { pool, upstream } of app.health.list()) await app.health.checkNow(pool, upstream)
    return app.health.list().filter(({ healthy }) => !healthy).length === 1
  }, { what: 'one server gone', intervalMs: 50, timeoutMs: 10_000 })
  for (let i = 0; i < 4; i++) assert.equal(await served(), 'from nginx 1\n')
})
