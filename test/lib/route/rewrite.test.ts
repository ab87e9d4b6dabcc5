import { equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseTarget } from '../../../lib/http/target.ts'
import { forwardedPath } from '../../../lib/route/rewrite.ts'

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
