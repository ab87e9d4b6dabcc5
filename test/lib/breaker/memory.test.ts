import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Breaker } from '../../../lib/breaker/breaker.ts'
import { optionsWith } from './support.ts'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

/** Heap and array buffers in use, after a collection. */
function inUse (): number {
  gc()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const options = optionsWith({ window: { minimumShare: 0.1 } })
const onTransition = () => {}

/** A hundred requests in each millisecond. Whole numbers, because a fraction would be boxed by the caller, for which the breaker cannot help. */
function traffic (breaker: Breaker, from: number, count: number): void {
  for (let i = 0; i < count; i++) {
    const now = from + Math.trunc(i / 100)
    breaker.settle(breaker.admit(now), i % 100 === 0 ? 'failure' : 'success', now)
  }
}

/** What one of them takes, in bytes: the median of five times ten thousand, as the engine and the runner allocate and let go beside us. */
function bytesOf (one: () => Breaker): number {
  const rounds = Array.from({ length: 5 }, () => {
    const breakers: Breaker[] = []
    const before = inUse()
    for (let i = 0; i < 10000; i++) breakers.push(one())
    return (inUse() - before) / breakers.length
  })
  return rounds.toSorted((a, b) => a - b)[2] as number
}

const make = () => new Breaker(options, Math.random, 0.5, onTransition)

describe('memory', () => {
  it('admitting and settling allocates nothing once it is compiled', () => {
    const breaker = new Breaker(options, Math.random, 1)
    traffic(breaker, 1, 300000)
    // compiling and the test runner allocate beside us, so the least of several rounds counts
    let least = Number.POSITIVE_INFINITY
    for (let round = 1; round <= 8; round++) {
      gc()
      const before = process.memoryUsage().heapUsed
      traffic(breaker, round * 5000, 400000)
      least = Math.min(least, process.memoryUsage().heapUsed - before)
    }
    // one boxed number per request would be 16
    assert.ok(least / 400000 < 1, `${least / 400000} bytes a request`)
  })

  it('watching for a stall allocates nothing once it is compiled', () => {
    const breaker = new Breaker(options, Math.random, 1)
    const permit = breaker.admit(1)
    // as many as come between two answers, at most
    const waiters = Array.from({ length: 16 }, (_, i) => ({ name: `r${i}`, waitsSince: 0, waitsBefore: null, waitsAfter: null }))
    const watched = (count: number): void => {
      for (let i = 0; i < count; i++) {
        const watch = breaker.waits(permit, 8, waiters[i % 16])
        if (i % 100 === 0) breaker.tick()
        if (i % 10 === 0) breaker.gaveUp(watch, waiters[i % 16])
        else breaker.answered(permit, watch, 4 + i % 8)
      }
    }
    watched(300000)
    let least = Number.POSITIVE_INFINITY
    for (let round = 1; round <= 8; round++) {
      gc()
      const before = process.memoryUsage().heapUsed
      watched(400000)
      least = Math.min(least, process.memoryUsage().heapUsed - before)
    }
    assert.ok(least / 400000 < 1, `${least / 400000} bytes an attempt`)
  })

  it('ten thousand breakers take at most 1.5 kB each', () => {
    // the first ones pay for the code, and V8 learns their size from them
    for (let i = 0; i < 100; i++) traffic(make(), 1, 10)
    const each = bytesOf(make)
    assert.ok(each > 0 && each <= 1536, `${each} bytes`)
  })

  it('and no more where each knows what is usual and watches attempts that wait', () => {
    const watching = (): Breaker => {
      const breaker = make()
      const permit = breaker.admit(1.5)
      for (let i = 0; i < 40; i++) breaker.answered(permit, breaker.waits(permit, 8), 8.5)
      for (let i = 0; i < 20; i++) {
        breaker.waits(permit, 8)
        breaker.tick()
      }
      return breaker
    }
    for (let i = 0; i < 100; i++) watching()
    const each = bytesOf(watching)
    assert.ok(each > 0 && each <= 1536, `${each} bytes`)
  })

  it('ten thousand that opened, closed and saw ten minutes of traffic take little more', () => {
    const breakers: Breaker[] = []
    const before = inUse()
    for (let i = 0; i < 10000; i++) {
      const breaker = new Breaker(options, Math.random, 0.5, onTransition)
      for (let failures = 0; failures < 5; failures++) breaker.settle(breaker.admit(1.5), 'failure', 2.5)
      breaker.settle(breaker.admit(40000.5), 'success', 40000.75)
      for (let minute = 1; minute < 15; minute++) breaker.settle(breaker.admit(minute * 60000.5), 'success', minute * 60000.5)
      breakers.push(breaker)
    }
    const each = (inUse() - before) / breakers.length
    assert.ok(each > 0 && each <= 1792, `${each} bytes`)
  })

  it('does not grow with a million requests that come and go', () => {
    const breaker = new Breaker(options, Math.random, 0.5, onTransition)
    traffic(breaker, 1, 10000)
    const before = inUse()
    traffic(breaker, 1000, 1000000)
    assert.ok(inUse() - before < 100000)
  })
})
