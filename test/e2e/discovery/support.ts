import type { TestContext } from 'node:test'
import { startUpstream, type ScriptedUpstream } from '../../../bin/scripted-upstream.ts'
import type { UpstreamOptions } from '../../../bin/upstream-options.ts'
import { ask } from '../../examples/support.ts'
import { DnsServer } from '../../plugins/discovery/dns-server.ts'
import { startGateway, type Gateway } from '../../support/gateway.ts'
import { until } from '../../support/wait.ts'

export const service = '_http._tcp.shop.test'
const target = 'node.shop.test'

/** Publishes upstreams on this machine, by their ports. */
export function publish (dns: DnsServer, ...upstreams: ReadonlyArray<{ port: number }>): void {
  dns.addresses(target, ['127.0.0.1'])
  dns.answer(service, 'SRV', upstreams.map(({ port }) => ({ priority: 0, weight: 0, port, target })))
}

/** Nobody can be asked for anything any more. */
export function breakDns (dns: DnsServer, reply: 'SERVFAIL' | 'silence' | 'NXDOMAIN'): void {
  dns.answer(service, 'SRV', reply)
}

export async function named (t: TestContext, name: string, options: UpstreamOptions = {}): Promise<ScriptedUpstream> {
  const upstream = await startUpstream({ name, ...options })
  t.after(() => upstream.close())
  return upstream
}

export const srvDiscovery = (dns: DnsServer): object =>
  ({ dns: { name: service, type: 'srv', servers: [dns.address], minTtlMs: 20, maxTtlMs: 60, timeoutMs: 1000 } })

export interface Discovering {
  gateway: Gateway
  dns: DnsServer
  /** One request, and which upstream answered it, or the status where none did. */
  who: (path?: string) => Promise<string>
  /** Asks until these upstreams have all answered, and nobody else has since `others` are gone. */
  spread: (...names: string[]) => Promise<void>
  ids: () => string[]
}

/** A gateway whose only pool follows our resolver. */
export async function discovering (t: TestContext, upstreams: ReadonlyArray<{ port: number }>, pool: Record<string, unknown> = {}): Promise<Discovering> {
  const dns = await DnsServer.start(t)
  publish(dns, ...upstreams)
  const gateway = await startGateway(t, {
    pools: { shop: { discovery: srvDiscovery(dns), health: { intervalMs: 20, timeoutMs: 5000 }, breaker: { consecutiveFailures: 0, window: { failureRatio: 0 } }, ...pool } }
  })
  const url = `http://127.0.0.1:${gateway.port}`
  const who = async (path = '/'): Promise<string> => {
    const { status, json } = await ask(url + path)
    return status === 200 ? json().upstream : String(status)
  }
  return {
    gateway,
    dns,
    who,
    async spread (...names) {
      await until(async () => {
        const seen = new Set<string>()
        for (let times = 0; times < names.length * 3; times++) seen.add(await who())
        return [...seen].toSorted().join() === names.toSorted().join()
      }, { what: `answers of ${names.join()} and nobody else`, timeoutMs: 15000 })
    },
    ids: () => gateway.app.pools.get('shop')!.upstreams.map(({ id }) => id)
  }
}
