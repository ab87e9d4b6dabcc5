import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Opening } from '../../../lib/breaker/types.ts'
import { candidatesOf } from '../../../lib/record/candidates.ts'
import type { MemberNote, StoredLine } from '../../../lib/record/types.ts'

const receivedAt = Date.parse('2026-01-31T02:13:44.100Z')
const iso = (ms: number): string => new Date(ms).toISOString()

function detailOf (member: Partial<MemberNote>, breaker: Partial<MemberNote['breaker'] & object> = {}): string | undefined {
  const numbers = { consecutiveFailures: 0, total: 0, failures: 0, openCount: 1, probes: { batch: 1, inFlight: 1, settled: 0, failed: 0 }, ...breaker }
  const line = { used: [], passed: [], lookedMs: 0 } as unknown as StoredLine
  const upstream = '10.0.0.1:9001'
  const [only] = candidatesOf({ version: 1, panic: false, members: [{ upstream, why: 'breaker_open', state: 'open', openedAt: receivedAt - 12000, reopenAt: receivedAt + 3000, breaker: numbers, ...member }] }, line, receivedAt, iso)
  assert.equal(only?.openedAt, iso(receivedAt - 12000))
  return only.detail
}

const ratio: Opening = { cause: 'failure_ratio', limit: 0.5, failures: 9, total: 12, seconds: 30, needed: 10, failure: 'headers_timeout', again: null }
const stall: Opening = { cause: 'stall', limit: 8, outstanding: 9, oldestMs: 1600, stallAfterMs: 500, failure: null, again: null }
const again: Opening = { cause: 'consecutive_failures', limit: 5, failures: 5, failure: 'status_503', again: { total: 1, failures: 1, failure: 'connect_refused' } }

test('a member that its breaker kept out says since when and why it was open, by every trigger', () => {
  assert.equal(detailOf({}, { opening: ratio }), 'breaker open for 12 s after 9 of 12 requests failed within 30 s (failureRatio 0.5, from 10 requests on; last: headers_timeout), admits again in 3 s; it has opened once')
  assert.equal(detailOf({}, { opening: stall }), 'breaker open for 12 s after 9 requests got no answer, the oldest for 1.6 s (stall: 8 for 500 ms), admits again in 3 s; it has opened once')
  assert.equal(detailOf({}, { opening: again, openCount: 2 }), 'breaker open for 12 s after 5 failures in a row (consecutiveFailures 5; last: status_503), then after its probe failed (connect_refused), admits again in 3 s; it has opened 2 times')
  assert.equal(detailOf({ why: 'breaker_half_open', state: 'half-open', reopenAt: null }, { opening: again, openCount: 2 }), 'breaker half-open after 5 failures in a row (consecutiveFailures 5; last: status_503), then after its probe failed (connect_refused), all of its probes out (1 under way, 0 of 1 with a result); it has opened 2 times')
})

test('one that was ejected says what led to that', () => {
  const ejected = { why: 'ejected', ejectedUntil: receivedAt + 9000 } as const
  assert.equal(detailOf({ ...ejected, ejection: { trigger: 'ratio', failures: 12, total: 20 } }), 'ejected by passive observation for another 9 s: 12 of 20 answers failed')
  assert.equal(detailOf({ ...ejected, ejection: { trigger: 'consecutive', failures: 5, total: null } }), 'ejected by passive observation for another 9 s: 5 failures in a row')
})

test('one that an operator keeps out says since when, and the reason that was given', () => {
  assert.equal(detailOf({}, { openCount: 0, forced: { state: 'open', reason: 'a drill' } }), 'breaker forced open for 12 s (a drill), admits again in 3 s')
  assert.equal(detailOf({}, { openCount: 0, forced: { state: 'open', reason: null } }), 'breaker forced open for 12 s, admits again in 3 s')
})
