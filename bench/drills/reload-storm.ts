import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillConfig } from './breakwater.ts'
import { outcome, speed, type Drill, type DrillContext, type DrillReport } from './drill.ts'
import { isLost, quantile, tallyText } from '../../bin/load/figures.ts'
import { deliveries } from './record.ts'
import { Stage } from './stage.ts'

export interface ReloadScale {
  rate: number
  reloads: number
  /** Between the end of one and the start of the next, in ms. */
  pauseMs: number
}

/** The configuration changes all the time: members come and go, the balancer and time limits change, routes are added. */
export const reloadStorm: Drill<ReloadScale> = {
  name: 'reload-storm',
  title: 'one reload after another, each to another configuration, under load',
  full: { rate: 2000, reloads: 100, pauseMs: 80 },
  gentle: { rate: 200, reloads: 20, pauseMs: 50 },
  run: async (context, scale) => [await variant(context, scale)]
}

/** One after another; each differs from the one before and from the one after. */
function configsOf (stage: Stage): DrillConfig[] {
  const all = stage.upstreams.map(({ port }) => ({ url: `http://127.0.0.1:${port}` }))
  return [
    stage.config({ upstreams: all.slice(0, 2) }),
    stage.config({ balancer: 'least-requests' }, { routes: [{ path: '/other/*', pool: 'shop' }, { path: '/*', pool: 'shop', timeouts: { totalMs: 20_000 } }] }),
    stage.config({ upstreams: all.slice(1), timeouts: { headersMs: 4000 } }),
    stage.config({ upstreams: all.toReversed(), balancer: 'peak-ewma', breaker: { openMs: 10_000 }, retry: { retries: 1 } }, { routes: [{ path: '/:name', pool: 'shop' }, { path: '/*', pool: 'shop' }] }),
    stage.config({ connections: { max: 64 } })
  ]
}

function variant (context: DrillContext, { rate, reloads, pauseMs }: ReloadScale): Promise<DrillReport> {
  return Stage.with(context, 'reload-storm', [{}, {}, {}], async stage => {
    const proxy = await stage.breakwater(stage.config())
    const load = await stage.load({ port: proxy.port, rate, seconds: 3600 })
    await sleep(500)
    const configs = configsOf(stage)
    const took: number[] = []
    let refused = 0
    for (let reload = 0; reload < reloads; reload++) {
      const began = performance.now()
      const status = await proxy.reload(configs[reload % configs.length] as DrillConfig)
      took.push(performance.now() - began)
      if (status !== 200) refused++
      await sleep(pauseMs)
    }
    await sleep(500)
    load.stop()
    const { samples, lateP99Ms } = await load.result
    await proxy.logged()
    const lost = samples.filter(isLost)
    const times = deliveries(stage.upstreams.map(upstream => upstream.seen()))
    const ms = samples.map(sample => sample.ms)
    return {
      variant: `${reloads} reloads`,
      figures: [
        ['requests', samples.length],
        ['lost', lost.length === 0 ? 0 : `${lost.length}: ${tallyText(lost)}`],
        ['reasons', proxy.reasons()],
        ['reloads refused', refused],
        ['reload p50 ms', quantile(took, 0.5).toFixed(1)],
        ['reload max ms', quantile(took, 1).toFixed(1)],
        ['delivered twice', [...times.values()].filter(count => count > 1).length],
        ['p50 ms', quantile(ms, 0.5).toFixed(1)],
        ['p99 ms', quantile(ms, 0.99).toFixed(1)],
        ['client late p99 ms', lateP99Ms.toFixed(1)]
      ],
      claims: [
        outcome('lost', lost.length, 0),
        outcome('reloads refused', refused, 0),
        speed('p99 ms', quantile(ms, 0.99), 50)
      ]
    }
  })
}
