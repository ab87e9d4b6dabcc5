import { outcome, speed, type Drill, type DrillContext, type DrillReport } from './drill.ts'
import { densest, quantile, tallyText } from '../../bin/load/figures.ts'
import { deliveries, requestsOf } from './record.ts'
import { Stage } from './stage.ts'

export interface StormScale {
  rate: number
  seconds: number
}

const retries = 3
const ratio = 0.2
const minPerSecond = 1
/** The budget counts over so many seconds. */
const span = 10

/** Every upstream fails every request, and everybody would retry: what arrives at them stays within the budget. */
export const retryStorm: Drill<StormScale> = {
  name: 'retry-storm',
  title: 'every upstream answers 503; retries 3, no breaker: what the retries add',
  full: { rate: 300, seconds: 25 },
  gentle: { rate: 150, seconds: 3 },
  run: async (context, scale) => [await variant(context, scale)]
}

function variant (context: DrillContext, { rate, seconds }: StormScale): Promise<DrillReport> {
  const failing = { status: 503, delayMs: 2 }
  return Stage.with(context, 'retry-storm', [failing, failing, failing], async stage => {
    const retry = { retries, backoff: { baseMs: 5, maxMs: 20 }, budget: { ratio, minPerSecond } }
    const { port } = await stage.breakwater(stage.config({ retry, breaker: { mode: 'off' } }))
    const { samples, lateP99Ms } = await (await stage.load({ port, rate, seconds })).result
    const records = stage.upstreams.map(upstream => upstream.seen())
    const arrived = [...deliveries(records).values()].reduce((sum, times) => sum + times, 0)
    const further = arrived - samples.length
    const times = records.flatMap(seen => requestsOf(seen).map(({ at }) => at)).toSorted((a, b) => a - b)
    const took = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1000
    // Within any ten slots of a second the budget holds; the load may touch one slot more than it fills.
    const allowed = ratio * samples.length + span * minPerSecond * Math.ceil((took + 1) / span)
    return {
      variant: `ratio ${ratio}, minPerSecond ${minPerSecond}`,
      figures: [
        ['requests', samples.length],
        ['answers', tallyText(samples)],
        ['attempts', arrived],
        ['further attempts', further],
        ['for each request', (further / samples.length).toFixed(3)],
        ['attempts in the densest second', densest(times, 1000)],
        ['p99 ms', quantile(samples.map(({ ms }) => ms), 0.99).toFixed(1)],
        ['client late p99 ms', lateP99Ms.toFixed(1)]
      ],
      claims: [
        outcome('further attempts: the budget', further, allowed),
        outcome('answered with anything but the upstream\'s 503', samples.filter(({ status }) => status !== 503).length, 0),
        speed('p99 ms', quantile(samples.map(({ ms }) => ms), 0.99), 100)
      ]
    }
  })
}
