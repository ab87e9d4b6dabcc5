import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pack, unpack } from '../../../lib/record/pack.ts'
import type { RecordedAttempt, StoredLine } from '../../../lib/record/types.ts'

const attempt: RecordedAttempt = {
  upstream: '10.0.0.1:80', kind: 'first', outcome: 'failure', reason: 'connection_reset', status: 0, ms: 3, begunAt: 0.4, connectedAt: 1.2, sentAt: 1.3, headAt: null, permit: 'probe', error: 'read ECONNRESET', noRetry: 'budget', retryInMs: null
}

const refused: StoredLine = {
  requestId: 'r-1', kept: 'refused', method: null, path: null, route: null, pool: null, upstream: null, status: 503, reason: 'shed_pressure', ms: 0.1, bytes: 12, traceId: null,
  timeline: { received: 0, admitted: null, picked: null, connect: null, sent: null, head: null, end: 0.1 },
  gate: null, readings: null, version: 0, match: null, deadline: null, evidence: null, retry: null, attempts: [], used: [], passed: [], lookedMs: 0
}

const whole: StoredLine = {
  requestId: 'r-2', kept: 'failed', method: 'GET', path: '/a "quoted"', route: '/*', pool: 'shop', upstream: '10.0.0.1:80', status: 502, reason: 'connection_reset', ms: 4.1, bytes: 200, traceId: 'ab'.repeat(16),
  timeline: { received: 0, admitted: 0, picked: 2, connect: null, sent: 2.5, head: null, end: 4.1 },
  gate: { limit: 256, inFlight: 3 },
  readings: { eventLoopDelayMs: 1, eventLoopUtilization: 0.2, heapUsedBytes: 3, rssBytes: 4 },
  limits: { maxEventLoopDelayMs: 5, maxEventLoopUtilization: 0.9, maxHeapUsedBytes: 7, maxRssBytes: 8 },
  version: 2, match: { by: null, passedOver: [{ route: '/a', why: 'header', name: 'x' }] },
  deadline: { connectMs: 1, headersMs: 2, bodyIdleMs: 3, totalMs: 4, leftMs: null },
  evidence: { max: 1, allowed: ['GET'] }, retry: { allowed: 2, made: 1, noRetry: 'limit' },
  attempts: [attempt, { ...attempt, begunAt: 2, connectedAt: null, sentAt: 2.5, ms: null, outcome: null, kind: 'retry' }],
  used: [0, 2], passed: [{ index: 1, why: 'capacity', inFlight: 4, limit: 4, waiting: 1, maxWaiting: 128 }], lookedMs: 2
}

for (const [name, line] of Object.entries({ refused, whole, unpaid: { ...whole, retry: { allowed: 2, made: 1, noRetry: 'budget' as const, budget: { requests: 134, taken: 23, allowed: 23 } } } })) {
  test(`what is packed is what is unpacked: ${name}`, () => { assert.deepEqual(unpack(pack(line)), line) })
}

test('a refusal takes little more than what it says', () => {
  assert.ok(pack(refused).length < 160, pack(refused))
})
