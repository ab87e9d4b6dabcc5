import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { Rig } from './support.ts'

describe('a closed circuit: failures in a row', () => {
  it('opens at the configured number and not before', () => {
    const rig = new Rig()
    rig.play('FFFF')
    assert.equal(rig.state, 'closed')
    rig.play('F')
    assert.equal(rig.state, 'open')
    assert.deepEqual(rig.transitions.map(({ from, to, cause, openForMs }) => ({ from, to, cause, openForMs })),
      [{ from: 'closed', to: 'open', cause: 'consecutive_failures', openForMs: 15000 }])
    rig.play('---')
  })

  it('begins to count anew after a success, and only after a success', () => {
    const rig = new Rig({ consecutiveFailures: 6, window: { failureRatio: 0 } })
    rig.play('FFFFF')
    assert.equal(rig.snapshot.consecutiveFailures, 5)
    rig.play('S')
    assert.equal(rig.snapshot.consecutiveFailures, 0)
    rig.play('FXFIFXXFIF')
    assert.equal(rig.snapshot.consecutiveFailures, 5)
    assert.equal(rig.state, 'closed')
    rig.play('F')
    assert.equal(rig.state, 'open')
  })

  it('is off at 0', () => {
    const rig = new Rig({ consecutiveFailures: 0, window: { failureRatio: 0 } })
    rig.play('F'.repeat(200))
    assert.equal(rig.state, 'closed')
  })

  it('counts failures that lie far apart', () => {
    const rig = new Rig({ consecutiveFailures: 3 })
    rig.play('F').wait(3600000).play('F').wait(3600000).play('F')
    assert.equal(rig.state, 'open')
  })
})

const ratioOnly = (failureRatio: number, minimumRequests: number, seconds = 60) =>
  new Rig({ consecutiveFailures: 0, window: { failureRatio, minimumRequests, seconds } })

describe('a closed circuit: the ratio of failures', () => {
  const table: Array<[total: number, minimum: number, failures: number, ratio: number, opens: boolean]> = [
    [10, 10, 0, 0.1, false],
    [10, 10, 1, 0.1, true],
    [10, 10, 2, 0.1, true],
    [11, 11, 2, 0.1, true],
    [9, 10, 1, 0.1, false],
    [25, 25, 6, 7 / 25, false],
    [25, 25, 7, 7 / 25, true],
    [25, 25, 7, 0.28, true],
    [100, 100, 56, 0.57, false],
    [100, 100, 57, 0.57, true],
    [100, 100, 49, 0.5, false],
    [10, 10, 10, 1, true],
    [10, 10, 9, 1, false]
  ]
  for (const [total, minimum, failures, ratio, opens] of table) {
    it(`${failures} of ${total} at ${ratio}, minimum ${minimum}: ${opens ? 'opens' : 'stays closed'}`, () => {
      const rig = ratioOnly(ratio, minimum)
      // failures first, so that the last result, a success, is what is judged
      const script = 'F'.repeat(failures) + 'S'.repeat(total - failures)
      rig.play(script.slice(0, -1))
      assert.equal(rig.state, 'closed', 'before the last result')
      rig.play(script.slice(-1))
      assert.equal(rig.state, opens ? 'open' : 'closed')
    })
  }

  it('opens exactly where failures / total reaches the ratio, for every pair of up to 60', () => {
    for (let total = 1; total <= 60; total++) {
      for (let failures = 1; failures <= total; failures++) {
        const rig = ratioOnly(failures / total, total)
        rig.play('F'.repeat(failures) + 'S'.repeat(total - failures))
        assert.equal(rig.state, 'open', `${failures} of ${total}`)
      }
    }
  })

  it('is judged at a success too', () => {
    assert.equal(ratioOnly(0.5, 3).play('FFS').state, 'open')
    const rig = ratioOnly(0.5, 5).play('FFFS')
    assert.equal(rig.state, 'closed')
    rig.play('S')
    assert.deepEqual([rig.state, rig.causes], ['open', ['failure_ratio']])
    assert.deepEqual(rig.transitions[0]?.evidence, { total: 5, failures: 3, ratio: 0.6, consecutiveFailures: 0 })
  })

  it('needs the minimum first: a single failure is no outage', () => {
    assert.equal(ratioOnly(0.5, 5).play('SSSFF').state, 'closed')
    assert.equal(ratioOnly(0.5, 5).play('SSSFFF').state, 'open')
    assert.equal(ratioOnly(0.5, 10).play('F').state, 'closed')
  })

  it('leaves neutral results out of the total', () => {
    const rig = ratioOnly(0.6, 10).play('SFXSFXSFXSFXSFX')
    assert.deepEqual([rig.counts, rig.state], [[5, 5], 'closed'])
    rig.play('X'.repeat(50) + 'FF')
    assert.deepEqual([rig.state, rig.transitions[0]?.evidence.ratio], ['closed', undefined])
    rig.play('F')
    assert.deepEqual([rig.state, rig.transitions[0]?.evidence], ['open', { total: 13, failures: 8, ratio: 8 / 13, consecutiveFailures: 4 }])
  })

  it('forgets failures as they leave the window', () => {
    const rig = ratioOnly(0.5, 4, 10)
    rig.play('FFF').wait(9999)
    assert.deepEqual(rig.counts, [0, 3])
    rig.wait(1)
    assert.deepEqual(rig.counts, [0, 0])
    rig.play('F')
    assert.equal(rig.state, 'closed')
  })

  it('follows a window that slides over alternating results', () => {
    const rig = ratioOnly(0.9, 1000, 10)
    for (const [script, expected] of [['FS', [1, 1]], ['FS', [2, 2]], ['SS', [4, 2]], ['SS', [6, 2]], ['SS', [8, 2]]] as const) {
      rig.play(script)
      assert.deepEqual(rig.counts, expected, `at ${rig.now}`)
      rig.wait(2000)
    }
    assert.deepEqual(rig.counts, [7, 1])
    rig.wait(2000)
    assert.deepEqual(rig.counts, [6, 0])
  })

  it('is not opened by four old failures and one new after an idle time', () => {
    const rig = ratioOnly(0.5, 2, 5)
    rig.play('SSSSSFFFF').wait(300000).play('F')
    assert.equal(rig.state, 'closed')
  })

  it('is off at 0', () => {
    assert.equal(ratioOnly(0, 1).play('FFFFSSFFFF').state, 'closed')
  })

  it('is named second when both triggers fire at once', () => {
    const rig = new Rig({ consecutiveFailures: 3, window: { failureRatio: 0.5, minimumRequests: 3 } })
    assert.deepEqual(rig.play('FFF').causes, ['consecutive_failures'])
  })
})

describe('a closed circuit: what is outstanding', () => {
  it('counts permits until they are settled, and never below zero', () => {
    const rig = new Rig()
    const permits = [rig.admit(), rig.admit(), rig.admit()]
    assert.equal(rig.snapshot.outstanding.count, 3)
    rig.settle(permits[0]!, 'success')
    rig.settle(permits[1]!, 'cancelled')
    rig.settle(permits[2]!, 'ignored')
    assert.equal(rig.breaker.outstanding, 0)
    rig.settle(permits[2]!, 'ignored')
    assert.equal(rig.breaker.outstanding, 0)
    assert.deepEqual(rig.counts, [1, 0])
  })

  it('takes 0 and a probe that never was for nothing', () => {
    const rig = new Rig()
    rig.admit()
    rig.settle(0, 'failure')
    rig.settle(-1, 'failure')
    rig.settle(-77, 'success')
    assert.deepEqual([rig.counts, rig.breaker.outstanding], [[0, 0], 1])
  })
})

describe('a closed circuit: any stream of results', () => {
  it('opens exactly when a trigger is reached', () => {
    const step = fc.tuple(fc.constantFrom('S', 'F', 'X'), fc.constantFrom(0, 1, 700, 1000, 4000, 11000))
    fc.assert(fc.property(fc.array(step, { maxLength: 120 }), fc.constantFrom(0, 3, 5), fc.constantFrom(0, 0.25, 0.5, 1), (steps, consecutiveFailures, failureRatio) => {
      const rig = new Rig({ consecutiveFailures, window: { failureRatio, minimumRequests: 8, seconds: 10 } })
      const results: Array<{ second: number, failed: boolean }> = []
      let streak = 0
      for (const [letter, advance] of steps) {
        rig.wait(advance).play(letter)
        if (letter === 'X') continue
        streak = letter === 'F' ? streak + 1 : 0
        const second = Math.floor(rig.now / 1000)
        results.push({ second, failed: letter === 'F' })
        const held = results.filter(result => second - result.second < 10)
        const ratio = held.filter(({ failed }) => failed).length / held.length
        const opens = (consecutiveFailures > 0 && streak >= consecutiveFailures) || (failureRatio > 0 && held.length >= 8 && ratio >= failureRatio)
        assert.equal(rig.state, opens ? 'open' : 'closed')
        if (opens) return
      }
    }))
  })
})
