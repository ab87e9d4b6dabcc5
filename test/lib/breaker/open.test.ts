import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { Backoff } from '../../../lib/breaker/backoff.ts'
import { optionsWith, Rig } from './support.ts'

describe('an open circuit: when it admits again', () => {
  it('refuses until the open time is over, to the tick', () => {
    const rig = new Rig({}, { now: 1000.25 }).trip()
    assert.deepEqual([rig.snapshot.openedAt, rig.snapshot.reopenAt], [1000.25, 16000.25])
    for (const [now, admits] of [[1000.25, false], [16000.249, false], [16000.25, true], [16000.251, true]] as const) {
      assert.equal(rig.breaker.wouldAdmit(now), admits, `at ${now}`)
      assert.equal(rig.breaker.retryAfterMs(now) === 0, admits)
    }
    rig.wait(14999.999)
    assert.deepEqual([rig.state, rig.admit()], ['open', 0])
    rig.now = 16000.25
    assert.ok(rig.admit() < 0)
    assert.equal(rig.state, 'half-open')
  })

  it('reads open until somebody has looked: state and snapshot never move it', () => {
    const rig = new Rig().trip()
    rig.now = 20000
    assert.equal(rig.state, 'open')
    assert.equal(rig.snapshot.state, 'open')
    assert.equal(rig.breaker.wouldAdmit(rig.now), true)
    assert.deepEqual(rig.causes, ['consecutive_failures'])
    rig.breaker.sweep(rig.now)
    assert.equal(rig.state, 'half-open')
    assert.deepEqual(rig.snapshot.lastTransition, { from: 'open', to: 'half-open', cause: 'open_elapsed', at: 20000 })
    assert.deepEqual([rig.snapshot.openedAt, rig.snapshot.reopenAt], [0, null])
  })

  it('tells for how long it will refuse, never for ever', () => {
    const rig = new Rig({ halfOpen: { probes: 1, probeTimeoutMs: 600 } })
    assert.equal(rig.breaker.retryAfterMs(0), 0)
    rig.trip()
    assert.equal(rig.breaker.retryAfterMs(5000), 10000)
    rig.wait(15000).admit()
    assert.equal(rig.breaker.retryAfterMs(rig.now), 600, 'the lease of the probe')
    rig.now += 599
    assert.equal(rig.breaker.retryAfterMs(rig.now), 1)
    const patient = new Rig({ halfOpen: { probes: 1 } }).trip().wait(15000)
    patient.admit()
    assert.equal(patient.breaker.retryAfterMs(patient.now), 1000)
  })

  it('is not opened again, nor longer, by failures that come while it is open', () => {
    const rig = new Rig()
    const permits = Array.from({ length: 20 }, () => rig.admit())
    for (const [index, permit] of permits.entries()) {
      rig.now = index * 100
      rig.settle(permit, 'failure')
    }
    assert.deepEqual([rig.snapshot.reopenAt, rig.transitions.length, rig.snapshot.openCount], [15400, 1, 1])
  })

  it('stays open for a clock that steps back, and recovers when it comes again', () => {
    const rig = new Rig({ halfOpen: { probes: 1 } }, { now: 7200000 }).trip()
    rig.wait(-3600000)
    assert.deepEqual([rig.state, rig.admit()], ['open', 0])
    rig.wait(3600000 + 15000).play('S')
    assert.equal(rig.state, 'closed')
  })

  it('works on after an uptime of 24.86 days', () => {
    const rig = new Rig({ halfOpen: { probes: 1 } }, { now: 2 ** 31 - 5000 })
    rig.trip().wait(14999).play('-').wait(1).play('S')
    assert.equal(rig.state, 'closed')
    assert.equal(rig.trip().breaker.retryAfterMs(rig.now), 30000)
  })
})

/** Opens, closes by a probe, stays closed for so long, opens again: for how long? */
const secondOpenAfter = (closedMs: number) => {
  const rig = new Rig({ openMs: 1000, maxOpenMs: 60000, halfOpen: { probes: 1 } }).trip().wait(1000).play('S')
  rig.wait(closedMs).trip()
  return rig.transitions.at(-1)?.openForMs
}

/** The first open time, with this one random number. */
const openFor = (random: number, openMs: number) => new Rig({ jitter: 0.2, openMs, maxOpenMs: 10000 }, { random: () => random }).trip().transitions[0]?.openForMs

describe('an open circuit: how long it stays open', () => {
  it('doubles with each re-open up to the cap', () => {
    const rig = new Rig({ openMs: 1000, maxOpenMs: 5000, halfOpen: { probes: 1 } }).trip()
    for (const openMs of [1000, 2000, 4000, 5000, 5000, 5000]) {
      assert.equal(rig.transitions.at(-1)?.openForMs, openMs)
      rig.wait(openMs - 1)
      assert.equal(rig.state, 'open')
      rig.wait(1)
      assert.equal(rig.state, 'half-open')
      rig.play('F')
    }
    assert.equal(rig.snapshot.openCount, 7)
  })

  it('remembers a first opening until it has been closed for a full open time', () => {
    assert.equal(secondOpenAfter(0), 2000)
    assert.equal(secondOpenAfter(999), 2000)
    assert.equal(secondOpenAfter(1000), 1000)
    assert.equal(secondOpenAfter(3600000), 1000)
  })

  it('forgets one step for each full open time spent closed', () => {
    for (const [closedMs, expected] of [[0, 16000], [7999, 16000], [8000, 8000], [16000, 4000], [24000, 2000], [32000, 1000], [80000, 1000]] as const) {
      const rig = new Rig({ openMs: 1000, maxOpenMs: 60000, halfOpen: { probes: 1 } }).trip()
      for (const openMs of [1000, 2000, 4000]) rig.wait(openMs).play('F')
      rig.wait(8000).play('S').wait(closedMs).trip()
      assert.equal(rig.transitions.at(-1)?.openForMs, expected, `after ${closedMs} ms`)
    }
  })

  it('does not grow because the clock stepped back while it was closed', () => {
    assert.equal(secondOpenAfter(-3600000), 2000)
  })

  it('does back off for an upstream that flaps', () => {
    const rig = new Rig({ openMs: 1000, maxOpenMs: 60000, halfOpen: { probes: 1 } }).trip()
    const times = []
    for (let i = 0; i < 7; i++) {
      const openMs = rig.transitions.at(-1)!.openForMs
      times.push(openMs)
      rig.wait(openMs).play('S').wait(500).trip()
    }
    assert.deepEqual(times, [1000, 2000, 4000, 8000, 16000, 32000, 60000])
  })

  it('needs no longer to forget because it was at its cap a thousand times', () => {
    const rig = new Rig({ openMs: 1000, maxOpenMs: 4000, halfOpen: { probes: 1 } }).trip()
    for (let i = 0; i < 1000; i++) rig.wait(4000).play('F')
    rig.wait(4000).play('S').wait(8000).trip()
    assert.equal(rig.transitions.at(-1)?.openForMs, 1000)
  })

  it('never exceeds a cap that is below the open time', () => {
    assert.equal(new Rig({ openMs: 9000, maxOpenMs: 4000 }).trip().transitions[0]?.openForMs, 4000)
  })

  it('is only lengthened by jitter, after the cap', () => {
    assert.equal(openFor(0, 5000), 5000)
    assert.equal(openFor(0.5, 5000), 5500)
    assert.equal(openFor(0.5, 20000), 11000)
  })

  it('stays a sane number for every history', () => {
    const options = optionsWith({ openMs: 100, maxOpenMs: 2 ** 31 - 1, jitter: 0.2 })
    const step = fc.record({ closedMs: fc.oneof(fc.constant(0), fc.double({ min: -1e6, max: 1e12, noNaN: true })), random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }) })
    fc.assert(fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const backoff = new Backoff()
      for (const { closedMs, random } of steps) {
        const openMs = backoff.next(closedMs, options, () => random)
        assert.ok(openMs >= 100 && openMs <= 1.2 * (2 ** 31 - 1), `${openMs}`)
      }
    }))
    const backoff = new Backoff()
    for (let i = 0; i < 100000; i++) assert.ok(Number.isFinite(backoff.next(0, options, () => 0.999)))
  })
})

const rigWith = (minimumShare: number, minimumRequests = 10) =>
  new Rig({ consecutiveFailures: 0, window: { minimumShare, minimumRequests, failureRatio: 0.5 } })

/** So many successes a second for so many seconds. */
const traffic = (rig: Rig, perSecond: number, seconds: number) => {
  for (let i = 0; i < seconds; i++) rig.wait(1000).play('S'.repeat(perSecond))
  return rig
}

describe('the usual volume', () => {
  it('raises the minimum to its share', () => {
    const rig = traffic(rigWith(0.1), 10, 600)
    // 5410 results in nine minutes and a tick
    assert.equal(rig.snapshot.window.needed, 61)
    rig.wait(60000)
    rig.play('F'.repeat(49))
    assert.equal(rig.state, 'closed')
    // the failures raise the usual volume a little themselves
    const { total, failures } = rig.trip().transitions[0]!.evidence
    assert.ok(total === failures && total <= 62, `${total}`)
  })

  it('is not asked for at a share of 0', () => {
    assert.equal(traffic(rigWith(0), 10, 300).snapshot.window.needed, 10)
  })

  it('is not extrapolated from the first seconds', () => {
    const rig = traffic(rigWith(1), 10, 30)
    assert.equal(rig.snapshot.window.needed, 300, 'all that was seen')
    const young = rigWith(0.1).play('S'.repeat(50) + 'F'.repeat(50))
    assert.equal(young.state, 'open', 'a young process is protected')
  })

  it('follows the traffic down: after a quiet quarter of an hour the minimum counts alone', () => {
    const rig = traffic(rigWith(0.1), 20, 600)
    assert.ok(rig.snapshot.window.needed > 100)
    assert.equal(rig.wait(900000).snapshot.window.needed, 10)
  })

  it('stands still while the circuit is not closed', () => {
    const rig = traffic(rigWith(0.1), 10, 600)
    const { needed } = rig.snapshot.window
    rig.play('F'.repeat(600))
    assert.equal(rig.state, 'open')
    const open = rig.snapshot.window.needed
    assert.ok(open >= needed)
    rig.now += 7200000
    assert.equal(rig.snapshot.window.needed, open)
    rig.breaker.sweep(rig.now)
    while (rig.snapshot.state === 'half-open') rig.play('S')
    assert.equal(rig.state, 'closed')
    assert.equal(rig.snapshot.window.needed, open)
  })

  it('is not led astray by floating point', () => {
    // 100 results in a window of one minute: 7 % of them are 7, though 0.07 * 100 is a little more
    const rig = rigWith(0.07, 1).play('S'.repeat(100))
    assert.equal(rig.snapshot.window.needed, 7)
  })

  it('is measured in windows, also in windows longer than its ten minutes', () => {
    const rig = new Rig({ consecutiveFailures: 0, window: { minimumShare: 0.1, minimumRequests: 1, seconds: 3600 } })
    traffic(rig, 1, 1200)
    const { needed } = rig.snapshot.window
    assert.ok(needed >= 324 && needed <= 360, `${needed}`)
  })
})
