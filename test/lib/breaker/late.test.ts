import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { maxSerial, nextSerial } from '../../../lib/breaker/serial.ts'
import type { Outcome } from '../../../lib/breaker/types.ts'
import { Rig } from './support.ts'

const one = { halfOpen: { probes: 1 } } as const

describe('a result that comes too late', () => {
  const eras: Array<[name: string, bring: (rig: Rig) => void]> = [
    ['open', rig => { rig.trip() }],
    ['half-open', rig => { rig.trip().wait(15000) }],
    ['half-open with a probe out', rig => { rig.trip().wait(15000).admit() }],
    ['closed again', rig => { rig.trip().wait(15000).play('S') }]
  ]
  for (const [name, bring] of eras) {
    for (const outcome of ['success', 'failure', 'cancelled'] as const) {
      it(`${outcome} of the first closed era, now ${name}: frees its place and changes nothing`, () => {
        const rig = new Rig(one)
        const stragglers = Array.from({ length: 40 }, () => rig.admit())
        bring(rig)
        const before = rig.snapshot
        for (const permit of stragglers) rig.settle(permit, outcome)
        assert.deepEqual(rig.snapshot, { ...before, outstanding: { ...before.outstanding, count: before.outstanding.count - 40 } })
      })
    }
  }

  it('of a probe counts in no later batch and in no later window', () => {
    const rig = new Rig({ halfOpen: { probes: 4 } }).trip().wait(15000)
    const [late] = [rig.admit()]
    rig.play('FFF')
    assert.equal(rig.state, 'open')
    assert.equal(rig.breaker.outstanding, 1)
    rig.wait(30000)
    const before = rig.snapshot
    rig.settle(late!, 'failure')
    assert.deepEqual(rig.snapshot, { ...before, outstanding: { ...before.outstanding, count: 0 } })
    rig.settle(late!, 'failure')
    assert.equal(rig.breaker.outstanding, 0)
  })

  it('does not close a circuit that opened a moment ago', () => {
    const rig = new Rig()
    const slow = rig.admit()
    rig.trip()
    rig.now += 3
    rig.settle(slow, 'success')
    assert.equal(rig.state, 'open')
  })

  it('does not decide for the probe that is out', () => {
    const rig = new Rig(one)
    const slow: Array<[number, Outcome]> = [[rig.admit(), 'failure'], [rig.admit(), 'success']]
    const probe = rig.trip().wait(15000).admit()
    for (const [permit, outcome] of slow) rig.settle(permit, outcome)
    assert.equal(rig.state, 'half-open')
    rig.settle(probe, 'success')
    assert.equal(rig.state, 'closed')
  })

  it('counts where it ends, in the second it ends, however long ago it began', () => {
    const rig = new Rig()
    const slow = rig.admit()
    rig.wait(3600000)
    rig.settle(slow, 'failure')
    assert.deepEqual(rig.snapshot.window.buckets, [[0, 1, 1]])
  })
})

describe('generations and serials', () => {
  it('begin again at 1 after the last one, and are never 0', () => {
    assert.equal(nextSerial(1), 2)
    assert.equal(nextSerial(maxSerial - 1), maxSerial)
    assert.equal(nextSerial(maxSerial), 1)
    // a small integer also where V8 compresses pointers: -2^30 .. 2^30 - 1
    assert.ok(maxSerial <= 2 ** 30 - 1)
  })

  it('change with each transition', () => {
    const rig = new Rig(one)
    const seen = new Set([rig.snapshot.generation])
    for (let i = 0; i < 20; i++) {
      rig.trip()
      seen.add(rig.snapshot.generation)
      rig.wait(rig.transitions.at(-1)!.openForMs)
      seen.add(rig.snapshot.generation)
      rig.play('S')
      seen.add(rig.snapshot.generation)
    }
    assert.equal(seen.size, 61)
    assert.equal(rig.transitions.at(-1)?.generation, rig.snapshot.generation)
  })
})
