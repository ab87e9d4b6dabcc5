import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isQuick } from '../../../lib/breaker/stall.ts'
import type { Waiter } from '../../../lib/breaker/silence.ts'
import type { Permit } from '../../../lib/breaker/types.ts'
import { optionsWith, Rig, type Overrides } from './support.ts'

interface Waiting extends Waiter {
  permit: Permit
  watch: number
}

/** A breaker with attempts that wait, and a hand on its ticks. */
class Upstream extends Rig {
  #sent = 0

  /** Lets `times` attempts begin to wait, on a route with this usual time. */
  send (times = 1, routeMs = 10): Waiting[] {
    return Array.from({ length: times }, () => {
      const permit = this.admit()
      const waiting: Waiting = { permit, watch: 0, name: `r${++this.#sent}`, waitsSince: 0, waitsBefore: null, waitsAfter: null }
      waiting.watch = this.breaker.waits(permit, routeMs, waiting)
      return waiting
    })
  }

  answer ({ permit, watch }: Waiting, ms: number): void {
    this.breaker.answered(permit, watch, ms)
    this.settle(permit, 'success')
  }

  /** Answers that come after `ms`, one by one, on a route for which that is usual. */
  serve (ms: number, times = 50): this {
    for (let i = 0; i < times; i++) for (const waiting of this.send(1, ms)) this.answer(waiting, ms)
    return this
  }

  /** Time in which the upstream would have been heard. */
  pass (ms: number): this {
    for (let ticks = ms / 100; ticks > 0 && this.state === 'closed'; ticks--) {
      this.now += 100
      if (this.breaker.tick()) this.breaker.judgeStall(this.now)
    }
    return this
  }

  get outstanding () {
    return this.snapshot.outstanding
  }
}

/** An upstream that is known to answer within this time. */
const quick = (ms = 10, overrides: Overrides = {}): Upstream => new Upstream(overrides).serve(ms)

describe('a stall', () => {
  it('opens the circuit once enough attempts have waited for longer than minMs, and not a tick before', () => {
    const upstream = quick()
    upstream.send(8)
    upstream.pass(500)
    assert.equal(upstream.state, 'closed')
    upstream.pass(100)
    assert.equal(upstream.state, 'open')
    assert.deepEqual(upstream.transitions.map(({ from, to, cause, openForMs, evidence }) => ({ from, to, cause, openForMs, evidence })), [{
      from: 'closed',
      to: 'open',
      cause: 'stall',
      openForMs: 15000,
      evidence: { total: 50, failures: 0, ratio: 0, consecutiveFailures: 0, stall: { outstanding: 8, oldestMs: 500, stallAfterMs: 500 } }
    }])
    assert.ok(Object.isFrozen(upstream.transitions[0]?.evidence) && Object.isFrozen(upstream.transitions[0]?.evidence.stall))
    upstream.play('---')
  })

  it('names those who waited for too long, the oldest first, at most ten; not those who left, and nobody else', () => {
    const upstream = quick()
    const sent = [...upstream.send(3)]
    upstream.pass(100)
    sent.push(...upstream.send(4))
    const [first, , third, fourth] = sent as [Waiting, Waiting, Waiting, Waiting]
    for (const each of [first, fourth]) upstream.breaker.gaveUp(each.watch, each)
    upstream.pass(100)
    sent.push(...upstream.send(6))
    upstream.pass(500)
    upstream.send(9)
    // overdue already, and gone before the last ones are
    upstream.breaker.gaveUp(third.watch, third)
    upstream.pass(100)
    const names = (from: Waiting[]): string[] => from.map(({ name }) => name)
    assert.deepEqual(upstream.transitions.map(({ waiting }) => waiting), [names(sent.filter(each => ![first, third, fourth].includes(each)).slice(0, 10))])
    assert.ok(Object.isFrozen(upstream.transitions[0]?.waiting))
    assert.deepEqual(sent.map(({ waitsBefore, waitsAfter }) => [waitsBefore, waitsAfter]), sent.map(() => [null, null]), 'nobody keeps another one alive')

    upstream.wait(15000).play('S').serve(10)
    const later = upstream.send(12)
    upstream.pass(600)
    assert.deepEqual(upstream.transitions.map(({ cause, waiting }) => [cause, waiting]).slice(1), [
      ['open_elapsed', []], ['probes_passed', []], ['stall', names(later.slice(0, 10))]
    ])
  })

  it('is none with one attempt fewer, however long they wait', () => {
    const upstream = quick()
    upstream.send(7)
    assert.equal(upstream.pass(300000).state, 'closed')
  })

  it('counts the attempts that are old enough, not those beside them', () => {
    const upstream = quick()
    for (let i = 0; i < 7; i++) {
      upstream.send(1)
      upstream.pass(100)
    }
    upstream.send(20)
    assert.equal(upstream.pass(500).state, 'closed')
    upstream.pass(100)
    assert.deepEqual(upstream.transitions.map(({ evidence }) => evidence.stall), [{ outstanding: 27, oldestMs: 1200, stallAfterMs: 500 }])
  })

  for (const [usual, after] of [[10, 500], [62, 500], [100, 800], [300, 2400], [1000, 8000]] as const) {
    it(`needs ${after} ms of silence where ${usual} ms are usual`, () => {
      const upstream = quick(usual)
      const { stallAfterMs, usualMs } = upstream.outstanding
      assert.ok(usualMs !== null && usualMs >= usual && usualMs <= 1.2 * usual, `${usualMs}`)
      assert.ok(stallAfterMs !== null && stallAfterMs >= after && stallAfterMs <= 1.2 * after, `${stallAfterMs}`)
      upstream.send(8, usual)
      const early = Math.floor(stallAfterMs / 100) * 100
      assert.equal(upstream.pass(early).state, 'closed')
      // a slot is a seventh of the limit, or a tick
      upstream.pass(Math.ceil(stallAfterMs / 700) * 100 + 200)
      assert.equal(upstream.state, 'open')
    })
  }

  it('goes by its own factor and number', () => {
    const upstream = quick(100, { stall: { outstanding: 2, factor: 3, minMs: 1 } })
    upstream.send(2, 100)
    assert.equal(upstream.pass(300).state, 'closed')
    assert.equal(upstream.pass(300).state, 'open')
  })

  it('is judged a second time before it opens the circuit: what has arrived meanwhile counts', () => {
    const upstream = quick()
    const [first] = upstream.send(8)
    let suspected = 0
    for (let i = 0; i < 6; i++) if (upstream.breaker.tick()) suspected++
    assert.equal(suspected, 1)
    upstream.answer(first!, 600)
    assert.equal(upstream.breaker.judgeStall(upstream.now), false)
    assert.equal(upstream.state, 'closed')
  })

  it('is never seen without ticks, whatever the clock says', () => {
    const upstream = quick()
    upstream.send(50)
    upstream.wait(3600000)
    assert.equal(upstream.breaker.judgeStall(upstream.now), false)
    // one late tick counts once
    assert.equal(upstream.pass(100).state, 'closed')
    upstream.wait(-7200000)
    assert.equal(upstream.pass(400).state, 'closed')
    assert.equal(upstream.pass(100).state, 'open')
  })

  it('is over where the upstream is open, and its next life begins without it', () => {
    const upstream = quick()
    const waiting = upstream.send(8)
    upstream.pass(600).wait(15000)
    assert.equal(upstream.state, 'half-open')
    for (const { watch } of waiting) upstream.breaker.gaveUp(watch)
    upstream.play('S')
    assert.equal(upstream.state, 'closed')
    assert.equal(upstream.pass(10000).state, 'closed')
    upstream.send(8)
    assert.equal(upstream.pass(500).state, 'closed')
    assert.equal(upstream.pass(100).state, 'open')
  })

  it('may end its attempts from within the news of it', () => {
    const upstream = quick()
    const waiting = upstream.send(9)
    const before = upstream.outstanding.count
    const { breaker } = upstream
    const pushed = upstream.transitions.push.bind(upstream.transitions)
    upstream.transitions.push = (...added) => {
      for (const { permit, watch } of waiting) {
        breaker.gaveUp(watch)
        breaker.settle(permit, 'cancelled', upstream.now)
      }
      return pushed(...added)
    }
    upstream.pass(600)
    assert.deepEqual([upstream.causes, upstream.outstanding.count], [['stall'], before - 9])
  })
})

describe('no stall', () => {
  it('where something is answered now and then', () => {
    const upstream = quick()
    upstream.send(40)
    for (let i = 0; i < 100; i++) {
      const [last] = upstream.send(1)
      upstream.pass(400)
      upstream.answer(last!, 400)
    }
    assert.equal(upstream.state, 'closed')
  })

  it('where a slow route is answered, or an attempt is refused or reset', () => {
    for (const live of [(upstream: Upstream) => upstream.answer(upstream.send(1, 9000)[0]!, 9000), (upstream: Upstream) => upstream.breaker.heard()]) {
      const upstream = quick()
      for (let i = 0; i < 20; i++) {
        upstream.send(10)
        upstream.pass(500)
        live(upstream)
      }
      assert.equal(upstream.state, 'closed')
    }
  })

  it('of attempts that began before the last answer', () => {
    const upstream = quick()
    const waiting = upstream.send(30)
    upstream.pass(300)
    upstream.answer(waiting[29]!, 300)
    assert.equal(upstream.pass(60000).state, 'closed')
    upstream.send(7)
    assert.equal(upstream.pass(10000).state, 'closed')
  })

  it('where the clients leave', () => {
    const upstream = quick()
    const waiting = upstream.send(8)
    upstream.pass(500)
    upstream.breaker.gaveUp(waiting[3]!.watch)
    assert.equal(upstream.pass(60000).state, 'closed')
    upstream.send(1)
    assert.equal(upstream.pass(500).state, 'closed')
    assert.equal(upstream.pass(100).state, 'open', 'the seven that stayed count')
  })

  it('where a client leaves twice, or after the answer', () => {
    const upstream = quick()
    const [first, second, ...others] = upstream.send(10)
    upstream.breaker.gaveUp(first!.watch)
    upstream.breaker.gaveUp(0)
    upstream.answer(second!, 20)
    for (const { watch } of [first!, second!, ...others]) upstream.breaker.gaveUp(watch)
    assert.equal(upstream.outstanding.oldestMs, null)
    upstream.send(8)
    for (const { watch } of others) upstream.breaker.gaveUp(watch)
    assert.equal(upstream.pass(600).state, 'open', 'late goodbyes take nobody else away')
  })

  it('where traffic stops altogether', () => {
    assert.equal(quick().pass(3600000).state, 'closed')
  })

  it('of long polls that wait through a quiet time', () => {
    const upstream = quick()
    const polls = upstream.send(500, 25000)
    assert.ok(polls.every(({ watch }) => watch === 0))
    assert.equal(upstream.pass(3600000).state, 'closed')
    assert.equal(upstream.outstanding.oldestMs, null)
  })

  it('where the one slow route of an upstream is slow', () => {
    const upstream = quick(10000)
    assert.equal(upstream.outstanding.stallAfterMs, null)
    upstream.send(100, 10000)
    assert.equal(upstream.pass(60000).state, 'closed')
  })

  it('of the first requests of a route, or of an upstream', () => {
    const route = quick()
    route.send(100, 0)
    assert.equal(route.pass(60000).state, 'closed')
    const upstream = new Upstream()
    upstream.send(100)
    assert.equal(upstream.pass(60000).state, 'closed')
    upstream.serve(10, 19)
    upstream.send(100)
    assert.equal(upstream.pass(60000).state, 'closed')
  })

  it('of a burst after a minute without an answer: what was quick may be cold', () => {
    const upstream = quick()
    upstream.pass(60100)
    const burst = upstream.send(100)
    assert.equal(upstream.pass(30000).state, 'closed')
    upstream.answer(burst[0]!, 3000)
    upstream.send(8)
    assert.equal(upstream.pass(600).state, 'open', 'it is warm now')
  })

  it('of uploads that are under way', () => {
    const upstream = quick()
    for (let i = 0; i < 100; i++) upstream.admit()
    assert.equal(upstream.pass(60000).state, 'closed')
  })

  it('with outstanding 0, and nothing is learned then', () => {
    const upstream = quick(10, { stall: { outstanding: 0 } })
    upstream.send(100)
    assert.equal(upstream.pass(60000).state, 'closed')
    assert.deepEqual(upstream.outstanding, { count: 100, oldestMs: null, usualMs: null, stallAfterMs: null })
  })

  it('in mode off', () => {
    const upstream = quick(10, { mode: 'off' })
    upstream.send(100)
    assert.equal(upstream.pass(60000).state, 'closed')
  })

  it('of probes', () => {
    const upstream = quick(10, { halfOpen: { probes: 10 } })
    upstream.trip().wait(15000)
    const probes = upstream.send(10)
    assert.ok(probes.every(({ permit, watch }) => permit < 0 && watch === 0))
    for (let i = 0; i < 100; i++) assert.equal(upstream.breaker.tick(), false)
    assert.equal(upstream.state, 'half-open')
  })

  it('of refused permits', () => {
    const upstream = quick().trip()
    assert.equal(upstream.breaker.waits(0, 10), 0)
    upstream.breaker.answered(0, 0, 99999)
    assert.equal(upstream.breaker.tick(), false)
  })

  it('right after new options: a silence is measured by those it began with', () => {
    const upstream = quick()
    upstream.send(50)
    upstream.pass(500)
    upstream.breaker.configure(optionsWith({ stall: { minMs: 200 } }), upstream.now)
    assert.equal(upstream.pass(60000).state, 'closed', 'nobody began to wait since')
    upstream.send(8)
    assert.equal(upstream.pass(200).state, 'closed')
    assert.equal(upstream.pass(100).state, 'open')
  })
})

describe('a stall in other modes', () => {
  it('shows in observe mode as what would be', () => {
    const upstream = quick(10, { mode: 'observe' })
    upstream.send(8)
    upstream.pass(600)
    assert.deepEqual([upstream.state, upstream.causes], ['open', ['stall']])
    assert.notEqual(upstream.admit(), 0)
    assert.equal(upstream.breaker.wouldRefuse, 1)
  })

  it('is learned in silence below a forced closed state', () => {
    const upstream = quick()
    upstream.breaker.force('closed', 60000, null, upstream.now)
    upstream.send(8)
    for (let i = 0; i < 6; i++) if (upstream.breaker.tick()) upstream.breaker.judgeStall(upstream.now)
    assert.deepEqual([upstream.state, upstream.causes], ['closed', ['forced']])
    upstream.breaker.force('auto', undefined, null, upstream.now)
    assert.deepEqual([upstream.state, upstream.causes], ['open', ['forced', 'force_ended']])
  })

  it('does not count while it is forced open, nor what waited before', () => {
    const upstream = quick()
    upstream.send(50)
    upstream.pass(500)
    upstream.breaker.force('open', 1000, null, upstream.now)
    for (let i = 0; i < 20; i++) assert.equal(upstream.breaker.tick(), false)
    upstream.wait(1000)
    assert.equal(upstream.state, 'closed')
    assert.equal(upstream.pass(60000).state, 'closed')
  })
})

describe('what is usual', () => {
  it('shows in the snapshot, with how long the oldest attempt has waited', () => {
    const { usualMs, stallAfterMs, ...rest } = quick(100).outstanding
    assert.deepEqual(rest, { count: 0, oldestMs: null })
    assert.equal(stallAfterMs, Math.round(8 * usualMs!))
    const upstream = quick()
    upstream.send(2)
    assert.deepEqual([upstream.outstanding.count, upstream.outstanding.oldestMs], [2, 0])
    upstream.pass(300)
    assert.equal(upstream.outstanding.oldestMs, 200)
    upstream.pass(60000)
    assert.equal(upstream.outstanding.oldestMs, 60200)
    assert.ok(Object.isFrozen(upstream.outstanding))
  })

  it('is learned in closed state only, and from this generation only', () => {
    const upstream = quick(10, { halfOpen: { probes: 1 } })
    const before = upstream.outstanding.usualMs
    const old = upstream.send(40)
    upstream.trip()
    for (const waiting of old) upstream.answer(waiting, 5000)
    upstream.wait(15000)
    for (const probe of upstream.send(1)) upstream.answer(probe, 5000)
    for (const waiting of old) upstream.answer(waiting, 5000)
    assert.deepEqual([upstream.state, upstream.outstanding.usualMs], ['closed', before])
    upstream.serve(5000, 40)
    assert.equal(upstream.outstanding.usualMs, before, 'a slow route does not teach either')
  })

  it('survives a reset', () => {
    const upstream = quick(10)
    const before = upstream.outstanding.usualMs
    upstream.breaker.reset(upstream.now)
    assert.equal(upstream.outstanding.usualMs, before)
  })

  it('is not what long polls take, though each second answer is one of theirs', () => {
    const upstream = new Upstream()
    for (let i = 0; i < 200; i++) upstream.serve(25000, 1).serve(10, 1).pass(100)
    assert.equal(upstream.outstanding.stallAfterMs, 500)
  })

  it('follows an upstream whose routes have all become slower', () => {
    const upstream = quick(10)
    for (let i = 0; i < 200; i++) upstream.serve(700, 1).pass(100)
    const { usualMs } = upstream.outstanding
    assert.ok(usualMs !== null && usualMs >= 700 && usualMs <= 800, `${usualMs}`)
    upstream.send(8, 700)
    assert.equal(upstream.pass(5600).state, 'closed')
    assert.equal(upstream.pass(2400).state, 'open')
  })

  it('rises with a hiccup, so that the next one is not taken for a stall', () => {
    const upstream = quick(10)
    for (const waiting of upstream.send(60)) upstream.answer(waiting, 400)
    assert.ok(upstream.outstanding.stallAfterMs! >= 3200)
  })
})

describe('a quick route', () => {
  const table: Array<[routeMs: number, upstreamMs: number, quick: boolean, why: string]> = [
    [10, 10, true, 'as quick as its upstream'],
    [0, 10, false, 'not known'],
    [250, 10, true, 'far slower than its upstream, but within what minMs allows for'],
    [251, 10, false, 'far slower than its upstream'],
    [400, 100, true, 'four times slower than its upstream'],
    [401, 100, false, 'more than four times slower'],
    [1, 5000, true, 'faster than its upstream'],
    [7500, 7500, true, 'slow, like all of its upstream'],
    [7501, 7500, false, 'its silence would have to last for more than a minute'],
    [25000, 25000, false, 'a long poll, where nothing else is known'],
    [200, 0, true, 'at an upstream that is not known yet'],
    [Number.NaN, 10, false, 'no number']
  ]
  for (const [routeMs, upstreamMs, quickly, why] of table) {
    it(`${routeMs} ms at ${upstreamMs} ms is ${quickly ? 'one' : 'none'}: ${why}`, () => {
      assert.equal(isQuick(routeMs, upstreamMs, { outstanding: 8, factor: 8, minMs: 500 }), quickly)
    })
  }
})
