import type { PoolOptions } from '../../config/schema.ts'
import type { Random } from '../random.ts'
import type { Balancer } from './balancer.ts'
import { EarliestDeadline } from './edf.ts'
import { ConsistentHash, type Placed } from './hash.ts'
import { LeastRequests } from './least-requests.ts'
import { LowestLatency } from './lowest-latency.ts'
import { TwoChoices } from './p2c.ts'
import { RandomDraw } from './random.ts'

/**
 * The balancer that a pool's options name, without members: `update` says who is in. Round-robin and weighted differ in the weights
 * that they are given there alone: round-robin goes by an upstream's slow start, but not by its weight.
 * @param members all of the pool's, in the order of their indexes
 */
export function makeBalancer (options: Pick<PoolOptions, 'balancer' | 'hash'>, members: readonly Placed[], random: Random): Balancer {
  switch (options.balancer) {
    case 'round-robin':
    case 'weighted': return new EarliestDeadline(members.length, random)
    case 'random': return new RandomDraw(members.length, random)
    case 'least-requests': return new LeastRequests(members, random)
    case 'p2c': return new TwoChoices(members, random)
    case 'peak-ewma': return new LowestLatency(members, random)
    case 'hash': return new ConsistentHash(members, options.hash.boundedLoad, random)
  }
}
