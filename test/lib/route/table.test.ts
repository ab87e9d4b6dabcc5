import { equal, ok, throws } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { RouteOptions } from '../../../config/schema.ts'
import { RouteTable } from '../../../lib/route/table.ts'

/** Routes as `[METHOD,METHOD] [host]/path`; each goes to a pool that is named like its text. */
function route (text: string): RouteOptions {
  const [, methods, host, path] = /^(?:([A-Z,]+) )?([^/]*)(\/.*)$/.exec(text) ?? []
  return { path: path as string, pool: text, ...methods !== undefined && { methods: methods.split(',') }, ...host !== '' && { host: host as string } }
}

function tableOf (...texts: string[]): RouteTable {
  return new RouteTable(texts.map(route))
}

function find (table: RouteTable, text: string): string | null {
  const [, method = 'GET', host, path] = /^(?:([A-Z]+) )?([^/*]*)(.*)$/.exec(text) ?? []
  return table.match(method, host as string, path as string)?.route.pool ?? null
}

/** Routes, then requests with the route that must take them. */
const cases: [string, string[], [string, string | null][]][] = [
  ['one catch-all takes all', ['/*'], [['/', '/*'], ['/a/b', '/*'], ['*', '/*'], ['/%ff', '/*'], ['DELETE any.example:80/x', '/*']]],
  ['an exact path takes that path only', ['/status'], [['/status', '/status'], ['/status/', null], ['/Status', null], ['/statusx', null], ['/', null], ['//status', null]]],
  ['a prefix takes all below and itself', ['/api/*'], [['/api/x', '/api/*'], ['/api/x/y', '/api/*'], ['/api/', '/api/*'], ['/api', '/api/*'], ['/apiary', null], ['/API/x', null], ['/x/api/y', null]]],
  ['a parameter takes one segment', ['/users/:id'], [['/users/7', '/users/:id'], ['/users/a%2Fb', '/users/:id'], ['/users/a;b', '/users/:id'], ['/users', null], ['/users/7/x', null]]],
  ['a prefix with a parameter takes its bare form too', ['/users/:id/*'], [['/users/7', '/users/:id/*'], ['/users/7/x/y', '/users/:id/*'], ['/users', null]]],
  ['exact before prefix', ['/*', '/api/*', '/api/status'], [['/api/status', '/api/status'], ['/api/x', '/api/*'], ['/x', '/*']]],
  ['the longest prefix', ['/*', '/a/*', '/a/b/*'], [['/a/b/c', '/a/b/*'], ['/a/b', '/a/b/*'], ['/a/bc', '/a/*'], ['/a', '/a/*'], ['/b', '/*']]],
  ['a parameter before a prefix', ['/users/*', '/users/:id'], [['/users/7', '/users/:id'], ['/users/7/x', '/users/*'], ['/users', '/users/*']]],
  ['an exact path before a parameter', ['/users/:id', '/users/me'], [['/users/me', '/users/me'], ['/users/you', '/users/:id']]],
  ['a route of its own for the bare form of a prefix', ['/api/*', '/api'], [['/api', '/api'], ['/api/', '/api/*']]],
  ['a bare form that a parameter route takes already', ['/users/:id/*', '/users/:name'], [['/users/7', '/users/:name'], ['/users/7/x', '/users/:id/*']]],
  ['a method', ['GET,HEAD /a', 'POST /a'], [['GET /a', 'GET,HEAD /a'], ['HEAD /a', 'GET,HEAD /a'], ['POST /a', 'POST /a'], ['PUT /a', null]]],
  ['method-aware before general', ['/a/*', 'POST /*'], [['POST /a/b', 'POST /*'], ['GET /a/b', '/a/*']]],
  ['but exact before method-aware', ['/a/b', 'POST /a/*'], [['POST /a/b', '/a/b'], ['POST /a/c', 'POST /a/*'], ['POST /a', 'POST /a/*']]],
  ['method-aware and exact before all', ['/a', 'POST /a', 'POST /*'], [['POST /a', 'POST /a'], ['GET /a', '/a'], ['POST /b', 'POST /*']]],
  ['a method\'s prefix falls back to the general one', ['/*', 'POST /a/*'], [['POST /a/x', 'POST /a/*'], ['POST /b', '/*'], ['GET /a/x', '/*']]],
  ['a host before the path', ['/a', 'shop.example/*'], [['shop.example/a', 'shop.example/*'], ['shop.example./a', 'shop.example/*'], ['shop.example.:80/a', 'shop.example/*'], ['other.example/a', '/a'], ['/a', '/a']]],
  ['a host without port and in any case', ['Shop.Example/*', '[::1]/*'], [['SHOP.example:8443/x', 'Shop.Example/*'], ['[::1]:80/x', '[::1]/*'], ['shop.example.evil/x', null], ['xshop.example/x', null]]],
  ['a host without a matching path falls back to all hosts', ['shop.example/only', '/*'], [['shop.example/only', 'shop.example/only'], ['shop.example/x', '/*']]],
  ['a host with a method', ['POST shop.example/*', 'shop.example/*'], [['POST shop.example/x', 'POST shop.example/*'], ['GET shop.example/x', 'shop.example/*']]],
  ['OPTIONS * goes where / goes', ['/*', '/api/*'], [['OPTIONS *', '/*']]],
  ['OPTIONS * without a route for /', ['/api/*'], [['OPTIONS *', null]]],
  ['an escaped letter counts as the letter', ['/api/*', '/*'], [['/%61pi/x', '/api/*'], ['/a%70i', '/api/*'], ['/api%2Fx', '/*']]],
  ['empty segments count', ['/a/*', '/*'], [['//a/b', '/*'], ['/a//b', '/a/*']]],
  ['nothing', [], [['/', null], ['*', null]]]
]

describe('route table', () => {
  for (const [name, routes, requests] of cases) {
    it(name, () => {
      // The order in which routes are written never matters.
      for (const table of [tableOf(...routes), tableOf(...routes.toReversed())]) {
        for (const [request, expected] of requests) equal(find(table, request), expected, request)
      }
    })
  }

  it('says by what it matched', () => {
    const table = tableOf('/status', '/users/:id', '/api/*')
    const by = (path: string) => table.match('GET', '', path)?.by
    equal(by('/status'), 'exact')
    equal(by('/users/7'), 'parameters')
    equal(by('/api/x'), 'prefix')
    equal(by('/api'), 'prefix')
    equal(tableOf('/*').match('GET', '', '/')?.by, 'prefix')
  })

  it('chooses by the text of a path, not by its length', () => {
    const table = tableOf('/users/:id', '/*')
    equal(find(table, `/users/${'x'.repeat(60000)}`), '/users/:id')
  })

  it('throws for two routes of one shape, host and method', () => {
    throws(() => tableOf('/a', '/a'), /already declared/)
    throws(() => tableOf('/users/:id', '/users/:name'), /already declared/)
    throws(() => tableOf('a.example/x', 'A.EXAMPLE/x'), /already declared/)
    throws(() => tableOf('GET,POST /a', 'POST /a'), /already declared/)
    ok(tableOf('/a', 'POST /a', 'a.example/a'))
  })

  it('has the routes as they were given', () => {
    const routes = [route('/b'), route('/a')]
    equal(new RouteTable(routes).routes, routes)
  })
})

describe('route table: model', () => {
  const segments = ['a', 'b', 'c']
  const path = fc.array(fc.constantFrom(...segments), { minLength: 1, maxLength: 3 }).map((parts) => `/${parts.join('/')}`)
  const routePath = fc.oneof(path, path.map((each) => `${each}/*`), fc.constant('/*'))
  const routes = fc.uniqueArray(fc.tuple(fc.constantFrom('', 'GET ', 'POST '), routePath).map(([method, each]) => method + each), { maxLength: 8 })

  /** DESIGN's order, said plainly: exact, then method-aware, then the longest prefix. */
  function expected (texts: string[], method: string, wanted: string): string | null {
    const candidates = texts.map(route).filter((each) => each.methods === undefined || each.methods.includes(method)).filter((each) =>
      each.path === wanted || (each.path.endsWith('/*') && (wanted.startsWith(each.path.slice(0, -1)) || wanted === each.path.slice(0, -2))))
    const rank = (each: RouteOptions) => [each.path === wanted ? 1 : 0, each.methods === undefined ? 0 : 1, each.path.length]
    const [best] = candidates.toSorted((a, b) => rank(b).map((value, i) => value - rank(a)[i]!).find((difference) => difference !== 0) ?? 0)
    return best?.pool ?? null
  }

  it('finds what the rule says, for any routes and requests', () => {
    fc.assert(fc.property(routes, fc.constantFrom('GET', 'POST', 'PUT'), path, (texts, method, wanted) => {
      equal(find(tableOf(...texts), `${method} ${wanted}`), expected(texts, method, wanted), `${method} ${wanted} of ${texts.join(' | ')}`)
    }), { numRuns: 2000 })
  })
})
