/**
 * Routing: which route a request takes, and what the route says before anything is forwarded. Decorates `app.routeTable`. The table is
 * swapped whole; a request keeps the route that it was given.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import { completeRoutes } from '../config/complete.ts'
import type { RouteOptions } from '../config/schema.ts'
import { parseTarget, type Target } from '../lib/http/target.ts'
import { systemRandom, type Random } from '../lib/random.ts'
import { poolsOf, type CompiledRoute } from '../lib/route/compiled.ts'
import { RouteTable, type Explanation, type RoutedRequest, type RouteMatch } from '../lib/route/table.ts'
import type {} from './edge.ts'
import type { Limiter } from './rate-limits.ts'
import { refuse } from './refusal.ts'
import type {} from './upstream-pools.ts'

/** A route as code may give it: what has a default may be left out. */
export type RouteInput = Omit<RouteOptions, 'split' | 'mirror' | 'disabled' | 'rateLimit' | 'requestHeaders' | 'responseHeaders'> & {
  [K in 'split' | 'mirror' | 'disabled' | 'rateLimit' | 'requestHeaders' | 'responseHeaders']?: Partial<NonNullable<RouteOptions[K]>>
}

export interface RoutingOptions {
  routes: ReadonlyArray<RouteOptions | RouteInput>
  /** Where splits by request draw from. Default: Math.random. */
  random?: Random
}

/** What was found of a request, once. */
export interface Routed {
  /** Null: it is malformed. */
  readonly target: Target | null
  readonly match: RouteMatch | null
}

export interface Routing {
  /** In matching order. */
  readonly routes: readonly CompiledRoute[]
  /** The pools that the routes send requests to by themselves. */
  pools (): readonly string[]
  /** Finds the route of a request; the same one each time it is asked, whatever is swapped meanwhile. */
  of (raw: IncomingMessage): Routed
  /** The methods that routes take at the place of a request without a route, sorted; none where no method would do. */
  allowed (request: RoutedRequest): string[]
  explain (request: RoutedRequest): Explanation
  /**
   * Whether a request may be forwarded by its route; false: it has been answered, because the route is disabled or asked too often. A
   * promise only for a route with a rate limit.
   */
  admit (reply: FastifyReply, route: CompiledRoute): boolean | Promise<boolean>
  /**
   * Makes ready what takes the place of the table when the returned function is called, and throws for what is wrong with it; until
   * then nothing changes. A limiter is kept, with its counts, where a route and its rateLimit stay as they are.
   * @throws TypeError that names each bad option by its path, like `routes[0].path`
   */
  prepare (routes: RoutingOptions['routes']): () => void
  /** The same at once. */
  swap (routes: RoutingOptions['routes']): void
}

declare module 'fastify' {
  interface FastifyInstance {
    routeTable: Routing
  }
}

const kRouted = Symbol('breakwater.routed')
interface TaggedRequest extends IncomingMessage { [kRouted]?: Routed }

const isLimited = ({ options }: CompiledRoute): boolean => options.rateLimit !== undefined

/** Where counts go on: the same route with the same limit. */
const limitKey = ({ options: { host, path, methods, headers, query, rateLimit } }: CompiledRoute): string =>
  JSON.stringify([host, path, methods, headers, query, rateLimit])

class AppRouting implements Routing {
  readonly #app: FastifyInstance
  readonly #random: Random
  #table = new RouteTable([])
  /** Weakly: a request that was given its route before a swap still asks for its limiter. */
  readonly #limiters = new WeakMap<CompiledRoute, Limiter>()

  constructor (app: FastifyInstance, random: Random) {
    this.#app = app
    this.#random = random
  }

  get routes (): readonly CompiledRoute[] { return this.#table.routes }

  pools (): readonly string[] {
    return [...new Set(this.routes.flatMap(({ options }) => poolsOf(options)))]
  }

  of (raw: IncomingMessage): Routed {
    const tagged: TaggedRequest = raw
    return tagged[kRouted] ??= this.#routed(raw)
  }

  #routed ({ method = '', url = '', headers }: IncomingMessage): Routed {
    const target = parseTarget(url, method)
    const match = target === null ? null : this.#table.match(method, target.authority ?? headers.host ?? '', target.path, target.search, headers)
    return { target, match }
  }

  allowed (request: RoutedRequest): string[] {
    return this.#table.allowed(request)
  }

  explain (request: RoutedRequest): Explanation {
    return this.#table.explain(request)
  }

  admit (reply: FastifyReply, route: CompiledRoute): boolean | Promise<boolean> {
    const { disabled, rateLimit } = route.options
    if (disabled !== undefined) {
      const { status, detail, retryAfterSeconds } = disabled
      noteRoute(reply, route)
      refuse(reply, 'route_disabled', retryAfterSeconds > 0 ? retryAfterSeconds : undefined, { status, detail, evidence: { answers: status } })
      return false
    }
    if (rateLimit === undefined) return true
    noteRoute(reply, route)
    return (this.#limiters.get(route) as Limiter)(reply.request, reply)
  }

  prepare (routes: RoutingOptions['routes']): () => void {
    const table = new RouteTable(completeRoutes(routes), this.#random)
    const kept = new Map(this.routes.filter(isLimited).map((route) => [limitKey(route), this.#limiters.get(route)]))
    for (const route of table.routes.filter(isLimited)) {
      if (!this.#app.hasDecorator('rateLimits')) throw new Error(`routes[${route.index}].rateLimit needs breakwater-rate-limits: register it before breakwater-routing`)
      this.#limiters.set(route, kept.get(limitKey(route)) ?? this.#app.rateLimits.create(route.options.rateLimit ?? {}))
    }
    return () => { this.#table = table }
  }

  swap (routes: RoutingOptions['routes']): void {
    this.prepare(routes)()
  }
}

/** An answer of our own is logged under the route that it is for. */
function noteRoute ({ request }: FastifyReply, { label }: CompiledRoute): void {
  if (request.exchange != null) request.exchange.route = label
}

/** Every pool that a route may come to, copies and pools without a share included. */
const poolsNamed = ({ pool, split, mirror }: RouteOptions): string[] =>
  [...pool === undefined ? [] : [pool], ...Object.keys(split?.pools ?? {}), ...mirror === undefined ? [] : [mirror.pool]]

const routing: FastifyPluginAsync<RoutingOptions> = async (app, { routes, random = systemRandom }) => {
  const instance = new AppRouting(app, random)
  instance.swap(routes)
  app.decorate('routeTable', instance)

  app.addHook('onReady', async () => {
    if (!app.hasDecorator('pools')) return
    // Those of a configuration have been compared with it; code may say anything.
    for (const { options, index } of instance.routes) {
      const missing = poolsNamed(options).find((name) => app.pools.get(name) === undefined)
      if (missing !== undefined) throw new Error(`routes[${index}] (${options.path}): there is no pool named "${missing}"`)
    }
  })
}

export default fp(routing, { name: 'breakwater-routing', fastify: '5.x' })
