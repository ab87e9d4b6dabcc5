import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Opening } from '../../../lib/breaker/types.ts'
import { optionsWith, Rig } from './support.ts'

const ofOpen = (rig: Rig): string => /^Open (.*): it refuses/.exec(rig.snapshot.explanation)?.[1] ?? rig.snapshot.explanation
const told = (rig: Rig): string | undefined => rig.transitions.at(-1)?.explanation

/** Eight attempts that nobody answers, at an upstream that was quick. */
function silent (): Rig {
  const rig = new Rig()
  const send = (): [number, number] => {
    const permit = rig.admit()
    return [permit, rig.breaker.waits(permit, 10)]
  }
  for (let i = 0; i < 50; i++) {
    const [permit, watch] = send()
    rig.breaker.answered(permit, watch, 10)
    rig.settle(permit, 'success')
  }
  for (let i = 0; i < 8; i++) send()
  for (let i = 0; i < 8; i++) rig.breaker.tick()
  rig.breaker.judgeStall(rig.now)
  return rig
}

describe('why a circuit is not closed', () => {
  it('is told by its trigger, with the numbers and the limits of that moment, in the snapshot and in the transition alike', () => {
    const inARow = new Rig().fail('connect_refused').fail('connect_refused').fail('headers_timeout').fail('headers_timeout').fail('status_503')
    const ratio = new Rig({ consecutiveFailures: 0, window: { seconds: 30 } }).play('SFSFSFSF').fail('status_500').play('S')
    const cases: Array<[Rig, string, Opening]> = [
      [inARow, 'after 5 failures in a row (consecutiveFailures 5; last: status_503)', { cause: 'consecutive_failures', limit: 5, failures: 5, failure: 'status_503', again: null }],
      [ratio, 'after 5 of 10 requests failed within 30 s (failureRatio 0.5, from 10 requests on; last: status_500)', { cause: 'failure_ratio', limit: 0.5, failures: 5, total: 10, seconds: 30, needed: 10, failure: 'status_500', again: null }],
      [silent(), 'after 8 requests got no answer, the oldest for 700 ms (stall: 8 for 500 ms)', { cause: 'stall', limit: 8, outstanding: 8, oldestMs: 700, stallAfterMs: 500, failure: null, again: null }]
    ]
    for (const [rig, says, opening] of cases) {
      assert.equal(ofOpen(rig), says)
      assert.equal(told(rig), `Opened ${says}, for 15 s.`)
      assert.equal(rig.transitions.at(-1)?.failure, opening.failure)
      assert.deepEqual(rig.snapshot.opening, opening)
      assert.ok(Object.isFrozen(rig.snapshot.opening))
    }
  })

  it('keeps the limits that were reached, whatever the options are later', () => {
    const rig = new Rig().trip()
    rig.breaker.configure(optionsWith({ consecutiveFailures: 2 }), rig.now)
    assert.equal(ofOpen(rig), 'after 5 failures in a row (consecutiveFailures 5)')
  })

  it('says what a failed probe came to, the latest batch of them, in each state that follows', () => {
    const rig = new Rig({ halfOpen: { probes: 3 } }).trip().wait(15000).play('S').fail('connect_refused')
    assert.match(rig.snapshot.explanation, /: 2 of 3 probes have a result, 1 failed \(last: connect_refused\)\. /)
    rig.fail('status_502')
    assert.equal(ofOpen(rig), 'after 5 failures in a row (consecutiveFailures 5), then after 2 of 3 probes failed (last: status_502)')
    assert.equal(told(rig), 'Opened again after 2 of 3 probes failed (last: status_502), for 30 s.')
    assert.equal(rig.transitions.at(-1)?.failure, 'status_502')
    rig.wait(30000)
    assert.match(rig.snapshot.explanation, /^Half-open after 5 .*, then after 2 of 3 probes failed \(last: status_502\): 0 of 3 probes have a result\. /)
    rig.fail('dns_failed').fail('dns_failed')
    assert.deepEqual(rig.snapshot.opening?.again, { total: 2, failures: 2, failure: 'dns_failed' })
    assert.equal(rig.wait(60000).play('SS').snapshot.opening, null)
    assert.equal(told(rig), 'Closed: 2 of 2 probes passed.')
  })

  it('is never said by a failure of another time', () => {
    const rig = new Rig({ halfOpen: { probes: 1 } }).fail('connect_refused')
    rig.breaker.reset(rig.now)
    const early = rig.admit()
    assert.equal(ofOpen(rig.trip()), 'after 5 failures in a row (consecutiveFailures 5)')
    rig.breaker.failing(early, 'headers_timeout', rig.now)
    rig.wait(15000).fail('status_500').wait(30000).play('F')
    assert.equal(told(rig), 'Opened again after its probe failed, for 60 s.')
  })
})

describe('a probe that counts no more', () => {
  const halfOpen = { probes: 3, probeTimeoutMs: 10000 }
  it('names nothing when it fails within the next batch, and nothing when its lease is over', () => {
    const rig = new Rig({ halfOpen }).trip().wait(15000)
    const early = rig.admit()
    rig.fail('status_500').fail('status_500').wait(30000)
    const late = rig.admit()
    rig.fail('connect_refused')
    for (const [probe, ms] of [[early, 0], [late, 10000]] as const) {
      // Time alone: nothing has noticed the end of the lease before the result comes.
      rig.now += ms
      rig.breaker.failing(probe, 'headers_timeout', rig.now)
      rig.settle(probe, 'failure')
      assert.match(rig.snapshot.explanation, /: 1 of 3 probes has a result, 1 failed \(last: connect_refused\)/)
    }
    rig.play('F')
    assert.equal(rig.transitions.at(-1)?.failure, 'connect_refused')
  })
})

describe('what is told of a transition', () => {
  it('has the operator\'s reason, and what is so afterwards', () => {
    const rig = new Rig()
    rig.breaker.force('open', 60000, 'a drill', rig.now)
    assert.equal(told(rig), 'Forced open for 60 s (a drill).')
    rig.breaker.force('auto', undefined, null, rig.now)
    assert.equal(told(rig), 'Its force has ended: it is closed.')
    rig.trip().breaker.force('closed', 5000, null, rig.now)
    assert.equal(told(rig), 'Forced closed for 5 s.')
    rig.wait(5000)
    assert.equal(told(rig), 'Its force has ended: it is open, for 10 s.')
    rig.wait(10000)
    assert.equal(told(rig), 'Half-open: its open time is over, and 1 probe may try it.')
    rig.breaker.reset(rig.now, 'repaired')
    assert.equal(told(rig), 'Reset (repaired): it is closed with a clean record, and was half-open.')
    rig.trip().breaker.configure(optionsWith({ mode: 'off' }), rig.now)
    assert.equal(told(rig), 'Its mode is off now: it is closed with a clean record.')
  })

  it('has whole milliseconds, whatever the jitter', () => {
    const rig = new Rig({ jitter: 0.1 }, { random: () => 0.123456789 }).trip()
    assert.equal(rig.transitions.at(-1)?.openForMs, 15185)
  })
})
