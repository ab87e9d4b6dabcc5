import assert from 'node:assert/strict'
import { test } from 'node:test'
import { completeBreaker, completePools, completeShedding } from '../../config/complete.ts'
import { parseConfig } from '../../config/parse.ts'
import { withShop } from './support.ts'

const url = 'http://127.0.0.1:9001'
const messageOf = (action: () => unknown): string => {
  let message = ''
  assert.throws(action, (error: Error) => {
    message = error.message
    return error instanceof TypeError
  })
  return message
}

test('a section alone is completed as in the whole configuration, and frozen', () => {
  const whole = parseConfig(withShop({ health: { fall: 3 } }), 'the test')
  const pools = completePools({ shop: { upstreams: [{ url }], health: { fall: 3, rise: undefined }, breaker: undefined } })
  assert.deepEqual(pools, whole.pools)
  assert.deepEqual(completeBreaker({}), whole.pools['shop']?.breaker)
  assert.deepEqual(completeShedding({}), whole.shedding)
  assert.ok(Object.isFrozen(pools['shop']?.health.statuses))
  // What is complete stays as it is.
  assert.deepEqual(completePools(whole.pools), whole.pools)
})

test('its input is not touched', () => {
  const input = { window: { seconds: 5 } }
  assert.equal(completeBreaker(input).window.seconds, 5)
  assert.deepEqual(input, { window: { seconds: 5 } })
})

test('everything that is wrong is told at once, each under its path', () => {
  assert.equal(messageOf(() => completeShedding({ maxInFlight: 0, presure: {} })), [
    'invalid options',
    '  - shedding.presure: is not a known option; did you mean "pressure"? Known here: "maxInFlight", "retryAfterSeconds", "priorities", "pressure"',
    '  - shedding.maxInFlight: must be a whole number from 1 to 2147483647, got 0'
  ].join('\n'))
  assert.equal(messageOf(() => completeBreaker(7)), 'invalid options\n  - breaker: must be a mapping, got a number')
  assert.match(messageOf(() => completeBreaker({ mode: () => 'off' })), /^invalid options\n {2}- breaker\.mode: must be plain data/)
})

const nonsense: Record<string, [Record<string, unknown>, RegExp]> = {
  'a range of statuses from high to low': [{ shop: { upstreams: [{ url }], health: { statuses: [299, 200] } } }, /- pools\.shop\.health\.statuses: must be a range from low to high, got \[299, 200\]$/],
  'a cap of the open time below the open time': [{ shop: { upstreams: [{ url }], breaker: { openMs: 2, maxOpenMs: 1 } } }, /- pools\.shop\.breaker\.maxOpenMs: must be at least pools\.shop\.breaker\.openMs \(2\), got 1$/],
  'a client certificate without its key': [{ shop: { upstreams: [{ url: 'https://127.0.0.1:1' }], tls: { cert: '/no/such/file' } } }, /- pools\.shop\.tls\.key: is required with a cert$/],
  'tls for plain HTTP': [{ shop: { upstreams: [{ url }], tls: {} } }, /- pools\.shop\.tls: is only for pools with an https upstream/],
  'a name with a space': [{ 'a b': { upstreams: [{ url }] } }, /- pools\["a b"\]: must have a name of 1 to 63 letters/],
  'an upstream that stands twice': [{ shop: { upstreams: [{ url }, { url: `${url}/` }] } }, /- pools\.shop\.upstreams\[1\]\.url: is the same upstream \(127\.0\.0\.1:9001\) as pools\.shop\.upstreams\[0\]\.url$/],
  'only weights of 0': [{ shop: { upstreams: [{ url, weight: 0 }] } }, /- pools\.shop\.upstreams: must have an upstream with a weight above 0/],
  'no pool': [{}, /- pools: must be a mapping with at least 1 entry/],
  'no upstreams': [{ shop: {} }, /- pools\.shop\.upstreams: must be a list of at least 1/]
}
for (const [name, [pools, message]] of Object.entries(nonsense)) {
  test(`pools alone refuse what a configuration refuses: ${name}`, () => { assert.match(messageOf(() => completePools(pools)), message) })
}
