import { setTimeout as sleep } from 'node:timers/promises'
import { outcome, type Drill, type DrillContext, type DrillReport } from './drill.ts'
import { isLost, tallyText } from '../../bin/load/figures.ts'
import type { Sample } from '../../bin/load/load.ts'
import { deliveries, requestsOf } from './record.ts'
import { reach, Stage } from './stage.ts'

export interface FloodScale {
  rate: number
  /** Each time it dies it is back after so long, in ms, and lives for so long. */
  deadMs: number
  aliveMs: number
  /** How often it dies. */
  deaths: number
  /** Seconds at the end in which it resets the connection of every other request instead. */
  resetSeconds: number
  /** See the drill `kill`. */
  learnMs: number
  openMs: number
  intervalMs: number
}

const retries = 2
const bodyBytes = 1000
const consecutiveFailures = 5

/** POSTs at an upstream that dies, comes back, dies again and at last resets half of its connections. */
export const postFlood: Drill<FloodScale> = {
  name: 'post-flood',
  title: 'a flood of POSTs while one of three upstreams keeps dying; retries 2',
  full: { rate: 500, deadMs: 500, aliveMs: 2000, deaths: 5, resetSeconds: 5, learnMs: 50, openMs: 500, intervalMs: 200 },
  gentle: { rate: 150, deadMs: 300, aliveMs: 1000, deaths: 2, resetSeconds: 1, learnMs: 500, openMs: 300, intervalMs: 100 },
  run: async (context, scale) => [await variant(context, scale)]
}

function variant (context: DrillContext, scale: FloodScale): Promise<DrillReport> {
  return Stage.with(context, 'post-flood', [{}, {}, {}], async stage => {
    const { openMs, intervalMs, aliveMs, deadMs, deaths, resetSeconds } = scale
    // It comes back into the rotation quickly, so that each death meets traffic.
    const proxy = await stage.breakwater(stage.config({ retry: { retries }, breaker: { openMs, maxOpenMs: openMs }, health: { intervalMs } }))
    const victim = stage.upstreams[1]!
    // A start takes time of its own; the load ends with the drill.
    const load = await stage.load({ port: proxy.port, rate: scale.rate, seconds: 3600, method: 'POST', bodyBytes })
    await reach(load.startedAt + aliveMs)
    for (let death = 0; death < deaths; death++) {
      await victim.kill()
      await sleep(deadMs)
      await victim.start()
      await sleep(aliveMs)
    }
    await victim.set({ resetEvery: 2 })
    await sleep(resetSeconds * 1000)
    load.stop()
    const { samples, lateP99Ms } = await load.result
    await proxy.logged()
    const records = stage.upstreams.map(upstream => upstream.seen())
    const delivered = deliveries(records)
    const timesOf = ({ id }: Sample): number => delivered.get(id) ?? 0
    const lost = samples.filter(isLost)
    const answered = samples.filter(sample => !isLost(sample))
    // A reset is one request's fault, and five in a row do not come: every other one is good. Half of all opens it, from ten on.
    const resets = requestsOf(records[1]!).length
    return {
      variant: `${deaths} deaths, then resets`,
      figures: [
        ['requests', samples.length],
        ['lost', lost.length],
        ['as', tallyText(lost)],
        ['reasons', proxy.reasons()],
        ['lost, though delivered', lost.filter(sample => timesOf(sample) > 0).length],
        ['delivered twice', samples.filter(sample => timesOf(sample) > 1).length],
        ['requests at the dying one', resets],
        ['client late p99 ms', lateP99Ms.toFixed(1)]
      ],
      claims: [
        outcome('delivered twice', samples.filter(sample => timesOf(sample) > 1).length, 0),
        outcome('answered well, though delivered to nobody', answered.filter(sample => timesOf(sample) !== 1).length, 0),
        outcome('lost, though delivered to nobody: only what was written when it died', lost.filter(sample => timesOf(sample) === 0).length, deaths * (consecutiveFailures + Math.ceil(scale.rate / 3 * scale.learnMs / 1000))),
        outcome('lost with anything but 502', lost.filter(({ status }) => status !== 502).length, 0)
      ]
    }
  })
}
