import { deepEqual, equal, throws } from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RouteOptions } from '../../../config/schema.ts'
import { CompiledRoute, poolsOf } from '../../../lib/route/compiled.ts'

const compile = (options: Partial<RouteOptions>) => new CompiledRoute({ path: '/*', ...options })
const changes = (set: Record<string, string>, ...remove: string[]) => ({ set, remove })

describe('a compiled route', () => {
  it('has its options, its place and its name', () => {
    const options: RouteOptions = { path: '/api/*', pool: 'shop' }
    const { options: own, index, label, pool, split, conditions, changeRequest, changeResponse } = new CompiledRoute(options, 7)
    equal(own, options)
    deepEqual([index, label, pool, split, conditions, changeRequest, changeResponse], [7, '/api/*', 'shop', null, null, null, null])
  })

  it('has one pool, or asks its split, and has none where it is disabled', () => {
    const facts = { clientIp: '10.0.0.1', headers: {} }
    equal(compile({ pool: 'shop' }).poolFor(facts), 'shop')
    const canary = compile({ split: { pools: { stable: 0, canary: 1 }, by: 'client-address' } })
    deepEqual([canary.pool, canary.poolFor(facts)], [null, 'canary'])
    throws(() => compile({ disabled: { status: 503, detail: '', retryAfterSeconds: 0 } }).poolFor(facts), /disabled/)
  })

  it('needs the pools that its requests may go to by themselves', () => {
    deepEqual(poolsOf({ path: '/', pool: 'shop' }), ['shop'])
    deepEqual(poolsOf({ path: '/', split: { pools: { a: 1, b: 0, c: 2 }, by: 'request' } }), ['a', 'c'])
    deepEqual(poolsOf({ path: '/', pool: 'shop', disabled: { status: 503, detail: '', retryAfterSeconds: 0 } }), [])
  })

  it('makes the path out of stripPrefix and prefix, or of rewrite, behind the base path of the upstream', () => {
    equal(compile({ path: '/api/*', stripPrefix: '/api', prefix: '/v1' }).path('/api/x', '/base'), '/base/v1/x')
    equal(compile({ path: '/api/:id/*', rewrite: '/v2/:id/*' }).path('/api/a%2Fb/x', '/base'), '/base/v2/a%2Fb/x')
    equal(compile({ rewrite: '/v2/*' }).path('*', '/base'), '*')
    equal(compile({}).path('/api/x', ''), '/api/x')
  })
})

describe('header changes of a request', () => {
  const changed = (given: string[], set: Record<string, string>, ...remove: string[]) => {
    const fields = [...given]
    compile({ requestHeaders: changes(set, ...remove) }).changeRequest?.(fields)
    return fields
  }

  it('take fields out whatever their case, all lines of them, and leave the rest in its order', () => {
    deepEqual(changed(['A', '1', 'X-Old', '2', 'b', '3', 'x-old', '4', 'C', '5'], {}, 'X-OLD'), ['A', '1', 'b', '3', 'C', '5'])
    deepEqual(changed(['a', '1'], {}, 'b'), ['a', '1'])
    deepEqual(changed([], {}, 'b'), [])
  })

  it('set fields once, in place of what is there', () => {
    deepEqual(changed(['X-Env', 'a', 'b', '1', 'x-env', 'c'], { 'X-Env': 'prod', 'x-new': '' }), ['b', '1', 'X-Env', 'prod', 'x-new', ''])
  })

  it('take a name with "_" for the same as with "-": nobody slips one past', () => {
    deepEqual(changed(['x_user_id', 'admin', 'X_User-Id', 'admin'], { 'x-user-id': 'guest' }), ['x-user-id', 'guest'])
    deepEqual(changed(['x_user_id', 'admin'], {}, 'x-user-id'), [])
    deepEqual(changed(['x-user-id', 'admin'], {}, 'x_user_id'), [])
  })

  it('are nothing where nothing is to be done', () => {
    equal(compile({ requestHeaders: changes({}) }).changeRequest, null)
    equal(compile({ responseHeaders: changes({}) }).changeResponse, null)
  })
})

describe('header changes of an answer', () => {
  it('take fields out and set them, whatever the case of the option', () => {
    const fields: Record<string, string | string[]> = { server: 'x', 'set-cookie': ['a=1', 'b=2'], via: 'v' }
    compile({ responseHeaders: changes({ 'Cache-Control': 'no-store', Server: 'edge' }, 'Set-Cookie', 'x-none') }).changeResponse?.(fields)
    deepEqual(fields, { server: 'edge', via: 'v', 'cache-control': 'no-store' })
  })
})
