import { equal } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { cookieOf } from '../../../lib/http/cookie.ts'

describe('a cookie', () => {
  const table: Array<[header: string | undefined, value: string | null]> = [
    [undefined, null],
    ['', null],
    ['id=7', '7'],
    ['id=7; other=8', '7'],
    ['other=8; id=7', '7'],
    ['other=8;id=7;third=9', '7'],
    ['other=8;\t id=7', '7'],
    ['  id=7  ', '7'],
    ['id = 7 ; a=b', '7'],
    ['id=7; id=8', '7'],
    ['id=', ''],
    ['id=; a=b', ''],
    ['id="7"', '7'],
    ['id=""', ''],
    ['id="', '"'],
    ['id="7', '"7'],
    ['id=7"', '7"'],
    ['id="a b"; c=d', 'a b'],
    ['id=a=b==', 'a=b=='],
    ['id=%20', '%20'],
    ['xid=7', null],
    ['idx=7', null],
    ['x-id=7; my id=8', null],
    ['ID=7', null],
    ['id', null],
    ['id; id=7', '7'],
    ['a=id=7', null],
    ['a=id; id=7', '7'],
    ['a="x; id=7"', '7"'],
    [';;; ;id=7;;', '7'],
    ['=7; id=8', '8'],
    ['id', null],
    ['id \t', null]
  ]
  for (const [header, value] of table) {
    it(`named id is ${value === null ? 'not' : JSON.stringify(value)} in ${JSON.stringify(header)}`, () => {
      equal(cookieOf(header, 'id'), value)
    })
  }

  it('is the first of its name, wherever it stands among others', () => {
    const name = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,8}$/)
    const value = fc.stringMatching(/^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]{0,12}$/)
    fc.assert(fc.property(fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 8 }), fc.constantFrom('; ', ';', ' ;\t'), (pairs, between) => {
      const header = pairs.map((pair) => pair.join('=')).join(between)
      for (const [wanted] of pairs) equal(cookieOf(header, wanted), pairs.find(([each]) => each === wanted)![1])
    }), { numRuns: 500 })
  })

  it('is found in any text without trouble', () => {
    fc.assert(fc.property(fc.string({ unit: fc.constantFrom('i', 'd', '=', ';', ' ', '"', '\t') }), (header) => {
      const expected = header.split(';').find((pair) => /^[ \t]*id[ \t]*=/.test(pair))?.replace(/^[^=]*=/, '').replace(/^[ \t]+|[ \t]+$/g, '')
      equal(cookieOf(header, 'id'), expected?.replace(/^"(.*)"$/s, '$1') ?? null)
    }), { numRuns: 2000 })
  })
})
