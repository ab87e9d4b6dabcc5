import { equal, match, ok } from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, it } from 'node:test'
import type { StickyOptions } from '../../../config/schema.ts'
import { StickyTable, stickyToken } from '../../../lib/balance/sticky.ts'
import { cookieOf } from '../../../lib/http/cookie.ts'

const secret = 'correct horse battery staple'
const ids = ['http://10.0.0.1:8080', 'http://10.0.0.2:8080', 'unix:/run/app.sock']
const options: StickyOptions = { cookie: 'breakwater', secret, maxAgeSeconds: 0, path: '/', secure: false, sameSite: 'lax' }

describe('a sticky token', () => {
  it('is a keyed hash of the pool and the upstream, in 24 characters', () => {
    const token = stickyToken(secret, 'shop', ids[0]!)
    match(token, /^[A-Za-z0-9_-]{24}$/)
    equal(token, createHmac('sha256', secret).update(`shop\0${ids[0]!}`).digest('base64url').slice(0, 24))
  })

  it('is another one with another secret, pool or upstream', () => {
    const tokens = ['secret of one sort', 'secret of another'].flatMap((each) => ['shop', 'cart'].flatMap((pool) => ids.map((id) => stickyToken(each, pool, id))))
    equal(new Set(tokens).size, 12)
    ok(stickyToken(secret, 'a', 'bc') !== stickyToken(secret, 'ab', 'c'))
  })

  it('does not show the upstream', () => {
    const token = Buffer.from(stickyToken(secret, 'shop', ids[0]!), 'base64url').toString('latin1')
    for (const part of ['10.0', '8080', 'shop', 'http']) ok(!token.includes(part))
  })
})

describe('a sticky table', () => {
  const table = new StickyTable(options, 'shop', ids)
  const tokenOf = (index: number): string => cookieOf(table.cookieFor(index), 'breakwater')!

  it('knows each member by the cookie that it gives', () => {
    for (const index of ids.keys()) equal(table.indexOf(tokenOf(index)), index)
  })

  it('knows nobody by anything else', () => {
    const other = stickyToken('secret of another', 'shop', ids[0]!)
    for (const token of ['', 'x', ids[0]!, other, stickyToken(secret, 'cart', ids[0]!), `${tokenOf(0)}=`, tokenOf(0).toLowerCase(), '__proto__', 'constructor']) equal(table.indexOf(token), -1)
  })

  it('gives a member the same cookie wherever it stands in the list', () => {
    const turned = new StickyTable(options, 'shop', ids.toReversed())
    for (const index of ids.keys()) {
      equal(turned.cookieFor(2 - index), table.cookieFor(index))
      equal(turned.indexOf(tokenOf(index)), 2 - index)
    }
  })

  it('can be empty', () => {
    equal(new StickyTable(options, 'shop', []).indexOf(tokenOf(0)), -1)
  })

  const cookies: Array<[title: string, Partial<StickyOptions>, attributes: string]> = [
    ['a cookie of the session, hidden from scripts', {}, '; Path=/; HttpOnly; SameSite=Lax'],
    ['a cookie that lasts', { maxAgeSeconds: 3600 }, '; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax'],
    ['a cookie for a path', { path: '/shop' }, '; Path=/shop; HttpOnly; SameSite=Lax'],
    ['a cookie for TLS only', { secure: true, sameSite: 'strict' }, '; Path=/; HttpOnly; SameSite=Strict; Secure'],
    ['a cookie sent along from other sites', { secure: true, sameSite: 'none' }, '; Path=/; HttpOnly; SameSite=None; Secure']
  ]
  for (const [title, changed, attributes] of cookies) {
    it(`gives ${title}`, () => {
      equal(new StickyTable({ ...options, ...changed }, 'shop', ids).cookieFor(0), `breakwater=${tokenOf(0)}${attributes}`)
    })
  }

  it('names the cookie as it is told', () => {
    const named = new StickyTable({ ...options, cookie: '__Host-b' }, 'shop', ids).cookieFor(1)
    equal(named, `__Host-b=${tokenOf(1)}; Path=/; HttpOnly; SameSite=Lax`)
  })
})
