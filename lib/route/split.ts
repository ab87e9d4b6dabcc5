import type { SplitOptions } from '../../config/schema.ts'
import { hashKey, hashText } from '../hash.ts'
import { cookieOf } from '../http/cookie.ts'
import type { Random } from '../random.ts'
import { fieldOf, type HeaderFields } from './conditions.ts'

/** What of a request its pool is chosen by. */
export interface SplitFacts {
  /** By the rules of trust; '' where there is none. */
  readonly clientIp: string
  readonly headers: HeaderFields
}

/** What the choice of a pool hangs on: `override` is the client's own word, `request` a draw. */
export type SplitBy = 'override' | 'header' | 'cookie' | 'client-address' | 'request'

interface Share {
  readonly pool: string
  readonly weight: number
  readonly seed: number
}

/** log(0) would be infinite, and the largest must stay below 1. */
const unit = (hash: number): number => (hash + 0.5) / 4294967296

/**
 * A route's requests over several pools. A client stays with its pool: each pool draws a number of its own for the key, scaled by its
 * weight, and the largest has it. The shares are the weights' (within the evenness of the hash), and since a weight scales only its
 * own pool's numbers, raising it moves keys into that pool and none between the others; lowering it moves keys out of it alone.
 * The same key has the same pool on every instance and on every route with the same pools and weights.
 * Source: weighted rendezvous hashing, Jason Resch, "New Hashing Algorithms for Data Storage" (2015).
 */
export class Split {
  readonly #options: SplitOptions
  readonly #name: string
  readonly #override: string | null
  readonly #random: Random
  readonly #shares: readonly Share[]
  readonly #total: number

  constructor (options: SplitOptions, random: Random) {
    this.#options = options
    this.#name = options.by === 'header' ? (options.name ?? '').toLowerCase() : options.name ?? ''
    this.#override = options.overrideHeader?.toLowerCase() ?? null
    this.#random = random
    this.#shares = Object.entries(options.pools).filter(([, weight]) => weight > 0).map(([pool, weight]) => ({ pool, weight, seed: hashKey(pool) }))
    this.#total = this.#shares.reduce((sum, { weight }) => sum + weight, 0)
  }

  /** Which of these decides for a request. One without the header or cookie is taken by its address. */
  by (facts: SplitFacts): SplitBy {
    if (this.#overridden(facts) !== null) return 'override'
    const { by } = this.#options
    return by === 'request' || this.#named(facts) !== null ? by : 'client-address'
  }

  poolFor (facts: SplitFacts): string {
    const overridden = this.#overridden(facts)
    if (overridden !== null) return overridden
    return this.#options.by === 'request' ? this.#drawn() : this.#poolOf(this.#named(facts) ?? facts.clientIp)
  }

  /** Any pool of the split may be named, one of weight 0 too: so it is tried before it gets a share. */
  #overridden ({ headers }: SplitFacts): string | null {
    const named = this.#override === null ? null : fieldOf(headers, this.#override)
    return named !== null && Object.hasOwn(this.#options.pools, named) ? named : null
  }

  #named ({ headers }: SplitFacts): string | null {
    const { by } = this.#options
    if (by === 'header') return fieldOf(headers, this.#name)
    return by === 'cookie' ? cookieOf(fieldOf(headers, 'cookie') ?? '', this.#name) : null
  }

  #poolOf (key: string): string {
    let best = this.#shares[0] as Share
    let most = 0
    for (const share of this.#shares) {
      const score = -share.weight / Math.log(unit(hashText(key, share.seed)))
      if (score <= most) continue
      best = share
      most = score
    }
    return best.pool
  }

  #drawn (): string {
    let left = this.#random() * this.#total
    for (const { pool, weight } of this.#shares) {
      left -= weight
      if (left < 0) return pool
    }
    return (this.#shares.at(-1) as Share).pool
  }
}
