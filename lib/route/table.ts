import type { RouteOptions } from '../../config/schema.ts'
import { hostOf } from '../http/target.ts'
import { systemRandom, type Random } from '../random.ts'
import { CompiledRoute } from './compiled.ts'
import { RequestFacts, type HeaderFields, type Missing } from './conditions.ts'
import { FirstMatch, HostRoutes, type Entry, type RouteMatch } from './host-routes.ts'
import { compareRoutes, matchedBy } from './order.ts'

export type { RouteMatch }

/** A request as far as routes are chosen by it. */
export interface RoutedRequest {
  readonly method: string
  /** Host and port as the request names them, or ''. */
  readonly authority: string
  /** As it came, without the query; `*` for OPTIONS *. */
  readonly path: string
  /** The query with its question mark, or ''. */
  readonly search: string
  readonly headers: HeaderFields
}

/** A route that was tried before the one that was taken, and what of it did not hold. */
export type PassedOver = { readonly route: CompiledRoute } & (Missing | { readonly why: 'method', readonly name: null })

export interface Explanation {
  readonly match: RouteMatch | null
  /** In the order in which they were tried; all routes for the path where none was taken. */
  readonly passedOver: readonly PassedOver[]
}

// No name is longer (RFC 1035, section 2.3.4): what is, has no suffixes worth looking for.
const maxHostLength = 253

/** "shop.example." is "shop.example", spelt out up to the root of all names. */
function withoutRoot (host: string): string {
  return host.endsWith('.') ? host.slice(0, -1) : host
}

/**
 * Finds the route of a request. A route for its host ranks before one for a suffix of it, the longest first, and that before every
 * route for all hosts; then exact before method-aware before parameters and the longest prefix; at one path, the route that asks for
 * more header fields and parameters first. A route that does not take the request lets it through to the next one. A request costs
 * O(length of its path) however many routes there are.
 */
export class RouteTable {
  /** In matching order. */
  readonly routes: readonly CompiledRoute[]
  readonly #hosts = new Map<string, HostRoutes>()
  /** By the suffix with its dot. */
  readonly #suffixes = new Map<string, HostRoutes>()
  readonly #anyHost: HostRoutes
  readonly #only: RouteMatch | null
  readonly #facts: RequestFacts
  readonly #first: FirstMatch
  readonly #hasMethods: boolean

  /**
   * @param routes checked ones, with their defaults; of two that take the same requests the first one has them
   * @param random where splits by request draw from
   */
  constructor (routes: readonly RouteOptions[], random: Random = systemRandom) {
    const compiled = routes.map((options, index) => new CompiledRoute(options, index, random))
    this.routes = compiled.toSorted(compareRoutes)
    this.#facts = new RequestFacts(new Set(routes.flatMap(({ query = {} }) => Object.keys(query))))
    this.#first = new FirstMatch(this.#facts)
    this.#hasMethods = routes.some(({ methods }) => methods !== undefined)
    for (const [host, own] of byHost(compiled)) {
      if (host.startsWith('*.')) this.#suffixes.set(host.slice(1), new HostRoutes(own))
      else this.#hosts.set(host, new HostRoutes(own))
    }
    this.#anyHost = new HostRoutes(compiled.filter(({ options: { host } }) => host === undefined))
    const [first] = compiled
    this.#only = first !== undefined && compiled.length === 1 && takesAll(first) ? Object.freeze({ route: first, by: matchedBy(first.options) }) : null
  }

  match (method: string, authority: string, path: string, search: string, headers: HeaderFields): RouteMatch | null {
    if (this.#only !== null) return this.#only
    const lookUpPath = path === '*' ? '/' : path
    const facts = this.#facts
    facts.begin(method, headers, search)
    let match: RouteMatch | null = null
    if (this.#hosts.size > 0 || this.#suffixes.size > 0) match = this.#matchHost(withoutRoot(hostOf(authority)), lookUpPath)
    match ??= this.#anyHost.match(lookUpPath, this.#first)
    facts.end()
    return match
  }

  /** The methods that routes take at this place, where `match` finds none for the request's own; sorted. Empty: no route in any case. */
  allowed (request: RoutedRequest): string[] {
    if (!this.#hasMethods) return []
    const facts = this.#factsOf(request)
    const methods = new Set<string>()
    for (const { route: { conditions }, methods: own } of this.#entries(request)) {
      if (own !== null && (conditions === null || conditions.holds(facts))) for (const method of own) methods.add(method)
    }
    facts.end()
    return [...methods].toSorted()
  }

  /** Which route a request takes, and which were tried before it. */
  explain (request: RoutedRequest): Explanation {
    if (this.#only !== null) return { match: this.#only, passedOver: [] }
    const facts = this.#factsOf(request)
    const passedOver: PassedOver[] = []
    let match: RouteMatch | null = null
    for (const entry of this.#entries(request)) {
      // For the sake of another method a route is there once more.
      if (entry.implied ? request.method !== 'HEAD' : request.method === 'HEAD' && isWithoutHead(entry)) continue
      const lacks = this.#lacks(entry, facts)
      if (lacks === null) {
        match = { route: entry.route, by: entry.by }
        break
      }
      passedOver.push({ route: entry.route, ...lacks })
    }
    facts.end()
    return { match, passedOver }
  }

  #matchHost (host: string, path: string): RouteMatch | null {
    const match = this.#hosts.get(host)?.match(path, this.#first) ?? null
    if (match !== null || this.#suffixes.size === 0 || host.length > maxHostLength) return match
    for (let dot = host.indexOf('.', 1); dot !== -1; dot = host.indexOf('.', dot + 1)) {
      const ofSuffix = this.#suffixes.get(host.slice(dot))?.match(path, this.#first) ?? null
      if (ofSuffix !== null) return ofSuffix
    }
    return null
  }

  /** All routes for host and path, in the order in which they are tried. */
  #entries ({ authority, path }: RoutedRequest): Entry[] {
    const lookUpPath = path === '*' ? '/' : path
    const host = withoutRoot(hostOf(authority))
    const hosts = [this.#hosts.get(host)]
    if (host.length <= maxHostLength) {
      for (let dot = host.indexOf('.', 1); dot !== -1; dot = host.indexOf('.', dot + 1)) hosts.push(this.#suffixes.get(host.slice(dot)))
    }
    return [...hosts, this.#anyHost].flatMap((routes) => routes?.at(lookUpPath) ?? [])
  }

  #factsOf ({ method, headers, search }: RoutedRequest): RequestFacts {
    this.#facts.begin(method, headers, search)
    return this.#facts
  }

  #lacks ({ methods, route: { conditions } }: Entry, facts: RequestFacts): Missing | { why: 'method', name: null } | null {
    if (methods !== null && !methods.has(facts.method)) return { why: 'method', name: null }
    return conditions?.missing(facts) ?? null
  }
}

/** The routes of each host that any has, in their order. */
function byHost (routes: readonly CompiledRoute[]): Map<string, CompiledRoute[]> {
  const hosts = new Map<string, CompiledRoute[]>()
  for (const route of routes) {
    if (route.options.host === undefined) continue
    const host = withoutRoot(route.options.host.toLowerCase())
    const own = hosts.get(host)
    if (own === undefined) hosts.set(host, [route])
    else own.push(route)
  }
  return hosts
}

function isWithoutHead ({ methods, route }: Entry): boolean {
  return methods !== null && !methods.has('HEAD') && route.options.methods?.includes('GET') === true
}

function takesAll ({ conditions, options: { path, host, methods } }: CompiledRoute): boolean {
  return path === '/*' && host === undefined && methods === undefined && conditions === null
}
