import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Rig, type Overrides } from './support.ts'

/** A half-open circuit with a batch of this size. */
function halfOpen (probes: number, failureRatio = 0.5, overrides: Overrides = {}): Rig {
  const rig = new Rig({ consecutiveFailures: 1, openMs: 5000, maxOpenMs: 1000000, ...overrides, window: { failureRatio, ...overrides.window }, halfOpen: { probes, ...overrides.halfOpen } })
  rig.trip().wait(5000)
  assert.equal(rig.state, 'half-open')
  return rig
}

describe('a half-open circuit: how many get in', () => {
  it('admits exactly the batch, one of all that come at the same time or 32', () => {
    for (const probes of [1, 4, 32]) {
      const rig = halfOpen(probes)
      const admitted = Array.from({ length: probes + 50 }, () => rig.admit()).filter(permit => permit !== 0)
      assert.equal(admitted.length, probes)
      assert.ok(admitted.every(permit => permit < 0), 'probes are negative permits')
      assert.equal(new Set(admitted).size, probes, 'each its own')
      assert.deepEqual(rig.snapshot.probes, { batch: probes, granted: probes, inFlight: probes, settled: 0, failed: 0, expired: 0 })
    }
  })

  it('admits the batch when nobody swept: the first request moves it', () => {
    const rig = new Rig({ consecutiveFailures: 1, halfOpen: { probes: 2 } }).trip()
    rig.now = 15000
    assert.equal(rig.state, 'open')
    assert.deepEqual([rig.admit() < 0, rig.admit() < 0, rig.admit()], [true, true, 0])
    assert.deepEqual(rig.causes, ['consecutive_failures', 'open_elapsed'])
  })

  it('keeps a settled place taken: the batch wants so many results, not so many at a time', () => {
    const rig = halfOpen(4, 0)
    rig.play('SS')
    const permits = [rig.admit(), rig.admit(), rig.admit()]
    assert.deepEqual(permits.map(permit => permit < 0), [true, true, false])
    assert.equal(permits[2], 0)
  })

  it('answers wouldAdmit without taking a place', () => {
    const rig = halfOpen(1)
    for (let i = 0; i < 10; i++) assert.equal(rig.breaker.wouldAdmit(rig.now), true)
    rig.admit()
    assert.equal(rig.breaker.wouldAdmit(rig.now), false)
    assert.equal(rig.snapshot.probes.granted, 1)
  })
})

describe('a half-open circuit: the verdict', () => {
  // script -> state after each result
  const table: Array<[probes: number, ratio: number, script: string, expected: 'open' | 'closed' | 'half-open']> = [
    [1, 0.5, 'S', 'closed'],
    [1, 0.5, 'F', 'open'],
    [2, 0.5, 'F', 'half-open'],
    [2, 0.5, 'FS', 'closed'],
    [2, 0.5, 'FF', 'open'],
    [2, 0.5, 'S', 'closed'],
    [4, 0.5, 'S', 'half-open'],
    [4, 0.5, 'SS', 'closed'],
    [4, 0.5, 'FF', 'half-open'],
    [4, 0.5, 'FFS', 'half-open'],
    [4, 0.5, 'FFSF', 'open'],
    [4, 0.5, 'FFSS', 'closed'],
    [4, 0.5, 'FFF', 'open'],
    [4, 0.5, 'FSS', 'closed'],
    [25, 7 / 25, 'FFFFFFF', 'half-open'],
    [25, 7 / 25, 'FFFFFFFF', 'open'],
    [10, 0.05, 'F', 'open'],
    [32, 0.5, 'F'.repeat(16), 'half-open'],
    [32, 0.5, 'F'.repeat(17), 'open'],
    // the ratio's trigger is off: any failure is one too many
    [4, 0, 'SSS', 'half-open'],
    [4, 0, 'SSSS', 'closed'],
    [4, 0, 'SF', 'open'],
    // a ratio of 1 cannot be exceeded: a batch that fails as a whole does not pass for that
    [1, 1, 'F', 'open'],
    [4, 1, 'FFF', 'half-open'],
    [4, 1, 'FFFF', 'open'],
    [4, 1, 'FFFS', 'closed']
  ]
  for (const [probes, ratio, script, expected] of table) {
    it(`${script} of ${probes} at ${ratio}: ${expected}`, () => {
      const rig = halfOpen(probes, ratio)
      rig.play(script.slice(0, -1))
      assert.equal(rig.state, 'half-open', 'before the last result')
      rig.play(script.slice(-1))
      assert.equal(rig.state, expected)
    })
  }

  it('does not ask for the minimum of the closed window', () => {
    assert.equal(halfOpen(1, 0.5, { window: { minimumRequests: 1000 } }).play('F').state, 'open')
    assert.equal(halfOpen(1, 0.5, { window: { minimumRequests: 1000 } }).play('S').state, 'closed')
  })

  it('tells the batch as evidence, and starts the window empty', () => {
    const rig = halfOpen(4).play('FSS')
    assert.equal(rig.causes.at(-1), 'probes_passed')
    assert.deepEqual(rig.transitions.at(-1)?.evidence, { total: 3, failures: 1, ratio: 1 / 3, consecutiveFailures: 0 })
    assert.deepEqual(rig.counts, [0, 0])
    assert.equal(rig.snapshot.consecutiveFailures, 0)
  })

  it('needs a whole outage again after it closed, not one more failure', () => {
    const rig = new Rig({ consecutiveFailures: 0, window: { minimumRequests: 10 }, halfOpen: { probes: 1 } })
    rig.trip().wait(15000).play('S')
    assert.equal(rig.state, 'closed')
    assert.equal(rig.play('FFFFFFFFF').state, 'closed')
    assert.equal(rig.play('F').state, 'open')
  })

  it('goes through the whole circle again and again', () => {
    const rig = new Rig({ consecutiveFailures: 3, openMs: 1000, maxOpenMs: 1000, halfOpen: { probes: 4 } })
    for (let i = 0; i < 10; i++) {
      rig.play('FFF').wait(1000).play('F')
      assert.equal(rig.state, 'half-open')
      rig.play('FF')
      assert.equal(rig.state, 'open')
      rig.wait(1000).play('SS')
      assert.equal(rig.state, 'closed')
    }
    assert.equal(rig.transitions.length, 50)
  })
})

describe('a half-open circuit: probes without a result', () => {
  for (const outcome of ['cancelled', 'ignored'] as const) {
    it(`hands the place of a probe that was ${outcome} back and changes nothing else`, () => {
      const rig = halfOpen(2)
      for (let i = 0; i < 100; i++) {
        const probe = rig.admit()
        assert.ok(probe < 0)
        rig.settle(probe, outcome)
        assert.equal(rig.state, 'half-open')
      }
      assert.deepEqual(rig.snapshot.probes, { batch: 2, granted: 100, inFlight: 0, settled: 0, failed: 0, expired: 0 })
      assert.equal(rig.play('F').state, 'half-open', 'the batch still wants two')
      assert.equal(rig.play('F').state, 'open')
    })
  }

  it('gives the place of a probe up that is not settled in time', () => {
    const rig = halfOpen(1, 0.5, { halfOpen: { probeTimeoutMs: 10000 } })
    const lost = rig.admit()
    rig.wait(9999)
    assert.equal(rig.admit(), 0)
    assert.equal(rig.breaker.wouldAdmit(rig.now), false)
    rig.now += 1
    assert.equal(rig.breaker.wouldAdmit(rig.now), true, 'before anybody swept')
    const next = rig.admit()
    assert.ok(next < 0)
    assert.deepEqual(rig.snapshot.probes, { batch: 1, granted: 2, inFlight: 1, settled: 0, failed: 0, expired: 1 })
    assert.equal(rig.breaker.outstanding, 2, 'the lost one may still be running')
    rig.settle(lost, 'failure')
    assert.equal(rig.state, 'half-open')
    assert.equal(rig.breaker.outstanding, 1)
    rig.settle(next, 'success')
    assert.equal(rig.state, 'closed')
  })

  it('does not count a result that comes after the lease, even if nobody noticed its end', () => {
    const rig = halfOpen(1, 0.5, { halfOpen: { probeTimeoutMs: 1000 } })
    const probe = rig.admit()
    rig.now += 1000
    rig.settle(probe, 'success')
    assert.deepEqual([rig.state, rig.snapshot.probes.expired, rig.breaker.outstanding], ['half-open', 1, 0])
  })

  it('is not held up by 3 of 32 probes that never answer', () => {
    const rig = halfOpen(32, 0.05, { halfOpen: { probeTimeoutMs: 10000 } })
    const probes = Array.from({ length: 32 }, () => rig.admit())
    for (const probe of probes.slice(3)) rig.settle(probe, 'success')
    assert.equal(rig.state, 'half-open')
    rig.wait(10000)
    assert.equal(rig.snapshot.probes.expired, 3)
    rig.play('SS')
    assert.equal(rig.state, 'closed', 'one failure of 32 is allowed, so 31 successes decide')
  })

  it('settles each probe once', () => {
    const rig = halfOpen(4)
    const other = rig.admit()
    const probe = rig.admit()
    rig.settle(probe, 'failure')
    rig.settle(probe, 'failure')
    rig.settle(probe, 'failure')
    assert.equal(rig.state, 'half-open')
    assert.deepEqual([rig.snapshot.probes.failed, rig.breaker.outstanding], [1, 1])
    rig.settle(other, 'ignored')
    assert.equal(rig.breaker.outstanding, 0)
  })

  it('does not grow without bound when the caller never settles', () => {
    const rig = halfOpen(32, 0.5, { halfOpen: { probeTimeoutMs: 1000 } })
    for (let i = 0; i < 50; i++) {
      for (let j = 0; j < 32; j++) assert.ok(rig.admit() < 0)
      rig.wait(1000)
    }
    assert.ok(rig.breaker.outstanding <= 64, `${rig.breaker.outstanding}`)
    assert.equal(rig.snapshot.probes.expired, 1600)
  })
})

/** Opens after so many requests at the same time. */
const batchAfter = (...peaks: number[]) => {
  const rig = new Rig({ consecutiveFailures: 1, window: { failureRatio: 0 } })
  for (const [minute, peak] of peaks.entries()) {
    if (minute > 0) rig.wait(60000)
    const permits = Array.from({ length: peak }, () => rig.admit())
    for (const permit of permits) rig.settle(permit, 'success')
  }
  rig.trip().wait(15000)
  return rig.snapshot.probes.batch
}

describe('a half-open circuit: the size of an automatic batch', () => {
  for (const [peak, batch] of [[0, 1], [1, 1], [10, 1], [11, 2], [30, 3], [100, 10], [311, 32], [320, 32], [5000, 32]] as const) {
    it(`is ${batch} after a peak of ${peak}`, () => assert.equal(batchAfter(peak), batch))
  }

  it('follows the highest of the last ten minutes', () => {
    assert.equal(batchAfter(5, 200, 5, 5, 5), 20)
    assert.equal(batchAfter(200, 5, 5, 5, 5, 5, 5, 5, 5, 5), 20)
    assert.equal(batchAfter(200, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5), 1)
  })

  it('is not swollen by the requests that piled up at a failing upstream', () => {
    assert.equal(batchAfter(50, 50, 50, 320), 5)
    assert.equal(batchAfter(50, 50, 320, 320), 5)
  })

  it('does not take the pile for the usual after it closed either', () => {
    const rig = new Rig({ consecutiveFailures: 1, window: { failureRatio: 0 } })
    for (const peak of [20, 20, 20, 320]) {
      for (const permit of Array.from({ length: peak }, () => rig.admit())) rig.settle(permit, 'success')
      if (peak < 320) rig.wait(60000)
    }
    rig.trip().wait(15000).play('SS').wait(200000).trip().wait(15000)
    assert.equal(rig.snapshot.probes.batch, 2)
  })
})
