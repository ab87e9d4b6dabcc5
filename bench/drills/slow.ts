import { outcome, speed, type Claim, type Drill, type DrillContext, type DrillReport } from './drill.ts'
import { isLost, quantile, tallyText } from '../../bin/load/figures.ts'
import { requestsOf } from './record.ts'
import { Stage } from './stage.ts'

export interface SlowScale {
  rate: number
  seconds: number
  fastMs: number
  slowMs: number
}

const balancers = ['round-robin', 'least-requests', 'peak-ewma'] as const

/** One of three upstreams is slow, but not broken. */
export const slow: Drill<SlowScale> = {
  name: 'slow',
  title: 'one of three upstreams is slow: what each balancer makes of it',
  full: { rate: 300, seconds: 20, fastMs: 5, slowMs: 250 },
  gentle: { rate: 100, seconds: 2, fastMs: 5, slowMs: 400 },
  run: async (context, scale) => {
    const reports: DrillReport[] = []
    for (const balancer of balancers) reports.push(await variant(context, scale, balancer))
    return reports
  }
}

function variant (context: DrillContext, { rate, seconds, fastMs, slowMs }: SlowScale, balancer: typeof balancers[number]): Promise<DrillReport> {
  const fast = { delayMs: fastMs, jitterMs: fastMs / 2 }
  return Stage.with(context, `slow ${balancer}`, [fast, { delayMs: slowMs, jitterMs: slowMs / 10 }, fast], async stage => {
    const { port } = await stage.breakwater(stage.config({ balancer }))
    const { samples, lateP99Ms } = await (await stage.load({ port, rate, seconds })).result
    const ms = samples.map(sample => sample.ms)
    const atSlow = requestsOf(stage.upstreams[1]!.seen()).length
    const share = 100 * atSlow / samples.length
    const lost = samples.filter(isLost)
    const claims: Claim[] = [outcome('lost', lost.length, 0)]
    if (balancer === 'round-robin') claims.push(outcome('distance of its share from a third, %', Math.abs(share - 100 / 3), 2))
    // While an answer of the slow one is out, the others have had that many times more: a handful of requests find all equally idle.
    else claims.push(outcome('its share, % (a third with round-robin)', share, 15))
    if (balancer === 'peak-ewma') claims.push(speed('p99 ms: below the slow one\'s', quantile(ms, 0.99), slowMs))
    return {
      variant: balancer,
      figures: [
        ['requests', samples.length],
        ['lost', lost.length === 0 ? 0 : tallyText(lost)],
        ['at the slow one', `${atSlow} (${share.toFixed(1)} %)`],
        ['p50 ms', quantile(ms, 0.5).toFixed(1)],
        ['p90 ms', quantile(ms, 0.9).toFixed(1)],
        ['p99 ms', quantile(ms, 0.99).toFixed(1)],
        ['mean ms', (ms.reduce((sum, each) => sum + each, 0) / ms.length).toFixed(1)],
        ['client late p99 ms', lateP99Ms.toFixed(1)]
      ],
      claims
    }
  })
}
