import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, it, mock, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import Fastify from 'fastify'
import type { BreakerOptions } from '../../../config/schema.ts'
import breakerRegistry, { type Breaker, type BreakerRegistryOptions, type BreakerTransition } from '../../../plugins/breaker-registry.ts'
import type { BreakerRegistry } from '../../../plugins/breaker-registry/registry.ts'
import { watchStalls } from '../../../plugins/breaker-registry/stall-watch.ts'
import { until } from '../../support/wait.ts'

type Line = Record<string, unknown>

async function build (t: TestContext, stall: Partial<BreakerOptions['stall']> = {}, options: BreakerRegistryOptions = {}) {
  const lines: Line[] = []
  const told: BreakerTransition[] = []
  const app = Fastify({ logger: { level: 'info', stream: { write: (line: string) => { lines.push(JSON.parse(line) as Line) } } } })
  await app.register(breakerRegistry, { defaults: { consecutiveFailures: 0, stall: { outstanding: 3, minMs: 300, ...stall } as BreakerOptions['stall'] }, ...options })
  await app.ready()
  app.breakers.on('transition', transition => told.push(transition))
  t.after(() => app.close())
  const { breaker } = app.breakers.get('shop', 'a:1')
  return { app, lines, told, breaker }
}

/** Lets the breaker know that 10 ms are usual. */
function learn (breaker: Breaker): void {
  for (let i = 0; i < 40; i++) answer(breaker, send(breaker), 10)
}

interface Sent {
  permit: number
  watch: number
}

function send (breaker: Breaker): Sent {
  const permit = breaker.admit(performance.now())
  return { permit, watch: breaker.waits(permit, 10) }
}

function answer (breaker: Breaker, { permit, watch }: Sent, ms: number): void {
  breaker.answered(permit, watch, ms)
  breaker.settle(permit, 'success', performance.now())
}

/** As long as it takes to read what has arrived, and longer. */
const reading = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await turn()
}

describe('the timer of the registry', () => {
  it('opens the circuit of an upstream that goes silent, tells and logs it with the numbers', async (t) => {
    const { breaker, told, lines } = await build(t)
    learn(breaker)
    for (let i = 0; i < 4; i++) send(breaker)
    await until(() => told.length > 0)
    assert.equal(breaker.state, 'open')
    const { stall, ...window } = told[0]!.evidence
    assert.deepEqual([told.length, told[0]?.cause, window, stall], [1, 'stall', { total: 40, failures: 0, ratio: 0, consecutiveFailures: 0 }, { outstanding: 4, oldestMs: 300, stallAfterMs: 300 }])
    const logged = lines.filter(({ msg }) => msg === 'breaker_transition')
    assert.deepEqual(logged.map(line => [line['level'], line['to'], line['cause'], line['stall']]), [[40, 'open', 'stall', stall]])
  })

  it('leaves a circuit closed while something is heard of its upstream, though others stall', async (t) => {
    const { app, breaker, told } = await build(t)
    const lively = app.breakers.get('shop', 'b:1').breaker
    for (const each of [breaker, lively]) learn(each)
    for (let i = 0; i < 10; i++) {
      send(breaker)
      send(lively)
    }
    await until(() => {
      answer(lively, send(lively), 5)
      return told.length > 0
    })
    assert.deepEqual([breaker.state, lively.state], ['open', 'closed'])
  })

  it('judges nothing any more once the app is closed', async (t) => {
    mock.timers.enable({ apis: ['setInterval'] })
    t.after(() => { mock.timers.reset() })
    const { app, breaker, told } = await build(t)
    learn(breaker)
    for (let i = 0; i < 3; i++) send(breaker)
    mock.timers.tick(300)
    await app.close()
    mock.timers.tick(10000)
    await reading()
    assert.deepEqual([breaker.state, told], ['closed', []])
  })

  it('judges once what it suspects, after reading, and not at all when it is stopped meanwhile', async (t) => {
    mock.timers.enable({ apis: ['setInterval'] })
    t.after(() => { mock.timers.reset() })
    let judged = 0
    const registry = { sweep: () => {}, tick: () => true, judgeStalls: () => { judged++ } }
    const stop = watchStalls(registry as unknown as BreakerRegistry)
    mock.timers.tick(200)
    assert.equal(judged, 0)
    await reading()
    assert.equal(judged, 1)
    mock.timers.tick(100)
    stop()
    await reading()
    assert.equal(judged, 1)
  })

  it('takes no jump of the clock for silence', async (t) => {
    mock.timers.enable({ apis: ['setInterval'] })
    t.after(() => { mock.timers.reset() })
    const time = { now: 1e6 }
    const { breaker } = await build(t, {}, { clock: () => time.now })
    learn(breaker)
    for (let i = 0; i < 3; i++) send(breaker)
    for (const jump of [3600000, -7200000]) {
      time.now += jump
      mock.timers.tick(100)
      await reading()
      assert.equal(breaker.state, 'closed')
    }
    mock.timers.tick(200)
    await reading()
    assert.equal(breaker.state, 'open')
  })
})

/** Says nothing until its flag is set; then answers a byte on each connection and counts how many it has written. */
const upstreamCode = `
const { createServer } = require('node:net')
const { parentPort, workerData: flags } = require('node:worker_threads')
const sockets = new Set()
const server = createServer((socket) => {
  sockets.add(socket)
  socket.on('error', () => {}).on('close', () => sockets.delete(socket)).resume()
})
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
setInterval(() => {
  if (Atomics.load(flags, 0) === 0) return
  for (const socket of sockets) socket.write('x', () => Atomics.add(flags, 1, 1))
  sockets.clear()
}, 2)
`

/** An upstream with an event loop of its own, and connections to it. */
async function upstreamOf (t: TestContext, connections: number) {
  const flags = new Int32Array(new SharedArrayBuffer(8))
  const worker = new Worker(upstreamCode, { eval: true, workerData: flags })
  t.after(() => worker.terminate())
  const [port] = await once(worker, 'message') as [number]
  const sockets = await Promise.all(Array.from({ length: connections }, async () => {
    const socket: Socket = connect(port, '127.0.0.1')
    t.after(() => { socket.destroy() })
    await once(socket, 'connect')
    return socket
  }))
  return { flags, sockets }
}

/** Keeps our event loop from doing anything else, for `ms` and until `done`. */
function block (ms: number, done: () => boolean = () => true): void {
  const began = performance.now()
  while (performance.now() - began < ms || !done()) assert.ok(performance.now() - began < 60000, 'never done')
}

/** Sends one attempt on each connection; an answer is told to the breaker when it is read. */
function sendOn (sockets: Socket[], breaker: Breaker): { answers: number } {
  const seen = { answers: 0 }
  for (const socket of sockets) {
    const sent = send(breaker)
    socket.write('x')
    socket.once('data', () => {
      seen.answers++
      answer(breaker, sent, 10)
    })
  }
  return seen
}

describe('our own event loop that stands still', () => {
  it('opens no circuit: what came meanwhile is read before the upstream is judged', async (t) => {
    const { breaker, told } = await build(t)
    const { flags, sockets } = await upstreamOf(t, 3)
    learn(breaker)
    const seen = sendOn(sockets, breaker)
    // the next tick would open the circuit
    while (breaker.snapshot(0).outstanding.oldestMs !== 200) await turn()
    assert.equal(breaker.state, 'closed')
    Atomics.store(flags, 0, 1)
    block(300, () => Atomics.load(flags, 1) === 3)
    assert.equal(seen.answers, 0)
    await until(() => seen.answers === 3)
    await reading()
    assert.deepEqual([breaker.state, told], ['closed', []])
  })

  it('is not the silence of an upstream: that has to last for its whole time beside it', async (t) => {
    const { breaker, told } = await build(t)
    const { sockets } = await upstreamOf(t, 3)
    learn(breaker)
    sendOn(sockets, breaker)
    block(1500)
    const blockedUntil = performance.now()
    await until(() => told.length > 0)
    // the late tick may be the first; timers may come a part of a millisecond early
    assert.ok(performance.now() - blockedUntil > 290)
    assert.deepEqual(told.map(({ cause, evidence }) => [cause, evidence.stall?.oldestMs]), [['stall', 300]])
  })
})
