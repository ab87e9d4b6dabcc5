/** What only a busy machine or a certain failure brings about: explained from its numbers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explanationOf } from '../../../lib/record/explanation.ts'

const limits = { maxEventLoopDelayMs: 1000, maxEventLoopUtilization: 0.98, maxHeapUsedBytes: 0, maxRssBytes: 0 }
const facts = { reason: 'shed_pressure', gate: { limit: 24, inFlight: 3 }, readings: { eventLoopDelayMs: 289, eventLoopUtilization: 1, heapUsedBytes: 1, rssBytes: 1 }, limits, retry: null } as never as Parameters<typeof explanationOf>[0]

test('a gate that refuses at 3 of 24 places says that a busy loop leaves no more', () => {
  assert.equal(explanationOf(facts), 'The proxy itself was under pressure: event-loop utilization 1, limit 0.98; 3 of 24 places of the gate taken, and no more than 3 are given while the loop is so busy.')
})

test('one that is closed by something else does not', () => {
  const late = { ...facts, readings: { eventLoopDelayMs: 1200, eventLoopUtilization: 1, heapUsedBytes: 1, rssBytes: 1 } }
  assert.equal(explanationOf(late), 'The proxy itself was under pressure: event-loop delay 1.2 s, limit 1 s; event-loop utilization 1, limit 0.98; 3 of 24 places of the gate taken.')
})

test('an answer whose status is not retried says so, where there are retries', () => {
  const answered = { reason: null, status: 500, kept: 'failed', ms: 5.3, attempts: [{ upstream: 'a', outcome: 'failure', status: 500, error: null }], retry: { allowed: 1, made: 0, noRetry: null } } as never as typeof facts
  assert.equal(explanationOf(answered), 'Answered with 500 after 5.3 ms. That is the upstream\'s own answer (a), and counts as a failure. No further attempt: 500 is not one of retry.statuses.')
})
