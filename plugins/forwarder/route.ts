import type { IncomingMessage } from 'node:http'
import type { HashOptions, RouteOptions } from '../../config/schema.ts'
import { hashKey } from '../../lib/hash.ts'
import { cookieOf } from '../../lib/http/cookie.ts'
import { CompiledRoute } from '../../lib/route/compiled.ts'
import { fieldOf } from '../../lib/route/conditions.ts'
import type { Observers } from '../observation.ts'
import type { UpstreamPools } from '../upstream-pools.ts'
import { noMirrors } from './mirror.ts'
import { noCounts, Terms, WaitingLists, type PoolRecord, type TermOptions, type UpstreamLane, type UsualTimes } from './terms.ts'

/** What a route says about its forwarding; all but the pool may be left out. */
export type ForwardRoute = Pick<RouteOptions, 'stripPrefix' | 'prefix' | 'timeouts' | 'retry' | 'maxBodyBytes' | 'priority' | 'mirror' | 'upgradeIdleMs'> & { pool: string, path?: string }

/** Where a request is forwarded to. */
export type AnyRoute = CompiledRoute | ForwardRoute

/** What reply.forward() was given. @throws TypeError where it is nothing of the kind: plain JavaScript calls it, too */
export function routeOf (target: unknown): AnyRoute {
  if (typeof target === 'string') return { pool: target }
  if (target instanceof CompiledRoute) return target
  if (typeof target === 'object' && target !== null && 'pool' in target && typeof target.pool === 'string') return target as ForwardRoute
  const given = typeof target === 'object' && target !== null ? 'an object without a pool\'s name' : typeof target === 'function' ? 'a function' : String(target)
  throw new TypeError(`reply.forward() wants the name of a pool, or a route such as { pool: 'shop', stripPrefix: '/api' }, not ${given}`)
}

const kTerms = Symbol('breakwater.terms')
interface TaggedLane { [kTerms]?: WeakMap<object, Terms> }
const kUsual = Symbol('breakwater.usual')
/** By pool name. */
interface TaggedRoute { [kUsual]?: Map<string, UsualTimes> }

/**
 * The terms of every route at every pool, made on first use. They are kept with the lane, and go with it: a route that nobody asks
 * for any more must not hold a lane, with all that hangs on it, that a change has replaced. What is usual is kept with the route.
 */
export class TermsBook {
  readonly lists = new WaitingLists()
  readonly #pools: UpstreamPools
  readonly #observers: Observers | null
  /** By pool name. One that comes back after it was gone begins anew. */
  readonly #records = new Map<string, { readonly record: PoolRecord, readonly signal: object | undefined }>()
  /** Stands for the routes that say nothing about terms. */
  readonly #plain: TermOptions & TaggedRoute = {}

  constructor (pools: UpstreamPools, observers: Observers | null) {
    this.#pools = pools
    this.#observers = observers
  }

  of (route: AnyRoute, lane: UpstreamLane): Terms {
    if (route instanceof CompiledRoute) return this.#kept(route, route.options, lane)
    const terms = this.#kept(this.#plain, this.#plain, lane)
    return route.timeouts === undefined && route.retry === undefined ? terms : terms.but(route)
  }

  record (pool: string): PoolRecord {
    const signal = this.#pools.get(pool)?.signal
    const known = this.#records.get(pool)
    if (known !== undefined && known.signal === signal) return known.record
    const record = { counts: noCounts(), mirrors: noMirrors(), hedging: null }
    this.#records.set(pool, { record, signal })
    return record
  }

  #kept (route: object, options: TermOptions, lane: UpstreamLane): Terms {
    const known = (lane as TaggedLane)[kTerms] ??= new WeakMap()
    return known.get(route) ?? this.#make(known, route, options, lane)
  }

  #make (known: WeakMap<object, Terms>, route: TaggedRoute, options: TermOptions, lane: UpstreamLane): Terms {
    const { name } = lane.pool
    const usual = route[kUsual] ??= new Map<string, UsualTimes>()
    for (const map of [usual, this.#records]) for (const pool of map.keys()) if (this.#pools.get(pool) === undefined) map.delete(pool)
    const made = Terms.of(lane, options, this.record(name), this.lists, usual.get(name) ?? null, this.#observers)
    usual.set(name, made.times())
    known.set(route, made)
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

/** An empty value tells nobody apart. */
const keyOfText = (value: string | null): number => value === null || value === '' ? -1 : hashKey(value)
