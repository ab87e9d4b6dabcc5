import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { afterCheck, heldBack, initialHealth, underOptions, type HealthState, type StreakOptions } from '../../../lib/health/streak.ts'

const options = (given: Partial<StreakOptions> = {}): StreakOptions => ({ enabled: true, rise: 1, fall: 1, initial: 'unhealthy', ...given })

/** Runs a script of checks, `+` passed and `-` failed, and shows the belief after each: `H` or `u`. */
const run = (script: string, given: StreakOptions): string => {
  let state = initialHealth(given, 0)
  return [...script].map((check, index) => {
    state = afterCheck(state, check === '+', index + 1, given)
    return state.healthy ? 'H' : 'u'
  }).join('')
}

const table: Array<[name: string, options: Partial<StreakOptions>, checks: string, beliefs: string]> = [
  ['one pass and one failure are enough by default', {}, '+-+', 'HuH'],
  ['the first pass counts alone, though rise is 3', { rise: 3 }, '++', 'HH'],
  ['the first failure counts alone, though fall is 3 and it began healthy', { fall: 3, initial: 'healthy' }, '-', 'u'],
  ['after the first check, rise counts', { rise: 3 }, '-+++', 'uuuH'],
  ['a failure in between starts rise again', { rise: 3 }, '-++-+++', 'uuuuuuH'],
  ['after the first check, fall counts', { fall: 3 }, '+---', 'HHHu'],
  ['a pass in between starts fall again', { fall: 2 }, '+-+-+--', 'HHHHHHu'],
  ['the first check is part of the streak', { fall: 2, initial: 'healthy' }, '-+-', 'uHH'],
  ['rise and fall are each their own', { rise: 2, fall: 3 }, '+---+-++', 'HHHuuuuH'],
  ['where checks are off, they change nothing', { enabled: false }, '--', 'HH']
]

for (const [name, given, checks, beliefs] of table) {
  test(name, () => assert.equal(run(checks, options(given)), beliefs))
}

test('before any check an upstream counts as its options say, and as healthy where checks are off', () => {
  assert.equal(initialHealth(options(), 7).healthy, false)
  assert.equal(initialHealth(options({ initial: 'healthy' }), 7).healthy, true)
  assert.equal(initialHealth(options({ enabled: false }), 7).healthy, true)
})

test('since tells when the belief changed, not when it was confirmed', () => {
  const given = options({ fall: 2 })
  let state: HealthState = initialHealth(given, 5)
  assert.equal(state.since, 5)
  for (const [passed, at, since] of [[true, 10, 10], [true, 20, 10], [false, 30, 10], [false, 40, 40], [false, 50, 40]] as const) {
    state = afterCheck(state, passed, at, given)
    assert.equal(state.since, since)
  }
  assert.equal(state.streak, -3)
})

test('new options keep the belief and the streak', () => {
  const state = afterCheck(initialHealth(options(), 0), true, 1, options())
  assert.deepEqual(underOptions(state, 2, options({ fall: 4, initial: 'unhealthy' })), state)
})

test('an unhealthy upstream whose checks are switched off counts as healthy, and on again its first check counts alone', () => {
  const down = afterCheck(initialHealth(options(), 0), false, 1, options())
  const off = underOptions(down, 2, options({ enabled: false }))
  assert.deepEqual(off, { healthy: true, streak: 0, since: 2, checked: false, held: false })
  const on = options({ fall: 5 })
  assert.equal(afterCheck(underOptions(off, 3, on), false, 4, on).healthy, false)
})

test('a fall that is held back leaves the upstream healthy since when it was, and is due at the next failure, whatever fall is', () => {
  const given = options({ fall: 3 })
  let up = afterCheck(initialHealth(given, 0), true, 1, given)
  for (const at of [2, 3]) up = afterCheck(up, false, at, given)
  const fallen = afterCheck(up, false, 4, given)
  const held = heldBack(up, fallen)
  assert.deepEqual(held, { healthy: true, streak: -3, since: 1, checked: true, held: true })
  assert.deepEqual(afterCheck(held, false, 5, given), { healthy: false, streak: -4, since: 5, checked: true, held: false })
  assert.deepEqual(afterCheck(held, false, 5, options({ fall: 9 })), { healthy: false, streak: -4, since: 5, checked: true, held: false })
  assert.deepEqual(afterCheck(held, true, 5, options({ rise: 3 })), { healthy: true, streak: 1, since: 1, checked: true, held: false })
})

test('a first failure that is held back does not have to count up to fall again', () => {
  const given = options({ fall: 3, initial: 'healthy' })
  const start = initialHealth(given, 0)
  const held = heldBack(start, afterCheck(start, false, 1, given))
  assert.equal(afterCheck(held, false, 2, given).healthy, false)
})

test('new options keep what is held, unless they switch the checks off', () => {
  const start = initialHealth(options({ initial: 'healthy' }), 0)
  const held = heldBack(start, afterCheck(start, false, 1, options()))
  assert.deepEqual(underOptions(held, 2, options({ fall: 4 })), held)
  assert.deepEqual(underOptions(held, 2, options({ enabled: false })), { healthy: true, streak: 0, since: 0, checked: false, held: false })
})

test('property: the belief is that of the last decisive run, for every sequence and every rise and fall', () => {
  fc.assert(fc.property(
    fc.array(fc.boolean(), { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 5 }), fc.constantFrom('healthy' as const, 'unhealthy' as const),
    (checks, rise, fall, initial) => {
      const given = options({ rise, fall, initial })
      let state = initialHealth(given, 0)
      let expected = initial === 'healthy'
      checks.forEach((passed, index) => {
        const before = state
        state = afterCheck(state, passed, index + 1, given)
        const needed = index === 0 ? 1 : passed ? rise : fall
        const last = checks.slice(Math.max(0, index + 1 - needed), index + 1)
        if (last.length === needed && last.every((each) => each === passed)) expected = passed
        assert.equal(state.healthy, expected)
        assert.equal(Math.sign(state.streak), passed ? 1 : -1)
        assert.equal(state.since, state.healthy === before.healthy ? before.since : index + 1)
      })
    }
  ))
})
