import { deepEqual, equal } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { queryOf } from '../../../lib/route/query.ts'

const all = (search: string, ...names: string[]) => Object.fromEntries(queryOf(search, new Set(names)))

describe('query', () => {
  it('has the parameters that are wanted, and the first where one stands twice', () => {
    deepEqual(all('?a=1&b=2&a=3', 'a', 'b', 'c'), { a: '1', b: '2' })
    deepEqual(all('?a=1&b=2', 'b'), { b: '2' })
    deepEqual(all('?a=1'), {})
  })

  it('has an empty value without a sign, and none without a name', () => {
    deepEqual(all('?a&b=&c==d&&e', 'a', 'b', 'c', 'e', ''), { a: '', b: '', c: '=d', '': '', e: '' })
    deepEqual(all('', 'a', ''), {})
    deepEqual(all('?', 'a'), {})
  })

  it('reads escapes and plus signs, in names too, and leaves broken ones as they are', () => {
    deepEqual(all('?a=%31+%2B&%62+c=%C3%A9&d=%zz&e=%ff&f=a%3Db', 'a', 'b c', 'd', 'e', 'f'), { a: '1 +', 'b c': 'é', d: '%zz', e: '%ff', f: 'a=b' })
  })

  it('reads "__proto__" and "constructor" like any name', () => {
    const found = queryOf('?__proto__=1&constructor=2', new Set(['__proto__', 'constructor', 'toString']))
    deepEqual([...found], [['__proto__', '1'], ['constructor', '2']])
  })

  it('is the same as URLSearchParams for any query with sound escapes', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '=', '&', '+', '%20', '%26', '%C3%A9', ';', '?', '/'), maxLength: 20 })
    fc.assert(fc.property(text, (query) => {
      const expected = new URLSearchParams(`?${query}`)
      const names = new Set([...expected.keys(), 'a', 'b'])
      const found = queryOf(`?${query}`, names)
      for (const name of names) {
        // Theirs has no parameter for nothing between two signs.
        if (name !== '') equal(found.get(name) ?? null, expected.get(name), JSON.stringify({ query, name }))
      }
    }), { numRuns: 2000 })
  })
})
