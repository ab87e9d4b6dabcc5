import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Breaker } from '../../../lib/breaker/breaker.ts'
import { seededRandom } from '../../../lib/random.ts'
import { optionsWith, Rig } from './support.ts'

const off = { consecutiveFailures: 0, window: { failureRatio: 0 } }

describe('the distance of a closed circuit from opening', () => {
  for (const [played, overrides, told] of [
    ['', {}, { failures: 5, inARow: 5, toRatio: 10 }],
    ['FF', {}, { failures: 3, inARow: 3, toRatio: 8 }],
    ['FFS', {}, { failures: 5, inARow: 5, toRatio: 7 }],
    ['FFFFSFFFF', {}, { failures: 1, inARow: 1, toRatio: 1 }],
    ['SSSSSSSS', { consecutiveFailures: 0 }, { failures: 8, inARow: null, toRatio: 8 }],
    ['SSSSSSSSSSFF', { consecutiveFailures: 0, window: { failureRatio: 0.28 } }, { failures: 2, inARow: null, toRatio: 2 }],
    ['S', { consecutiveFailures: 0, window: { failureRatio: 1 } }, { failures: null, inARow: null, toRatio: null }],
    ['FF', { consecutiveFailures: 0, window: { failureRatio: 1, minimumRequests: 3 } }, { failures: 1, inARow: null, toRatio: 1 }],
    ['FF', off, { failures: null, inARow: null, toRatio: null }]
  ] as const) {
    it(`after ${played === '' ? 'nothing' : played} with ${JSON.stringify(overrides)} is ${JSON.stringify(told)}`, () => {
      const { failures, inARow, toRatio } = new Rig(overrides).play(played).snapshot.distance ?? assert.fail()
      assert.deepEqual({ failures, inARow, toRatio }, told)
    })
  }

  it('tells how long the window holds what it does', () => {
    const rig = new Rig({ consecutiveFailures: 0, window: { seconds: 10 } }, { now: 300 }).play('FF')
    assert.equal(rig.snapshot.distance?.holdsForMs, 9700)
    assert.equal(rig.wait(9600).snapshot.distance?.holdsForMs, 100)
    assert.deepEqual([rig.snapshot.distance?.toRatio, rig.wait(100).snapshot.distance?.toRatio], [8, 10])
    assert.equal(rig.snapshot.distance?.holdsForMs, null)
  })

  it('is nothing while it is open, half-open, forced open or off', () => {
    const rig = new Rig().trip()
    assert.equal(rig.snapshot.distance, null)
    assert.equal(rig.wait(15000).snapshot.distance, null)
    rig.breaker.reset(rig.now)
    rig.breaker.force('open', 1000, null, rig.now)
    assert.equal(rig.snapshot.distance, null)
    assert.equal(new Rig({ mode: 'off' }).snapshot.distance, null)
  })

  it('counts what the usual volume asks for, and that the failures themselves raise it', () => {
    const rig = new Rig({ consecutiveFailures: 0, window: { minimumShare: 0.5, seconds: 10, failureRatio: 0.5 } })
    for (let second = 0; second < 60; second++) {
      rig.play('SSSSSSSSSS')
      rig.wait(1000)
    }
    rig.wait(60000)
    const { failures } = rig.snapshot.distance ?? assert.fail()
    assert.ok(failures !== null && failures > 20, String(failures))
    rig.play('F'.repeat(failures - 1))
    assert.equal(rig.state, 'closed')
    assert.equal(rig.play('F').state, 'open')
  })

  it('is what it says: so many failures open it, and one fewer does not', () => {
    fc.assert(fc.property(
      fc.record({
        consecutiveFailures: fc.integer({ min: 0, max: 12 }),
        window: fc.record({
          seconds: fc.constantFrom(1, 5, 60, 1200),
          minimumRequests: fc.integer({ min: 1, max: 30 }),
          minimumShare: fc.constantFrom(0, 0.1, 0.5, 1),
          failureRatio: fc.constantFrom(0, 0.07, 0.28, 0.5, 0.9, 1)
        })
      }),
      fc.array(fc.oneof(fc.constant('F'), fc.constant('S'), fc.constant('S'), fc.integer({ min: 1, max: 90000 })), { maxLength: 60 }),
      fc.boolean(),
      (overrides, steps, enough) => {
        const breaker = new Breaker(optionsWith(overrides), seededRandom(1), 0)
        let now = 0.25
        const settle = (outcome: 'success' | 'failure'): void => { breaker.settle(breaker.admit(now), outcome, now) }
        for (const step of steps) {
          if (typeof step === 'number') now += step
          else if (breaker.state === 'closed') settle(step === 'F' ? 'failure' : 'success')
        }
        if (breaker.state !== 'closed') return
        const { failures } = breaker.snapshot(now).distance ?? assert.fail()
        const feed = failures === null ? 500 : enough ? failures : failures - 1
        for (let i = 0; i < feed && breaker.state === 'closed'; i++) settle('failure')
        assert.equal(breaker.state, failures !== null && enough ? 'open' : 'closed')
        if (failures !== null && enough) assert.equal(breaker.snapshot(now).openCount >= 1, true)
      }
    ), { numRuns: 500 })
  })

  it('does not change what it looks at', () => {
    const [one, other] = [new Rig(), new Rig()]
    for (const letter of 'FFSFFFSSF') {
      one.play(letter)
      other.play(letter)
      assert.deepEqual(one.snapshot, one.snapshot)
    }
    assert.deepEqual(one.snapshot, other.snapshot)
  })
})

describe('the silence', () => {
  it('is told with how many wait and when it could open the circuit', () => {
    const rig = new Rig({ stall: { outstanding: 2, factor: 8, minMs: 500 } })
    const permit = rig.admit()
    for (let i = 0; i < 40; i++) rig.breaker.answered(permit, rig.breaker.waits(permit, 10), 10)
    assert.deepEqual(rig.snapshot.distance?.stall, { needed: 2, waiting: 0, overdue: 0, inMs: null })
    rig.breaker.waits(permit, 10)
    assert.deepEqual(rig.snapshot.distance?.stall, { needed: 2, waiting: 1, overdue: 0, inMs: null })
    rig.breaker.waits(permit, 10)
    for (let tick = 0; tick < 3; tick++) rig.breaker.tick()
    const { stall } = rig.snapshot.distance ?? assert.fail()
    assert.deepEqual([stall?.waiting, stall?.overdue], [2, 0])
    assert.ok(stall?.inMs != null && stall.inMs >= 200 && stall.inMs <= 300, String(stall?.inMs))
    assert.deepEqual([rig.snapshot.next?.to, rig.snapshot.next?.cause], ['open', 'stall'])
    for (let tick = 0; tick < 4; tick++) rig.breaker.tick()
    assert.ok(rig.breaker.judgeStall(rig.now))
  })
})
