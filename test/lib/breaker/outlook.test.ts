import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Rig } from './support.ts'

const said = (rig: Rig): string => rig.snapshot.explanation

describe('what is next', () => {
  it('for a closed circuit are failures, by whichever trigger is nearer', () => {
    assert.deepEqual(new Rig().play('FF').snapshot.next, { to: 'open', cause: 'consecutive_failures', at: null, after: 3 })
    assert.deepEqual(new Rig({ consecutiveFailures: 9 }).play('FFFFSFFFF').snapshot.next, { to: 'open', cause: 'failure_ratio', at: null, after: 1 })
    assert.equal(new Rig({ mode: 'off' }).snapshot.next, null)
  })

  it('for an open one is the end of its open time', () => {
    const rig = new Rig().trip().wait(5000)
    assert.deepEqual(rig.snapshot.next, { to: 'half-open', cause: 'open_elapsed', at: 15000, after: null })
    assert.deepEqual(rig.snapshot.openFor, { ms: 5000, configuredMs: 15000, reopened: 0, overdue: false })
  })

  it('under a force is the end of that', () => {
    const rig = new Rig()
    rig.breaker.force('open', 60000, 'a drill', 0)
    assert.deepEqual(rig.snapshot.next, { to: 'closed', cause: 'force_ended', at: 60000, after: null })
    assert.deepEqual(rig.wait(1000).snapshot.openFor, { ms: 1000, configuredMs: 60000, reopened: 0, overdue: false })
    assert.equal(said(rig), 'Forced open for another 59 s (a drill).')
  })

  it('for a half-open one are probes: so many decide it, and one fewer does not', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 32 }), fc.constantFrom(0, 0.1, 0.5, 0.9, 1), fc.array(fc.boolean(), { maxLength: 32 }), fc.boolean(), (probes, failureRatio, results, success) => {
      const rig = new Rig({ consecutiveFailures: 1, window: { failureRatio }, halfOpen: { probes } }).trip().wait(15000)
      for (const result of results) if (rig.state === 'half-open') rig.play(result ? 'S' : 'F')
      if (rig.state !== 'half-open') return
      const { successes, failures } = rig.snapshot.probesToGo ?? assert.fail()
      const left = success ? successes : failures
      const letter = success ? 'S' : 'F'
      for (let i = 1; i < (left ?? probes); i++) if (rig.state === 'half-open') rig.play(letter)
      if (left === null) return assert.notEqual(rig.state, success ? 'closed' : 'open')
      assert.equal(rig.state, 'half-open')
      assert.equal(rig.play(letter).state, success ? 'closed' : 'open')
    }))
  })
})

describe('an outage', () => {
  it('in observe mode refuses nobody, and does not say that it does', () => {
    const rig = new Rig({ mode: 'observe' }).trip()
    assert.match(said(rig), /^Open after 5 failures in a row .*: it would refuse everybody for another 15 s, then probes try it\. Observe mode: it refuses nobody\.$/)
    assert.doesNotMatch(said(rig), /it refuses everybody/)
  })

  it('is overdue after two open times, and says that nobody has come to try it', () => {
    const rig = new Rig().trip().wait(30000)
    assert.equal(rig.snapshot.openFor?.overdue, false)
    assert.deepEqual(rig.wait(1000).snapshot.openFor, { ms: 31000, configuredMs: 15000, reopened: 0, overdue: true })
    assert.match(said(rig), /^Half-open after 5 failures in a row \(consecutiveFailures 5\): 0 of 1 probe have a result\. .* Overdue: not closed for 31 s with an open time of 15 s; no request has come to try it\.$/)
  })

  it('says that its probes failed, and counts from the first opening', () => {
    const rig = new Rig().trip().wait(15000).play('F').wait(30000).play('F')
    assert.deepEqual(rig.snapshot.openFor, { ms: 45000, configuredMs: 15000, reopened: 2, overdue: true })
    assert.match(said(rig), /^Open after 5 failures in a row \(consecutiveFailures 5\), then after its probe failed: it refuses everybody for another 60 s, then probes try it\. Overdue: .*; its probes failed 2 times\.$/)
    rig.wait(60000).play('S')
    assert.equal(rig.snapshot.openFor, null)
    assert.deepEqual(rig.trip().snapshot.openFor, { ms: 0, configuredMs: 15000, reopened: 0, overdue: false })
  })

  it('says that its probes do not end', () => {
    const rig = new Rig().trip().wait(15000)
    rig.admit()
    assert.match(said(rig.wait(40000)), /its probes do not end\.$/)
  })
})

describe('the explanation', () => {
  it('names the numbers', () => {
    assert.equal(said(new Rig().play('FF')), 'Closed. 3 more failures in a row would open it (2 of 5 so far). 8 more failures within 60 s would reach the ratio 0.5 (2 of 2 so far).')
    assert.equal(said(new Rig({ consecutiveFailures: 0, window: { failureRatio: 0 } })), 'Closed. No further failures open it now.')
    assert.equal(said(new Rig({ mode: 'off' })), 'Off: it counts nothing and refuses nobody.')
    assert.match(said(new Rig({ mode: 'observe' }).trip()), /^Open after 5 failures in a row \(consecutiveFailures 5\): .* Observe mode: it refuses nobody\.$/)
    const probing = new Rig({ halfOpen: { probes: 5 }, window: { failureRatio: 0.5 } }).trip().wait(15000).play('SF')
    assert.equal(said(probing), 'Half-open after 5 failures in a row (consecutiveFailures 5): 2 of 5 probes have a result, 1 failed. 2 more successes would close it, 2 more failures would open it again.')
  })

  it('says by what an open circuit left closed, also when its probes have failed since', () => {
    const rig = new Rig({ consecutiveFailures: 0 }).play('SFSFSFSFSF')
    assert.match(said(rig), /^Open after 5 of 10 requests failed within 60 s \(failureRatio 0\.5, from 10 requests on\): it refuses/)
    assert.match(said(rig.wait(15000).play('F')), /^Open after 5 of 10 requests failed within 60 s \(failureRatio 0\.5, from 10 requests on\), then after its probe failed: it refuses/)
    rig.breaker.reset(rig.now, null)
    assert.match(said(rig.play('FFFFFFFFFF')), /^Open after 10 of 10 requests failed within 60 s \(failureRatio 0\.5, from 10 requests on\): it refuses/)
  })

  it('tells what is below a force', () => {
    const rig = new Rig().play('F')
    rig.breaker.force('closed', 5000, null, 0)
    assert.match(said(rig), /^Forced closed for another 5 s\. Without that: Closed\. 5 more failures in a row/)
  })
})
