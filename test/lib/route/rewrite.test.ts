import { equal, notEqual, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseTarget } from '../../../lib/http/target.ts'
import { compileRewrite, forwardedPath } from '../../../lib/route/rewrite.ts'

interface Case { path: string, strip?: string, prefix?: string, base?: string, to: string }

const table: Case[] = [
  { path: '/a/b', to: '/a/b' },
  { path: '/', to: '/' },
  { path: '/a%2Fb//c;d', to: '/a%2Fb//c;d' },
  { path: '/api/users', strip: '/api', to: '/users' },
  { path: '/api/', strip: '/api', to: '/' },
  { path: '/api', strip: '/api', to: '/' },
  { path: '/apiary', strip: '/api', to: '/apiary' },
  { path: '/ap', strip: '/api', to: '/ap' },
  { path: '/API/x', strip: '/api', to: '/API/x' },
  { path: '/x/api/y', strip: '/api', to: '/x/api/y' },
  { path: '/api/api/x', strip: '/api', to: '/api/x' },
  { path: '/api//x', strip: '/api', to: '//x' },
  { path: '/a/b/c', strip: '/a/b', to: '/c' },
  { path: '/%61pi/x', strip: '/api', to: '/x' },
  { path: '/ap%69', strip: '/api', to: '/' },
  { path: '/api/%61pi', strip: '/api', to: '/%61pi' },
  { path: '/a%2Fb/c', strip: '/a/b', to: '/a%2Fb/c' },
  { path: '/api%2Fx', strip: '/api', to: '/api%2Fx' },
  { path: '/x', prefix: '/v1', to: '/v1/x' },
  { path: '/', prefix: '/v1', to: '/v1/' },
  { path: '/x', base: '/base', to: '/base/x' },
  { path: '/api/x', strip: '/api', prefix: '/v1', base: '/base', to: '/base/v1/x' },
  { path: '/v1/x', prefix: '/v1', to: '/v1/v1/x' },
  { path: '/base/x', base: '/base', to: '/base/base/x' },
  { path: '*', strip: '/api', prefix: '/v1', base: '/base', to: '*' }
]

describe('forwarded path', () => {
  for (const { path, strip, prefix, base = '', to } of table) {
    it(`${path}${strip === undefined ? '' : ` without ${strip}`}${prefix === undefined ? '' : ` under ${prefix}`}${base === '' ? '' : ` at ${base}`} is ${to}`, () => {
      equal(forwardedPath(path, strip, prefix, base), to)
    })
  }
})

describe('forwarded path: properties', () => {
  const rest = fc.string({ unit: fc.constantFrom('/', 'a', 'api', '%2F', '%61', '%41', ';', '.x', '%25', '\u00e9', '~'), maxLength: 12 }).map((text) => `/${text}`)
  const strip = fc.array(fc.stringMatching(/^[A-Za-z0-9._~-]{1,6}$/), { minLength: 1, maxLength: 3 }).map((segments) => `/${segments.join('/')}`)
  const prefix = fc.constantFrom(undefined, '/v1', '/a/b')
  const base = fc.constantFrom('', '/base')

  it('keeps the rest byte for byte', () => {
    fc.assert(fc.property(strip, rest, prefix, base, (taken, kept, before, at) => {
      equal(forwardedPath(taken + kept, taken, before, at), at + (before ?? '') + kept)
    }))
  })

  it('keeps the rest byte for byte however the prefix is escaped', () => {
    fc.assert(fc.property(strip, fc.infiniteStream(fc.boolean()), rest, (taken, choice, kept) => {
      const escaped = [...taken].map((letter) => letter !== '/' && choice.next().value ? `%${letter.charCodeAt(0).toString(16).padStart(2, '0')}` : letter).join('')
      equal(forwardedPath(escaped + kept, taken, undefined, ''), kept)
    }))
  })

  it('always is a path of which the original is the end, or which is "/" alone', () => {
    fc.assert(fc.property(rest, fc.option(strip, { nil: undefined }), (path, taken) => {
      const forwarded = forwardedPath(path, taken, undefined, '')
      ok(forwarded.startsWith('/'))
      ok(path.endsWith(forwarded) || forwarded === '/', `${path} -> ${forwarded}`)
    }))
  })

  it('brings no dot segment into a path that had none', () => {
    const hostile = fc.string({ unit: fc.constantFrom('/', '.', '..', '%2e', '%2f', 'api', '%61pi', 'x'), maxLength: 10 }).map((text) => `/api${text}`)
    fc.assert(fc.property(hostile, (path) => {
      if (parseTarget(path, 'GET') === null) return
      ok(parseTarget(forwardedPath(path, '/api', undefined, ''), 'GET') !== null, path)
    }), { numRuns: 2000 })
  })
})

const templates: [route: string, template: string, [path: string, to: string][]][] = [
  ['/old', '/new', [['/old', '/new'], ['/ol%64', '/new']]],
  ['/old', '/', [['/old', '/']]],
  ['/old/*', '/new', [['/old', '/new'], ['/old/', '/new'], ['/old/a/b', '/new']]],
  ['/api/*', '/files/*', [['/api/a/b', '/files/a/b'], ['/api/', '/files/'], ['/api', '/files'], ['/api//a/', '/files//a/'], ['/%61pi/%2Fa;x', '/files/%2Fa;x']]],
  ['/api/*', '/*', [['/api/a', '/a'], ['/api/', '/'], ['/api', '/']]],
  ['/*', '/files/*', [['/', '/files/'], ['/a', '/files/a'], ['/files/a', '/files/files/a']]],
  ['/users/:id', '/v2/people/:id', [['/users/7', '/v2/people/7'], ['/users/a%2Fb', '/v2/people/a%2Fb'], ['/users/', '/v2/people/']]],
  ['/users/:id/*', '/v2/people/:id/*', [['/users/7/x/y', '/v2/people/7/x/y'], ['/users/7/', '/v2/people/7/'], ['/users/7', '/v2/people/7'], ['/users//x', '/v2/people//x']]],
  ['/:a/:b', '/:b/:a/:b', [['/1/2', '/2/1/2']]],
  ['/:a/:b/*', '/x/:b/*', [['/1/2/3', '/x/2/3'], ['/1/2', '/x/2']]],
  ['/:a/*', '/:a', [['/1/2/3', '/1'], ['/1', '/1']]],
  ['/a/:x', '/b%20c/:x', [['/a/%20', '/b%20c/%20']]]
]

describe('rewritten path', () => {
  for (const [route, template, paths] of templates) {
    it(`${route} to ${template}`, () => {
      const rewrite = compileRewrite(route, template)
      for (const [path, to] of paths) equal(rewrite(path), to, path)
      equal(rewrite('*'), '*')
    })
  }

  const segment = fc.constantFrom('', 'a', 'b..', '..b', '...', '%2F', '%2f..%2F', '%2e', '..', '.', '%2E%2e', '..;x', '%5c..', '%252e', 'é', ':id', '*', '%C3%A9', ';')
  const asked = fc.array(segment, { maxLength: 5 }).map((segments) => `/api/${segments.join('/')}`)

  it('never leaves the prefix of its template, and brings no dot segment into a path that had none', () => {
    const cases: [string, string, string][] = [['/api/*', '/files/*', '/files'], ['/api/:id/*', '/v2/:id/*', '/v2/'], ['/api/:id', '/v2/:id', '/v2/'], ['/api/:a/:b/*', '/v2/:b/x/:a/*', '/v2/']]
    let seen = 0
    fc.assert(fc.property(asked, fc.constantFrom(...cases), (path, [route, template, prefix]) => {
      if (parseTarget(path, 'GET') === null) return
      seen++
      const to = compileRewrite(route, template)(path)
      ok(to === prefix || to.startsWith(prefix), to)
      notEqual(parseTarget(to, 'GET'), null, `${path} -> ${to}`)
    }), { numRuns: 5000, seed: 3 })
    ok(seen > 500, `only ${seen} were tried`)
  })

  it('keeps the bytes of what it takes over', () => {
    fc.assert(fc.property(fc.constantFrom('a', 'a%2Fb', 'é', '%C3%A9', '', '~;'), asked, (id, rest) => {
      equal(compileRewrite('/users/:id/*', '/v2/people/:id/*')(`/users/${id}${rest}`), `/v2/people/${id}${rest}`)
    }))
  })
})
