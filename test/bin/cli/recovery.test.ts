/** By when a drill has upstreams used again: by what the proxy itself tells of their open times, as numbers. */
import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { UpstreamStatus } from '../../../bin/cli/status-read.ts'
import { Recovery, slackOf, unusedText } from '../../../bin/drill/recovery.ts'
import type { Promises } from '../../../bin/drill/target.ts'

const promises: Promises = {
  consecutiveFailures: 5, failureRatio: 0.5, windowSeconds: 60, minimumRequests: 10, minimumShare: 0.1, stallOutstanding: 8, mode: 'enforce', openMs: 1000, maxOpenMs: 120_000,
  probeTimeoutMs: 10_000, headersMs: 2000, intervalMs: 1000, health: true, checkTimeoutMs: 1000, fall: 1, rise: 1, retries: 0, maxInFlight: 20
}

const at = (ms: number): string => new Date(ms).toISOString()
const breaker = (state: string, reopenAt: number | null = null): UpstreamStatus['breaker'] => ({ state, mode: 'enforce', forced: false, reopenAt: reopenAt === null ? null : at(reopenAt), total: 0, failures: 0 })
const upstream = (changes: Partial<UpstreamStatus> = {}): UpstreamStatus => ({ upstream: 'a', state: 'up', cause: '', since: null, ejectedUntil: null, inFlight: 0, limit: 0, breaker: breaker('closed'), ...changes })
const open = (reopenAt: number): UpstreamStatus => upstream({ state: 'open', breaker: breaker('open', reopenAt) })

const slack = 1000 * 2 * 1.2 + 1000 + 2000 + 5000

test('checks, probes and a margin are waited for, and no checks where there are none', () => {
  equal(slackOf(promises), slack)
  equal(slackOf({ ...promises, rise: 4 }), slack + 3600)
  equal(slackOf({ ...promises, health: false }), 7000)
})

test('an open time that earlier openings have made long is waited for, whatever the configuration says', () => {
  const recovery = new Recovery(promises, 100_000)
  equal(recovery.dueAt, 100_000 + slack)
  equal(recovery.look([upstream(), open(164_000)], 100_000), false)
  equal(recovery.dueAt, 164_000 + slack)
  equal(recovery.look([upstream(), upstream({ state: 'half-open', breaker: breaker('half-open') })], 164_050), false)
  equal(recovery.look([upstream(), upstream()], 164_100), true)
})

test('a probe from before the end of the fault may re-open the circuit; what is sent afterwards may not, and moves nothing', () => {
  const recovery = new Recovery(promises, 100_000)
  recovery.look([open(101_000)], 100_000)
  recovery.look([open(104_500)], 102_900)
  equal(recovery.dueAt, 104_500 + slack)
  recovery.look([open(130_000)], 103_100)
  equal(recovery.dueAt, 104_500 + slack)
})

test('an ejection is waited for until its end', () => {
  const recovery = new Recovery(promises, 100_000)
  equal(recovery.look([upstream({ state: 'ejected', ejectedUntil: at(130_000) })], 100_000), false)
  equal(recovery.dueAt, 130_000 + slack)
})

test('an upstream whose circuit is not closed is not used, whatever else is said of it, and no upstream is none that is used', () => {
  const recovery = new Recovery(promises, 0)
  deepEqual([
    recovery.look([], 0), recovery.look([upstream({ breaker: breaker('half-open') })], 0), recovery.look([upstream({ breaker: null })], 0)
  ], [false, false, true])
  equal(unusedText([upstream(), upstream({ upstream: 'b', state: 'draining', cause: 'taken out by an operator' })]), 'b is draining: taken out by an operator')
})
