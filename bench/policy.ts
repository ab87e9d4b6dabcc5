import { cpus } from 'node:os'
import type { BreakerOptions } from '../config/schema.ts'
import { Breaker } from '../lib/breaker/breaker.ts'
import { monotonic } from '../lib/clock.ts'
import { seededRandom } from '../lib/random.ts'
import { Gate } from '../lib/shed/gate.ts'
import { batch, checksum, time, type Effort, type Operation, type Timing } from './harness.ts'
import { balancers, picking, wholePath } from './policy-lane.ts'
import { figure, textTable } from './report.ts'

/** The defaults of the configuration. */
const options: BreakerOptions = {
  mode: 'enforce',
  consecutiveFailures: 5,
  window: { seconds: 60, minimumRequests: 10, minimumShare: 0.1, failureRatio: 0.5 },
  stall: { outstanding: 8, factor: 8, minMs: 500 },
  openMs: 15000,
  maxOpenMs: 120000,
  jitter: 0.1,
  halfOpen: { probes: 'auto', probeTimeoutMs: 10000 }
}

/** 50 µs between two requests: windows roll over, as they would at 20 000 requests a second. */
const stepMs = 0.05

/** Time between two loops. Inside a loop it is a local variable: V8 would box one of a closure at each write. */
class FakeClock {
  now = 0
}

const random = seededRandom(1)
const ignore = (): void => {}
const newBreaker = (now: number): Breaker => new Breaker(options, random, now, ignore)

function admitting (): Operation {
  const breaker = newBreaker(0)
  const permits = new Int32Array(batch)
  const clock = new FakeClock()
  let held = 0
  return {
    name: 'breaker admit, closed',
    before: () => {
      for (let i = 0; i < held; i++) breaker.settle(permits[i] as number, 'success', clock.now)
      held = 0
    },
    loop: count => {
      let { now } = clock
      for (let i = 0; i < count; i++) {
        now += stepMs
        permits[i] = breaker.admit(now)
      }
      held = count
      clock.now = now
      return permits[count - 1] as number
    }
  }
}

function settling (): Operation {
  const breaker = newBreaker(0)
  const permits = new Int32Array(batch)
  const clock = new FakeClock()
  return {
    name: 'breaker settle(success), closed',
    before: count => {
      for (let i = 0; i < count; i++) permits[i] = breaker.admit(clock.now)
    },
    loop: count => {
      let { now } = clock
      for (let i = 0; i < count; i++) {
        now += stepMs
        breaker.settle(permits[i] as number, 'success', now)
      }
      clock.now = now
      return now
    }
  }
}

function pairing (): Operation {
  const breaker = newBreaker(0)
  const clock = new FakeClock()
  return {
    name: 'breaker admit + settle',
    loop: count => {
      let { now } = clock
      for (let i = 0; i < count; i++) {
        now += stepMs
        breaker.settle(breaker.admit(now), 'success', now)
      }
      clock.now = now
      return now
    }
  }
}

function pairingWithFailures (): Operation {
  const breaker = newBreaker(0)
  const clock = new FakeClock()
  let sum = 0
  return {
    name: 'breaker admit + settle, 1 % failures',
    loop: count => {
      let { now } = clock
      for (let i = 0; i < count; i++) {
        now += stepMs
        sum = (sum + 1) % 100
        breaker.settle(breaker.admit(now), sum === 0 ? 'failure' : 'success', now)
      }
      clock.now = now
      return now
    }
  }
}

function refusing (): Operation {
  const breaker = newBreaker(0)
  for (let i = 0; i < options.consecutiveFailures; i++) breaker.settle(breaker.admit(1), 'failure', 1)
  if (breaker.admit(2) !== 0) throw new Error('the breaker did not open')
  return {
    name: 'breaker refuse, open',
    loop: count => {
      let refused = 0
      for (let i = 0; i < count; i++) if (breaker.admit(2.5 + (i & 1023)) === 0) refused++
      return refused
    }
  }
}

function gating (): Operation {
  const gate = new Gate(256)
  return {
    name: 'gate acquire + release',
    loop: count => {
      let taken = 0
      for (let i = 0; i < count; i++) {
        if (!gate.tryAcquire()) continue
        taken++
        gate.release()
      }
      return taken
    }
  }
}

const reading: Operation = {
  name: 'one clock read',
  loop: count => {
    let sum = 0
    for (let i = 0; i < count; i++) sum += monotonic()
    return sum
  }
}

function heapBytes (): number {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const timerCount = (): number => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length

/** Memory of one breaker in bytes, backing stores of typed arrays included, and the timers that a thousand of them hold. */
function footprint (): { memory: number, timers: number } {
  const made = 1000
  const kept = Array.from<unknown, Breaker | null>({ length: made }, () => null)
  const timersBefore = timerCount()
  const before = heapBytes()
  for (let i = 0; i < made; i++) kept[i] = newBreaker(0.5)
  const memory = (heapBytes() - before) / made
  const timers = timerCount() - timersBefore
  // Read afterwards, so that they are still there while their memory is counted.
  if (kept.some(breaker => breaker?.state !== 'closed')) throw new Error('a new breaker must be closed')
  return { memory, timers }
}

const quick = process.argv.includes('--quick')
const effort: Effort = quick ? { samples: 3, sampleMs: 10 } : { samples: 15, sampleMs: 40 }
/** The size of a large pool. */
const many = 100
const operations = [
  admitting(), settling(), pairing(), pairingWithFailures(), refusing(), gating(), reading,
  picking('round-robin', 3), ...balancers.map(balancer => picking(balancer, many)),
  wholePath('round-robin', 3, options), ...balancers.map(balancer => wholePath(balancer, many, options))
]
const timings = operations.map(operation => time(operation, effort))
const { memory, timers } = footprint()

const of = (name: string): Timing => timings.find(timing => timing.name === name) as Timing
const admit = of('breaker admit, closed')
const settle = of('breaker settle(success), closed')
const goals: Array<[what: string, atMost: number, is: number, unit: string]> = [
  ['breaker admit', 10, admit.best, 'ns'],
  ['breaker record (settle)', 15, settle.best, 'ns'],
  ['allocated by admit + record', 0, Math.round(of('breaker admit + settle').bytes), 'B'],
  ['whole policy path, round-robin of 3', 150, of('whole path, round-robin, 3 upstreams').best, 'ns'],
  ...balancers.map((balancer): [string, number, number, string] => [`whole policy path, ${balancer} of ${many}`, 150, of(`whole path, ${balancer}, ${many} upstreams`).best, 'ns']),
  ['memory of a breaker', 1500, memory, 'B'],
  ['timers of a breaker', 0, timers, '']
]

process.stdout.write(`machine: ${cpus()[0]?.model.trim() ?? 'unknown'}, ${cpus().length} cores, node ${process.versions.node}

${textTable(['operation', 'best ns', 'median ns', 'bytes'], timings.map(({ name, best, median, bytes }) => [name, figure(best, 1), figure(median, 1), figure(bytes, 1)]))}

${textTable(['target', 'at most', 'is', ''], goals.map(([what, atMost, is, unit]) => [what, `${atMost} ${unit}`.trim(), `${figure(is, unit === 'ns' ? 1 : 0)} ${unit}`.trim(), is <= atMost ? 'reached' : 'not reached']))}
`)
if (!Number.isFinite(checksum())) process.exitCode = 1
