import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { spawnNode, type NodeProcess } from '../../support/process.ts'
import { until } from '../../support/wait.ts'
import { named, type NamedUpstream } from './kit.ts'

const cli = join(dirname(fileURLToPath(import.meta.url)), '../../../bin/breakwater.js')

function folderOf (t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-reload-'))
  t.after(() => { rmSync(folder, { recursive: true }) })
  return folder
}

/** The proxy as users start it. */
interface Running {
  proxy: NodeProcess
  get: (path?: string) => Promise<{ status: number, text: string }>
  admin: (path: string, body?: object) => Promise<{ status: number, json: Record<string, any> }>
}

async function start (t: TestContext, file: string): Promise<Running> {
  const proxy = spawnNode(t, [cli, 'start'], {
    env: { BREAKWATER_CONFIG: file, BREAKWATER_ADMIN_PORT: '0', BREAKWATER_ADMIN_TOKEN: undefined, BREAKWATER_UPSTREAMS: undefined, PORT: '0', FASTIFY_PORT: undefined, FASTIFY_ADDRESS: undefined }
  })
  const listening = await proxy.waitForLine(({ msg }) => String(msg).startsWith('Server listening at http://127.0.0.1:'), { timeoutMs: 20000 })
  const { port: adminPort } = await proxy.waitForLine('admin listening') as { port: number }
  await proxy.waitForLine(({ msg, healthy }) => msg === 'health_changed' && healthy === true)
  const url = String(listening['msg']).slice('Server listening at '.length)
  return {
    proxy,
    get: async (path = '/') => {
      const answer = await fetch(url + path)
      return { status: answer.status, text: await answer.text() }
    },
    admin: async (path, body) => {
      const answer = await fetch(`http://127.0.0.1:${adminPort}${path}`, body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
      return { status: answer.status, json: await answer.json() as Record<string, any> }
    }
  }
}

const text = (upstream: NamedUpstream, more = {}): string => JSON.stringify({ shedding: { pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 } }, pools: { shop: { upstreams: [{ url: upstream.url }], health: { intervalMs: 100 } } }, ...more })
const untilServedBy = ({ get }: Running, name: string) => until(async () => (await get()).text === name, { what: `served by ${name}`, timeoutMs: 10000 })

test('SIGHUP reloads the file, and a wrong one is told whole and changes nothing', async (t) => {
  const [a, b] = [await named(t, 'a'), await named(t, 'b')]
  const file = join(folderOf(t), 'proxy.json')
  writeFileSync(file, text(a))
  const running = await start(t, file)
  equal((await running.get()).text, 'a')

  writeFileSync(file, text(b))
  running.proxy.kill('SIGHUP')
  await untilServedBy(running, 'b')
  await running.proxy.waitForLine('config_reloaded')

  writeFileSync(file, '{ "pools": { "shop": { "upstreams": [{ "url": "b" }], "balancer": "c" } } }')
  running.proxy.kill('SIGHUP')
  const { errors } = await running.proxy.waitForLine('config_rejected') as { errors: unknown[] }
  equal(errors.length, 2)
  equal((await running.get()).text, 'b')
  const { json } = await running.admin('/config')
  deepEqual(json['status'].rejected.errors, errors)
  equal(json['status'].version, 2)

  running.proxy.kill('SIGTERM')
  equal((await running.proxy.exit).code, 0)
})

test('the admin routes judge, compare and reload', async (t) => {
  const [a, b] = [await named(t, 'a'), await named(t, 'b')]
  const file = join(folderOf(t), 'proxy.json')
  writeFileSync(file, text(a))
  const running = await start(t, file)

  const given = await running.admin('/config/validate', JSON.parse(text(b)) as object)
  equal(given.status, 200)
  deepEqual(given.json['diff'].upstreams.removed, [{ pool: 'shop', upstream: a.id }])
  deepEqual(given.json['diff'].impact, { upstreams: [{ pool: 'shop', upstream: a.id, inFlight: 0 }], exchanges: 0 })
  const wrong = await running.admin('/config/validate', { pools: {} })
  equal(wrong.status, 422)
  equal(wrong.json['valid'], false)
  match(String(wrong.json['errors'][0].path), /^pools/)

  writeFileSync(file, '{')
  const refused = await running.admin('/config/reload', { reason: 'a new disk' })
  equal(refused.status, 422)
  ok(refused.json['errors'].length > 0)
  equal((await running.get()).text, 'a')

  writeFileSync(file, text(b))
  const taken = await running.admin('/config/reload', { reason: 'a is old' })
  equal(taken.status, 200)
  await untilServedBy(running, 'b')
  const { json } = await running.admin('/events')
  const events = json['events'] as Array<Record<string, unknown>>
  const types = events.map(({ type }) => type)
  deepEqual(events.filter(({ type }) => /^config_|^admin_/.test(String(type))).map(({ type, reason, cause, client_ip }) => [type, reason, cause ?? client_ip]), [
    ['config_rejected', 'a new disk', 'admin'], ['config_reloaded', 'a is old', 'admin'], ['admin_write', 'a is old', '127.0.0.1']
  ], 'each with the reason that the operator gave')
  equal(types.filter((type) => type === 'admin_write').length, 1, 'what was refused was not done')
  for (const type of ['config_rejected', 'config_reloaded', 'admin_write', 'members_changed']) ok(types.includes(type), type)
})

test('a watched file is taken when another is renamed over it', async (t) => {
  const [a, b] = [await named(t, 'a'), await named(t, 'b')]
  const file = join(folderOf(t), 'proxy.json')
  const watched = { reload: { watch: true, pollMs: 200 } }
  writeFileSync(file, text(a, watched))
  const running = await start(t, file)
  writeFileSync(`${file}.new`, text(b, watched))
  renameSync(`${file}.new`, file)
  await untilServedBy(running, 'b')
  const { cause } = await running.proxy.waitForLine('config_reloaded')
  equal(cause, 'file')
})

test('a watched file is taken when the symlink on its way is swapped, as in a ConfigMap', async (t) => {
  const [a, b] = [await named(t, 'a'), await named(t, 'b')]
  const folder = folderOf(t)
  const watched = { reload: { watch: true, pollMs: 200 } }
  for (const [name, upstream] of [['v1', a], ['v2', b]] as const) {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'proxy.json'), text(upstream, watched))
  }
  symlinkSync('v1', join(folder, '..data'))
  symlinkSync('..data/proxy.json', join(folder, 'proxy.json'))
  const running = await start(t, join(folder, 'proxy.json'))
  symlinkSync('v2', join(folder, '..tmp'))
  renameSync(join(folder, '..tmp'), join(folder, '..data'))
  await untilServedBy(running, 'b')
})
