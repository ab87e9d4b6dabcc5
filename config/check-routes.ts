import { METHODS } from 'node:http'
import { isIPv6 } from 'node:net'
import { repeated } from './check-server.ts'
import type { Report } from './checks.ts'
import { indexPath, keyPath } from './path.ts'
import { alwaysStartsWith, prefixProblem, routePathProblem, routeShape } from './route-path.ts'
import { nearest } from './suggest.ts'
import { given, listOf, objectOf, quoted } from './values.ts'

/** Never forwarded, so that a route for them would never match. */
const refusedMethods = new Set(['CONNECT', 'TRACE'])

const didYouMean = (name: string, known: readonly string[]): string => {
  const meant = nearest(name, known)
  return meant === null ? '' : `; did you mean ${JSON.stringify(meant)}?`
}

const checkMethods = (methods: unknown[], path: string, report: Report): void => {
  for (const [index, method] of methods.entries()) {
    if (typeof method !== 'string' || !/^[A-Z][A-Z-]*$/.test(method)) continue
    if (refusedMethods.has(method)) report(indexPath(path, index), `must be a method that is forwarded, which ${method} is not`)
    else if (!METHODS.includes(method)) report(indexPath(path, index), `must be a method that Node.js can parse, got ${given(method, '')}${didYouMean(method, METHODS)}`)
  }
  repeated(methods, path, report)
}

const isHostName = (host: string): boolean =>
  /^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$/.test(host) || (host.startsWith('[') && host.endsWith(']') && isIPv6(host.slice(1, -1)))

const checkPrefixes = (route: Record<string, unknown>, path: string, report: Report): void => {
  for (const key of ['stripPrefix', 'prefix']) {
    const prefix = route[key]
    if (typeof prefix !== 'string' || !prefix.startsWith('/') || prefix === '/') continue
    const problem = prefixProblem(prefix)
    const routePath = route['path']
    if (problem !== null) report(keyPath(path, key), `${problem}, got ${given(prefix, '')}`)
    else if (key === 'stripPrefix' && typeof routePath === 'string' && !alwaysStartsWith(routePath, prefix)) {
      report(keyPath(path, key), `must be whole segments that every path of ${given(routePath, '')} begins with, got ${given(prefix, '')}`)
    }
  }
}

const checkRoute = (route: Record<string, unknown>, path: string, pools: readonly string[], report: Report): void => {
  const { path: routePath, pool, host } = route
  if (typeof routePath === 'string' && routePath.startsWith('/')) {
    const problem = routePathProblem(routePath)
    if (problem !== null) report(keyPath(path, 'path'), `${problem}, got ${given(routePath, '')}`)
  }
  if (typeof pool === 'string' && pool !== '' && !pools.includes(pool)) {
    report(keyPath(path, 'pool'), `must name a pool (${pools.length === 0 ? 'there is none' : quoted(pools)}), got ${given(pool, '')}${didYouMean(pool, pools)}`)
  }
  if (typeof host === 'string' && host !== '' && !isHostName(host)) report(keyPath(path, 'host'), `must be a host name without port and wildcard, got ${given(host, '')}`)
  checkMethods(listOf(route['methods']), keyPath(path, 'methods'), report)
  checkPrefixes(route, path, report)
}

/** What a route matches; two routes with a key in common can never both be reached. */
const matchKeys = (route: Record<string, unknown>): string[] => {
  const { path, host, methods } = route
  if (typeof path !== 'string') return []
  const place = `${typeof host === 'string' ? host.toLowerCase() : ''} ${routeShape(path)}`
  // A route for some methods ranks before one for all, so that these two are different.
  return methods === undefined ? [`* ${place}`] : [...new Set(listOf(methods))].map(method => `${String(method)} ${place}`)
}

const checkConflicts = (routes: unknown[], report: Report): void => {
  const taken = new Map<string, number>()
  for (const [index, route] of routes.entries()) {
    const keys = matchKeys(objectOf(route))
    const earlier = keys.map(key => taken.get(key)).find(found => found !== undefined)
    if (earlier !== undefined) report(indexPath('routes', index), `matches the same requests as ${indexPath('routes', earlier)} (host, path and method)`)
    for (const key of keys) if (!taken.has(key)) taken.set(key, index)
  }
}

export const checkRoutes = (routes: unknown, pools: Record<string, unknown>, report: Report): void => {
  const names = Object.keys(pools)
  const list = listOf(routes)
  if (Array.isArray(routes) && list.length === 0 && names.length > 1) {
    report('routes', `must say which request goes to which pool, as there are several (${quoted(names)}); got none`)
  }
  for (const [index, route] of list.entries()) checkRoute(objectOf(route), indexPath('routes', index), names, report)
  checkConflicts(list, report)
}
