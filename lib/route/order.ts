import type { RouteOptions } from '../../config/schema.ts'
import type { CompiledRoute } from './compiled.ts'

/** By which rule a route was the one, in the order of the rules: its exact path, its methods, its parameters, its prefix; `/*` is the default. */
export type MatchedBy = 'exact' | 'method' | 'parameters' | 'prefix' | 'default'

/** The path of a route without the names of its parameters: two routes of one shape match the same paths. */
export const shapeOf = (path: string): string => path.replaceAll(/:[^/]+/g, ':')

export function matchedBy ({ path, methods }: RouteOptions): MatchedBy {
  if (isExact(path)) return 'exact'
  if (methods !== undefined) return 'method'
  if (path === '/*') return 'default'
  return path.endsWith('/*') ? 'prefix' : 'parameters'
}

const isExact = (path: string): boolean => !path.endsWith('/*') && !path.includes('/:')

/** Exact and method-aware, exact, method-aware, neither: a lower tier goes first, wherever in the tree its path is. */
export function tierOf ({ path, methods }: RouteOptions): number {
  return (isExact(path) ? 0 : 2) + (methods === undefined ? 1 : 0)
}

/** The methods that a route takes: GET brings HEAD, as in every server. Null: all. */
export function methodsOf ({ methods }: RouteOptions): ReadonlySet<string> | null {
  if (methods === undefined) return null
  return new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods)
}

const compare = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0

/** Of a segment at one place: a text before a parameter, a parameter before the rest. */
const kindOf = (segment: string): number => segment === '*' ? 2 : segment === ':' ? 1 : 0

/** The order in which the tree tries paths: segment by segment, and a path before those that go on behind it. */
function comparePaths (a: string, b: string): number {
  const [one, other] = [shapeOf(a).split('/'), shapeOf(b).split('/')]
  for (let i = 1; i < one.length && i < other.length; i++) {
    const [segment, against] = [one[i] as string, other[i] as string]
    const difference = kindOf(segment) - kindOf(against) || compare(segment, against)
    if (difference !== 0) return difference
  }
  return one.length - other.length
}

/** What a route asks for beside its path: the one that asks for more is tried first; where that is equal, the configuration's order. */
export function compareConditions (a: CompiledRoute, b: CompiledRoute): number {
  return (b.conditions?.count ?? 0) - (a.conditions?.count ?? 0) || (b.conditions?.exactCount ?? 0) - (a.conditions?.exactCount ?? 0)
}

/** A host, then a suffix of hosts, the longest first, then no host. */
function compareHosts (a: string | undefined, b: string | undefined): number {
  const kind = (host: string | undefined): number => host === undefined ? 2 : host.startsWith('*.') ? 1 : 0
  const [one = '', other = ''] = [a?.toLowerCase(), b?.toLowerCase()]
  return kind(a) - kind(b) || (kind(a) === 1 ? other.length - one.length : 0) || compare(one, other)
}

/** The matching order of a whole table: of two routes that both match a request, the first one is taken. */
export function compareRoutes (a: CompiledRoute, b: CompiledRoute): number {
  return compareHosts(a.options.host, b.options.host) || tierOf(a.options) - tierOf(b.options) || comparePaths(a.options.path, b.options.path) ||
    compareConditions(a, b) || a.index - b.index
}
