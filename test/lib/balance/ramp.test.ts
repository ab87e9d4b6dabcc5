import { equal } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Ramp } from '../../../lib/balance/ramp.ts'

describe('the time since a member takes its full part', () => {
  it('has no beginning for one that is there from the start', () => {
    const ramp = new Ramp(false)
    equal(ramp.enter(1000), Infinity)
    equal(ramp.enter(2000), Infinity)
  })

  it('begins when one joins that was not there', () => {
    const ramp = new Ramp(true)
    equal(ramp.enter(1000), 0)
    equal(ramp.enter(1700), 700)
  })

  it('begins anew when one comes back', () => {
    const ramp = new Ramp(false)
    ramp.enter(0)
    ramp.leave(false)
    equal(ramp.enter(500), 0)
    equal(ramp.enter(800), 300)
  })

  it('begins when one comes that was found out from the start', () => {
    const ramp = new Ramp(false)
    ramp.leave(true)
    equal(ramp.enter(500), 0)
  })

  it('has no beginning for one that only had to be checked first', () => {
    const ramp = new Ramp(false)
    ramp.leave(false)
    equal(ramp.enter(500), Infinity)
  })

  it('is never less than nothing when the clock steps back', () => {
    const ramp = new Ramp(true)
    ramp.enter(1000)
    equal(ramp.enter(900), 0)
  })
})
