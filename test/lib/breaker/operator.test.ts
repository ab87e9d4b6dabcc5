import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Breaker } from '../../../lib/breaker/breaker.ts'
import type { Transition } from '../../../lib/breaker/types.ts'
import { optionsWith, Rig } from './support.ts'

const brief = ({ from, to, cause, reason }: Transition) => `${from} > ${to} ${cause}${reason === null ? '' : ` (${reason})`}`

describe('force', () => {
  it('open refuses everything until its time is over, probes included', () => {
    const rig = new Rig()
    rig.breaker.force('open', 60000, 'maintenance', rig.now)
    assert.equal(rig.state, 'open')
    assert.deepEqual([rig.snapshot.openedAt, rig.snapshot.reopenAt, rig.snapshot.openCount], [0, 60000, 0])
    assert.deepEqual(rig.snapshot.force, { state: 'open', until: 60000, reason: 'maintenance' })
    rig.wait(20000).play('-')
    assert.deepEqual([rig.breaker.wouldAdmit(rig.now), rig.breaker.retryAfterMs(rig.now)], [false, 40000])
    rig.wait(39999).play('-')
    rig.now += 1
    assert.equal(rig.breaker.wouldAdmit(rig.now), true)
    rig.play('S')
    assert.equal(rig.snapshot.force, null)
    assert.deepEqual(rig.transitions.map(brief), ['closed > open forced (maintenance)', 'open > closed force_ended (maintenance)'])
    assert.equal(rig.transitions[0]?.openForMs, 60000)
  })

  it('open tells its time in whole milliseconds, whatever fractions the clock has', () => {
    const rig = new Rig({}, { now: 1234.5678 })
    for (let i = 0; i < 100; i++) {
      rig.now += 0.1
      rig.breaker.force('open', 60000, null, rig.now)
      rig.breaker.force('auto', 0, null, rig.now)
    }
    assert.deepEqual([...new Set(rig.transitions.map(({ openForMs }) => openForMs))], [60000, 0])
  })

  it('open outlasts the open time of the belief below', () => {
    const rig = new Rig({ halfOpen: { probes: 1 } }).trip()
    rig.breaker.force('open', 60000, null, rig.now)
    rig.wait(30000).play('-')
    assert.equal(rig.breaker.retryAfterMs(rig.now), 30000)
    rig.wait(30000)
    assert.equal(rig.state, 'half-open')
    rig.play('S')
    assert.deepEqual(rig.transitions.map(brief), [
      'closed > open consecutive_failures',
      'open > open forced',
      'open > half-open force_ended',
      'half-open > closed probes_passed'
    ])
  })

  it('open that ends before the open time of the belief leaves the rest of it', () => {
    const rig = new Rig().trip()
    rig.breaker.force('open', 5000, null, rig.now)
    assert.equal(rig.breaker.retryAfterMs(rig.now), 15000)
    rig.wait(5000)
    assert.deepEqual([rig.state, rig.transitions.at(-1)?.cause, rig.transitions.at(-1)?.openForMs], ['open', 'force_ended', 10000])
  })

  it('closed admits all, while the belief goes on learning', () => {
    const rig = new Rig().trip()
    rig.breaker.force('closed', 60000, 'we know', rig.now)
    assert.equal(rig.state, 'closed')
    rig.play('F'.repeat(100)).wait(14000).play('SFSF')
    assert.equal(rig.breaker.retryAfterMs(rig.now), 0)
    rig.wait(1000).play('F')
    rig.play('S'.repeat(50))
    assert.equal(rig.state, 'closed')
    assert.equal(rig.transitions.length, 2, 'what the belief does below is not told')
    rig.wait(45000)
    assert.deepEqual(rig.transitions.map(brief).slice(1), ['open > closed forced (we know)', 'closed > half-open force_ended (we know)'])
  })

  it('closed admits without limit while the belief below is half-open, and only the batch decides', () => {
    const rig = new Rig({ halfOpen: { probes: 2 } }).trip()
    rig.breaker.force('closed', 600000, null, rig.now)
    rig.wait(15000)
    const permits = Array.from({ length: 10 }, () => rig.admit())
    assert.equal(permits.filter(permit => permit < 0).length, 2)
    assert.ok(permits.every(permit => permit !== 0))
    for (const permit of permits.slice(2)) rig.settle(permit, 'failure')
    for (const permit of permits.slice(0, 2)) rig.settle(permit, 'success')
    rig.breaker.force('auto', undefined, 'back to normal', rig.now)
    assert.equal(rig.state, 'closed')
    assert.equal(rig.transitions.at(-1)?.reason, 'back to normal')
    assert.equal(rig.breaker.outstanding, 0)
  })

  it('closed that ends over a full half-open batch begins a new one, as wouldAdmit says before anybody noticed', () => {
    const rig = new Rig({ halfOpen: { probes: 1 } }).trip()
    rig.breaker.force('closed', 20000, null, rig.now)
    const early = rig.wait(15000).admit()
    assert.ok(early < 0)
    rig.now = 20000
    assert.deepEqual([rig.breaker.wouldAdmit(rig.now), rig.breaker.retryAfterMs(rig.now)], [true, 0])
    assert.ok(rig.admit() < 0)
    rig.settle(early, 'failure')
    assert.equal(rig.state, 'half-open')
    assert.deepEqual(rig.snapshot.probes, { batch: 1, granted: 1, inFlight: 1, settled: 0, failed: 0, expired: 0 })
  })

  it('closed protects at once when it ends over an upstream that failed all the while', () => {
    const rig = new Rig()
    rig.breaker.force('closed', 10000, null, rig.now)
    rig.play('F'.repeat(20)).wait(10000)
    assert.deepEqual([rig.state, rig.transitions.map(brief)], ['open', ['closed > closed forced', 'closed > open force_ended']])
    assert.equal(rig.transitions.at(-1)?.openForMs, 5000)
  })

  it('replaces an earlier force', () => {
    const rig = new Rig()
    rig.breaker.force('open', 10000, 'a', rig.now)
    rig.breaker.force('closed', 1000, 'b', rig.now)
    rig.play('S').wait(1000)
    assert.deepEqual(rig.transitions.map(brief), ['closed > open forced (a)', 'open > closed forced (b)', 'closed > closed force_ended (b)'])
  })

  it('auto without a force does nothing', () => {
    const rig = new Rig()
    rig.breaker.force('auto', undefined, null, rig.now)
    assert.deepEqual(rig.transitions, [])
  })

  it('wants a time to live', () => {
    const { breaker, transitions } = new Rig()
    for (const ttlMs of [undefined, 0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31]) {
      assert.throws(() => breaker.force('open', ttlMs, null, 0), RangeError)
      assert.throws(() => breaker.force('closed', ttlMs, null, 0), /ttlMs must be more than 0 and at most 2147483647/)
    }
    breaker.force('open', 2 ** 31 - 1, null, 0)
    assert.equal(transitions.length, 1)
  })

  it('counts no result across an operator\'s act', () => {
    const rig = new Rig({ consecutiveFailures: 1 })
    const before = rig.admit()
    rig.breaker.force('closed', 1000, null, rig.now)
    rig.settle(before, 'failure')
    rig.wait(1000)
    assert.deepEqual([rig.state, rig.breaker.outstanding], ['closed', 0])
  })
})

describe('reset', () => {
  it('closes with a clean record from wherever it was', () => {
    for (const script of ['closed', 'open', 'half-open', 'forced open'] as const) {
      const rig = new Rig({ halfOpen: { probes: 4 } }).play('FFF')
      if (script !== 'closed') rig.trip()
      if (script === 'half-open') rig.wait(15000).admit()
      if (script === 'forced open') rig.breaker.force('open', 1000000, null, rig.now)
      const from = rig.state
      rig.breaker.reset(rig.now, 'fixed it')
      assert.equal(brief(rig.transitions.at(-1)!), `${from} > closed reset (fixed it)`)
      const { state, consecutiveFailures, window, openCount, probes, force, openedAt, reopenAt } = rig.snapshot
      assert.deepEqual([state, consecutiveFailures, window.total, openCount, force, openedAt, reopenAt], ['closed', 0, 0, 0, null, null, null])
      assert.deepEqual(probes, { batch: 0, granted: 0, inFlight: 0, settled: 0, failed: 0, expired: 0 })
      rig.play('FFFF')
      assert.equal(rig.state, 'closed', script)
    }
  })

  it('leaves nothing behind that would move it later', () => {
    const rig = new Rig().trip()
    rig.breaker.reset(rig.now)
    rig.wait(3600000)
    assert.equal(rig.state, 'closed')
    assert.deepEqual(rig.causes, ['consecutive_failures', 'reset'])
  })

  it('makes the next open time the first again', () => {
    const rig = new Rig({ halfOpen: { probes: 1 } }).trip().wait(15000).play('F').wait(30000).play('F')
    assert.equal(rig.transitions.at(-1)?.openForMs, 60000)
    rig.breaker.reset(rig.now)
    assert.equal(rig.trip().transitions.at(-1)?.openForMs, 15000)
  })

  it('keeps the places of requests that are still out', () => {
    const rig = new Rig({ halfOpen: { probes: 2 } })
    const permits = [rig.admit()]
    rig.trip().wait(15000)
    permits.push(rig.admit())
    rig.breaker.reset(rig.now)
    assert.equal(rig.breaker.outstanding, 2)
    for (const permit of permits) rig.settle(permit, 'failure')
    assert.deepEqual([rig.breaker.outstanding, rig.counts], [0, [0, 0]])
  })
})

describe('transitions', () => {
  it('are told once, in order, when the listener acts on the breaker', () => {
    const told: string[] = []
    const seen: string[] = []
    const breaker: Breaker = new Breaker(optionsWith({ consecutiveFailures: 1 }), () => 0, 0, (transition) => {
      seen.push(breaker.state)
      if (transition.cause === 'consecutive_failures') {
        breaker.reset(5, 'listener')
        breaker.force('open', 1000, 'listener', 5)
      }
      told.push(brief(transition))
    })
    breaker.settle(breaker.admit(0), 'failure', 0)
    assert.deepEqual(told, ['closed > open consecutive_failures', 'open > closed reset (listener)', 'closed > open forced (listener)'])
    assert.deepEqual(seen, ['open', 'open', 'open'], 'each after all of it was committed')
  })

  it('that arise during an admission leave it whole', () => {
    const breaker: Breaker = new Breaker(optionsWith({ consecutiveFailures: 1 }), () => 0, 0, ({ cause }) => {
      if (cause === 'open_elapsed') breaker.reset(20000)
    })
    breaker.settle(breaker.admit(0), 'failure', 0)
    const permit = breaker.admit(20000)
    assert.ok(permit > 0, 'the listener closed it')
    breaker.settle(permit, 'success', 20000)
    assert.equal(breaker.snapshot(20000).window.total, 1)
    assert.equal(breaker.outstanding, 0)
  })

  it('go on after a listener has thrown', () => {
    let told = 0
    const breaker = new Breaker(optionsWith({ consecutiveFailures: 1 }), () => 0, 0, () => {
      told++
      throw new Error('listener')
    })
    const permit = breaker.admit(0)
    assert.throws(() => breaker.settle(permit, 'failure', 0), /listener/)
    assert.equal(breaker.state, 'open')
    assert.throws(() => breaker.reset(0), /listener/)
    assert.deepEqual([breaker.state, told], ['closed', 2])
  })

  it('and snapshots are frozen copies', () => {
    const rig = new Rig().play('SF').trip()
    rig.breaker.force('open', 1000, 'x', rig.now)
    const frozen = (value: unknown): boolean => typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen))
    assert.ok(frozen(rig.snapshot))
    assert.ok(rig.transitions.every(frozen))
    const snapshot = new Rig().play('SF').snapshot
    assert.ok(frozen(snapshot))
    assert.deepEqual(snapshot.window.buckets, [[0, 2, 1]])
  })
})
