import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import breakwater from '../../../breakwater.ts'
import { parseConfig } from '../../../config/parse.ts'
import type { Config } from '../../../config/schema.ts'
import { serverOptions } from '../../../server.ts'
import { lines, type LineCollector, type LogLine } from '../../support/collect.ts'
import { answering, rawUpstream, type RawHandler, type RawUpstream } from '../../support/faulty-upstream.ts'
import { until } from '../../support/wait.ts'

/** Parts of a configuration, as a file would have them. */
export type Parts = { [section in 'server' | 'shedding']?: Record<string, unknown> } & {
  pool?: Record<string, unknown>
  pools?: Record<string, unknown>
  routes?: unknown[]
}

export interface GatewayUnderTest {
  readonly app: FastifyInstance
  readonly port: number
  readonly log: LineCollector
  /** Waits until there are `count` access lines, makes sure that no more come at once, and returns them. */
  access (count: number): Promise<LogLine[]>
}

/** The configuration of a gateway with one pool, without health checks, whose breaker never opens unless told otherwise. */
export function configOf (urls: string[], parts: Parts = {}): Config {
  const pool = { health: { enabled: false }, breaker: { mode: 'off' }, ...parts.pool, upstreams: urls.map((url) => ({ url })) }
  return parseConfig({
    server: parts.server ?? {},
    admin: { enabled: false },
    shedding: { pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 }, ...parts.shedding },
    pools: parts.pools ?? { shop: pool },
    routes: parts.routes ?? []
  }, 'the test')
}

/** The whole gateway in this process, as fastify-cli would start it, but with its log in our hands. */
export async function startGateway (t: Pick<TestContext, 'after'>, config: Config, host = '127.0.0.1'): Promise<GatewayUnderTest> {
  const log = lines()
  const app = Fastify({ ...serverOptions(config), logger: { level: 'info', stream: log } })
  t.after(() => app.close().catch(() => {}))
  await app.register(breakwater, config)
  await app.listen({ port: 0, host })
  return {
    app,
    port: (app.server.address() as AddressInfo).port,
    log,
    async access (count) {
      await until(() => log.all('access').length >= count, { what: `${count} access lines` }).catch((error: Error) => {
        throw new Error(`${error.message}; there are: ${JSON.stringify(log.all('access'))}`)
      })
      // A second line for the same request would come with its connection's close: a few turns later.
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => { setImmediate(resolve) })
      return log.all('access')
    }
  }
}

/** A raw upstream and a gateway before it. */
export async function startBoth (t: Pick<TestContext, 'after'>, parts: Parts = {}, handler: RawHandler = answering({ body: 'hello' })): Promise<GatewayUnderTest & { upstream: RawUpstream }> {
  const upstream = await rawUpstream(handler)
  t.after(() => upstream.close())
  const gateway = await startGateway(t, configOf([upstream.url], parts))
  return { ...gateway, upstream }
}

/** A request head; `lines` are whole field lines. */
export function head (start: string, ...fields: string[]): string {
  return [start, ...fields, '', ''].join('\r\n')
}
