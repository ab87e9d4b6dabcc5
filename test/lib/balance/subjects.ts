import type { BalancerName } from '../../../config/schema.ts'
import type { Balancer } from '../../../lib/balance/balancer.ts'
import { makeBalancer } from '../../../lib/balance/make.ts'
import type { Random } from '../../../lib/random.ts'
import type { Fake } from './support.ts'

/** A balancer under test, and what it promises beyond "one of the members". */
export interface Subject {
  name: string
  make (members: readonly Fake[], random: Random): Balancer
  /**
   * By how much the picks of two equal members may differ over any stretch of time in which both are in, with one exchange after
   * the other.
   * @param picks how many were made in that stretch
   */
  spread (picks: number, members: number): number
  /** Whether a pick that is given back leaves no trace at all: nothing was drawn for it. */
  exactGiveBack: boolean
  /** Whether it shares by weight even where nothing is in flight. */
  weightsHoldIdle: boolean
}

const subject = (balancer: BalancerName, spread: Subject['spread'], exactGiveBack: boolean, boundedLoad = 0): Subject => ({
  name: boundedLoad === 0 ? balancer : `${balancer} with bounded load`,
  make: (members, random) => makeBalancer({ balancer, hash: { by: 'path', boundedLoad } }, members, random),
  spread,
  exactGiveBack,
  // There the cost is all that counts, and the weight divides it.
  weightsHoldIdle: balancer !== 'peak-ewma'
})

const inTurn = (): number => 1
/** What chance allows: a difference walks by a step at two picks of `members`. Six standard deviations, and then some for short walks. */
const byChance = (picks: number, members: number): number => 6 * Math.sqrt(2 * picks / members) + 8

export const subjects = {
  roundRobin: subject('round-robin', inTurn, true),
  weighted: subject('weighted', inTurn, true),
  random: subject('random', byChance, false),
  twoChoices: subject('p2c', byChance, false),
  leastRequests: subject('least-requests', inTurn, true),
  peakEwma: subject('peak-ewma', byChance, false),
  hash: subject('hash', byChance, false),
  boundedHash: subject('hash', byChance, false, 1.25)
} satisfies Record<string, Subject>
