import type { TestContext } from 'node:test'
import { answering, rawUpstream, type RawUpstream } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway, type GatewayOptions } from '../../support/gateway.ts'
import { rawRequest, type RawResult } from '../../support/raw-client.ts'
import { head } from '../edge/support.ts'

export interface Routed extends Gateway {
  /** The upstream of each pool. */
  readonly behind: Readonly<Record<string, RawUpstream>>
  /** A request by its first line, without the version, and whole field lines; its Host is `shop` where none is given. */
  ask (start: string, ...fields: string[]): Promise<RawResult>
}

/** A gateway whose pools have an upstream each, which answers with the pool's name. */
export async function startRouted (t: Pick<TestContext, 'after'>, names: readonly string[], routes: ReadonlyArray<Record<string, unknown>>, options: GatewayOptions & { pool?: Record<string, unknown> } = {}): Promise<Routed> {
  const behind: Record<string, RawUpstream> = {}
  for (const name of names) {
    const upstream = await rawUpstream(answering({ headers: [['Server', 'inside'], ['X-Pool', name], ['Set-Cookie', 'a=1'], ['Set-Cookie', 'b=2']], body: name }))
    t.after(() => upstream.close())
    behind[name] = upstream
  }
  const { pool = {}, ...rest } = options
  const pools = Object.fromEntries(Object.entries(behind).map(([name, { url }]) => [name, { health: { enabled: false }, ...pool, upstreams: [{ url }] }]))
  const gateway = await startGateway(t, { pools, routes, ...rest })
  const ask = (start: string, ...fields: string[]): Promise<RawResult> =>
    rawRequest(gateway.port, head(`${start} HTTP/1.1`, ...fields.some((each) => /^host:/i.test(each)) ? [] : ['Host: shop'], ...fields))
  return { ...gateway, behind, ask }
}

/** Status and, of a refusal of ours, the reason; else the body. */
export function brief (response: RawResult): [status: number, text: string] {
  const ours = response.header('content-type') === 'application/problem+json'
  return [response.status, ours ? (response.json() as { reason: string }).reason : response.text()]
}
