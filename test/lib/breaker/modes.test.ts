import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { optionsWith, Rig } from './support.ts'

describe('observe mode', () => {
  it('shows the state that would be, refuses nothing, and counts what it would have refused', () => {
    const rig = new Rig({ mode: 'observe', halfOpen: { probes: 2 } }).trip()
    assert.deepEqual([rig.state, rig.snapshot.mode, rig.breaker.wouldRefuse], ['open', 'observe', 0])
    rig.play('SSFFSX')
    assert.equal(rig.breaker.wouldRefuse, 6)
    assert.deepEqual([rig.breaker.wouldAdmit(rig.now), rig.breaker.retryAfterMs(rig.now)], [true, 0])
    rig.wait(15000)
    const permits = Array.from({ length: 5 }, () => rig.admit())
    assert.deepEqual(permits.map(permit => permit < 0), [true, true, false, false, false])
    assert.equal(rig.snapshot.wouldRefuse, 9)
    for (const permit of permits.slice(2)) rig.settle(permit, 'failure')
    assert.equal(rig.state, 'half-open', 'only the batch decides')
    rig.settle(permits[0]!, 'success')
    assert.equal(rig.state, 'closed')
    rig.settle(permits[1]!, 'success')
    assert.deepEqual([rig.counts, rig.breaker.outstanding], [[0, 0], 0])
  })

  it('counts nothing while it believes the circuit to be open', () => {
    const rig = new Rig({ mode: 'observe' }).trip()
    rig.play('F'.repeat(100)).play('S'.repeat(100))
    assert.deepEqual([rig.state, rig.counts, rig.snapshot.consecutiveFailures, rig.snapshot.reopenAt], ['open', [0, 0], 0, 15000])
  })

  it('does not let the results of requests that were let through in half-open count after it closed', () => {
    const rig = new Rig({ mode: 'observe', consecutiveFailures: 1, halfOpen: { probes: 1 } }).trip().wait(15000)
    const probe = rig.admit()
    const rest = [rig.admit(), rig.admit()]
    rig.settle(probe, 'success')
    for (const permit of rest) rig.settle(permit, 'failure')
    assert.equal(rig.state, 'closed')
  })

  it('refuses nothing even when forced open, but counts', () => {
    const rig = new Rig({ mode: 'observe' })
    rig.breaker.force('open', 1000, null, rig.now)
    assert.equal(rig.state, 'open')
    rig.play('SS')
    assert.equal(rig.breaker.wouldRefuse, 2)
  })

  it('moves as enforce mode does when it sees the same results', () => {
    const step = fc.tuple(fc.constantFrom('S', 'F', 'X'), fc.integer({ min: 0, max: 20000 }))
    fc.assert(fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const overrides = { consecutiveFailures: 2, window: { minimumRequests: 4 }, halfOpen: { probes: 3 } }
      const enforcing = new Rig(overrides)
      const observing = new Rig({ ...overrides, mode: 'observe' })
      let refused = 0
      for (const [letter, ms] of steps) {
        enforcing.wait(ms)
        observing.wait(ms).play(letter)
        const permit = enforcing.admit()
        if (permit === 0) refused++
        else enforcing.settle(permit, letter === 'S' ? 'success' : letter === 'F' ? 'failure' : 'cancelled')
        assert.equal(observing.state, enforcing.state)
      }
      for (const { explanation } of observing.transitions) assert.match(explanation, / Observe mode: it refuses nobody\.$/)
      const moves = (rig: Rig): object[] => rig.transitions.map(({ explanation: _explanation, ...rest }) => rest)
      assert.deepEqual(moves(observing), moves(enforcing))
      assert.equal(observing.breaker.wouldRefuse, refused)
    }))
  })
})

describe('mode off', () => {
  it('admits all and counts nothing', () => {
    const rig = new Rig({ mode: 'off' }).play('F'.repeat(500))
    assert.deepEqual([rig.state, rig.counts, rig.snapshot.consecutiveFailures, rig.transitions], ['closed', [0, 0], 0, []])
    assert.equal(rig.breaker.outstanding, 0)
    assert.equal(rig.breaker.wouldAdmit(rig.now), true)
  })

  it('has nothing to force', () => {
    const rig = new Rig({ mode: 'off' })
    assert.throws(() => rig.breaker.force('open', 1000, null, 0), /the breaker is off/)
    assert.equal(rig.state, 'closed')
  })
})

const configure = (rig: Rig, overrides: Parameters<typeof optionsWith>[0]) => rig.breaker.configure(optionsWith(overrides), rig.now)

describe('new options for a running breaker', () => {
  it('apply to the window that is there', () => {
    const rig = new Rig({ consecutiveFailures: 10 }).play('FFFF')
    const permit = rig.admit()
    configure(rig, { consecutiveFailures: 5 })
    assert.deepEqual([rig.state, rig.counts, rig.snapshot.consecutiveFailures, rig.breaker.outstanding], ['closed', [0, 4], 4, 1])
    rig.settle(permit, 'failure')
    assert.equal(rig.state, 'open')
  })

  it('keep the seconds that fit in a window of another length', () => {
    const rig = new Rig({ window: { seconds: 60 } }).play('S').wait(20000).play('SSF')
    configure(rig, { window: { seconds: 10 } })
    assert.deepEqual([rig.counts, rig.snapshot.window.seconds], [[2, 1], 10])
    configure(rig, { window: { seconds: 120 } })
    rig.wait(119999)
    assert.deepEqual(rig.counts, [2, 1])
    rig.wait(1)
    assert.deepEqual(rig.counts, [0, 0])
  })

  it('leave an open time and a batch that run as they are', () => {
    const rig = new Rig({ halfOpen: { probes: 3 } }).trip()
    configure(rig, { openMs: 1000, halfOpen: { probes: 3 } })
    assert.equal(rig.snapshot.reopenAt, 15000)
    rig.wait(15000)
    const probe = rig.admit()
    configure(rig, { openMs: 1000, halfOpen: { probes: 1 } })
    assert.deepEqual([rig.state, rig.snapshot.probes.batch], ['half-open', 3])
    rig.settle(probe, 'failure')
    assert.equal(rig.state, 'half-open')
    rig.play('F')
    assert.deepEqual([rig.state, rig.transitions.at(-1)?.openForMs], ['open', 2000])
  })

  it('keep a force', () => {
    const rig = new Rig()
    rig.breaker.force('open', 10000, 'maintenance', rig.now)
    configure(rig, { consecutiveFailures: 2 })
    rig.play('-')
    assert.equal(rig.snapshot.force?.reason, 'maintenance')
  })

  it('switch between enforce and observe without a break in the belief', () => {
    const rig = new Rig({ halfOpen: { probes: 1 } }).trip()
    configure(rig, { mode: 'observe', halfOpen: { probes: 1 } })
    rig.play('S')
    assert.equal(rig.state, 'open')
    configure(rig, { halfOpen: { probes: 1 } })
    rig.play('-').wait(15000).play('S')
    assert.equal(rig.state, 'closed')
    assert.deepEqual(rig.causes, ['consecutive_failures', 'open_elapsed', 'probes_passed'])
  })

  it('that switch it off close it, which is a transition, and end a force', () => {
    const rig = new Rig().trip()
    rig.breaker.force('open', 10000, null, rig.now)
    configure(rig, { mode: 'off' })
    assert.deepEqual([rig.state, rig.snapshot.force, rig.causes.at(-1)], ['closed', null, 'mode_changed'])
    rig.play('F'.repeat(20))
    configure(rig, {})
    assert.equal(rig.play('FFFF').state, 'closed')
    assert.equal(rig.play('F').state, 'open')
    assert.deepEqual(rig.causes, ['consecutive_failures', 'forced', 'mode_changed', 'consecutive_failures'])
  })

  it('that switch a closed one off forget its window in silence', () => {
    const rig = new Rig().play('SFFF')
    const permit = rig.admit()
    configure(rig, { mode: 'off' })
    assert.deepEqual([rig.counts, rig.transitions], [[0, 0], []])
    configure(rig, {})
    rig.settle(permit, 'failure')
    assert.deepEqual([rig.counts, rig.breaker.outstanding], [[0, 0], 0])
  })
})
