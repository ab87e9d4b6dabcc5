import { test } from 'node:test'
import assert from 'node:assert/strict'
import { parseResult } from '../../bench/load.ts'
import type { Round } from '../../bench/measure.ts'
import { figure, judge, printRows, printTargets, summarize, textTable, type PeerRounds } from '../../bench/report.ts'

const round = (cpuMicros: number, invalid: string | null = null): Round => ({ invalid, requests: 1000, cpuMicros, busy: 0.9, requestsPerSecond: 20000, p50: 0.5, p99: 2 })
const peer = (name: string, rounds: Round[]): PeerRounds => ({ name, features: `${name}'s features`, version: '1.0', rounds, peakKib: 51200 })

const measured = [
  peer('breakwater', [round(40), round(60), round(40)]),
  peer('reply-from', [round(80), round(120), round(20, '7 answers were not 2xx')]),
  peer('nginx', [round(10), round(20), round(20)])
]

test('a peer is summed up by its median and our ratio to it by the median of the rounds', () => {
  const [ours, , nginx] = summarize(measured, 'breakwater')
  assert.deepEqual(ours?.cpuMicros, { median: 40, min: 40, max: 60 })
  assert.equal(ours?.ratio.median, 1)
  assert.deepEqual(nginx?.ratio, { median: 3, min: 2, max: 4 })
})

test('an invalid round counts nowhere and says why', () => {
  const [, replyFrom] = summarize(measured, 'breakwater')
  assert.equal(replyFrom?.validRounds, 2)
  assert.deepEqual(replyFrom?.cpuMicros, { median: 100, min: 80, max: 120 })
  assert.deepEqual(replyFrom?.ratio, { median: 0.5, min: 0.5, max: 0.5 })
  assert.deepEqual(replyFrom?.faults, ['round 3: 7 answers were not 2xx'])
  assert.match(printRows(summarize(measured, 'breakwater')), /reply-from \(2\/3 valid\)[^]*INVALID reply-from round 3: 7 answers were not 2xx/)
})

test('a target is reached at its bound, not reached above it, unknown without both figures', () => {
  const rows = summarize(measured, 'breakwater')
  const results = judge(rows, 'breakwater', new Map([['reply-from', 0.5], ['nginx', 2.9], ['caddy', 0.85]]))
  assert.deepEqual(results.map(({ peer: name, verdict }) => [name, verdict]), [['reply-from', 'reached'], ['nginx', 'not reached'], ['caddy', 'unknown']])
  assert.match(printTargets(results), /breakwater \/ caddy\s+0\.85\s+-\s+unknown/)
})

test('without Breakwater there are figures and no ratios', () => {
  const rows = summarize(measured.slice(1), 'breakwater')
  assert.equal(rows[0]?.cpuMicros.median, 100)
  assert.ok(rows.every(row => Number.isNaN(row.ratio.median)))
  assert.ok(!printRows(rows).includes('NaN'))
})

test('tables align: the first column to the left, the rest to the right', () => {
  assert.equal(textTable(['a', 'num'], [['long', '1'], ['b', '1000']]), 'a      num\nlong     1\nb     1000')
  assert.equal(figure(1.25, 1), '1.3')
  assert.equal(figure(NaN, 1), '-')
})

test('the client\'s result is the last JSON line of what it printed', () => {
  const result = { requests: 5, seconds: 1, p50: 0.1, p99: 0.2, badStatuses: 0, socketErrors: 0 }
  assert.deepEqual(parseResult(`Running 1s test\n{ not this }\n\n${JSON.stringify(result)}\n`), result)
  assert.throws(() => parseResult('unable to connect'), /no result: unable to connect/)
})
