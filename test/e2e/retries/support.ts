import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { answer, rawUpstream, send } from '../../support/faulty-upstream.ts'
import type { RawHandler, RawUpstream } from '../../support/faulty-upstream.ts'
import { assertNotStalled, startGateway } from '../../support/gateway.ts'
import type { Gateway, GatewayOptions } from '../../support/gateway.ts'
import type { LogLine } from '../../support/collect.ts'
import { closedPort } from '../../support/ports.ts'

/** Refuses every connection. */
export const refuses = Symbol('refuses')

export interface Row {
  gateway: Gateway
  /** In the order in which they are asked. Those that refuse have no connections and no requests. */
  upstreams: RawUpstream[]
  /** How many requests each of them got. */
  asked (): number[]
}

export interface RowOptions extends Omit<GatewayOptions, 'pool' | 'upstreams'> {
  /** Options of the pool beside its upstreams. Retries: one, with a short wait. */
  pool?: Record<string, unknown>
  retry?: Record<string, unknown>
}

const quick = { baseMs: 1, maxMs: 1 }
const countsOnly = { consecutiveFailures: 0, window: { failureRatio: 0, seconds: 3600 } }

/** A gateway in front of several scripted upstreams, which are asked in their order: each stands in a tier of its own. */
export async function row (t: TestContext, handlers: ReadonlyArray<RawHandler | typeof refuses>, { pool = {}, retry = {}, pools = {}, ...options }: RowOptions = {}): Promise<Row> {
  const upstreams = await Promise.all(handlers.map((handler) => rawUpstream(handler === refuses ? () => {} : handler)))
  t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())))
  const urls = await Promise.all(handlers.map(async (handler, i) => handler === refuses ? `http://127.0.0.1:${await closedPort(t)}` : (upstreams[i] as RawUpstream).url))
  const shop = {
    health: { enabled: false },
    breaker: countsOnly,
    ...pool,
    retry: { retries: 1, backoff: quick, budget: { ratio: 1, minPerSecond: 100 }, ...retry },
    upstreams: urls.map((url, priority) => ({ url, priority }))
  }
  const gateway = await startGateway(t, { ...options, pools: { shop, ...pools } })
  return { gateway, upstreams, asked: () => upstreams.map(({ requests }) => requests.length) }
}

/** Answers with its name, and the body that came. */
export const named = (name: string, status = 200): RawHandler => async (socket, { body }) => {
  const { body: bytes, complete } = await body()
  if (complete) await send(socket, answer({ status, headers: [['X-Upstream', name], ['Content-Type', 'text/plain']], body: `${name}:${bytes.length === 0 ? '' : bytes.toString()}` }))
}

export interface Left {
  access: LogLine
  errors: LogLine[]
  /** By upstream: [results, failures] of its breaker since the gateway began. */
  counts: Array<[number, number]>
}

/** Waits until all is over and given back; the one access line since `skip`, and all `upstream_error` lines since. */
export async function leftover (gateway: Gateway, seen = { access: 0, errors: 0 }): Promise<Left> {
  await gateway.lines.waitFor((line) => line['msg'] === 'access' && gateway.lines.all('access').indexOf(line) >= seen.access)
  await gateway.idle()
  const accesses = gateway.lines.all('access').slice(seen.access)
  assert.equal(accesses.length, 1, `one access line: ${JSON.stringify(accesses)}`)
  const errors = gateway.lines.all('upstream_error').slice(seen.errors)
  assertNotStalled(errors)
  const access = accesses[0] as LogLine
  for (const each of errors) assert.equal(each['request_id'], access['request_id'])
  assert.equal(gateway.lines.find((line) => line['msg'] === 'internal_error' || line['level'] === 60), undefined, 'no internal error')
  const pool = gateway.app.pools.get('shop')
  assert.ok(pool !== undefined)
  const counts = pool.upstreams.map(({ id }): [number, number] => {
    const window = gateway.app.breakers.find('shop', id)?.snapshot().window
    return [window?.total ?? 0, window?.failures ?? 0]
  })
  return { access, errors, counts }
}

/** Status, reason and attempts of the access line, and which upstream it names. */
export function told ({ app }: Gateway, { access }: Left): [unknown, unknown, unknown, number] {
  const upstreams = app.pools.get('shop')?.upstreams ?? []
  return [access['status'], access['reason'], access['attempts'], upstreams.findIndex(({ id }) => id === access['upstream'])]
}
