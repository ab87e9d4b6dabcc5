import type { TestContext } from 'node:test'
import type { LogLine } from '../../support/collect.ts'
import { answering, rawUpstream, type RawHandler, type RawUpstream } from '../../support/faulty-upstream.ts'
import { startGateway, type Gateway, type GatewayOptions } from '../../support/gateway.ts'
import { until } from '../../support/wait.ts'

export interface GatewayAndUpstream extends Gateway {
  readonly behind: RawUpstream
}

/** A raw upstream and a gateway before it. */
export async function startBoth (t: Pick<TestContext, 'after'>, options: Omit<GatewayOptions, 'upstreams'> = {}, handler: RawHandler = answering({ body: 'hello' })): Promise<GatewayAndUpstream> {
  const behind = await rawUpstream(handler)
  t.after(() => behind.close())
  const gateway = await startGateway(t, { ...options, upstreams: [behind.url] })
  return { ...gateway, behind }
}

/** Waits until there are `count` access lines and everything is given back, and returns all lines that there are then. */
export async function accessLines (gateway: Gateway, count: number): Promise<LogLine[]> {
  const { lines } = gateway
  await until(() => lines.all('access').length >= count, { what: `${count} access lines` }).catch((error: Error) => {
    throw new Error(`${error.message}; there are: ${JSON.stringify(lines.lines.slice(-10))}`)
  })
  await gateway.idle()
  // A second line for a request would come with its connection's end: a few turns later.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => { setImmediate(resolve) })
  return lines.all('access')
}

/** A request's head: its first line and whole field lines. */
export function head (start: string, ...fields: string[]): string {
  return [start, ...fields, '', ''].join('\r\n')
}
