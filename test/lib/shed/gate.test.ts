import { equal, throws } from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Gate } from '../../../lib/shed/gate.ts'

describe('gate', () => {
  it('admits up to its limit, and again when a place is given back', () => {
    const gate = new Gate(2)
    equal(gate.tryAcquire(), true)
    equal(gate.tryAcquire(), true)
    equal(gate.tryAcquire(), false)
    equal(gate.tryAcquire(), false)
    equal(gate.inFlight, 2)
    gate.release()
    equal(gate.tryAcquire(), true)
    equal(gate.tryAcquire(), false)
  })

  it('a refusal takes no place', () => {
    const gate = new Gate(1)
    gate.tryAcquire()
    for (let i = 0; i < 100; i++) gate.tryAcquire()
    equal(gate.inFlight, 1)
    gate.release()
    equal(gate.inFlight, 0)
  })

  it('throws when more is given back than was taken, and stays whole', () => {
    const gate = new Gate(1)
    throws(() => { gate.release() }, /released more often than acquired/)
    equal(gate.inFlight, 0)
    equal(gate.tryAcquire(), true)
    equal(gate.tryAcquire(), false)
  })

  it('a lower limit lets what is in finish, and admits again below it', () => {
    const gate = new Gate(3)
    for (let i = 0; i < 3; i++) gate.tryAcquire()
    gate.setLimit(1)
    equal(gate.limit, 1)
    equal(gate.inFlight, 3)
    gate.release()
    gate.release()
    equal(gate.tryAcquire(), false)
    gate.release()
    equal(gate.tryAcquire(), true)
  })

  it('a higher limit holds at once', () => {
    const gate = new Gate(1)
    gate.tryAcquire()
    gate.setLimit(2)
    equal(gate.tryAcquire(), true)
    equal(gate.tryAcquire(), false)
  })

  it('behaves like a counter with a limit, whatever comes in whatever order', () => {
    const event = fc.oneof({ weight: 5, arbitrary: fc.constant('acquire') }, { weight: 4, arbitrary: fc.constant('release') }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 6 }) })
    fc.assert(fc.property(fc.array(event, { maxLength: 200 }), (events) => {
      const gate = new Gate(3)
      let limit = 3
      let taken = 0
      for (const each of events) {
        if (each === 'acquire') {
          equal(gate.tryAcquire(), taken < limit)
          if (taken < limit) taken++
        } else if (each === 'release') {
          if (taken === 0) throws(() => { gate.release() })
          else {
            gate.release()
            taken--
          }
        } else {
          gate.setLimit(limit = each as number)
        }
        equal(gate.inFlight, taken)
        equal(gate.limit, limit)
      }
    }))
  })
})
