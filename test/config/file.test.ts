import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parse, stringify } from 'yaml'
import { parseText } from '../../config/file.ts'
import { parseJson } from '../../config/json.ts'
import { linesOf } from './support.ts'

const read = (text: string) => parseText(text, 'x')
const bad = (text: string) => linesOf(() => read(text))

test('text that is nested too deep is refused, in whichever style and any number of times', () => {
  for (const level of ['[', '{', '- ', '? ', '[{', '- [', '{a: ', '{"a":', '[? ', '- ? ', '- - &a ', '"#" : [', '[" #", ', "['#", '!!seq [', '? - ']) {
    for (const times of [300, 3000, 100000]) {
      const text = level.repeat(times)
      const first = bad(text)
      ok(first.length > 0, `${level} ${times}`)
      for (let again = 0; again < 3; again++) deepEqual(bad(text), first)
    }
  }
  for (const level of ['[', '{', '- ', '? ', '{a: ']) deepEqual(bad(level.repeat(3000)), ['is nested too deep'], level)
  deepEqual(bad(`${'['.repeat(3000)}${']'.repeat(3000)}`), ['is nested too deep'])
  const stairs = (depth: number) => Array.from({ length: depth }, (_, level) => `${' '.repeat(level)}a:`).join('\n')
  deepEqual(bad(stairs(1000)), ['is nested too deep'])
  ok(read(stairs(150)) !== null)
  deepEqual(bad(Array.from({ length: 1000 }, (_, level) => `${' '.repeat(level)}-`).join('\n')), ['is nested too deep'])
})

test('what only looks deep is read', () => {
  const comments = '# [0, 1) - - - {\n'.repeat(1000)
  const quotes = `a: "${'['.repeat(1000)}"\nb: '${'{'.repeat(1000)}'\nc: x${'[{'.repeat(1000)}\n`
  const block = `d: |\n  first\n  ${' '.repeat(600)}deep\n  ${'- '.repeat(600)}x\n  ${'['.repeat(600)}\ne: >-\n${' '.repeat(500)}far\n`
  const value = read(`${comments}${quotes}${block}f:${' '.repeat(600)}1\n`) as Record<string, unknown>
  deepEqual(Object.keys(value), ['a', 'b', 'c', 'd', 'e', 'f'])
  equal(value['d'], `first\n${' '.repeat(600)}deep\n${'- '.repeat(600)}x\n${'['.repeat(600)}\n`)
  equal(value['e'], 'far')
  const wide = read(`${'- [a, {b: c}]\n'.repeat(1000)}`)
  equal((wide as unknown[]).length, 1000)
})

test('a hundred syntax errors are the most that are told', () => {
  for (const text of ['"\\q" \n'.repeat(150000), '- !x a\n'.repeat(20000), `[${'"\\q", '.repeat(20000)}]`, `{${'a: 1, '.repeat(20000)}}`, '- *a\n'.repeat(20000), '- ]\n'.repeat(20000)]) {
    const lines = bad(text)
    equal(lines.length, 101, text.slice(0, 20))
    equal(lines.at(-1), 'and more')
  }
})

test('YAML of more words than anybody writes is refused; the same as JSON is read', () => {
  const keys = Object.fromEntries(Array.from({ length: 90000 }, (_, index) => [`k${index}`, 1]))
  deepEqual(bad(stringify(keys)), ['must be at most 300000 words and signs of YAML, got more; JSON may have more'])
  deepEqual(read(JSON.stringify(keys)), keys)
})

test('any number of anchors and aliases is read, and what they stand for is bounded', () => {
  const pairs = Array.from({ length: 20000 }, (_, index) => `- &a${index} x\n- *a${index}\n`).join('')
  deepEqual(read(pairs), Array.from({ length: 40000 }, () => 'x'))
  deepEqual(read('a: &x { n: 1 }\nb: *x\nc: &x 2\nd: *x\n'), { a: { n: 1 }, b: { n: 1 }, c: 2, d: 2 })
  deepEqual(read('&k a: *k'), { a: 'a' })
  const own = read('&a [1, *a]') as unknown[]
  equal(own[1], own)
  deepEqual(bad(`- &a [${'x, '.repeat(1000)}]\n${'- *a\n'.repeat(1000)}`), ['has aliases that expand to too much'])
  equal((read(`- &a [${'x, '.repeat(100)}]\n${'- *a\n'.repeat(500)}`) as unknown[]).length, 501)
})

test('JSON is read as YAML would read it', () => {
  fc.assert(fc.property(fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.jsonValue())), fc.constantFrom(undefined, 2, '\t'), (value, space) => {
    const text = JSON.stringify(value, null, space)
    deepEqual(parseJson(text), JSON.parse(text))
    deepEqual(read(text), JSON.parse(text))
  }))
  for (const text of ['{"a": "x: \\" : {", "b": [":", {}]}', '[1, -0.5e3, true, null, "\\u00e9\\/"]', '\uFEFF \n{"a": 1}', '{"": 1}']) {
    ok(parseJson(text) !== undefined, text)
    deepEqual(read(text), parse(text), text)
  }
})

test('a key that stands twice in JSON is told with its place, however it is written', () => {
  for (const [text, line] of [
    ['{"a": 1,\n "a": 2}', 'line 2, column 2: the key "a" stands twice in one mapping'],
    ['[{"b": {"a": ":", "\\u0061": 2}}]', 'line 1, column 19: the key "a" stands twice in one mapping'],
    ['{"__proto__": 1, "__proto__": 2}', 'line 1, column 18: the key "__proto__" stands twice in one mapping']
  ] as const) {
    equal(parseJson(text), undefined)
    deepEqual(bad(text), [line])
  }
})

test('a flow mapping with comments is YAML, and so is other text', () => {
  deepEqual(read('{ a: 1, # one\n  b: [x] }'), { a: 1, b: ['x'] })
  for (const text of ['', 'null', '"a"', '1', '{a: 1}', '[', '# x\n{}']) equal(parseJson(text), undefined, text)
})

test('a variable between braces without quotes is told as that, and nothing that follows from it', () => {
  const line = (place: string): string => `line 2, column ${place}: \${...} between { } or [ ] needs quotes`
  deepEqual(bad('routes:\n  - { path: "/x", pool: ${POOL} }\n  - { path: "/*", pool: shop }\n'), [line('25')])
  deepEqual(bad('hosts:\n  [ ${HOST} ]\nother: { a: 1 }\n'), [line('5')])
  deepEqual(read('pool: ${POOL}\nhosts: [ "${HOST}" ]'), { pool: '${POOL}', hosts: ['${HOST}'] })
})

test('__proto__ is a key like any other, for the checks to refuse', () => {
  for (const text of ['__proto__: { x: 1 }', '{"__proto__": {"x": 1}}']) {
    const value = read(text) as object
    deepEqual(Object.keys(value), ['__proto__'])
    equal('x' in value, false)
  }
})
