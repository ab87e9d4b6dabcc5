import type { Sample } from '../load/load.ts'
import { isLost } from '../load/figures.ts'
import type { UpstreamChanges } from '../upstream-options.ts'
import type { Watch } from './seen.ts'
import type { Promises } from './target.ts'

/** What the proxy promised, and whether that is what was seen. */
export interface Claim {
  what: string
  seen: string
  holds: boolean
}

/** What is known beforehand. */
export interface Plan {
  promises: Promises
  upstreams: number
  /** Requests a second. */
  rate: number
  /** How long the fault lasts, in ms. */
  faultMs: number
  /** Share of the answers that are failures, where the drill is about that. */
  ratio: number
}

export interface Outcome extends Plan {
  watch: Watch
  /** Ids of those that were made to fail. */
  victims: readonly string[]
  others: readonly string[]
  /** Due while the fault lasted. */
  samples: readonly Sample[]
}

/** Tells the victims what to do; `wait` ends early when the drill is stopped. */
export interface Stage {
  set: (faults: UpstreamChanges, dead?: boolean) => Promise<void>
  wait: (ms: number) => Promise<void>
}

export interface Drill {
  name: string
  title: string
  all: boolean
  /** What the load must be, where that is not for the user to say. */
  rate?: (promises: Promises) => number
  /** The shortest time in ms after which it can be judged. */
  least?: (promises: Promises) => number
  expected: (plan: Plan) => string[]
  fault: (stage: Stage, plan: Plan) => Promise<void>
  claims: (outcome: Outcome) => Claim[]
}

const atMost = (what: string, is: number, limit: number): Claim => ({ what, seen: `${is}, at most ${limit}`, holds: is <= limit })
const yes = (what: string, holds: boolean): Claim => ({ what, seen: holds ? 'yes' : 'no', holds })

/** How often a circuit may have been tried again, as its open time doubles. */
const trials = ({ promises: { openMs }, faultMs }: Plan): number => Math.floor(Math.log2(faultMs / openMs + 1))
const shareOf = ({ rate, upstreams, faultMs }: Plan): number => Math.ceil(rate / upstreams * faultMs / 1000)

/** A failure is seen at once: those in a row that open the circuit, what is under way by then, and a batch of probes for each trial. */
const quickly = (plan: Plan): number => Math.min(shareOf(plan), plan.promises.consecutiveFailures + Math.ceil(plan.rate / plan.upstreams * 0.3) + 10 * trials(plan))
/** A failure is silence: besides, what is sent until the first one has waited for its whole time. */
const silently = (plan: Plan): number => Math.min(shareOf(plan), quickly(plan) + Math.ceil(plan.rate / plan.upstreams * Math.min(plan.promises.headersMs || Infinity, plan.faultMs) / 1000))

const lost = (samples: readonly Sample[]): number => samples.filter(isLost).length
const leaves = ({ watch, victims }: Outcome): Claim => yes('its circuit opened, or its checks failed', victims.every((id) => watch.left(id)))

const flapMs = 500
const slowMs = 300
const maxRate = 1500
const shedReasons = /^(?:shed_\w+|upstream_capacity)$/

/** Delays that no time limit minds. */
const slowBy = ({ headersMs }: Promises): number => headersMs === 0 ? slowMs : Math.max(1, Math.min(slowMs, Math.floor(headersMs / 4)))

const soon = (plan: Plan): string => `at most ${quickly(plan)} requests are lost of the ${shareOf(plan)} that are its share`

export const drills: readonly Drill[] = [
  {
    name: 'upstream-dies',
    title: 'one upstream refuses connections and cuts those that are open',
    all: false,
    expected: (plan) => ['its circuit opens, or its checks fail', soon(plan)],
    fault: async (stage, { faultMs }) => { await stage.set({}, true); await stage.wait(faultMs) },
    claims: (outcome) => [leaves(outcome), atMost('lost', lost(outcome.samples), quickly(outcome))]
  },
  {
    name: 'hangs',
    title: 'one upstream takes requests and never answers; its health check passes',
    all: false,
    // Until the first one has waited for its whole time: nothing else may tell.
    least: ({ headersMs }) => headersMs * 1.3 + 500,
    expected: (plan) => ['its circuit opens: by silence, or when requests have waited for too long', `at most ${silently(plan)} requests are lost of the ${shareOf(plan)} that are its share`],
    fault: async (stage, { faultMs }) => { await stage.set({ hang: true }); await stage.wait(faultMs) },
    claims: (outcome) => [yes('its circuit opened', outcome.victims.every((id) => outcome.watch.openings(id).length > 0)), atMost('lost', lost(outcome.samples), silently(outcome))]
  },
  {
    name: 'slows',
    title: 'one upstream answers late, within the time limits',
    all: false,
    expected: ({ promises }) => [`no request is lost: ${slowBy(promises)} ms are no failure`, 'its circuit stays closed'],
    fault: async (stage, { faultMs, promises }) => { await stage.set({ delayMs: slowBy(promises) }); await stage.wait(faultMs) },
    claims: ({ watch, samples }) => [atMost('lost', lost(samples), 0), yes('its circuit stayed closed', watch.openings().length === 0)]
  },
  {
    name: 'flaps',
    title: 'one upstream dies and returns, over and over',
    all: false,
    expected: () => ['its circuit opens, or its checks fail', 'no more is lost than was sent to it while it was dead, and its transitions are told in order'],
    fault: async (stage, { faultMs }) => {
      for (let at = 0; at < faultMs; at += 2 * flapMs) {
        await stage.set({}, true)
        await stage.wait(flapMs)
        await stage.set({}, false)
        await stage.wait(flapMs)
      }
    },
    claims: (outcome) => {
      const steps = outcome.watch.events.map(({ event }) => event).filter(({ type, upstream }) => type === 'breaker_transition' && upstream === outcome.victims[0])
      return [
        leaves(outcome),
        atMost('lost', lost(outcome.samples), Math.ceil(shareOf(outcome) / 2) + outcome.promises.consecutiveFailures),
        yes('each transition began where the one before had ended', steps.every((step, i) => i === 0 || step['from'] === steps[i - 1]?.['to']))
      ]
    }
  },
  {
    name: 'errors',
    title: 'one upstream answers a share of the requests with 500 (--ratio)',
    all: false,
    expected: (plan) => [plan.ratio >= 0.7 ? 'its circuit opens' : 'its circuit may open', `at most ${Math.ceil(shareOf(plan) * plan.ratio)} requests fail`],
    fault: async (stage, { faultMs, ratio }) => { await stage.set({ failRatio: ratio }); await stage.wait(faultMs) },
    claims: (outcome) => [
      ...outcome.ratio >= 0.7 ? [yes('its circuit opened', outcome.watch.openings(outcome.victims[0]).length > 0)] : [],
      atMost('failed', lost(outcome.samples), Math.ceil(shareOf(outcome) * outcome.ratio) + 5)
    ]
  },
  {
    name: 'all-die',
    title: 'all upstreams refuse connections and cut those that are open',
    all: true,
    expected: (plan) => ['the proxy is not ready (GET /readyz)', `at most ${quickly(plan) * plan.upstreams} requests are tried in vain; all others are refused at once, with the reason`],
    fault: async (stage, { faultMs }) => { await stage.set({}, true); await stage.wait(faultMs) },
    claims: (outcome) => {
      const refused = outcome.samples.filter(({ reason }) => reason === 'breaker_open' || reason === 'no_upstream_healthy')
      return [
        leaves(outcome),
        yes('it was not ready', outcome.watch.unready),
        atMost('tried in vain', outcome.samples.length - refused.length, quickly(outcome) * outcome.upstreams),
        yes('refused with 503 and the reason', refused.length > 0 && refused.every(({ status }) => status === 503))
      ]
    }
  },
  {
    name: 'overload',
    title: 'all upstreams slow down, and half as much again is asked for as the gate admits',
    all: true,
    rate: (promises) => Math.ceil(promises.maxInFlight * 1.5 / (slowBy(promises) / 1000)),
    expected: ({ promises }) => [`never more than ${promises.maxInFlight} are in flight; what is more is refused as shed_capacity or a like reason`, 'no circuit opens, and what is admitted is answered'],
    fault: async (stage, { faultMs, promises }) => { await stage.set({ delayMs: slowBy(promises) }); await stage.wait(faultMs) },
    claims: ({ samples, watch, promises }) => {
      const bad = samples.filter(isLost)
      return [
        yes('some were refused', bad.some(({ reason }) => shedReasons.test(reason))),
        atMost('lost otherwise', bad.filter(({ reason }) => !shedReasons.test(reason)).length, 0),
        atMost('in flight', watch.peakInFlight, promises.maxInFlight),
        yes('some were answered', bad.length < samples.length),
        yes('no circuit opened', watch.openings().length === 0)
      ]
    }
  }
]

export const rateLimit = maxRate
