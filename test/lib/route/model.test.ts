/** The table against a matcher that is too simple to be wrong, over random routes and requests. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { RouteOptions } from '../../../config/schema.ts'
import { RouteTable, type RoutedRequest } from '../../../lib/route/table.ts'

const segment = fc.constantFrom('a', 'b', 'ab')
const routePath = fc.oneof(
  fc.constantFrom('/', '/*'),
  fc.tuple(fc.array(fc.oneof(segment, fc.constantFrom(':x', ':y')), { minLength: 1, maxLength: 3 }), fc.boolean())
    .filter(([segments]) => new Set(segments.filter((each) => each.startsWith(':'))).size === segments.filter((each) => each.startsWith(':')).length)
    .map(([segments, prefix]) => `/${segments.join('/')}${prefix ? '/*' : ''}`))
const conditions = fc.dictionary(fc.constantFrom('v', 'w'), fc.constantFrom('1', '2', '*'), { maxKeys: 2, noNullPrototype: true })

const routeOptions: fc.Arbitrary<RouteOptions> = fc.record({
  path: routePath,
  pool: fc.constant('pool'),
  host: fc.constantFrom('x.example', '*.example', '*.x.example'),
  methods: fc.uniqueArray(fc.constantFrom('GET', 'HEAD', 'POST'), { minLength: 1, maxLength: 2 }),
  headers: conditions,
  query: conditions
}, { requiredKeys: ['path', 'pool'] })

const requests: fc.Arbitrary<RoutedRequest> = fc.record({
  method: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT'),
  authority: fc.constantFrom('', 'x.example', 'y.x.example', 'y.example:80', 'other'),
  path: fc.array(fc.oneof(segment, fc.constantFrom('', 'c')), { maxLength: 4 }).map((segments) => `/${segments.join('/')}`),
  search: fc.constantFrom('', '?v=1', '?v=2&w=1', '?w=2'),
  headers: fc.dictionary(fc.constantFrom('v', 'w'), fc.constantFrom('1', '2'), { noNullPrototype: true })
})

const isPrefix = (path: string): boolean => path.endsWith('/*')
const isExact = (path: string): boolean => !isPrefix(path) && !path.includes(':')

function hostFits (host: string | undefined, authority: string): boolean {
  const asked = authority.replace(/:\d+$/, '')
  return host === undefined || (host.startsWith('*') ? asked.endsWith(host.slice(1)) && asked.length > host.length - 1 : asked === host)
}

function pathFits (path: string, asked: string): boolean {
  const [one, other] = [path.split('/'), asked.split('/')]
  const fixed = isPrefix(path) ? one.slice(0, -1) : one
  const same = fixed.every((part, i) => other[i] !== undefined && (part.startsWith(':') || part === other[i]))
  return same && (isPrefix(path) || one.length === other.length)
}

const holds = (wanted: Record<string, string> = {}, has: (name: string) => string | undefined): boolean =>
  Object.entries(wanted).every(([name, value]) => value === '*' ? has(name) !== undefined : has(name) === value)

function fits (route: RouteOptions, { authority, path, search, headers }: RoutedRequest): boolean {
  const query = new URLSearchParams(search)
  return hostFits(route.host, authority) && pathFits(route.path, path) && holds(route.headers, (name) => headers[name] as string | undefined) &&
    holds(route.query, (name) => query.get(name) ?? undefined)
}

const takes = ({ methods }: RouteOptions, method: string): boolean => methods === undefined || methods.includes(method) || (method === 'HEAD' && methods.includes('GET'))

/** The order of the rules, said plainly: the smaller list goes first. */
function rank (route: RouteOptions, index: number, method: string): (number | string)[] {
  const { path, host, methods, headers = {}, query = {} } = route
  const values = [...Object.values(headers), ...Object.values(query)]
  return [
    host === undefined ? 0 : host.startsWith('*') ? -host.length : -100,
    isExact(path) ? 0 : 1,
    methods === undefined ? 1 : 0,
    // Segment by segment: a text, a parameter, the rest; and the end before all of them.
    path.split('/').map((part) => part === '*' ? 3 : part.startsWith(':') ? 2 : 1).join(''),
    -values.length,
    -values.filter((value) => value !== '*').length,
    methods !== undefined && !methods.includes(method) ? 1 : 0,
    index
  ]
}

function naive (routes: readonly RouteOptions[], asked: RoutedRequest): number | null {
  const candidates = routes.map((options, index) => ({ options, index })).filter(({ options }) => fits(options, asked) && takes(options, asked.method))
  const ranked = candidates.map(({ options, index }) => ({ index, rank: rank(options, index, asked.method) }))
  ranked.sort((a, b) => {
    const at = a.rank.findIndex((value, i) => value !== b.rank[i])
    return at === -1 ? 0 : a.rank[at]! < b.rank[at]! ? -1 : 1
  })
  return ranked[0]?.index ?? null
}

describe('route table: model', () => {
  const several = fc.array(routeOptions, { maxLength: 12 })

  it('finds what the rules say, for any routes and requests', () => {
    fc.assert(fc.property(several, fc.array(requests, { minLength: 1, maxLength: 10 }), (routes, list) => {
      const table = new RouteTable(routes)
      for (const asked of list) {
        const { method, authority, path, search, headers } = asked
        const found = table.match(method, authority, path, search, headers)?.route.index ?? null
        equal(found, naive(routes, asked), JSON.stringify({ routes, asked }))
      }
    }), { numRuns: 3000 })
  })

  it('explains as it finds, and says what of each route that was passed over did not hold', () => {
    fc.assert(fc.property(several, requests, (routes, asked) => {
      const table = new RouteTable(routes)
      const { match, passedOver } = table.explain(asked)
      equal(match?.route.index ?? null, naive(routes, asked))
      const candidates = routes.filter((options) => hostFits(options.host, asked.authority) && pathFits(options.path, asked.path))
      for (const { route: { options }, why } of passedOver) {
        ok(candidates.includes(options))
        equal(why === 'method', !takes(options, asked.method))
        equal(fits(options, asked) && takes(options, asked.method), false)
      }
      if (match === null) equal(passedOver.length, candidates.length)
    }), { numRuns: 2000 })
  })

  it('allows the methods of the routes that would take the request with another one', () => {
    fc.assert(fc.property(several, requests, (routes, asked) => {
      if (naive(routes, asked) !== null) return
      const methods = new Set(routes.filter((options) => fits(options, asked)).flatMap(({ methods: own = [] }) => own.includes('GET') ? [...own, 'HEAD'] : own))
      deepEqual(new RouteTable(routes).allowed(asked), [...methods].toSorted())
    }), { numRuns: 2000 })
  })

  it('lists its routes in the order in which they are taken', () => {
    fc.assert(fc.property(several, fc.constantFrom('GET', 'POST', 'PUT'), requests, (routes, method, request) => {
      const table = new RouteTable(routes)
      const asked = { ...request, method }
      const first = table.routes.find(({ options }) => fits(options, asked) && takes(options, method))
      equal(first?.index ?? null, naive(routes, asked))
    }), { numRuns: 2000 })
  })

  it('keeps nothing of one request for the next', () => {
    const table = new RouteTable([{ path: '/a', pool: 'x', headers: { v: '1' } }, { path: '/a', pool: 'y', query: { w: '1' } }])
    equal(table.match('GET', '', '/a', '?w=1', { v: '1' })?.route.options.pool, 'x')
    equal(table.match('GET', '', '/a', '', {}), null)
    equal(table.match('GET', '', '/a', '?w=1', {})?.route.options.pool, 'y')
    equal(table.match('GET', '', '/a', '?w=2', {}), null)
  })
})
