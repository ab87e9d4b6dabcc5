import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stepCount, stepMs } from '../../../lib/history/column.ts'
import { History, type Sample } from '../../../lib/history/history.ts'

const well = { breaker: 'closed', healthy: true, draining: false, ejected: false } as const
const sample = (id: string, changes: Partial<Sample> = {}): Sample => ({ id, inFlight: 0, ...well, ...changes })
/** When step 100 begins. */
const start = 99 * stepMs

/** A history with a pool `shop` of `a` and `b`. */
function shop (): History {
  const history = new History(start)
  history.sample('shop', [sample('a'), sample('b')])
  return history
}

/** An attempt from its begin to its end. */
function attempt (history: History, upstream: string, outcome: 'success' | 'failure' | 'cancelled' | 'ignored', headMs = 10): void {
  history.attemptBegun('shop', upstream, 1, 1)
  history.attemptEnded('shop', upstream, outcome, headMs)
}

test('attempts count in their step, for their upstream, its pool and all, by outcome', () => {
  const history = shop()
  attempt(history, 'a', 'success')
  attempt(history, 'a', 'failure', -1)
  attempt(history, 'b', 'cancelled')
  history.advance(start + stepMs)
  attempt(history, 'b', 'ignored')
  history.advance(start + 2 * stepMs)
  const { first, last, all, pools } = history.figures(0)
  assert.deepEqual([first, last], [100, 101])
  assert.deepEqual([all.requests, all.failure, all.cancelled, all.ignored], [[3, 1], [1, 0], [1, 0], [0, 1]])
  const { upstreams: { a, b }, ...pool } = pools['shop']!
  assert.deepEqual([pool.requests, a?.requests, b?.requests], [[3, 1], [2, 0], [1, 1]])
  assert.deepEqual([a?.failure, b?.failure], [[1, 0], [0, 0]])
})

test('times to the head are told by step, with three digits, and null where no head came', () => {
  const history = shop()
  for (let ms = 1; ms <= 100; ms++) attempt(history, 'a', 'success', ms)
  history.advance(start + stepMs)
  attempt(history, 'a', 'failure', -1)
  history.advance(start + 2 * stepMs)
  const { p50, p95, p99 } = history.figures(0).all
  for (const [times, exact] of [[p50, 50], [p95, 95], [p99, 99]] as const) {
    assert.ok(Math.abs(times[0]! / exact - 1) < 0.1, `${times[0]} for ${exact}`)
    assert.equal(String(times[0]).replace('.', '').length <= 3, true, String(times[0]))
    assert.equal(times[1], null)
  }
})

test('in flight is the most at the same time, and what is under way goes on into the next steps', () => {
  const history = shop()
  for (const inFlight of [1, 2, 3]) history.attemptBegun('shop', 'a', inFlight, inFlight)
  history.attemptEnded('shop', 'a', 'success', 1)
  history.sample('shop', [sample('a', { inFlight: 2 }), sample('b')])
  history.advance(start + 3 * stepMs)
  const { gate, all, pools: { shop: pool } } = history.figures(0)
  assert.deepEqual([gate.inFlight[0], all.inFlight, pool?.inFlight], [3, [3, 2, 2], [3, 2, 2]])
  assert.deepEqual(pool?.upstreams['a']?.inFlight, [3, 2, 2])
})

test('of beliefs the worst of a step is kept, and of usable upstreams the fewest', () => {
  const history = shop()
  history.sample('shop', [sample('a', { breaker: 'open' }), sample('b', { healthy: false, draining: true })])
  history.sample('shop', [sample('a', { breaker: 'half-open' }), sample('b', { ejected: true })])
  history.advance(start + stepMs)
  history.sample('shop', [sample('a', { breaker: 'half-open' }), sample('b')])
  history.advance(start + 2 * stepMs)
  const { usable, upstreams } = history.figures(0).pools['shop']!
  assert.deepEqual([usable, upstreams['a']?.breaker, upstreams['a']?.out, upstreams['b']?.out], [[0, 2], [3, 2], [0, 0], [7, 0]])
})

test('refusals before an upstream was asked are told by reason; failures of upstreams are not among them', () => {
  const history = shop()
  for (const reason of ['shed_capacity', 'shed_capacity', 'breaker_open', 'connect_refused', 'client_cancelled', null] as const) {
    history.exchangeBegun()
    history.exchangeEnded(reason)
  }
  history.sampleGate(7, 12.345)
  history.sampleGate(3, Number.POSITIVE_INFINITY)
  history.advance(start + stepMs)
  assert.deepEqual(history.figures(0).gate, { requests: [6], refused: { shed_capacity: [2], breaker_open: [1] }, inFlight: [7], loopDelayMs: [12.3] })
})

test('fifteen minutes are kept; who knows a step gets those after it, and who knows one that has not been gets all', () => {
  const history = shop()
  assert.deepEqual([history.figures(0).first, history.figures(0).last, history.figures(0).all.requests], [100, 99, []])
  for (let step = 0; step < 400; step++) {
    attempt(history, 'a', 'success')
    if (step % 2 === 0) attempt(history, 'b', 'success')
    history.advance(start + (step + 1) * stepMs)
  }
  const whole = history.figures(0)
  assert.deepEqual([whole.first, whole.last, whole.all.requests.length], [320, 499, stepCount])
  assert.deepEqual(whole.all.requests.slice(-3), [1, 2, 1])
  const { first, last, all, pools } = history.figures(497)
  assert.deepEqual([first, last, all.requests, pools['shop']?.upstreams['b']?.requests], [498, 499, [2, 1], [1, 0]])
  assert.deepEqual(history.figures(499).all.requests, [])
  assert.equal(history.figures(9999).first, 320)
})

test('a clock that goes back changes nothing, one that leaps leaves empty steps behind', () => {
  const history = shop()
  attempt(history, 'a', 'success')
  history.advance(start - 50 * stepMs)
  attempt(history, 'a', 'failure')
  history.advance(Number.NaN)
  history.advance(start + stepMs)
  assert.deepEqual(history.figures(0).all.requests, [2])
  history.advance(start + 1e6 * stepMs)
  const { first, last, all } = history.figures(0)
  assert.deepEqual([last - first + 1, all.requests.every((each) => each === 0)], [stepCount, true])
})

test('pools and upstreams that are gone are forgotten, and what ends at them harms nobody', () => {
  const history = shop()
  history.sample('users', [sample('__proto__')])
  history.attemptBegun('shop', 'b', 1, 1)
  history.sample('shop', [sample('a')])
  history.keep(new Set(['shop']))
  history.attemptEnded('shop', 'b', 'success', 1)
  history.attemptEnded('users', '__proto__', 'success', 1)
  history.sample('shop', [sample('a'), sample('b')])
  history.advance(start + stepMs)
  const { all, pools } = history.figures(0)
  assert.deepEqual(Object.keys(pools), ['shop'])
  assert.deepEqual([all.requests, pools['shop']?.requests, pools['shop']?.upstreams['b']?.requests, pools['shop']?.inFlight], [[2], [1], [0], [1]])
})
