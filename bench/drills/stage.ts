import { setTimeout as sleep } from 'node:timers/promises'
import { Breakwater, type DrillConfig } from './breakwater.ts'
import { machineNow } from '../../bin/load/clock.ts'
import type { DrillContext } from './drill.ts'
import type { NativePeer } from './peers.ts'
import { startLoad, warmPrefix, type Load, type LoadOptions } from '../../bin/load/load.ts'
import { steadyPorts } from './ports.ts'
import { DrillUpstream, type UpstreamScript } from './upstream.ts'

/** What the client has open at most. */
const maxOpen = 1000
/** A drill is about upstreams: that other work keeps the machine busy is no reason to shed. */
const shedding = { maxInFlight: maxOpen, pressure: { maxEventLoopDelayMs: 0, maxEventLoopUtilization: 0 } }

/** Up to so many requests a second may begin with a cold proxy. */
const warmRate = 300

/** Resolves at that moment of the machine's monotonic clock, in ms; at once where it has passed. */
export const reach = (at: number): Promise<void> => sleep(Math.max(0, at - machineNow()))

/** The servers of one variant of a drill and what runs in front of them. */
export class Stage {
  readonly upstreams: readonly DrillUpstream[]
  readonly #context: DrillContext
  readonly #name: string
  readonly #proxies: Breakwater[] = []
  readonly #ends: Array<() => void> = []

  private constructor (context: DrillContext, name: string, upstreams: readonly DrillUpstream[]) {
    this.#context = context
    this.#name = name
    this.upstreams = upstreams
  }

  /** Runs `play` with an upstream for each script; whatever it started has ended afterwards. */
  static async with<T> (context: DrillContext, name: string, scripts: ReadonlyArray<Partial<UpstreamScript>>, play: (stage: Stage) => Promise<T>): Promise<T> {
    const label = name.replaceAll(/[^a-z0-9]+/gi, '-')
    const ports = await steadyPorts(scripts.length)
    const upstreams = scripts.map((script, i) => new DrillUpstream(context.workshop, `${label}-upstream-${i}`, ports[i] as number, context.seed + i, script))
    const stage = new Stage(context, label, upstreams)
    try {
      await Promise.all(upstreams.map(upstream => upstream.start()))
      const result = await play(stage)
      for (const proxy of stage.#proxies) proxy.mustRun()
      return result
    } finally {
      for (const end of stage.#ends) end()
      await Promise.all(upstreams.map(upstream => upstream.kill()))
    }
  }

  /** A configuration with these upstreams as its one pool. */
  config (pool: Record<string, unknown> = {}, rest: DrillConfig = {}): DrillConfig {
    const upstreams = this.upstreams.map(({ port }) => ({ url: `http://127.0.0.1:${port}` }))
    return { shedding, ...rest, pools: { shop: { upstreams, ...pool } } }
  }

  async breakwater (config: DrillConfig): Promise<Breakwater> {
    const proxy = await Breakwater.start(this.#context.workshop, `${this.#name}-proxy`, config)
    this.#proxies.push(proxy)
    this.atEnd(() => proxy.child.signal('SIGKILL'))
    return proxy
  }

  /** Starts another proxy in front of these upstreams; its port. @throws when it does not answer within 20 seconds */
  async peer (peer: NativePeer, retries: number): Promise<number> {
    const name = `${this.#name}-proxy`
    const [port] = await steadyPorts(1) as [number]
    const child = this.#context.workshop.start(name, peer.prepare(this.#context.workshop.place(name), port, this.upstreams.map(upstream => upstream.port), retries))
    this.atEnd(() => child.signal('SIGKILL'))
    for (const until = performance.now() + 20_000; ;) {
      const healthy = await fetch(`http://127.0.0.1:${port}/healthz`).then(({ ok }) => ok, () => false)
      if (healthy) return port
      if (child.ended() !== null || performance.now() > until) throw new Error(`${name} was not ready: ${child.ended()} ${child.complaint()}`)
      await sleep(25)
    }
  }

  /** Starts a load; where it is a heavy one, after a lighter one that counts nowhere. */
  async load (options: Pick<LoadOptions, 'port' | 'rate' | 'seconds'> & Partial<LoadOptions>): Promise<Load> {
    const whole = { seed: this.#context.seed, method: 'GET', path: '/', bodyBytes: 0, maxOpen, patienceMs: 20_000, prefix: 'r', ...options } as const
    // A process that has just started would meet the rate with cold code and a queue of connections that it has not accepted yet.
    if (whole.rate > warmRate) await (await startLoad({ ...whole, rate: warmRate, seconds: 2, prefix: warmPrefix })).result
    const load = await startLoad(whole)
    this.atEnd(load.stop)
    return load
  }

  /** Called when the variant is over, however it ends. */
  atEnd (end: () => void): void {
    this.#ends.push(end)
  }
}
