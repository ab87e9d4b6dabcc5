import { METHODS } from 'node:http'
import { isIPv6 } from 'node:net'
import { checkChanges, checkWantedFields, fieldNames, type FieldNames } from './check-route-fields.ts'
import { checkTarget, didYouMean, poolsOfRoute, type PoolNames } from './check-route-target.ts'
import { repeated } from './check-server.ts'
import type { Report } from './checks.ts'
import { indexPath, keyPath } from './path.ts'
import { alwaysStartsWith, prefixProblem, rewriteProblem, routePathProblem, routeShape } from './route-path.ts'
import { given, listOf, objectOf, quoted } from './values.ts'

/** Never forwarded, so that a route for them would never match. */
const refusedMethods = new Set(['CONNECT', 'TRACE', 'SOURCE'])

const checkMethods = (methods: unknown[], path: string, report: Report): void => {
  for (const [index, method] of methods.entries()) {
    if (typeof method !== 'string' || !/^[A-Z][A-Z-]*$/.test(method)) continue
    if (refusedMethods.has(method)) report(indexPath(path, index), `must be a method that is forwarded, which ${method} is not`)
    else if (!METHODS.includes(method)) report(indexPath(path, index), `must be a method that Node.js can parse, got ${given(method, '')}${didYouMean(method, METHODS)}`)
  }
  repeated(methods, path, report)
}

const isHostName = (host: string): boolean =>
  /^(?:\*\.)?[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$/.test(host) || (host.startsWith('[') && host.endsWith(']') && isIPv6(host.slice(1, -1)))

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

const checkRewrite = (route: Record<string, unknown>, path: string, report: Report): void => {
  const { path: routePath, rewrite } = route
  if (rewrite === undefined) return
  for (const key of ['stripPrefix', 'prefix']) if (route[key] !== undefined) report(keyPath(path, 'rewrite'), `must not stand beside ${key}, as it makes the whole path`)
  if (typeof rewrite !== 'string' || !rewrite.startsWith('/') || typeof routePath !== 'string' || routePathProblem(routePath) !== null) return
  const problem = rewriteProblem(rewrite, routePath)
  if (problem !== null) report(keyPath(path, 'rewrite'), `${problem}, got ${given(rewrite, '')}`)
}

/** Fields that the pools of a route write themselves. */
const fieldsOfPools = (route: Record<string, unknown>, pools: Record<string, unknown>): Map<string, string> => new Map(poolsOfRoute(route).flatMap((name): [string, string][] => {
  const { deadlineHeader } = objectOf(pools[name])
  return typeof deadlineHeader === 'string' ? [[deadlineHeader.toLowerCase(), `${keyPath('pools', name)}.deadlineHeader`]] : []
}))

const checkFields = (route: Record<string, unknown>, path: string, pools: Record<string, unknown>, names: FieldNames, report: Report): void => {
  checkWantedFields(objectOf(route['headers']), keyPath(path, 'headers'), names, report)
  checkChanges(objectOf(route['requestHeaders']), keyPath(path, 'requestHeaders'), names, fieldsOfPools(route, pools), report)
  checkChanges(objectOf(route['responseHeaders']), keyPath(path, 'responseHeaders'), names, new Map(), report)
}

const checkPlace = (route: Record<string, unknown>, path: string, report: Report): void => {
  const { path: routePath, host } = route
  if (typeof routePath === 'string' && routePath.startsWith('/')) {
    const problem = routePathProblem(routePath)
    if (problem !== null) report(keyPath(path, 'path'), `${problem}, got ${given(routePath, '')}`)
  }
  if (typeof host === 'string' && host !== '' && !isHostName(host)) {
    report(keyPath(path, 'host'), `must be a host name without port, or "*." and a name for all hosts below it, got ${given(host, '')}`)
  }
  checkMethods(listOf(route['methods']), keyPath(path, 'methods'), report)
}

const probePaths = ['/livez', '/readyz']
const answeredByProbes = new Set<unknown>(['GET', 'HEAD'])

/** The probes are routes of their own, which the listener knows before ours. */
const checkProbes = ({ path: routePath, methods }: Record<string, unknown>, path: string, report: Report): void => {
  const own = listOf(methods)
  if (typeof routePath === 'string' && probePaths.includes(routePath) && own.length > 0 && own.every(method => answeredByProbes.has(method))) {
    report(path, `is never reached: with server.probes the proxy itself answers ${quoted([routePath])}`)
  }
}

const conditionsOf = (wanted: unknown, nameOf: (name: string) => string): [string, unknown][] =>
  Object.entries(objectOf(wanted)).map(([name, value]): [string, unknown] => [nameOf(name), value]).toSorted(([a], [b]) => a < b ? -1 : 1)

/**
 * What a route matches; of two routes with a key in common the later one would never be reached by it. Of any two others each has
 * requests of its own: whatever is more specific ranks first.
 */
const matchKeys = (route: Record<string, unknown>): string[] => {
  const { path, host, methods, headers, query } = route
  if (typeof path !== 'string') return []
  const place = JSON.stringify([
    typeof host === 'string' ? host.toLowerCase() : '', routeShape(path), conditionsOf(headers, name => name.toLowerCase()), conditionsOf(query, name => name)
  ])
  // A route for some methods ranks before one for all, and HEAD by its name before the HEAD of GET, so that these are different.
  return methods === undefined ? [`* ${place}`] : [...new Set(listOf(methods))].map(method => `${String(method)} ${place}`)
}

const checkConflicts = (routes: unknown[], report: Report): void => {
  const taken = new Map<string, number>()
  for (const [index, route] of routes.entries()) {
    const keys = matchKeys(objectOf(route))
    const earlier = keys.map(key => taken.get(key)).find(found => found !== undefined)
    if (earlier !== undefined) report(indexPath('routes', index), `matches the same requests as ${indexPath('routes', earlier)} (host, path, method, headers and query)`)
    for (const key of keys) if (!taken.has(key)) taken.set(key, index)
  }
}

/** @param pools null where they are not known: then only what the routes say by themselves is judged */
export const checkRoutes = (routes: unknown, pools: Record<string, unknown> | null, report: Report, server: Record<string, unknown> = {}): void => {
  const poolNames: PoolNames = pools === null ? null : Object.keys(pools)
  const list = listOf(routes)
  if (Array.isArray(routes) && list.length === 0 && poolNames !== null && poolNames.length > 1) {
    report('routes', `must say which request goes to which pool, as there are several (${quoted(poolNames)}); got none`)
  }
  const names = fieldNames(server)
  for (const [index, each] of list.entries()) {
    const [route, path] = [objectOf(each), indexPath('routes', index)]
    checkPlace(route, path, report)
    checkTarget(route, path, poolNames, names, report)
    checkPrefixes(route, path, report)
    checkRewrite(route, path, report)
    checkFields(route, path, pools ?? {}, names, report)
    if (server['probes'] === true) checkProbes(route, path, report)
  }
  checkConflicts(list, report)
}
