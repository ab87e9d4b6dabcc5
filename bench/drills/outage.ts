import { setTimeout as sleep } from 'node:timers/promises'
import { machineNow } from '../../bin/load/clock.ts'
import { outcome, speed, type Claim, type Drill, type DrillContext, type DrillReport } from './drill.ts'
import { isLost, quantile, tallyText } from '../../bin/load/figures.ts'
import { peakConcurrency, requestsOf } from './record.ts'
import { reach, Stage } from './stage.ts'
import type { DrillUpstream, Seen } from './upstream.ts'

export interface OutageScale {
  rate: number
  downAtSeconds: number
  /** When each of the three comes back, in the variants `together` and `one first`. */
  backAtSeconds: readonly number[]
  oneFirstAtSeconds: readonly number[]
  /** How long the load goes on after the last one has returned. */
  afterSeconds: number
  /** Whether there is a variant `one first` without slow start. */
  both: boolean
  /** See the drill `kill`. */
  learnMs: number
  /** Open time, its cap, and the check interval, in ms. */
  openMs: number
  maxOpenMs: number
  intervalMs: number
  slowStartMs: number
  maxInFlight: number
}

/** The most probes of a half-open circuit: `halfOpen.probes` at its highest. */
const maxProbes = 32
const consecutiveFailures = 5
const minimumShare = 0.1

/** All three upstreams die and come back. */
export const outage: Drill<OutageScale> = {
  name: 'outage',
  title: 'all three upstreams are killed under load, and come back',
  full: {
    rate: 1000, downAtSeconds: 5, backAtSeconds: [15, 15, 15], oneFirstAtSeconds: [15, 30, 30], afterSeconds: 20, both: true,
    learnMs: 50, openMs: 15_000, maxOpenMs: 120_000, intervalMs: 5000, slowStartMs: 10_000, maxInFlight: 20
  },
  gentle: {
    rate: 200, downAtSeconds: 0.5, backAtSeconds: [1, 1, 1], oneFirstAtSeconds: [1, 2, 2], afterSeconds: 2.5, both: false,
    learnMs: 500, openMs: 1000, maxOpenMs: 1000, intervalMs: 200, slowStartMs: 4000, maxInFlight: 20
  },
  run: async (context, scale) => [
    await variant(context, scale, 'all back together', scale.backAtSeconds, false),
    ...(scale.both ? [await variant(context, scale, 'one back first', scale.oneFirstAtSeconds, false)] : []),
    await variant(context, scale, `one back first, slowStart ${scale.slowStartMs} ms, maxInFlightPerUpstream ${scale.maxInFlight}`, scale.oneFirstAtSeconds, true)
  ]
}

/** What a returning upstream was given. */
interface Return {
  /** From its return to its first request, in seconds; Infinity: it got none. */
  afterSeconds: number
  /** In the first 100 ms and the first second from its first request on. */
  in100Ms: number
  inSecond: number
  peak: number
  /** Before its first answer. */
  unproven: number
}

function returnOf (seen: readonly Seen[], backAt: number): Return {
  const times = requestsOf(seen).map(({ at }) => at).filter(at => at >= backAt)
  const first = times[0] ?? Infinity
  const firstEnd = seen.find(({ what, at }) => what === 'end' && at >= backAt)?.at ?? Infinity
  const until = (end: number): number => times.filter(at => at < end).length
  return {
    afterSeconds: (first - backAt) / 1000, in100Ms: until(first + 100), inSecond: until(first + 1000), unproven: until(firstEnd), peak: peakConcurrency(seen, first, first + 1000)
  }
}

function variant (context: DrillContext, scale: OutageScale, name: string, back: readonly number[], slow: boolean): Promise<DrillReport> {
  const { rate, openMs, maxOpenMs, intervalMs, slowStartMs, maxInFlight } = scale
  return Stage.with(context, `outage ${name}`, [{}, {}, {}], async stage => {
    const pool = {
      breaker: { openMs, maxOpenMs },
      health: { intervalMs },
      ...(slow ? { slowStart: { ms: slowStartMs, minimumShare }, maxInFlightPerUpstream: maxInFlight } : {})
    }
    const proxy = await stage.breakwater(stage.config(pool))
    const load = await stage.load({ port: proxy.port, rate, seconds: 3600 })
    await reach(load.startedAt + scale.downAtSeconds * 1000)
    const downAt = machineNow()
    await Promise.all(stage.upstreams.map(upstream => upstream.kill()))
    const backAt = await Promise.all(stage.upstreams.map((upstream, i) => bringBack(upstream, load.startedAt + (back[i] as number) * 1000)))
    await sleep(scale.afterSeconds * 1000)
    load.stop()
    const { samples, startedAt, lateP99Ms } = await load.result
    await proxy.logged()
    const records = stage.upstreams.map(upstream => upstream.seen())
    const inFlight = records.reduce((sum, seen) => sum + peakConcurrency(seen, downAt - 1, downAt + 1), 0)
    const during = samples.filter(({ at }) => at >= downAt - startedAt && at < 1000 * Math.min(...back))
    const refused = during.filter(({ status }) => status === 503).map(({ ms }) => ms)
    const lost = samples.filter(isLost)
    const other = lost.filter(({ status }) => status !== 503)
    const returns = records.map((seen, i) => returnOf(seen, backAt[i] as number))
    const first = returns.reduce((earliest, each, i) => (backAt[i] as number) + each.afterSeconds * 1000 < earliest.at ? { at: (backAt[i] as number) + each.afterSeconds * 1000, each } : earliest, { at: Infinity, each: returns[0] as Return })
    // It takes as long as the open time, lengthened by its jitter, and then a check.
    const within = openMs * 1.2 / 1000 + intervalMs * 1.1 / 1000
    const claims: Claim[] = [
      outcome('lost with anything but 503: those at them, five each to open the circuit, those sent meanwhile', other.length, inFlight + 3 * consecutiveFailures + Math.ceil(rate * scale.learnMs / 1000)),
      outcome('requests in the first second at one that returns: no more than are sent at all', Math.max(...returns.map(({ inSecond }) => inSecond)), Math.ceil(rate * 1.1)),
      outcome('requests before its first answer: no more than probes', Math.max(...returns.map(({ unproven }) => unproven)), maxProbes),
      outcome('returned, but given nothing (number of upstreams)', returns.filter(({ afterSeconds }) => afterSeconds === Infinity).length, 0),
      outcome('s from the first return to the first request there', (first.at - Math.min(...backAt)) / 1000, within + (scale.learnMs / 1000)),
      speed('p99 ms of a refusal', quantile(refused, 0.99), 20)
    ]
    if (slow) {
      const [alone, ...others] = returns.map(({ peak }) => peak) as [number, ...number[]]
      const share = minimumShare + (1 - minimumShare) * 1000 / slowStartMs
      claims.push(outcome('at the same time at the first one in its first second: maxInFlightPerUpstream, as it is alone', alone, maxInFlight))
      claims.push(outcome('at the same time at the others in theirs: their share of it by then', Math.max(...others), Math.ceil(maxInFlight * share) + 1))
    }
    return {
      variant: name,
      figures: [
        ['requests', samples.length],
        ['lost', lost.length],
        ['as', tallyText(lost)],
        ['reasons', proxy.reasons()],
        ['refused while all were down', refused.length],
        ['refusal p50 ms', quantile(refused, 0.5).toFixed(1)],
        ['refusal p99 ms', quantile(refused, 0.99).toFixed(1)],
        ['refusal max ms', quantile(refused, 1).toFixed(1)],
        ['back to first request, s', returns.map(({ afterSeconds }) => afterSeconds.toFixed(1)).join(', ')],
        ['before the first answer', returns.map(({ unproven }) => unproven).join(', ')],
        ['in the first 100 ms', returns.map(({ in100Ms }) => in100Ms).join(', ')],
        ['in the first second', returns.map(({ inSecond }) => inSecond).join(', ')],
        ['at the same time in it', returns.map(({ peak }) => peak).join(', ')],
        ['client late p99 ms', lateP99Ms.toFixed(1)]
      ],
      claims
    }
  })
}

/** Starts it at that moment; when it was ready. */
async function bringBack (upstream: DrillUpstream, at: number): Promise<number> {
  await reach(at)
  await upstream.start()
  return machineNow()
}
