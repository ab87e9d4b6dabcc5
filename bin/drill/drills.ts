import type { Sample } from '../load/load.ts'
import { isLost } from '../load/figures.ts'
import type { UpstreamChanges } from '../upstream-options.ts'
import type { Watch } from './seen.ts'
import type { Promises } from './target.ts'

/** What the proxy promised, and whether that is what was seen. */
export interface Claim {
  what: string
  seen: string
  /** null: nothing was promised of it, so nothing can be judged; `seen` says why. */
  holds: boolean | null
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

/**
 * How many requests in a row have to fail for the circuit to open by their number or their ratio; Infinity: none do. The ratio is
 * of a window that this very traffic has filled, or that holds too little to count.
 */
function toOpen ({ promises: { consecutiveFailures, failureRatio, windowSeconds, minimumRequests, minimumShare }, rate, upstreams }: Plan): number {
  const volume = rate / upstreams * windowSeconds
  const byRatio = failureRatio === 0 ? Infinity : Math.max(Math.ceil(failureRatio * volume), minimumRequests, Math.ceil(minimumShare * volume)) + 1
  return Math.min(consecutiveFailures || Infinity, byRatio)
}

/** Whether a fault that spoils this share of the requests, and tells so after `afterMs`, opens the circuit while it lasts. */
function opensInTime (plan: Plan, share = 1, afterMs = 0): boolean {
  const { promises: { consecutiveFailures }, rate, upstreams, faultMs } = plan
  // those in a row come early, however short the fault
  if (consecutiveFailures > 0) return true
  return toOpen(plan) <= rate / upstreams * Math.max(0, faultMs - afterMs) / 1000 * share
}

/** Whether checks notice that an upstream is dead while the fault lasts, its slowest case and a time-out's worth of delay included. */
const checksSee = ({ promises: { health, fall, intervalMs }, faultMs }: Plan): boolean => health && faultMs >= (fall + 1) * intervalMs * 1.2

/** Whether silence opens the circuit: so many are out together before the first one is given up. */
function silenceTells ({ promises: { stallOutstanding, headersMs }, rate, upstreams, faultMs }: Plan): boolean {
  const ms = Math.min(headersMs || Infinity, faultMs) - 1000
  return stallOutstanding > 0 && rate / upstreams * ms / 1000 >= stallOutstanding
}

const notJudged = (what: string): Claim => ({ what, seen: 'not judged: with this load and time neither breaker.consecutiveFailures (0: off), its window nor the checks promise it', holds: null })

/** A failure is seen at once: those in a row that open the circuit, what is under way by then, and a batch of probes for each trial. */
const quickly = (plan: Plan): number => Math.min(shareOf(plan), toOpen(plan) + Math.ceil(plan.rate / plan.upstreams * 0.3) + 10 * trials(plan))
/** A failure is silence: besides, what is sent until the first one has waited for its whole time. */
const silently = (plan: Plan): number => Math.min(shareOf(plan), quickly(plan) + Math.ceil(plan.rate / plan.upstreams * Math.min(plan.promises.headersMs || Infinity, plan.faultMs) / 1000))

/** What the proxy refuses because its process is starved, as on a busy machine, and what the load could not even send, is no upstream's doing. */
export const isStarved = ({ reason, failure }: Sample): boolean => reason === 'shed_pressure' || failure === 'unsent'
const lost = (samples: readonly Sample[]): number => samples.filter((sample) => isLost(sample) && !isStarved(sample)).length
const left = 'its circuit opened, or its checks failed'
const opened = 'its circuit opened'
const leaves = ({ watch, victims }: Outcome): Claim => yes(left, victims.every((id) => watch.left(id)))
const mayLeave = (judged: boolean): string => judged ? 'its circuit opens, or its checks fail' : 'whether its circuit opens cannot be judged'

const flapMs = 500
const slowMs = 300

/** Silence may tell, or the time limits of those that waited. */
const hangOpens = (plan: Plan): boolean => silenceTells(plan) || opensInTime(plan, 1, plan.promises.headersMs || plan.faultMs)
/** A share of failures that is well above what the window allows, or that brings five in a row soon. */
const errorsOpen = (plan: Plan): boolean => plan.ratio >= 0.7 && (plan.promises.consecutiveFailures > 0 || (plan.ratio >= plan.promises.failureRatio + 0.1 && opensInTime(plan, plan.ratio * 0.9)))
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
    expected: (plan) => [mayLeave(opensInTime(plan) || checksSee(plan)), soon(plan)],
    fault: async (stage, { faultMs }) => { await stage.set({}, true); await stage.wait(faultMs) },
    claims: (outcome) => [opensInTime(outcome) || checksSee(outcome) ? leaves(outcome) : notJudged(left), atMost('lost', lost(outcome.samples), quickly(outcome))]
  },
  {
    name: 'hangs',
    title: 'one upstream takes requests and never answers; its health check passes',
    all: false,
    // Until the first one has waited for its whole time: nothing else may tell.
    least: ({ headersMs }) => headersMs * 1.3 + 500,
    expected: (plan) => [hangOpens(plan) ? 'its circuit opens: by silence, or when requests have waited for too long' : 'whether its circuit opens cannot be judged', `at most ${silently(plan)} requests are lost of the ${shareOf(plan)} that are its share`],
    fault: async (stage, { faultMs }) => { await stage.set({ hang: true }); await stage.wait(faultMs) },
    claims: (outcome) => [hangOpens(outcome) ? yes(opened, outcome.victims.every((id) => outcome.watch.openings(id).length > 0)) : notJudged(opened), atMost('lost', lost(outcome.samples), silently(outcome))]
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
    expected: (plan) => [mayLeave(opensInTime(plan, 0.5)), 'no more is lost than was sent to it while it was dead, and its transitions are told in order'],
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
        opensInTime(outcome, 0.5) ? leaves(outcome) : notJudged(left),
        atMost('lost', lost(outcome.samples), Math.ceil(shareOf(outcome) / 2) + Math.max(5, outcome.promises.consecutiveFailures)),
        yes('each transition began where the one before had ended', steps.every((step, i) => i === 0 || step['from'] === steps[i - 1]?.['to']))
      ]
    }
  },
  {
    name: 'errors',
    title: 'one upstream answers a share of the requests with 500 (--ratio)',
    all: false,
    expected: (plan) => [errorsOpen(plan) ? 'its circuit opens' : 'its circuit may open', `at most ${Math.ceil(shareOf(plan) * plan.ratio)} requests fail`],
    fault: async (stage, { faultMs, ratio }) => { await stage.set({ failRatio: ratio }); await stage.wait(faultMs) },
    claims: (outcome) => [
      ...errorsOpen(outcome) ? [yes(opened, outcome.watch.openings(outcome.victims[0]).length > 0)] : [],
      atMost('failed', lost(outcome.samples), Math.ceil(shareOf(outcome) * outcome.ratio) + 5)
    ]
  },
  {
    name: 'all-die',
    title: 'all upstreams refuse connections and cut those that are open',
    all: true,
    expected: (plan) => [opensInTime(plan) || checksSee(plan) ? 'the proxy is not ready (GET /readyz)' : 'whether the proxy is ready cannot be judged', `at most ${quickly(plan) * plan.upstreams} requests are tried in vain; all others are refused at once, with the reason`],
    fault: async (stage, { faultMs }) => { await stage.set({}, true); await stage.wait(faultMs) },
    claims: (outcome) => {
      const judgable = outcome.samples.filter((sample) => !isStarved(sample))
      const refused = judgable.filter(({ reason }) => reason === 'breaker_open' || reason === 'no_upstream_healthy')
      const judged = opensInTime(outcome) || checksSee(outcome)
      return [
        judged ? leaves(outcome) : notJudged(left),
        judged ? yes('it was not ready', outcome.watch.unready) : notJudged('it was not ready'),
        atMost('tried in vain', judgable.length - refused.length, quickly(outcome) * outcome.upstreams),
        yes('refused with 503 and the reason', (refused.length > 0 || !judged) && refused.every(({ status }) => status === 503))
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
      const bad = samples.filter((sample) => isLost(sample) && sample.failure !== 'unsent')
      return [
        yes('some were refused', bad.some(({ reason }) => shedReasons.test(reason))),
        atMost('lost otherwise', bad.filter(({ reason }) => !shedReasons.test(reason)).length, 0),
        atMost('in flight', watch.peakInFlight, promises.maxInFlight),
        yes('some were answered', samples.some((sample) => !isLost(sample))),
        yes('no circuit opened', watch.openings().length === 0)
      ]
    }
  }
]

export const rateLimit = maxRate
