import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import Fastify from 'fastify'
import type { FastifyInstance, FastifyServerOptions } from 'fastify'
import breakwater from '../../breakwater.ts'
import { parseConfig } from '../../config/parse.ts'
import type { Config } from '../../config/schema.ts'
import type { RegisteredSnapshot } from '../../plugins/breaker-registry.ts'
import type { Upstream } from '../../plugins/upstream-pools.ts'
import { serverOptions } from '../../server.ts'
import { lines } from './collect.ts'
import type { LineCollector, LogLine } from './collect.ts'
import { until } from './wait.ts'

/** The pool that a gateway has when only upstreams are given. */
export const onlyPool = 'shop'

export interface GatewayOptions {
  /** URLs of the upstreams of the one pool. */
  upstreams?: readonly string[]
  /** Options of that pool, beside its upstreams. Health checks are off and the breaker counts without ever opening, unless told otherwise. */
  pool?: Record<string, unknown>
  /** Whole pools, in the place of the two above. */
  pools?: Record<string, unknown>
  server?: Record<string, unknown>
  shedding?: Record<string, unknown>
  tracing?: Record<string, unknown>
  routes?: ReadonlyArray<Record<string, unknown>>
  /** Registers more in the app, before the gateway: its hooks are the gateway's, too. */
  before?: (app: FastifyInstance) => unknown
  /** Options of Fastify beside the gateway's own. */
  fastify?: FastifyServerOptions
  /** Where to listen. A free loopback port */
  listen?: { path: string }
  /** Registers more in the app, after the gateway. */
  extend?: (app: FastifyInstance) => unknown
}

/** What an exchange must have left behind. */
export interface Expected {
  /** How the breaker counted it; `neutral`: not at all. */
  counted: 'success' | 'failure' | 'neutral'
  /** Of the access line. */
  status: number
  reason?: string | null
  attempts?: number
  /** Of the access line; a function tests it. Left out: not looked at. */
  bytes?: number | ((bytes: number) => boolean)
  /** Index of the upstream in the pool, null for none. 0 by default where there was an attempt. */
  upstream?: number | null
  /** The reason that an `upstream_error` line must tell; null: there must be none. By default the access line's, where it is counted as failure. */
  error?: string | null
}

export interface Gateway {
  readonly app: FastifyInstance
  readonly port: number
  readonly lines: LineCollector
  upstream (index?: number, pool?: string): Upstream
  breaker (index?: number, pool?: string): RegisteredSnapshot
  /** Resolves when nobody is in flight, waiting or connected any more, in any pool and at the gate. */
  idle (): Promise<void>
  /**
   * Waits for the end of the one exchange that was made since the last call, and compares all that it left behind: the access line,
   * the breaker's count, the `upstream_error` lines, and that every place was given back.
   * @throws StalledError where this process itself was too slow to blame an upstream by the clock
   */
  left (expected: Expected): Promise<LogLine>
  /** Forgets the lines and counts so far, whatever they were. */
  skip (): Promise<void>
  close (): Promise<void>
}

/** The event loop of the test was late, and the proxy rightly blamed nobody: the test has to be made again. */
export class StalledError extends Error {}

/** Throws where an upstream that had no time left was not blamed. @param attempts `upstream_error` lines or attempts of a record */
export function assertNotStalled (attempts: ReadonlyArray<{ readonly outcome?: unknown, readonly reason?: unknown }>): void {
  if (attempts.some(({ outcome, reason }) => outcome === 'ignored' && /timeout|deadline/.test(String(reason)))) {
    throw new StalledError('the event loop stood still while a time limit ran out')
  }
}

/** Runs a test whose outcome depends on a time limit; again, where this process was late itself. */
export async function unlessStalled (scenario: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await scenario()
    } catch (error) {
      if (!(error instanceof StalledError) || tries === 10) throw error
    }
  }
}

const countsOnly = { consecutiveFailures: 0, window: { failureRatio: 0, seconds: 3600 } }

function configOf (options: GatewayOptions): Config {
  const upstreams = (options.upstreams ?? []).map(url => ({ url }))
  const pools = options.pools ?? { [onlyPool]: { health: { enabled: false }, breaker: countsOnly, ...options.pool, upstreams } }
  const { server, shedding, tracing, routes } = options
  return parseConfig({
    pools,
    admin: { enabled: false },
    // A busy test machine is no reason to shed.
    shedding: { pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 }, ...shedding },
    ...(server === undefined ? {} : { server }),
    ...(tracing === undefined ? {} : { tracing }),
    ...(routes === undefined ? {} : { routes })
  }, 'the test')
}

/** Starts the whole gateway in this process, on a free loopback port; it is closed at the end of the test. */
export async function startGateway (t: Pick<TestContext, 'after'>, options: GatewayOptions): Promise<Gateway> {
  const config = configOf(options)
  const log = lines()
  const app = Fastify({ ...serverOptions(config), logger: { level: 'info', stream: log }, ...options.fastify }) as unknown as FastifyInstance
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => closed ??= app.close()
  // How it closed is the test's own matter where the test closed it.
  t.after(() => closed === undefined ? close() : undefined)

  await options.before?.(app)
  await app.register(breakwater, config)
  await options.extend?.(app)
  await app.listen(options.listen ?? { port: 0, host: '127.0.0.1' })

  const first = Object.keys(config.pools)[0] as string
  const poolOf = (name: string) => {
    const pool = app.pools.get(name)
    assert.ok(pool !== undefined, `there is no pool ${name}`)
    return pool
  }
  const upstream = (index = 0, pool = first): Upstream => poolOf(pool).upstreams[index] as Upstream
  const breaker = (index = 0, pool = first): RegisteredSnapshot => app.breakers.get(pool, upstream(index, pool).id).snapshot()

  /** What keeps the gateway from being idle; '' when it is. */
  function busy (): string {
    const held: string[] = []
    const { inFlight } = app.shedding.view()
    if (inFlight !== 0) held.push(`gate ${inFlight}`)
    for (const { name, upstreams } of app.pools.list()) {
      for (const each of upstreams) {
        const { id, inFlight: exchanges, waiting, busyConnections } = each
        if (exchanges !== 0 || waiting !== 0 || busyConnections !== 0) held.push(`${name}/${id} in flight ${exchanges}, waiting ${waiting}, busy ${busyConnections}`)
        const permits = app.breakers.find(name, id)?.snapshot().outstanding.count ?? 0
        if (permits !== 0) held.push(`${name}/${id} permits ${permits}`)
      }
    }
    return held.join('; ')
  }

  async function idle (): Promise<void> {
    await until(() => busy() === '', { what: 'every place given back' }).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}: ${busy()}; last lines: ${JSON.stringify(log.lines.slice(-5))}`, { cause: error })
    })
  }

  /** Totals over all breakers. */
  function counts (): { total: number, failures: number } {
    const sums = { total: 0, failures: 0 }
    for (const { window } of app.breakers.snapshots()) {
      sums.total += window.total
      sums.failures += window.failures
    }
    return sums
  }

  let seen = 0
  let errorsSeen = 0
  let before = counts()

  async function skip (): Promise<void> {
    await idle()
    seen = log.all('access').length
    errorsSeen = log.all('upstream_error').length
    before = counts()
  }

  async function left (expected: Expected): Promise<LogLine> {
    await until(() => log.all('access').length > seen, { what: 'an access line' })
    await idle()
    const accesses = log.all('access').slice(seen)
    const errors = log.all('upstream_error').slice(errorsSeen)
    const now = counts()
    const counted = { total: now.total - before.total, failures: now.failures - before.failures }
    await skip()
    assert.equal(accesses.length, 1, `one access line: ${JSON.stringify(accesses)}`)
    if (expected.counted === 'failure') assertNotStalled(errors)
    compare(accesses[0] as LogLine, errors, counted, expected)
    return accesses[0] as LogLine
  }

  function compare (access: LogLine, errors: LogLine[], counted: object, expected: Expected): void {
    const { counted: outcome, status, reason = null, bytes } = expected
    const { attempts = expected.upstream === null ? 0 : 1, upstream: index = 0 } = expected
    const error = expected.error === undefined ? (outcome === 'failure' ? reason : null) : expected.error
    assert.deepEqual({
      status: access['status'],
      reason: access['reason'],
      attempts: access['attempts'],
      upstream: access['upstream'],
      errors: errors.map(each => each['reason']),
      counted
    }, {
      status,
      reason,
      attempts,
      upstream: index === null ? null : upstream(index).id,
      errors: error === null ? [] : [error],
      counted: { total: outcome === 'neutral' ? 0 : 1, failures: outcome === 'failure' ? 1 : 0 }
    }, JSON.stringify({ access, errors }))
    if (typeof bytes === 'number') assert.equal(access['bytes'], bytes, 'bytes')
    else if (bytes !== undefined) assert.ok(bytes(access['bytes'] as number), `bytes: ${String(access['bytes'])}`)
    for (const each of errors) assert.equal(each['request_id'], access['request_id'])
    assert.equal(log.find(line => line['msg'] === 'internal_error' || line['level'] === 60), undefined, 'no internal error')
  }

  return { app, port: (app.server.address() as AddressInfo).port, lines: log, upstream, breaker, idle, left, skip, close }
}
