import { setTimeout as sleep } from 'node:timers/promises'
import { machineNow } from '../../bin/load/clock.ts'
import { outcome, speed, type Claim, type Drill, type DrillContext, type DrillReport } from './drill.ts'
import { isLost, quantile, tallyText } from '../../bin/load/figures.ts'
import { nativePeers, type NativePeer } from './peers.ts'
import { requestsOf } from './record.ts'
import { reach, Stage } from './stage.ts'

export interface WedgeScale {
  rate: number
  seconds: number
  wedgeAtSeconds: number
  pool: Record<string, unknown>
  /** Within so long after the wedge the circuit must open, in ms: `stall.minMs`, what counting in slots adds, a tick, and a scheduler's share. */
  noticeMs: number
  /** Beside the defaults: an upstream whose whole process is stopped, so that its health check hangs too; and a stall trigger that is quicker. */
  more: boolean
}

/** One of three upstreams takes requests and answers none, while its health check stays good. */
export const wedge: Drill<WedgeScale> = {
  name: 'wedge',
  title: 'one of three upstreams wedges: it takes requests and answers none; its health check stays good',
  full: { rate: 300, seconds: 40, wedgeAtSeconds: 10, pool: {}, noticeMs: 800, more: true },
  gentle: {
    // On a busy machine the usual time is longer, and the time limit may be what tells.
    rate: 150, seconds: 6, wedgeAtSeconds: 1, noticeMs: 4000, more: false,
    pool: { health: { intervalMs: 200 }, timeouts: { headersMs: 3000 }, retry: { budget: { ratio: 1 } } }
  },
  run: async (context, scale) => {
    const reports: DrillReport[] = []
    if (scale.more) reports.push(await variant(context, quicker(scale), 0, false, null))
    for (const retries of [0, 1]) {
      reports.push(await variant(context, scale, retries, false, null))
      if (scale.more) reports.push(await variant(context, scale, retries, true, null))
      if (!context.peers) continue
      for (const peer of nativePeers()) reports.push(await variant(context, scale, retries, false, peer))
    }
    return reports
  }
}

const quickMinMs = 100
const quicker = (scale: WedgeScale): WedgeScale => ({ ...scale, noticeMs: quickMinMs + 300, pool: { ...scale.pool, breaker: { stall: { minMs: quickMinMs } } } })

function variant (context: DrillContext, scale: WedgeScale, retries: number, stopped: boolean, peer: NativePeer | null): Promise<DrillReport> {
  const name = `${peer?.name ?? 'breakwater'}, retries ${retries}${stopped ? ', stopped' : ''}${scale.pool['breaker'] === undefined ? '' : `, stall.minMs ${quickMinMs}`}`
  return Stage.with(context, `wedge ${name}`, [{}, {}, {}], async stage => {
    const proxy = peer === null ? await stage.breakwater(stage.config({ ...scale.pool, retry: { ...scale.pool['retry'] as object | undefined, retries } })) : null
    const port = proxy?.port ?? await stage.peer(peer!, retries)
    const victim = stage.upstreams[1]!
    const load = await stage.load({ port, rate: scale.rate, seconds: scale.seconds })
    await reach(load.startedAt + scale.wedgeAtSeconds * 1000)
    if (stopped) victim.stop()
    else await victim.set({ wedged: true })
    const wedgedAt = machineNow()
    const wallOffset = Date.now() - wedgedAt
    const { samples, startedAt, lateP99Ms } = await load.result
    await proxy?.logged()
    if (stopped) {
      // What the system took for it lies there still, and it reads that now.
      victim.go()
      await sleep(500)
    }
    const stuck = new Set(requestsOf(victim.seen()).filter(({ at }) => at >= wedgedAt).map(({ id }) => id))
    const lost = samples.filter(isLost)
    const after = samples.filter(({ at }) => at >= wedgedAt - startedAt)
    const healthy = after.filter(sample => !isLost(sample) && !stuck.has(sample.id)).map(({ ms }) => ms)
    const slowed = after.filter(sample => !isLost(sample) && stuck.has(sample.id)).map(({ ms }) => ms)
    const all = after.map(({ ms }) => ms)
    const noticed = Math.ceil(scale.rate / 3 * scale.noticeMs / 1000)
    // The first one of a half-open circuit waits for its whole time limit.
    const probes = Math.ceil(scale.seconds / 15)
    const openings = proxy?.openings(wedgedAt + wallOffset) ?? []
    const claims: Claim[] = retries > 0
      ? [
          outcome('lost, as another upstream can take each', lost.length, stopped ? noticed : 0),
          outcome('lost: the aim', lost.length, 20)
        ]
      : [outcome('lost: what it was given until its silence told, and probes', lost.length, noticed + probes)]
    return {
      variant: name,
      figures: [
        ['requests after it', after.length],
        ['lost', lost.length],
        ['as', tallyText(lost)],
        ['reasons', proxy?.reasons() ?? '-'],
        ['stuck at it', stuck.size],
        ['of them answered elsewhere', slowed.length],
        ['p50 ms', quantile(all, 0.5).toFixed(1)],
        ['p99 ms', quantile(all, 0.99).toFixed(1)],
        ['p99 ms, healthy traffic', quantile(healthy, 0.99).toFixed(1)],
        ['p99 ms, moved', slowed.length === 0 ? '-' : quantile(slowed, 0.99).toFixed(0)],
        ['circuit opened', proxy === null ? '-' : openings.join(', ') || 'not'],
        ['client late p99 ms', lateP99Ms.toFixed(1)]
      ],
      claims: proxy === null ? [] : [
        ...claims,
        outcome('its circuit stayed closed (1: yes)', openings.length === 0 ? 1 : 0, 0),
        speed('p99 ms of healthy traffic', quantile(healthy, 0.99), 50)
      ]
    }
  })
}
