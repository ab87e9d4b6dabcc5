import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noAddresses, settle, shorter, type Addresses, type Answer } from '../../../lib/discovery/answer.ts'

const found = (addresses: string[], ttlMs: number | null = 1000): Answer => ({ kind: 'found', addresses, ttlMs })
const none: Answer = { kind: 'none', why: 'none' }
const failed: Answer = { kind: 'failed', why: 'broken', late: false }
const before: Addresses = { ipv4: ['10.0.0.1', '10.0.0.2'], ipv6: ['fd00::1'] }

test('what an answer leaves of the addresses', () => {
  for (const [what, answer, ipv4, ipv6, rest] of [
    ['both are found', { ipv4: found(['a'], 5), ipv6: found(['b'], 3) }, ['a'], ['b'], { found: true, retained: 0, failed: null, none: null, ttlMs: 3 }],
    ['one is found, the other has none', { ipv4: found(['a']), ipv6: none }, ['a'], [], { found: true, retained: 0, failed: null, none: 'none', ttlMs: 1000 }],
    ['one is found, the other cannot be asked for', { ipv4: found(['a']), ipv6: failed }, ['a'], ['fd00::1'], { found: true, retained: 1, failed: 'broken', none: null, ttlMs: 1000 }],
    ['one has none, the other cannot be asked for', { ipv4: none, ipv6: failed }, [], ['fd00::1'], { found: false, retained: 1, failed: 'broken', none: 'none', ttlMs: null }],
    ['neither can be asked for', { ipv4: failed, ipv6: failed }, before.ipv4, before.ipv6, { found: false, retained: 3, failed: 'broken', none: null, ttlMs: null }],
    ['neither has any', { ipv4: none, ipv6: none }, [], [], { found: false, retained: 0, failed: null, none: 'none', ttlMs: null }],
    ['a family that is not asked for any more', { ipv4: found(['a']) }, ['a'], [], { found: true, retained: 0, failed: null, none: null, ttlMs: 1000 }],
    ['an answer without its time', { ipv4: found(['a'], null), ipv6: found(['b'], 7) }, ['a'], ['b'], { found: true, retained: 0, failed: null, none: null, ttlMs: 7 }],
    ['an answer of nothing', { ipv4: found([]) }, [], [], { found: false, retained: 0, failed: null, none: null, ttlMs: 1000 }]
  ] as const) {
    assert.deepEqual(settle(before, answer), { addresses: { ipv4, ipv6 }, ...rest }, what)
  }
})

test('where nothing may be kept, a failure leaves nothing', () => {
  assert.deepEqual(settle(noAddresses, { ipv4: found(['a']), ipv6: failed }).retained, 0)
})

test('the shorter of two lives, of which either may be unknown', () => {
  assert.deepEqual([shorter(1, 2), shorter(3, 2), shorter(null, 2), shorter(1, null), shorter(null, null)], [1, 2, 2, 1, null])
})
