import { readFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import Fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import breakwater from '../../../breakwater.ts'
import { startUpstream, type ScriptedUpstream } from '../../../bin/scripted-upstream.ts'
import { commands } from '../../../bin/cli/commands.ts'
import type { Terminal } from '../../../bin/cli/command.ts'
import { runLine } from '../../../bin/cli/run.ts'
import { parseConfig } from '../../../config/parse.ts'
import { shipped } from '../../config/support.ts'
import { until } from '../../support/wait.ts'

export interface Ran { code: number | null, out: string[], errors: string[] }

/** Runs a command line in this process. What it prints can be seen while it runs. */
export async function run (argv: string[], terminal: Partial<Terminal> = {}, seen: Ran = { code: null, out: [], errors: [] }): Promise<Ran> {
  const code = await runLine(commands, argv, () => ({
    env: {},
    out: (...lines) => { seen.out.push(...lines.join('\n').split('\n')) },
    complain: (...lines) => { seen.errors.push(...lines.join('\n').split('\n')) },
    tty: false,
    colors: false,
    now: Date.now,
    stopped: new AbortController().signal,
    ask: () => null,
    ...terminal
  }))
  return Object.assign(seen, { code })
}

export interface Proxy {
  app: FastifyInstance
  admin: string
  upstreams: ScriptedUpstream[]
  /** Their ids. */
  ids: string[]
}

/** A gateway with an admin listener and two scripted upstreams, both of which have been checked. */
export async function proxy (t: TestContext, pool: object = {}, token = ''): Promise<Proxy> {
  const upstreams = await Promise.all([startUpstream({ name: 'a' }), startUpstream({ name: 'b' })])
  const config = (): ReturnType<typeof parseConfig> => parseConfig({
    admin: { port: 0, token },
    // A busy test machine is no reason to shed.
    shedding: { pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 } },
    pools: { shop: { upstreams: upstreams.map(({ url }) => ({ url })), ...pool } }
  }, 'test')
  const app = Fastify()
  t.after(async () => {
    await app.close()
    await Promise.all(upstreams.map((each) => each.close()))
  })
  await app.register(breakwater, config())
  app.configuration.follow({ load: config, file: null } as unknown as Parameters<typeof app.configuration.follow>[0])
  await app.ready()
  await until(() => app.health.list().every(({ healthy }) => healthy), { what: 'healthy upstreams' })
  return { app, upstreams, admin: `http://127.0.0.1:${app.adminAddress?.port}`, ids: upstreams.map(({ url }) => new URL(url).host) }
}

export const guide = (): string => readFileSync(shipped('docs/guide-command-line.md'), 'utf8')
