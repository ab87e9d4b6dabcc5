import findMyWay from 'find-my-way'
import type { RouteOptions } from '../../config/schema.ts'
import { hostOf } from '../http/target.ts'

/** What a route decided for one request. */
export interface RouteMatch {
  readonly route: RouteOptions
  /** Why this one: what it was matched by, most telling first. */
  readonly by: 'exact' | 'parameters' | 'prefix'
}

interface Entry extends RouteMatch {
  readonly methodAware: boolean
  readonly prefixLength: number
}

// The router keys handlers by method; here the method has been chosen before, so one stands for all.
const anyMethod = 'GET'

type Router = ReturnType<typeof findMyWay>

/** The routes of one host: those for every method, and those for single ones. */
class HostRoutes {
  readonly #any: Router = newRouter()
  readonly #byMethod = new Map<string, Router>()

  add (route: RouteOptions): void {
    for (const router of this.#routersOf(route)) router.on(anyMethod, route.path, noop, entryOf(route))
  }

  /** "/api/*" matches "/api" too, unless that has a route of its own. Called when all routes have been added. */
  addBareForms (route: RouteOptions): void {
    if (!route.path.endsWith('/*') || route.path === '/*') return
    for (const router of this.#routersOf(route)) {
      const bare = route.path.slice(0, -2)
      if (router.findRoute(anyMethod, bare) === null) router.on(anyMethod, bare, noop, entryOf(route))
    }
  }

  #routersOf (route: RouteOptions): Router[] {
    if (route.methods === undefined) return [this.#any]
    return route.methods.map((method) => {
      const router = this.#byMethod.get(method) ?? newRouter()
      this.#byMethod.set(method, router)
      return router
    })
  }

  match (method: string, path: string): Entry | null {
    const ofMethod = this.#byMethod.get(method)
    const aware = ofMethod === undefined ? null : lookUp(ofMethod, path)
    const general = lookUp(this.#any, path)
    if (aware === null || general === null) return aware ?? general
    return outranks(aware, general) ? aware : general
  }
}

// The longest parameter is as long as the longest head may be configured to be: length is not what a route is chosen by.
function newRouter (): Router {
  return findMyWay({ caseSensitive: true, ignoreTrailingSlash: false, ignoreDuplicateSlashes: false, maxParamLength: 1048576 })
}

function entryOf (route: RouteOptions): Entry {
  const by = route.path.endsWith('/*') ? 'prefix' : route.path.includes('/:') ? 'parameters' : 'exact'
  return Object.freeze({ route, by, methodAware: route.methods !== undefined, prefixLength: route.path.length })
}

function lookUp (router: Router, path: string): Entry | null {
  return (router.find(anyMethod, path)?.store as Entry | undefined) ?? null
}

/** Exact before method-aware before longest prefix. */
function outranks (a: Entry, b: Entry): boolean {
  if ((a.by === 'exact') !== (b.by === 'exact')) return a.by === 'exact'
  if (a.methodAware !== b.methodAware) return a.methodAware
  return a.prefixLength > b.prefixLength
}

function noop (): void {}

/** "shop.example." is "shop.example", spelt out up to the root of all names. */
function withoutRoot (host: string): string {
  return host.endsWith('.') ? host.slice(0, -1) : host
}

/**
 * Finds the route of a request. A route for its host ranks before every route for all hosts; then exact before method-aware
 * before longest prefix. Throws what find-my-way throws where two routes are the same.
 */
export class RouteTable {
  readonly routes: readonly RouteOptions[]
  readonly #hosts = new Map<string, HostRoutes>()
  readonly #anyHost = new HostRoutes()
  readonly #only: RouteMatch | null

  constructor (routes: readonly RouteOptions[]) {
    this.routes = routes
    for (const route of routes) this.#routesOf(route.host).add(route)
    for (const route of routes) this.#routesOf(route.host).addBareForms(route)
    const [first] = routes
    const takesAll = routes.length === 1 && first !== undefined && first.path === '/*' && first.host === undefined && first.methods === undefined
    this.#only = takesAll ? Object.freeze({ route: first, by: 'prefix' as const }) : null
  }

  /**
   * @param authority host and port as the request names them
   * @param path the path as it came, without the query
   */
  match (method: string, authority: string, path: string): RouteMatch | null {
    if (this.#only !== null) return this.#only
    const lookUpPath = path === '*' ? '/' : path
    const ofHost = this.#hosts.size === 0 ? undefined : this.#hosts.get(withoutRoot(hostOf(authority)))
    return ofHost?.match(method, lookUpPath) ?? this.#anyHost.match(method, lookUpPath)
  }

  #routesOf (host: string | undefined): HostRoutes {
    if (host === undefined) return this.#anyHost
    const key = withoutRoot(host.toLowerCase())
    const routes = this.#hosts.get(key) ?? new HostRoutes()
    this.#hosts.set(key, routes)
    return routes
  }
}
