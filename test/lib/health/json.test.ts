import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { judgeJson, valueAt } from '../../../lib/health/json.ts'

/** The document of RFC 6901, section 5, and what its pointers name. */
const document = { 'foo': ['bar', 'baz'], '': 0, 'a/b': 1, 'c%d': 2, 'e^f': 3, 'g|h': 4, 'i\\j': 5, 'k"l': 6, ' ': 7, 'm~n': 8 }
const named: Array<[pointer: string, value: unknown]> = [
  ['', document], ['/foo', ['bar', 'baz']], ['/foo/0', 'bar'], ['/', 0], ['/a~1b', 1], ['/c%d', 2], ['/e^f', 3], ['/g|h', 4], ['/i\\j', 5], ['/k"l', 6], ['/ ', 7], ['/m~0n', 8]
]

test('the pointers of RFC 6901 name what it says', () => {
  for (const [pointer, value] of named) assert.deepEqual(valueAt(document, pointer), value, pointer)
})

const nothing: Array<[why: string, value: unknown, pointer: string]> = [
  ['a member that is not there', {}, '/a'],
  ['a member of a text', { a: 'text' }, '/a/0'],
  ['a member of null', { a: null }, '/a/b'],
  ['an index out of range', [1], '/1'],
  ['an index with a leading zero', [1, 2], '/01'],
  ['a negative index', [1], '/-1'],
  ['the element behind the last one', [1], '/-'],
  ['the length of an array', [1], '/length'],
  ['what every object inherits', {}, '/constructor'],
  ['the prototype', {}, '/__proto__'],
  ['an escape that is none', { 'a~2b': 1, 'a~b': 1 }, '/a~2b'],
  ['a tilde at the end', { 'a~': 1 }, '/a~']
]

for (const [why, value, pointer] of nothing) {
  test(`${why} is nothing`, () => assert.equal(valueAt(value, pointer), undefined))
}

test('~01 is a tilde and a one, and not a slash', () => assert.equal(valueAt({ '~1': 'yes', '/': 'no' }, '/~01'), 'yes'))

test('a member of the name __proto__ is one like any other', () => assert.equal(valueAt(JSON.parse('{"__proto__":{"up":true}}'), '/__proto__/up'), true))

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const judged: Array<[name: string, body: string | Uint8Array, pointer: string, equals: string | number | boolean | null, outcome: string]> = [
  ['the value is there', '{"status":"UP"}', '/status', 'UP', 'check_passed'],
  ['deep within', '{"checks":[{"db":{"ok":true}}]}', '/checks/0/db/ok', true, 'check_passed'],
  ['the whole body', 'true', '', true, 'check_passed'],
  ['white space around', ' \n{"a":1}\n', '/a', 1, 'check_passed'],
  ['a number written otherwise', '{"a":1.0e0}', '/a', 1, 'check_passed'],
  ['a null', '{"a":null}', '/a', null, 'check_passed'],
  ['a byte order mark', '\ufeff{"a":1}', '/a', 1, 'check_passed'],
  ['other letters', '{"a":"prêt"}', '/a', 'prêt', 'check_passed'],
  ['another value', '{"status":"DOWN"}', '/status', 'UP', 'json_mismatch'],
  ['another case', '{"status":"up"}', '/status', 'UP', 'json_mismatch'],
  ['a text where a number is wanted', '{"a":"1"}', '/a', 1, 'json_mismatch'],
  ['a number where a text is wanted', '{"a":1}', '/a', '1', 'json_mismatch'],
  ['a zero where false is wanted', '{"a":0}', '/a', false, 'json_mismatch'],
  ['nothing where null is wanted', '{}', '/a', null, 'json_mismatch'],
  ['an object', '{"a":{}}', '/a', 'UP', 'json_mismatch'],
  ['no JSON', '<html>', '/a', 1, 'json_invalid'],
  ['no body', '', '/a', 1, 'json_invalid'],
  ['JSON with more behind it', '{"a":1} x', '/a', 1, 'json_invalid'],
  ['half of it', '{"a":1', '/a', 1, 'json_invalid'],
  ['no UTF-8', new Uint8Array([0x22, 0xff, 0x22]), '', 'x', 'json_invalid'],
  ['JSON deeper than a stack', '['.repeat(60000), '/0', 1, 'json_invalid']
]

for (const [name, body, pointer, equals, outcome] of judged) {
  test(`${outcome}: ${name}`, () => assert.equal(judgeJson(typeof body === 'string' ? utf8(body) : body, { pointer, equals }), outcome))
}

test('property: every value of every document is found by its pointer', () => {
  const escape = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1')
  const walk = (value: unknown, pointer: string, whole: unknown): void => {
    assert.deepEqual(valueAt(whole, pointer), value)
    if (typeof value !== 'object' || value === null) {
      assert.equal(judgeJson(utf8(JSON.stringify(whole)), { pointer, equals: value as string }), 'check_passed')
    } else {
      for (const [key, each] of Object.entries(value)) walk(each, `${pointer}/${escape(key)}`, whole)
    }
  }
  fc.assert(fc.property(fc.json({ maxDepth: 3 }), (text) => {
    const whole: unknown = JSON.parse(text)
    walk(whole, '', whole)
  }))
})
