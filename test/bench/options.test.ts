import { test } from 'node:test'
import assert from 'node:assert/strict'
import { parseOptions, usage } from '../../bench/options.ts'
import { jsonOf, scenarios } from '../../bench/scenarios.ts'

test('without options it is five rounds of the small GET over 16 connections', () => {
  assert.deepEqual(parseOptions([]), { rounds: 5, seconds: 3, warmup: 4, connections: 16, upstreams: 2, scenario: 'get', only: [], json: null })
})

test('--quick shortens what was not given', () => {
  const options = parseOptions(['--quick', '--rounds', '3'])
  assert.equal(options?.rounds, 3)
  assert.equal(options?.seconds, 1)
})

test('peers are a list, the file is kept as given', () => {
  const options = parseOptions(['--only', 'nginx, haproxy,', '--json', 'out.json', '--scenario', 'post'])
  assert.deepEqual(options?.only, ['nginx', 'haproxy'])
  assert.equal(options?.json, 'out.json')
  assert.equal(options?.scenario, 'post')
})

test('--help asks for no run', () => {
  assert.equal(parseOptions(['--help']), null)
})

test('a wrong value is refused with its option and bounds', () => {
  const cases: Array<[string[], RegExp]> = [
    [['--rounds', '0'], /--rounds must be a whole number from 1 to 100, not "0"/],
    [['--rounds', '1.5'], /--rounds/],
    [['--connections', ''], /--connections/],
    [['--seconds', 'many'], /--seconds must be a number/],
    [['--scenario', 'toString'], /--scenario must be one of get, deep, post, large/],
    [['--speed'], /--speed/],
    [['extra'], /extra/]
  ]
  for (const [args, message] of cases) assert.throws(() => parseOptions(args), message)
})

test('the usage names every option', () => {
  for (const name of ['rounds', 'seconds', 'warmup', 'connections', 'upstreams', 'scenario', 'only', 'quick', 'json']) assert.ok(usage.includes(`--${name}`))
})

test('bodies are JSON of exactly the size that the scenario tells', () => {
  for (const { responseBytes, requestBytes } of Object.values(scenarios)) {
    assert.equal(Buffer.byteLength(jsonOf(responseBytes)), responseBytes)
    assert.equal(Buffer.byteLength(jsonOf(requestBytes)), requestBytes)
    assert.doesNotThrow(() => JSON.parse(jsonOf(responseBytes)))
  }
})
