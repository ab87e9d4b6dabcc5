import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { spawnNode, type NodeProcess } from '../../support/process.ts'

const cli = createRequire(import.meta.url).resolve('fastify-cli/cli.js')
const app = fileURLToPath(new URL('../../../app.js', import.meta.url))

export interface StartOptions {
  server?: Record<string, unknown>
  shedding?: Record<string, unknown>
  pool?: Record<string, unknown>
  /** Further arguments of `fastify start`. */
  args?: string[]
  /** Where to listen. 127.0.0.1 */
  address?: string
  /** Arguments of node itself. */
  node?: string[]
  env?: Record<string, string>
}

/** A configuration file in a folder of its own, gone at the end of the test. */
export function configFile (t: Pick<TestContext, 'after'>, upstreams: string[], { server, shedding, pool }: StartOptions = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'breakwater-test-'))
  t.after(() => { rmSync(folder, { recursive: true }) })
  const path = join(folder, 'breakwater.json')
  writeFileSync(path, JSON.stringify({
    admin: { enabled: false },
    server: server ?? {},
    shedding: { pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 }, ...shedding },
    pools: { shop: { health: { enabled: false }, ...pool, upstreams: upstreams.map((url) => ({ url })) } }
  }))
  return path
}

/** The app under fastify-cli, in a process of its own, as DESIGN starts it. */
export function spawnApp (t: Pick<TestContext, 'after'>, upstreams: string[], options: StartOptions = {}): NodeProcess {
  const { args = [], address = '127.0.0.1', node = [], env = {} } = options
  return spawnNode(t, [...node, cli, 'start', '-o', '-l', 'info', '-g', '20000', '-a', address, ...args, app], {
    // fastify-cli takes a port of 0 from here only.
    env: { PORT: '0', BREAKWATER_CONFIG: configFile(t, upstreams, options), ...env }
  })
}

/** The port of an app that was spawned, once it listens. */
export async function portOf (child: NodeProcess): Promise<number> {
  const line = await child.waitForLine(({ msg }) => typeof msg === 'string' && msg.startsWith('Server listening at '))
  await child.waitForLine('proxy_started')
  return Number(new URL(String(line['msg']).slice('Server listening at '.length)).port)
}
