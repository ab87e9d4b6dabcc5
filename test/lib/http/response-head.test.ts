import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isTransferCoded, responseFields } from '../../../lib/http/response-head.ts'

const nameOf = (name: Buffer) => name.toString('latin1').toLowerCase()

function read (...fields: [string, string][]): Record<string, string | string[]> {
  return { ...responseFields(fields.flatMap(([name, value]) => [Buffer.from(name, 'latin1'), Buffer.from(value, 'latin1')]), nameOf) }
}

const via = '1.1 breakwater'

describe('response head', () => {
  it('keeps end-to-end fields, with lower-case names', () => {
    deepEqual(read(['Content-Type', 'text/html'], ['ETag', '"x"'], ['X-Empty', '']), { 'content-type': 'text/html', 'etag': '"x"', 'x-empty': '', via })
  })

  it('keeps repeated lines apart, in order', () => {
    deepEqual(read(['Set-Cookie', 'a=1'], ['X-A', '1'], ['set-cookie', 'b=2'], ['SET-COOKIE', 'c=3; Expires=Mon, 01 Jan 2035 00:00:00 GMT'])['set-cookie'], ['a=1', 'b=2', 'c=3; Expires=Mon, 01 Jan 2035 00:00:00 GMT'])
  })

  it('keeps latin-1 as it came', () => {
    equal(read(['X-Name', 'caf\u00e9\u00ff'])['x-name'], 'caf\u00e9\u00ff')
  })

  it('adds itself to Via, after every line of it', () => {
    equal(read(['Via', '1.0 a'])['via'], `1.0 a, ${via}`)
    equal(read(['Via', '1.0 a'], ['via', '1.1 b, 1.1 c'])['via'], `1.0 a, 1.1 b, 1.1 c, ${via}`)
  })

  const hopByHop = ['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'trailer', 'transfer-encoding', 'upgrade']
  for (const name of hopByHop) {
    it(`takes ${name} out`, () => { deepEqual(read([name, 'x'], [name.toUpperCase(), 'y'], ['X-A', '1']), { 'x-a': '1', via }) })
  }

  it('takes out what Connection lines name', () => {
    deepEqual(read(['X-A', '1'], ['Connection', 'close, X-a'], ['X-B', '2'], ['connection', 'x-B ,, x-c'], ['X-D', '4']), { 'x-d': '4', via })
    deepEqual(read(['Set-Cookie', 'a'], ['X-A', '1'], ['X-A', '2'], ['Connection', 'x-a']), { 'set-cookie': 'a', via })
  })

  it('keeps what carries the message even if a Connection line names it', () => {
    const kept: [string, string][] = [['Content-Length', '3'], ['Content-Type', 'a/b'], ['Content-Encoding', 'gzip'], ['Set-Cookie', 'a'], ['Date', 'x']]
    const fields = read(...kept, ['Connection', 'content-length, content-type, content-encoding, set-cookie, date, via'])
    deepEqual(fields, { ...Object.fromEntries(kept.map(([name, value]) => [name.toLowerCase(), value])), via })
  })

  it('takes names like Object\'s own for plain names', () => {
    const fields = responseFields(['__proto__', '1', 'constructor', '2', 'Connection', 'toString'].map((text) => Buffer.from(text)), nameOf)
    deepEqual(Object.entries(fields), [['__proto__', '1'], ['constructor', '2'], ['via', via]])
    equal('toString' in fields, false)
  })

  it('reads an empty head, and one cut off after a name', () => {
    deepEqual(read(), { via })
    deepEqual({ ...responseFields([Buffer.from('X-A')], nameOf) }, { via })
  })

  it('loses no line and invents none', () => {
    const name = fc.constantFrom('X-A', 'x-a', 'X-B', 'Set-Cookie', 'set-cookie', 'Warning')
    fc.assert(fc.property(fc.array(fc.tuple(name, fc.stringMatching(/^[ -~]{0,10}$/)), { maxLength: 12 }), (fields) => {
      const { via: added, ...rest } = read(...fields)
      equal(added, via)
      const expected: Record<string, string[]> = {}
      for (const [each, value] of fields) (expected[each.toLowerCase()] ??= []).push(value)
      deepEqual(Object.fromEntries(Object.entries(rest).map(([each, value]) => [each, [value].flat()])), expected)
    }))
  })

  it('lets no hop-by-hop field pass in any letter case', () => {
    const spelt = fc.constantFrom(...hopByHop).chain((name) => fc.array(fc.boolean(), { minLength: name.length, maxLength: name.length })
      .map((upper) => [...name].map((letter, i) => upper[i] === true ? letter.toUpperCase() : letter).join('')))
    fc.assert(fc.property(spelt, fc.string(), (name, value) => { ok(!(name.toLowerCase() in read([name, value]))) }))
  })
})

describe('a transfer coding', () => {
  const coded = (...values: string[]): boolean =>
    isTransferCoded(['transfer-Encoding', 'X-Transfer-Coding'].flatMap((name) => values.flatMap((value) => [Buffer.from(name), Buffer.from(value)])), nameOf)

  for (const values of [['chunked'], ['Chunked'], [' chunked '], []]) {
    it(`is chunked alone: ${JSON.stringify(values)}`, () => { equal(coded(...values), false) })
  }
  for (const values of [['gzip'], ['gzip, chunked'], ['gzip', 'chunked'], ['chunked', 'gzip'], ['chunked, chunked'], ['identity'], ['']]) {
    it(`is more than chunked: ${JSON.stringify(values)}`, () => { equal(coded(...values), true) })
  }
})
