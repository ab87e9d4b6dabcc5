import { ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { BalancerName } from '../../../config/schema.ts'
import { EarliestDeadline } from '../../../lib/balance/edf.ts'
import { ConsistentHash } from '../../../lib/balance/hash.ts'
import { LeastRequests } from '../../../lib/balance/least-requests.ts'
import { LowestLatency } from '../../../lib/balance/lowest-latency.ts'
import { makeBalancer } from '../../../lib/balance/make.ts'
import { TwoChoices } from '../../../lib/balance/p2c.ts'
import { RandomDraw } from '../../../lib/balance/random.ts'
import { seededRandom } from '../../../lib/random.ts'
import { admit, Caller, equals, poolOf } from './support.ts'

const kinds: Record<BalancerName, unknown> = {
  'round-robin': EarliestDeadline,
  weighted: EarliestDeadline,
  random: RandomDraw,
  'least-requests': LeastRequests,
  p2c: TwoChoices,
  'peak-ewma': LowestLatency,
  hash: ConsistentHash
}

describe('the balancer of a pool', () => {
  for (const [name, kind] of Object.entries(kinds)) {
    it(`is ${name} where the options say so`, () => {
      ok(makeBalancer({ balancer: name as BalancerName, hash: { by: 'path', boundedLoad: 0 } }, poolOf(equals(3)), seededRandom(1)) instanceof (kind as typeof EarliestDeadline))
    })
  }

  it('bounds the load of hashing as the options say', () => {
    for (const [boundedLoad, most] of [[0, 40], [1.25, 25]] as const) {
      const members = poolOf(equals(2))
      const caller = new Caller(makeBalancer({ balancer: 'hash', hash: { by: 'path', boundedLoad } }, members, seededRandom(1)), members)
      admit(caller.balancer, equals(2))
      for (let i = 0; i < 40; i++) caller.begin(5)
      ok(Math.max(...members.map(({ inFlight }) => inFlight)) === most)
    }
  })
})
