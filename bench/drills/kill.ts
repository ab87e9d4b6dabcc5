import { setTimeout as sleep } from 'node:timers/promises'
import { machineNow } from '../../bin/load/clock.ts'
import { outcome, speed, type Drill, type DrillContext, type DrillReport } from './drill.ts'
import { isLost, quantile, tallyText } from '../../bin/load/figures.ts'
import { nativePeers, type NativePeer } from './peers.ts'
import { peakConcurrency, requestsOf } from './record.ts'
import { reach, Stage } from './stage.ts'

export interface KillScale {
  /** Requests a second over all three upstreams. */
  rate: number
  killAtSeconds: number
  backAtSeconds: number
  /** How long the load goes on after its return. */
  afterSeconds: number
  /** How long the proxy may take to learn of a failure, in ms: what it sends meanwhile fails as well. */
  learnMs: number
  pool: Record<string, unknown>
}

const consecutiveFailures = 5

/** One of three upstreams is killed and comes back. */
export const kill: Drill<KillScale> = {
  name: 'kill',
  title: 'one of three upstreams is killed under load, and comes back',
  full: { rate: 1000, killAtSeconds: 5, backAtSeconds: 8, afterSeconds: 20, learnMs: 50, pool: {} },
  gentle: { rate: 200, killAtSeconds: 0.5, backAtSeconds: 1, afterSeconds: 2, learnMs: 500, pool: { health: { intervalMs: 200 }, breaker: { openMs: 1000 } } },
  run: async (context, scale) => {
    const reports: DrillReport[] = []
    for (const retries of [0, 1]) {
      reports.push(await variant(context, scale, retries, `breakwater, retries ${retries}`, null))
      if (!context.peers) continue
      for (const peer of nativePeers()) reports.push(await variant(context, scale, retries, `${peer.name}, retries ${retries}`, peer))
    }
    return reports
  }
}

function variant (context: DrillContext, scale: KillScale, retries: number, name: string, peer: NativePeer | null): Promise<DrillReport> {
  return Stage.with(context, `kill ${name}`, [{}, {}, {}], async stage => {
    const proxy = peer === null ? await stage.breakwater(stage.config({ ...scale.pool, retry: { retries } })) : null
    const port = proxy?.port ?? await stage.peer(peer!, retries)
    const victim = stage.upstreams[1]!
    const load = await stage.load({ port, rate: scale.rate, seconds: 3600 })
    await reach(load.startedAt + scale.killAtSeconds * 1000)
    const killedAt = machineNow()
    await victim.kill()
    await reach(load.startedAt + scale.backAtSeconds * 1000)
    await victim.start()
    const backAt = machineNow()
    await sleep(scale.afterSeconds * 1000)
    load.stop()
    const { samples, startedAt, lateP99Ms } = await load.result
    await proxy?.logged()
    const seen = victim.seen()
    const lost = samples.filter(isLost)
    const inFlight = peakConcurrency(seen, killedAt - 1, killedAt + 1)
    const allowed = retries > 0 ? 0 : inFlight + consecutiveFailures + Math.ceil(scale.rate / 3 * scale.learnMs / 1000)
    const again = requestsOf(seen).filter(({ at }) => at > backAt)
    const answered = samples.filter(sample => !isLost(sample)).map(({ ms }) => ms)
    return {
      variant: name,
      figures: [
        ['requests', samples.length],
        ['lost', lost.length],
        ['as', tallyText(lost)],
        ['reasons', proxy?.reasons() ?? '-'],
        ['last lost, s after the kill', lost.length === 0 ? '-' : (Math.max(...lost.map(({ at }) => at)) / 1000 - (killedAt - startedAt) / 1000).toFixed(2)],
        ['at it when it died', inFlight],
        ['serves again, s after its return', again.length === 0 ? 'not' : (((again[0]?.at ?? 0) - backAt) / 1000).toFixed(1)],
        ['p50 ms', quantile(answered, 0.5).toFixed(1)],
        ['p99 ms', quantile(answered, 0.99).toFixed(1)],
        ['client late p99 ms', lateP99Ms.toFixed(1)]
      ],
      claims: peer !== null ? [] : [
        outcome(retries > 0 ? 'lost, as another upstream can take each' : 'lost: those at it, five to open the circuit, those sent meanwhile', lost.length, allowed),
        outcome('lost with anything but 502', lost.filter(({ status }) => status !== 502).length, 0),
        outcome('back, but given nothing (1: yes)', again.length === 0 ? 1 : 0, 0),
        speed('p99 ms of what was answered', quantile(answered, 0.99), 50)
      ]
    }
  })
}
