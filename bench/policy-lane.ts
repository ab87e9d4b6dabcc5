import type { BalancerName, BreakerOptions } from '../config/schema.ts'
import type { Loaded } from '../lib/balance/balancer.ts'
import { Lane, Signal, type Candidates, type LaneOptions, type Member } from '../lib/balance/lane.ts'
import { makeBalancer } from '../lib/balance/make.ts'
import { PeakEwma } from '../lib/balance/peak-ewma.ts'
import { Ramp } from '../lib/balance/ramp.ts'
import { Breaker } from '../lib/breaker/breaker.ts'
import { monotonic } from '../lib/clock.ts'
import { EjectionState } from '../lib/health/ejection.ts'
import { UsualLatency } from '../lib/latency.ts'
import { seededRandom } from '../lib/random.ts'
import { Gate } from '../lib/shed/gate.ts'
import type { Operation } from './harness.ts'

/** Every balancer that a pool can have. */
export const balancers: readonly BalancerName[] = ['round-robin', 'weighted', 'random', 'least-requests', 'p2c', 'peak-ewma', 'hash']

/** Exchanges that are under way while picks are timed: every member has one or two. */
const underWay = 1.5

/** The defaults of the configuration. */
const laneOptions: Omit<LaneOptions, 'balancer'> = {
  hash: { by: 'client-address', boundedLoad: 0 },
  slowStart: { ms: 0, minimumShare: 0.1, aggression: 1 },
  panic: { threshold: 0.5, whenNone: false },
  spillOver: 1.4,
  ejection: { mode: 'off', consecutiveFailures: 5, window: { seconds: 10, minimumRequests: 20, failureRatio: 0 }, baseMs: 30000, maxMs: 300000, maxShare: 0.5 },
  health: { intervalMs: 5000 }
}

class Upstream implements Member {
  readonly id: string
  readonly weight: number
  readonly priority = 0
  readonly healthy = true
  readonly checked = true
  readonly draining = false
  readonly ejectedUntil = Number.NEGATIVE_INFINITY
  readonly ramp = new Ramp(false)
  readonly hasRoom = true
  readonly latency = new PeakEwma()
  readonly ejection = new EjectionState()
  share = 1
  inFlight = 0
  watch: Member['watch'] = null
  slot = 0

  constructor (id: string, weight: number) {
    this.id = id
    this.weight = weight
  }
}

/** Weights of 1 to 3 where the balancer is for weights: equal ones would make it round-robin. */
const upstreamsOf = (count: number, balancer: BalancerName): Upstream[] =>
  Array.from({ length: count }, (_, i) => new Upstream(`10.0.0.${i}:80`, balancer === 'weighted' ? 1 + i % 3 : 1))

/** A key for each request, as hashing needs one: spread over 2^32. */
const keyOf = (i: number): number => Math.imul(i, 0x9e3779b1) >>> 0

/** One pick among `count` members, each with an exchange or two, and what a balancer is told when it is taken and when an older one ends. */
export function picking (balancer: BalancerName, count: number): Operation {
  const random = seededRandom(1)
  const members = upstreamsOf(count, balancer)
  const picker = makeBalancer({ balancer, hash: laneOptions.hash }, members, random)
  for (const member of members) member.latency.record(5 + random(), 0.5)
  picker.update(Int32Array.from(members, (_, i) => i), count, Float64Array.from(members, ({ weight }) => weight), 0.5)
  const out = new Int32Array(Math.ceil(count * underWay)).fill(-1)
  let at = 0
  const change = (index: number, by: number): void => {
    (members[index] as Loaded & { inFlight: number }).inFlight += by
    picker.loadChanged(index)
  }
  return {
    name: `pick of ${count}, ${balancer}`,
    loop: loops => {
      let sum = 0
      for (let i = 0; i < loops; i++) {
        const ended = out[at] as number
        if (ended !== -1) change(ended, -1)
        const index = picker.pick(keyOf(i), 1.5)
        change(index, 1)
        out[at] = index
        at = at + 1 === out.length ? 0 : at + 1
        sum += index
      }
      return sum
    }
  }
}

/**
 * What one request asks of the policies: gate; pick, place and permit; the watch over its silence; what its head teaches (of the
 * breaker, the balancer and the route); settle and release at the one clock reading.
 */
export function wholePath (balancer: BalancerName, count: number, breaker: BreakerOptions): Operation {
  const random = seededRandom(1)
  const gate = new Gate(256)
  const pool: Candidates = { upstreams: upstreamsOf(count, balancer), options: { ...laneOptions, balancer }, signal: new Signal() }
  const lane = new Lane(pool, () => new Breaker(breaker, random, monotonic()), random)
  const routes = pool.upstreams.map(() => new UsualLatency())
  return {
    name: `whole path, ${balancer}, ${count} upstreams`,
    loop: loops => {
      let now = monotonic()
      for (let i = 0; i < loops; i++) {
        if (!gate.tryAcquire() || lane.select(now, keyOf(i)) !== null) continue
        const { index, permit } = lane
        const held = lane.breakers[index] as Breaker
        const usual = routes[index] as UsualLatency
        const watch = held.waits(permit, usual.value)
        now = monotonic()
        held.answered(permit, watch, 5)
        usual.record(5)
        lane.answered(index, 5, false, 0, now)
        lane.settle(index, permit, 'success', false, now)
        lane.release(index)
        gate.release()
      }
      return now
    }
  }
}
