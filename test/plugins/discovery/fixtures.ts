import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { DiscoveryOptions } from '../../../config/schema.ts'
import { memberId } from '../../../lib/discovery/members.ts'
import discovery, { type DiscoveredUpstream, type DiscoveryEvent, type DiscoveryPluginOptions } from '../../../plugins/discovery.ts'
import type { DnsOptions } from '../../../plugins/discovery/resolution.ts'
import type { MembersChange } from '../../../plugins/upstream-pools.ts'
import { lines, type LineCollector } from '../../support/collect.ts'

/** Re-resolves fast. */
export const dnsOptions = (options: Partial<DnsOptions> & { name: string }): DnsOptions =>
  ({ type: 'address', scheme: 'http', family: 'any', minTtlMs: 20, maxTtlMs: 40, timeoutMs: 2000, servers: [], ...options })

/** What the pools plugin does with discovered members, and nothing else of it. */
export class FakePools {
  readonly pools = new Map<string, { name: string, options: { discovery?: DiscoveryOptions } }>()
  /** Ids, by pool. */
  readonly members = new Map<string, string[]>()
  /** The last list of each pool, as it was given. */
  readonly given = new Map<string, readonly DiscoveredUpstream[]>()
  sets = 0
  /** The next call throws this. */
  refuses: Error | null = null

  list = () => [...this.pools.values()]

  define (name: string, options?: Partial<DiscoveryOptions>): void {
    this.pools.set(name, { name, options: options === undefined ? {} : { discovery: { keep: true, ...options } } })
  }

  setMembers = (pool: string, given: readonly DiscoveredUpstream[]): MembersChange => {
    if (!this.pools.has(pool)) throw new Error(`no pool ${pool}`)
    if (this.refuses !== null) throw this.refuses
    const before = this.members.get(pool) ?? []
    const now = given.map(memberId)
    this.members.set(pool, now)
    this.given.set(pool, given)
    this.sets++
    return { added: now.filter((id) => !before.includes(id)), removed: before.filter((id) => !now.includes(id)), kept: now.filter((id) => before.includes(id)) }
  }
}

export interface Harness {
  app: FastifyInstance
  pools: FakePools
  log: LineCollector
  /** What `app.discovery` told so far. */
  events: DiscoveryEvent[]
  ids: (pool?: string) => readonly string[]
  types: () => string[]
}

/** An app with the plugin over a fake of the pools plugin. Not started: that is `app.ready()`. */
export async function harness (t: TestContext, pools: Record<string, Partial<DiscoveryOptions>>, options: DiscoveryPluginOptions = {}): Promise<Harness> {
  const fake = new FakePools()
  for (const [name, each] of Object.entries(pools)) fake.define(name, each)
  const log = lines()
  const app: FastifyInstance = Fastify({ logger: { level: 'info', stream: log } }) as unknown as FastifyInstance
  t.after(() => app.close())
  await app.register(fp(async (scope) => { scope.decorate('pools', fake as never) }, { name: 'breakwater-upstream-pools' }))
  await app.register(discovery, { random: () => 0.5, ...options })
  const events: DiscoveryEvent[] = []
  app.discovery.on('change', (event) => { events.push(event) })
  return { app, pools: fake, log, events, ids: (pool = 'shop') => fake.members.get(pool) ?? [], types: () => events.map(({ type }) => type) }
}

/** A new folder, which is removed at the end of the test. */
export function folder (t: Pick<TestContext, 'after'>): string {
  const path = mkdtempSync(join(tmpdir(), 'breakwater-discovery-'))
  t.after(() => { rmSync(path, { recursive: true, force: true }) })
  return path
}
