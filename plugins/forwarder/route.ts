import type { IncomingMessage } from 'node:http'
import type { HashOptions, RouteOptions } from '../../config/schema.ts'
import { hashKey } from '../../lib/hash.ts'
import { cookieOf } from '../../lib/http/cookie.ts'
import { CompiledRoute } from '../../lib/route/compiled.ts'
import { fieldOf } from '../../lib/route/conditions.ts'
import type { UpstreamPools } from '../upstream-pools.ts'
import { noMirrors } from './mirror.ts'
import { noCounts, Terms, WaitingLists, type PoolRecord, type UpstreamLane } from './terms.ts'

/** What a route says about its forwarding; all but the pool may be left out. */
export type ForwardRoute = Pick<RouteOptions, 'stripPrefix' | 'prefix' | 'timeouts' | 'retry' | 'maxBodyBytes' | 'priority' | 'mirror'> & { pool: string, path?: string }

/** Where a request is forwarded to. */
export type AnyRoute = CompiledRoute | ForwardRoute

const kTerms = Symbol('breakwater.terms')
interface TaggedRoute { [kTerms]?: Map<string, Terms> }

const plain = {}

/** The terms of every route at every pool, made on first use and kept with the route. */
export class TermsBook {
  readonly lists = new WaitingLists()
  readonly #pools: UpstreamPools
  /** By pool name. */
  readonly #records = new Map<string, PoolRecord>()
  /** Of the routes that say nothing about terms. */
  readonly #plain = new Map<string, Terms>()

  constructor (pools: UpstreamPools) {
    this.#pools = pools
  }

  of (route: AnyRoute, lane: UpstreamLane): Terms {
    if (route instanceof CompiledRoute) return this.#kept((route as TaggedRoute)[kTerms] ??= new Map(), route.options, lane)
    const terms = this.#kept(this.#plain, plain, lane)
    return route.timeouts === undefined && route.retry === undefined ? terms : terms.but(route)
  }

  record (pool: string): PoolRecord {
    let record = this.#records.get(pool)
    if (record === undefined) this.#records.set(pool, record = { counts: noCounts(), mirrors: noMirrors(), hedging: null })
    return record
  }

  #kept (known: Map<string, Terms>, options: Pick<RouteOptions, 'timeouts' | 'retry'>, lane: UpstreamLane): Terms {
    const { name } = lane.pool
    const terms = known.get(name)
    if (terms !== undefined && terms.lane === lane) return terms
    for (const map of [known, this.#records]) for (const pool of map.keys()) if (this.#pools.get(pool) === undefined) map.delete(pool)
    const made = Terms.of(lane, options, this.record(name), this.lists, terms ?? null)
    known.set(name, made)
    return made
  }
}

/** The hash of a request's key, by which a balancer may pick; -1: it has none. */
export function keyOf ({ by, name = '' }: HashOptions, raw: IncomingMessage, path: string, clientIp: string): number {
  switch (by) {
    case 'client-address': return hashKey(clientIp)
    case 'path': return hashKey(path)
    case 'header': return keyOfText(fieldOf(raw.headers, name.toLowerCase()))
    case 'cookie': return keyOfText(cookieOf(raw.headers.cookie ?? '', name))
  }
}

const keyOfText = (value: string | null): number => value === null ? -1 : hashKey(value)
