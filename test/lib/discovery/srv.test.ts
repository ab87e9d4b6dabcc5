import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { rankTargets, serviceHost, type SrvRecord } from '../../../lib/discovery/srv.ts'

const record = (name: string, priority: number, weight: number, port = 80): SrvRecord => ({ name, port, priority, weight })
const ranked = (...records: SrvRecord[]): Array<[string, number, number]> => rankTargets(records).map(({ name, priority, weight }) => [name, priority, weight])

test('distinct priorities become tiers from 0 on, whatever their numbers', () => {
  assert.deepEqual(ranked(record('c', 65535, 1), record('a', 10, 1), record('b', 20, 1), record('a2', 10, 1)), [['a', 0, 1], ['a2', 0, 1], ['b', 1, 1], ['c', 2, 1]])
})

test('more than ten priorities share the last tier', () => {
  const tiers = rankTargets(Array.from({ length: 14 }, (_, index) => record(`h${index}`, index, 1))).map(({ priority }) => priority)
  assert.deepEqual(tiers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9])
})

test('weights are relative to the largest of their tier; 0 beside others is the least, not none', () => {
  assert.deepEqual(ranked(record('a', 0, 65535), record('b', 0, 13107), record('c', 0, 0), record('d', 1, 3), record('e', 1, 1)),
    [['a', 0, 1000], ['b', 0, 200], ['c', 0, 1], ['d', 1, 1000], ['e', 1, 333]])
})

test('equal weights are 1 each, zeros too, so that their number does not change them', () => {
  assert.deepEqual(ranked(record('a', 0, 33), record('b', 0, 33)), [['a', 0, 1], ['b', 0, 1]])
  assert.deepEqual(ranked(record('a', 0, 0), record('b', 0, 0)), [['a', 0, 1], ['b', 0, 1]])
})

test('"." is no target, and neither is a port of 0', () => {
  assert.deepEqual(ranked(record('.', 0, 0), record('', 0, 0), record('a', 0, 0, 0)), [])
  assert.deepEqual(ranked(record('A.Test.', 0, 0)), [['a.test', 0, 1]])
})

test('the order of the records does not matter, and no target is lost', () => {
  const records = fc.uniqueArray(fc.record({ name: fc.constantFrom('a', 'b', 'c'), port: fc.integer({ min: 1, max: 4 }), priority: fc.integer({ min: 0, max: 65535 }), weight: fc.integer({ min: 0, max: 65535 }) }),
    { selector: ({ name, port }) => `${name} ${port}` })
  fc.assert(fc.property(records, (given) => {
    const targets = rankTargets(given)
    assert.deepEqual(rankTargets(given.toReversed()), targets)
    assert.equal(targets.length, given.length)
    assert.ok(targets.every(({ priority, weight }) => priority >= 0 && priority <= 9 && Number.isInteger(weight) && weight >= 1 && weight <= 1000))
  }))
})

test('the Host of a service is its name without the labels of the service', () => {
  for (const [name, host] of [['_http._tcp.Shop.Internal', 'shop.internal'], ['_http._tcp.shop.internal.', 'shop.internal'], ['shop.internal', 'shop.internal'], ['my_shop.internal', 'my_shop.internal'], ['_http._tcp', '_tcp']] as const) {
    assert.equal(serviceHost(name), host)
  }
})
