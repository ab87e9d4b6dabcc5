import { deepEqual, equal } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RouteTable } from '../../../lib/route/table.ts'
import { request, route } from './fixtures.ts'

function tableOf (...texts: string[]): RouteTable {
  return new RouteTable(texts.map(route))
}

function find (table: RouteTable, text: string): string | null {
  const { method, authority, path, search, headers } = request(text)
  return table.match(method, authority, path, search, headers)?.route.options.pool ?? null
}

/** Routes, then requests with the route that must take them. */
const cases: [string, string[], [string, string | null][]][] = [
  ['one catch-all takes all', ['/*'], [['/', '/*'], ['/a/b', '/*'], ['*', '/*'], ['/%ff', '/*'], ['DELETE any.example:80/x', '/*']]],
  ['an exact path takes that path only', ['/status'], [['/status', '/status'], ['/status/', null], ['/Status', null], ['/statusx', null], ['/', null], ['//status', null]]],
  ['a prefix takes all below and itself', ['/api/*'], [['/api/x', '/api/*'], ['/api/x/y', '/api/*'], ['/api/', '/api/*'], ['/api', '/api/*'], ['/apiary', null], ['/API/x', null], ['/x/api/y', null]]],
  ['a parameter takes one segment', ['/users/:id'], [['/users/7', '/users/:id'], ['/users/a%2Fb', '/users/:id'], ['/users/a;b', '/users/:id'], ['/users/', '/users/:id'], ['/users', null], ['/users/7/x', null]]],
  ['a prefix with a parameter takes its bare form too', ['/users/:id/*'], [['/users/7', '/users/:id/*'], ['/users/7/x/y', '/users/:id/*'], ['/users', null]]],
  ['exact before prefix', ['/*', '/api/*', '/api/status'], [['/api/status', '/api/status'], ['/api/x', '/api/*'], ['/x', '/*']]],
  ['the longest prefix', ['/*', '/a/*', '/a/b/*'], [['/a/b/c', '/a/b/*'], ['/a/b', '/a/b/*'], ['/a/bc', '/a/*'], ['/a', '/a/*'], ['/b', '/*']]],
  ['a parameter before a prefix', ['/users/*', '/users/:id'], [['/users/7', '/users/:id'], ['/users/7/x', '/users/*'], ['/users', '/users/*']]],
  ['an exact path before a parameter', ['/users/:id', '/users/me'], [['/users/me', '/users/me'], ['/users/mean', '/users/:id'], ['/users/you', '/users/:id']]],
  ['parameters of other names', ['/:a/x/*', '/:b/y', '/:c'], [['/1/x/2', '/:a/x/*'], ['/1/x', '/:a/x/*'], ['/1/y', '/:b/y'], ['/1', '/:c'], ['/1/z', null]]],
  ['a route of its own for the bare form of a prefix', ['/api/*', '/api'], [['/api', '/api'], ['/api/', '/api/*']]],
  ['a bare form that a parameter route takes already', ['/users/:id/*', '/users/:name'], [['/users/7', '/users/:name'], ['/users/7/x', '/users/:id/*']]],
  ['a method', ['GET,HEAD /a', 'POST /a'], [['GET /a', 'GET,HEAD /a'], ['HEAD /a', 'GET,HEAD /a'], ['POST /a', 'POST /a'], ['PUT /a', null]]],
  ['GET brings HEAD, and neither brings OPTIONS', ['GET /a', '/*'], [['HEAD /a', 'GET /a'], ['OPTIONS /a', '/*']]],
  ['HEAD by its name before HEAD for the sake of GET', ['GET /a', 'HEAD /a', 'GET /b/*', 'HEAD /*'], [['HEAD /a', 'HEAD /a'], ['GET /a', 'GET /a'], ['HEAD /b/x', 'GET /b/*'], ['HEAD /c', 'HEAD /*'], ['GET /c', null]]],
  ['method-aware before general', ['/a/*', 'POST /*'], [['POST /a/b', 'POST /*'], ['GET /a/b', '/a/*']]],
  ['but exact before method-aware', ['/a/b', 'POST /a/*'], [['POST /a/b', '/a/b'], ['POST /a/c', 'POST /a/*'], ['POST /a', 'POST /a/*']]],
  ['method-aware and exact before all', ['/a', 'POST /a', 'POST /*'], [['POST /a', 'POST /a'], ['GET /a', '/a'], ['POST /b', 'POST /*']]],
  ['a method\'s prefix falls back to the general one', ['/*', 'POST /a/*'], [['POST /a/x', 'POST /a/*'], ['POST /b', '/*'], ['GET /a/x', '/*']]],
  ['the longest prefix of a method', ['POST /*', 'POST /a/*', '/a/b/*'], [['POST /a/b/c', 'POST /a/*'], ['POST /c', 'POST /*'], ['GET /a/b/c', '/a/b/*']]],
  ['a host before the path', ['/a', 'shop.example/*'], [['shop.example/a', 'shop.example/*'], ['shop.example./a', 'shop.example/*'], ['shop.example.:80/a', 'shop.example/*'], ['other.example/a', '/a'], ['/a', '/a']]],
  ['a host without port and in any case', ['Shop.Example/*', '[::1]/*'], [['SHOP.example:8443/x', 'Shop.Example/*'], ['[::1]:80/x', '[::1]/*'], ['shop.example.evil/x', null], ['xshop.example/x', null]]],
  ['a host without a matching path falls back to all hosts', ['shop.example/only', '/*'], [['shop.example/only', 'shop.example/only'], ['shop.example/x', '/*']]],
  ['a host with a method', ['POST shop.example/*', 'shop.example/*'], [['POST shop.example/x', 'POST shop.example/*'], ['GET shop.example/x', 'shop.example/*']]],
  ['a suffix of hosts, the longest one', ['*.example/*', '*.shop.example/*', 'a.shop.example/*', '/*'], [
    ['a.shop.example/x', 'a.shop.example/*'], ['b.shop.example/x', '*.shop.example/*'], ['a.b.SHOP.example.:80/x', '*.shop.example/*'], ['shop.example/x', '*.example/*'],
    ['example/x', '/*'], ['notexample/x', '/*'], ['.example/x', '/*'], ['/x', '/*'], [`${'a.'.repeat(5000)}example/x`, '/*']
  ]],
  ['a host, its suffixes and all hosts, until a path matches', ['a.b.example/1', '*.b.example/2', '*.example/3', '/4'], [
    ['a.b.example/1', 'a.b.example/1'], ['a.b.example/2', '*.b.example/2'], ['a.b.example/3', '*.example/3'], ['a.b.example/4', '/4'], ['a.b.example/5', null], ['b.example/2', null]
  ]],
  ['OPTIONS * goes where / goes', ['/*', '/api/*'], [['OPTIONS *', '/*']]],
  ['OPTIONS * without a route for /', ['/api/*'], [['OPTIONS *', null]]],
  ['an escaped letter counts as the letter', ['/api/*', '/*'], [['/%61pi/x', '/api/*'], ['/a%70i', '/api/*'], ['/api%2Fx', '/*']]],
  ['empty segments count', ['/a/*', '/*'], [['//a/b', '/*'], ['/a//b', '/a/*']]],
  ['a header field with its value', ['/a x-v:2', '/a'], [['/a x-v:2', '/a x-v:2'], ['/a x-v:1', '/a'], ['/a x-v:', '/a'], ['/a', '/a'], ['/a x-w:2', '/a']]],
  ['a header field with any value', ['/* X-Debug:*'], [['/a x-debug:1', '/* X-Debug:*'], ['/a x-debug:', '/* X-Debug:*'], ['/a', null]]],
  ['a name that every object has is no field', ['/* constructor:*'], [['/', null]]],
  ['a query parameter', ['/a?v=2', '/a'], [['/a?v=2', '/a?v=2'], ['/a?x&v=2&v=3', '/a?v=2'], ['/a?v=3&v=2', '/a'], ['/a?v=%32', '/a?v=2'], ['/a?%76=2', '/a?v=2'], ['/a', '/a'], ['/a?', '/a'], ['/a?V=2', '/a'], ['/a?v', '/a']]],
  ['a query parameter with any value', ['/a?debug=*'], [['/a?debug', '/a?debug=*'], ['/a?debug=', '/a?debug=*'], ['/a?x=debug', null]]],
  ['all that is asked for must hold', ['GET /a?v=2 x:1 y:1'], [['/a?v=2 x:1 y:1', 'GET /a?v=2 x:1 y:1'], ['/a?v=2 x:1', null], ['/a x:1 y:1', null], ['POST /a?v=2 x:1 y:1', null]]],
  ['who asks for more goes first', ['/a x:1', '/a x:1 y:1', '/a?z=1 x:1 y:1', '/a'], [['/a x:1 y:1', '/a x:1 y:1'], ['/a?z=1 x:1 y:1', '/a?z=1 x:1 y:1'], ['/a x:1 y:2', '/a x:1'], ['/a y:1', '/a']]],
  ['a value before any value', ['/a x:*', '/a x:1'], [['/a x:1', '/a x:1'], ['/a x:2', '/a x:*']]],
  ['what does not hold lets the request through to less specific paths', ['/a/b x:1', '/a/:c y:1', '/a/*', '/*'], [['/a/b x:1', '/a/b x:1'], ['/a/b y:1', '/a/:c y:1'], ['/a/b', '/a/*'], ['/b', '/*']]],
  ['and to the bare form of a prefix', ['/a x:1', '/a/*'], [['/a x:1', '/a x:1'], ['/a', '/a/*']]],
  ['and to all hosts', ['h.example/* x:1', '/*'], [['h.example/a x:1', 'h.example/* x:1'], ['h.example/a', '/*']]],
  ['a path before what else is asked for', ['/*?v=2 x:1', '/a'], [['/a?v=2 x:1', '/a'], ['/b?v=2 x:1', '/*?v=2 x:1']]],
  ['a method before what else is asked for', ['/a x:1', 'GET /a'], [['GET /a x:1', 'GET /a'], ['POST /a x:1', '/a x:1']]],
  ['nothing', [], [['/', null], ['*', null]]]
]

/** Of two that ask for as much the first one has the request; else the order in which routes are written never matters. */
describe('route table', () => {
  for (const [name, routes, requests] of cases) {
    it(name, () => {
      for (const table of [tableOf(...routes), tableOf(...routes.toReversed())]) {
        for (const [text, expected] of requests) {
          equal(find(table, text), expected, text)
          const { match, passedOver } = table.explain(request(text))
          equal(match?.route.options.pool ?? null, expected, `explained: ${text}`)
          equal(new Set(passedOver.map(({ route: { index } }) => index)).size, passedOver.length, 'each is passed over once')
          equal(passedOver.some(({ route: each }) => each === match?.route), false)
        }
      }
    })
  }

  it('takes the first of two that ask for as much', () => {
    equal(find(tableOf('/a x:1', '/a y:1'), '/a x:1 y:1'), '/a x:1')
    equal(find(tableOf('/a y:1', '/a x:1'), '/a x:1 y:1'), '/a y:1')
  })

  it('says by which rule it matched', () => {
    const table = tableOf('/status', '/users/:id', '/api/*', 'PUT /api/*', 'PUT /status', '/*')
    const by = (text: string) => table.explain(request(text)).match?.by
    deepEqual(['/status', 'PUT /status', '/users/7', '/api/x', '/api', 'PUT /api/x', '/'].map(by), ['exact', 'exact', 'parameters', 'prefix', 'prefix', 'method', 'default'])
    const { method, authority, path, search, headers } = request('/')
    equal(tableOf('/*').match(method, authority, path, search, headers)?.by, 'default')
  })

  it('chooses by the text of a path, not by its length', () => {
    equal(find(tableOf('/users/:id', '/*'), `/users/${'x'.repeat(60000)}`), '/users/:id')
  })

  it('has the routes in matching order', () => {
    const ordered = [
      'a.example/x', 'GET a.example/*', 'a.example/*', 'b.example/*', '*.b.example/*', '*.example/*',
      'GET /a', '/a x:1', '/a x:*', '/a', 'GET /b/*', 'GET /*', '/a/:id', '/a/:id/*', '/a/*', '/:x', '/:x/*', '/*?v=1 x:1', '/*?v=1', '/*'
    ]
    for (const texts of [ordered, ordered.toReversed(), ordered.toSorted()]) deepEqual(tableOf(...texts).routes.map(({ options }) => options.pool), ordered)
  })
})

describe('what a place takes where the method is another', () => {
  const allowed = (texts: string[], text: string) => tableOf(...texts).allowed(request(text))

  it('is told without a word of what nobody asked for', () => {
    deepEqual(allowed(['GET /a', 'POST /a'], 'PUT /a'), ['GET', 'HEAD', 'POST'])
    deepEqual(allowed(['OPTIONS,PUT /a'], 'GET /a'), ['OPTIONS', 'PUT'])
  })

  it('counts every path, prefix and host that the request would come to', () => {
    deepEqual(allowed(['PUT h.example/a', 'POST *.example/*', 'GET /:x', 'DELETE /a/*', 'PATCH /b'], 'OPTIONS h.example/a'), ['DELETE', 'GET', 'HEAD', 'POST', 'PUT'])
  })

  it('leaves out what would not take the request in any case', () => {
    deepEqual(allowed(['GET /a x:1', 'PUT /a?v=1', 'POST /b'], 'DELETE /a'), [])
    deepEqual(allowed(['GET /a x:1', 'PUT /a?v=1'], 'DELETE /a x:1'), ['GET', 'HEAD'])
    deepEqual(allowed(['/a x:1'], '/a'), [])
    deepEqual(allowed(['GET /a'], '/b'), [])
  })
})

describe('an explanation', () => {
  const explain = (texts: string[], text: string) => {
    const { match, passedOver } = tableOf(...texts).explain(request(text))
    return [match?.route.options.pool ?? null, ...passedOver.map(({ route: each, why, name }) => `${each.options.pool}: ${why}${name === null ? '' : ` ${name}`}`)]
  }

  it('names each route that was tried and what it lacked, in their order', () => {
    deepEqual(explain(['/*', '/a/*?v=2', '/a/b X-Canary:1', 'PUT h.example/*', 'POST /a/b', '/c'], 'h.example/a/b'), [
      '/*', 'PUT h.example/*: method', 'POST /a/b: method', '/a/b X-Canary:1: header x-canary', '/a/*?v=2: query v'
    ])
  })

  it('names all where none was taken', () => {
    deepEqual(explain(['GET /a', 'HEAD /a', '/a?v=1', '/b'], 'POST /a'), [null, 'GET /a: method', 'HEAD /a: method', '/a?v=1: query v'])
  })

  it('has a route once, that takes HEAD for the sake of GET too', () => {
    deepEqual(explain(['GET /a x:1', 'HEAD,GET /a y:1', '/a'], 'HEAD /a'), ['/a', 'HEAD,GET /a y:1: header y', 'GET /a x:1: header x'])
    deepEqual(explain(['GET /a x:1', '/a'], 'GET /a'), ['/a', 'GET /a x:1: header x'])
  })
})
