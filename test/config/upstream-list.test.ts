import assert from 'node:assert/strict'
import { test } from 'node:test'
import { completeMembers, parseUpstreamList } from '../../config/upstream-list.ts'
import { linesOf, problemsOf } from './support.ts'

const parse = (text: string | Uint8Array) => parseUpstreamList(typeof text === 'string' ? Buffer.from(text) : text, 'list.yaml')

test('a list is read with the defaults of a pool\'s upstreams, frozen', () => {
  const list = parse('- url: http://10.0.0.1\n- { url: "http://10.0.0.2", weight: 500, priority: 9, health: { port: 81 } }\n')
  assert.deepEqual(list, [{ url: 'http://10.0.0.1', weight: 1, priority: 0 }, { url: 'http://10.0.0.2', weight: 500, priority: 9, health: { port: 81 } }])
  assert.ok(Object.isFrozen(list) && Object.isFrozen(list[0]))
})

test('nobody, and nobody with a weight, are lists', () => {
  for (const text of ['', '# nothing', '[]', 'null', '---\n']) assert.deepEqual(parse(text), [], text)
  assert.equal(parse('[{ url: "http://a", weight: 0 }]')[0]!.weight, 0)
})

test('all that is wrong is told, by its place in the list', () => {
  const lines = linesOf(() => parse('- url: http://a\n- url: http://A:80\n- url: ftp://user:secret@b\n- { url: "http://c", weight: 1001, extra: 1 }\n- http://d\n'))
  assert.deepEqual(lines.map((line) => line.split(':')[0]).toSorted(), ['[1].url', '[2].url', '[3].extra', '[3].weight', '[4]'])
  assert.ok(lines.some((line) => line.startsWith('[1].url: is the same upstream (a:80) as [0].url')))
  assert.ok(!lines.join().includes('secret') && !lines.join().includes('pools'), lines.join('\n'))
})

test('what is no list, no text and no YAML is refused as a whole', () => {
  for (const [text, message] of [
    ['upstreams: []', /must be a list of upstreams/],
    ['http://a', /must be a list of upstreams/],
    [Buffer.from([0xc3, 0x28]), /UTF-8/],
    ['- url: [', /line 2|line 1/]
  ] as const) {
    const [problem] = problemsOf(() => parse(text))
    assert.equal(problem!.path, '')
    assert.match(problem!.message, message)
  }
})

test('a thousand upstreams are the most', () => {
  const list = (length: number) => JSON.stringify(Array.from({ length }, (_, index) => ({ url: `http://a:${index + 1}` })))
  assert.equal(parse(list(1000)).length, 1000)
  assert.deepEqual(linesOf(() => parse(list(1001))), ['must be a list of at most 1000 upstreams, got 1001'])
  assert.deepEqual(linesOf(() => parse('- 1\n'.repeat(50000))), ['must be a list of at most 1000 upstreams, got 50000'])
})

test('a list that is nested too deep is refused, any number of times', () => {
  for (let time = 0; time < 20; time++) assert.deepEqual(linesOf(() => parse('['.repeat(3000 + time))), ['is nested too deep'])
})

test('variables are not looked up', () => {
  process.env['BREAKWATER_TEST_LIST'] = 'a'
  try {
    assert.match(linesOf(() => parse('- url: http://${BREAKWATER_TEST_LIST}'))[0]!, /^\[0\]\.url: must be/)
  } finally {
    delete process.env['BREAKWATER_TEST_LIST']
  }
})

test('a list of code gets the same defaults, and is a copy', () => {
  const given = [{ url: 'http://shop.test', address: '10.0.0.1' }, { url: 'http://shop.test', address: '10.0.0.2', maxInFlight: 0 }]
  const list = completeMembers(given, 'code')
  assert.deepEqual(list, [{ url: 'http://shop.test', address: '10.0.0.1', weight: 1, priority: 0 }, { url: 'http://shop.test', address: '10.0.0.2', maxInFlight: 0, weight: 1, priority: 0 }])
  assert.ok(Object.isFrozen(list[0]) && !Object.isFrozen(given[0]))
  assert.deepEqual(completeMembers([], 'code'), [])
})

test('what is wrong in a list of code is told, by its place', () => {
  const cyclic: Record<string, unknown> = { url: 'http://a' }
  cyclic['health'] = cyclic
  for (const [given, path] of [
    [[{ url: 'http://a', weight: -1 }], '[0].weight'], [[{}], '[0].url'], [[{ url: 'http://a', address: 1 }], '[0].address'], [[null], '[0]'],
    [[{ url: 'http://a', health: { fall: 0 } }], '[0].health.fall'], [[new Date()], '[0]'], ['http://a', ''], [undefined, ''], [[cyclic], '[0].health']
  ] as const) {
    const problems = problemsOf(() => completeMembers(given, 'code'))
    assert.ok(problems.length > 0 && problems.every((problem) => problem.path.startsWith(path)), JSON.stringify(problems))
  }
})
