import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it, mock } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import breakerRegistry, { BreakerOpenError, type BreakerRegistryOptions, type BreakerTransition } from '../../plugins/breaker-registry.ts'
import { shipped } from '../config/support.ts'
import { seededRandom } from '../../lib/random.ts'

type Line = Record<string, unknown>

/** An app with the plugin, a clock in the test's hand and its log lines. */
async function build (options: BreakerRegistryOptions = {}) {
  const lines: Line[] = []
  const time = { now: 1000 }
  const app = Fastify({ logger: { level: 'trace', stream: { write: (line: string) => { lines.push(JSON.parse(line) as Line) } } } })
  await app.register(breakerRegistry, { clock: () => time.now, random: seededRandom(1), ...options })
  return { app, lines, time, breakers: app.breakers }
}

const fail = (app: FastifyInstance, pool: string, upstream: string, times = 5) => {
  for (let i = 0; i < times; i++) app.breakers.get(pool, upstream).acquire()?.settle('failure')
}

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe('the registry', () => {
  it('makes a breaker on first use and finds it again', async () => {
    const { app, breakers } = await build()
    assert.equal(breakers.find('shop', 'a:1'), undefined)
    const a = breakers.get('shop', 'a:1')
    assert.equal(breakers.get('shop', 'a:1'), a)
    assert.equal(breakers.find('shop', 'a:1'), a)
    const others = [breakers.get('shop', 'b:1'), breakers.get('s', 'hop a:1'), breakers.get('s hop', 'a:1')]
    assert.equal(new Set([a, ...others]).size, 4)
    assert.deepEqual(breakers.list().map(({ pool, upstream }) => [pool, upstream]), [['shop', 'a:1'], ['shop', 'b:1'], ['s', 'hop a:1'], ['s hop', 'a:1']])
    await app.close()
  })

  it('takes each default from the schema', async () => {
    const { app, breakers } = await build({ defaults: { consecutiveFailures: 3, window: { seconds: 10 } } })
    assert.deepEqual(breakers.get('shop', 'a').options, {
      mode: 'enforce',
      consecutiveFailures: 3,
      window: { seconds: 10, minimumRequests: 10, minimumShare: 0.1, failureRatio: 0.5 },
      stall: { outstanding: 8, factor: 8, minMs: 500 },
      openMs: 15000,
      maxOpenMs: 120000,
      jitter: 0.1,
      halfOpen: { probes: 'auto', probeTimeoutMs: 10000 }
    })
    const own = breakers.get('shop', 'b', { window: { failureRatio: 0 }, jitter: undefined })
    assert.deepEqual(own.options.window, { seconds: 10, minimumRequests: 10, minimumShare: 0.1, failureRatio: 0 })
    assert.equal(own.options.jitter, 0.1)
    await app.close()
  })

  it('refuses invalid options, naming where', async () => {
    await assert.rejects(build({ defaults: { window: { failureRatio: 2 } } }), /TypeError: invalid options\n  - breaker\.window\.failureRatio: must be a number from 0 to 1, got 2$/)
    const { app, breakers } = await build()
    assert.throws(() => breakers.get('shop', 'a', { openMs: 0, halfOpen: { probes: 33 } }), (error: Error) => {
      assert.ok(error instanceof TypeError)
      assert.match(error.message, /- breaker\.openMs: must be a whole number from 1 /)
      assert.match(error.message, /- breaker\.halfOpen\.probes: must be "auto" or /)
      return true
    })
    assert.throws(() => breakers.get('shop', 'a', { window: { ratio: 1 } } as never), /breaker\.window\.ratio: is not a known option/)
    assert.throws(() => breakers.get('shop', 'a', { window: 5 } as never), /breaker\.window: must be a mapping, got 5/)
    assert.throws(() => breakers.get('shop', 'a', { openMs: 2000, maxOpenMs: 1000 }), /breaker\.maxOpenMs: must be at least breaker\.openMs/)
    assert.equal(breakers.find('shop', 'a'), undefined)
    await app.close()
  })

  it('swaps options of a breaker that exists', async () => {
    const { app, breakers } = await build()
    const breaker = breakers.get('shop', 'a')
    fail(app, 'shop', 'a', 4)
    breakers.get('shop', 'a', { consecutiveFailures: 9 })
    fail(app, 'shop', 'a', 4)
    assert.equal(breaker.snapshot().consecutiveFailures, 8)
    assert.throws(() => breaker.configure({ jitter: 1 }), TypeError)
    assert.equal(breaker.options.consecutiveFailures, 9)
    breakers.get('shop', 'a')
    assert.equal(breaker.options.consecutiveFailures, 9)
    await app.close()
  })

  it('lets a removed breaker settle, lists it no more and tells of it no more', async () => {
    const { app, breakers, lines } = await build()
    const told: BreakerTransition[] = []
    breakers.on('transition', transition => told.push(transition))
    const removed = breakers.get('shop', 'a')
    const permit = removed.acquire()
    assert.equal(breakers.remove('shop', 'a'), true)
    assert.equal(breakers.remove('shop', 'a'), false)
    assert.equal(breakers.remove('nowhere', 'a'), false)
    assert.deepEqual([breakers.find('shop', 'a'), breakers.list()], [undefined, []])
    permit?.settle('failure')
    assert.equal(removed.snapshot().outstanding.count, 0)
    removed.force('open', 1000)
    assert.notEqual(breakers.get('shop', 'a'), removed)
    removed.reset()
    assert.deepEqual([told, lines.filter(({ msg }) => msg === 'breaker_transition')], [[], []])
    await app.close()
  })

  it('imposes a force again on an upstream that has gone and comes back, for the time that was left', async () => {
    const { app, breakers, time } = await build()
    breakers.get('shop', 'a').force('open', 60000, 'broken disk')
    breakers.get('shop', 'b').force('open', 10000)
    for (const upstream of ['a', 'b']) breakers.remove('shop', upstream)
    time.now += 20000
    assert.equal(breakers.get('shop', 'b').snapshot().force, null)
    const { state, force } = breakers.get('shop', 'a').snapshot()
    assert.deepEqual([state, force?.state, force?.reason], ['open', 'open', 'broken disk'])
    time.now += 41000
    breakers.sweep()
    assert.equal(breakers.get('shop', 'a').snapshot().force, null)
    breakers.get('shop', 'a').force('closed', 60000)
    breakers.get('shop', 'a').force('auto')
    breakers.remove('shop', 'a')
    assert.equal(breakers.get('shop', 'a').snapshot().force, null)
    await app.close()
  })

  it('shows snapshots for people: names, ISO times, frozen', async () => {
    const { app, breakers, time } = await build({ random: () => 0 })
    const before = Date.now()
    fail(app, 'shop', 'a:1')
    time.now += 3000
    const [snapshot] = breakers.snapshots()
    assert.ok(snapshot !== undefined)
    assert.deepEqual(Object.keys(snapshot), ['pool', 'upstream', 'state', 'generation', 'mode', 'consecutiveFailures', 'outstanding', 'window', 'openedAt', 'reopenAt', 'opening', 'openCount', 'probes', 'wouldRefuse', 'force', 'lastTransition', 'distance', 'probesToGo', 'next', 'openFor', 'explanation'])
    assert.deepEqual([snapshot.pool, snapshot.upstream, snapshot.state, snapshot.openCount], ['shop', 'a:1', 'open', 1])
    assert.match(snapshot.openedAt ?? '', iso)
    assert.equal(Date.parse(snapshot.reopenAt ?? '') - Date.parse(snapshot.openedAt ?? ''), 15000)
    assert.ok(Math.abs(Date.parse(snapshot.openedAt ?? '') + 3000 - before) < 2000)
    assert.equal(snapshot.lastTransition?.at, snapshot.openedAt)
    assert.ok([snapshot, snapshot.window, snapshot.window.buckets, snapshot.probes, snapshot.lastTransition, snapshot.outstanding].every(part => Object.isFrozen(part)))
    breakers.get('shop', 'a:1').force('closed', 5000, 'we know')
    const forced = breakers.get('shop', 'a:1').snapshot()
    assert.deepEqual([forced.state, forced.force?.state, forced.force?.reason, Object.isFrozen(forced.force)], ['closed', 'closed', 'we know', true])
    assert.match(forced.force?.until ?? '', iso)
    await app.close()
  })
})

describe('a permit of the registry', () => {
  it('settles once', async () => {
    const { app, breakers } = await build()
    const breaker = breakers.get('shop', 'a')
    const other = breaker.acquire()
    const permit = breaker.acquire()
    permit?.settle('failure')
    permit?.settle('failure')
    permit?.settle('success')
    const { outstanding, window } = breaker.snapshot()
    assert.deepEqual([outstanding.count, window.total, window.failures], [1, 1, 1])
    other?.settle('success')
    await app.close()
  })

  it('is refused while the circuit is open', async () => {
    const { app, breakers } = await build()
    fail(app, 'shop', 'a')
    assert.equal(breakers.get('shop', 'a').acquire(), null)
    await app.close()
  })
})

const results = async (...calls: Array<Parameters<ReturnType<FastifyInstance['breakers']['get']>['run']>>) => {
  const { app, breakers } = await build()
  const breaker = breakers.get('shop', 'a')
  for (const call of calls) await breaker.run(...call).catch(() => {})
  await app.close()
  const { window, outstanding } = breaker.snapshot()
  assert.equal(outstanding.count, 0, 'every permit is back')
  return [window.total - window.failures, window.failures]
}

const abort = () => { throw new DOMException('aborted', 'AbortError') }

const isFailure = (status: unknown) => Number(status) >= 500

const outcomeOf = (error: unknown) => (error as { status?: number }).status === 404 ? 'success' : 'failure'

const broken = () => { throw new Error('bug') }

describe('run', () => {
  const aborted = AbortSignal.abort()
  const running = new AbortController().signal

  it('gives the value or the error of what it runs', async () => {
    const { app, breakers } = await build()
    const breaker = breakers.get('shop', 'a')
    assert.equal(await breaker.run(async () => 42), 42)
    assert.equal(await breaker.run(() => 'sync'), 'sync')
    assert.equal(await breaker.run(() => undefined), undefined)
    const error = new Error('down')
    await assert.rejects(breaker.run(async () => { throw error }), error)
    await assert.rejects(breaker.run(() => { throw error }), error)
    const { window } = breaker.snapshot()
    assert.deepEqual([window.total, window.failures], [5, 2])
    await app.close()
  })

  it('rejects at once while the circuit is open, and says for how long', async () => {
    const { app, breakers, time } = await build({ random: () => 0 })
    fail(app, 'shop', 'a:1')
    time.now += 5000
    let called = false
    await assert.rejects(breakers.get('shop', 'a:1').run(() => { called = true }), (error: unknown) => {
      assert.ok(error instanceof BreakerOpenError)
      assert.deepEqual([error.code, error.statusCode, error.pool, error.upstream, error.retryAfterMs], ['BREAKER_OPEN', 503, 'shop', 'a:1', 10000])
      assert.doesNotMatch(error.message, /a:1/)
      return true
    })
    assert.equal(called, false)
    await app.close()
  })

  it('counts an abort of the caller as neither', async () => {
    assert.deepEqual(await results([abort]), [0, 0])
    assert.deepEqual(await results([abort, { signal: aborted }]), [0, 0])
    assert.deepEqual(await results([() => { throw new Error('own reason') }, { signal: aborted }]), [0, 0])
  })

  it('counts an abort or time limit that is not the caller\'s as a failure', async () => {
    assert.deepEqual(await results([abort, { signal: running }]), [0, 1])
    assert.deepEqual(await results([() => { throw new DOMException('too slow', 'TimeoutError') }]), [0, 1])
  })

  it('asks the caller what counts', async () => {
    assert.deepEqual(await results([() => 200, { isFailure }], [() => 404, { isFailure }], [() => 503, { isFailure }]), [2, 1])
    const notFound = Object.assign(new Error('not found'), { status: 404 })
    assert.deepEqual(await results([() => { throw notFound }, { outcomeOf }], [() => { throw new Error('down') }, { outcomeOf }]), [1, 1])
  })

  it('tells the code of the error that opened the circuit, or its name, and never what it says', async () => {
    const { app, breakers, lines } = await build({ defaults: { consecutiveFailures: 1 } })
    const failing = (upstream: string, error: Error): Promise<unknown> => breakers.get('db', upstream).run(() => { throw error }).catch(() => {})
    await failing('a', Object.assign(new Error('connect to secret.example'), { code: 'ECONNREFUSED' }))
    await failing('b', new RangeError('secret'))
    await failing('c', Object.assign(new Error('x'), { code: 'secret of ours', name: '' }))
    assert.deepEqual(lines.filter(({ msg }) => msg === 'breaker_transition').map(({ failure }) => failure), ['ECONNREFUSED', 'RangeError', null])
    assert.match(breakers.get('db', 'a').snapshot().explanation, /^Open after 1 failure in a row \(consecutiveFailures 1; last: ECONNREFUSED\): /)
    breakers.get('db', 'd').acquire()?.settle('failure', 'too_slow')
    assert.equal(breakers.get('db', 'd').snapshot().opening?.failure, 'too_slow')
    await app.close()
  })

  it('blames nobody when the caller\'s own judgement throws', async () => {
    assert.deepEqual(await results([() => 1, { isFailure: broken }], [() => { throw new Error('down') }, { outcomeOf: broken }]), [0, 0])
  })
})

describe('transitions of the registry', () => {
  it('name no request whose probe was of an earlier batch, or had its lease end', async () => {
    const { app, breakers, time } = await build({ defaults: { consecutiveFailures: 1, jitter: 0, halfOpen: { probes: 3, probeTimeoutMs: 1000 } } })
    const named: Array<readonly string[]> = []
    breakers.on('transition', ({ cause, requests }) => { if (cause === 'probes_failed') named.push(requests) })
    const registered = breakers.get('shop', 'a:1')
    const { breaker } = registered
    const failed = (id: string, permit: number): void => {
      registered.blame(id, permit)
      breaker.settle(permit, 'failure', time.now)
    }
    const admit = (): number => breaker.admit(time.now)
    failed('first', admit())
    time.now += 15000
    const early = admit()
    for (const id of ['a', 'b']) failed(id, admit())
    time.now += 30000
    const expired = admit()
    failed('c', admit())
    failed('early', early)
    time.now += 1000
    failed('expired', expired)
    failed('d', admit())
    assert.deepEqual(named, [['a', 'b'], ['c', 'd']])
    await app.close()
  })

  it('are told with names and time, and logged: a warning when the circuit opens', async () => {
    const { app, breakers, lines, time } = await build({ random: () => 0, defaults: { halfOpen: { probes: 1 } } })
    const told: BreakerTransition[] = []
    breakers.on('transition', transition => told.push(transition))
    fail(app, 'shop', 'a:1')
    time.now += 15000
    breakers.get('shop', 'a:1').acquire()?.settle('success')
    breakers.get('shop', 'a:1').reset('to be sure')
    const [opened] = told
    assert.ok(opened !== undefined && Object.isFrozen(opened) && Object.isFrozen(opened.evidence))
    const { at, generation, ...rest } = opened
    assert.match(at, iso)
    assert.ok(generation > 0)
    assert.deepEqual(rest, {
      type: 'breaker_transition',
      pool: 'shop',
      upstream: 'a:1',
      from: 'closed',
      to: 'open',
      cause: 'consecutive_failures',
      mode: 'enforce',
      evidence: { total: 5, failures: 5, ratio: 1, consecutiveFailures: 5 },
      failure: null,
      openForMs: 15000,
      requests: [],
      reason: null,
      explanation: 'Opened after 5 failures in a row (consecutiveFailures 5), for 15 s.'
    })
    const logged = lines.filter(({ msg }) => msg === 'breaker_transition')
    assert.deepEqual(logged.map(({ level, pool, upstream, from, to, cause }) => [level, pool, upstream, from, to, cause]), [
      [40, 'shop', 'a:1', 'closed', 'open', 'consecutive_failures'],
      [30, 'shop', 'a:1', 'open', 'half-open', 'open_elapsed'],
      [30, 'shop', 'a:1', 'half-open', 'closed', 'probes_passed'],
      [30, 'shop', 'a:1', 'closed', 'closed', 'reset']
    ])
    assert.deepEqual(told.map(({ explanation }) => explanation), logged.map(({ explanation }) => explanation))
    assert.deepEqual(told.map(({ to, reason }) => [to, reason]), [['open', null], ['half-open', null], ['closed', null], ['closed', 'to be sure']])
    await app.close()
  })

  it('reach every listener in order, though one throws, one rejects and one acts on other breakers', async () => {
    const { app, breakers, lines } = await build()
    const told: string[] = []
    const late = new Error('late')
    const stop = breakers.on('transition', ({ upstream, to }) => { told.push(`1 ${upstream} ${to}`) })
    breakers.on('transition', ({ upstream, to }) => {
      if (upstream === 'a' && to === 'open') {
        breakers.get('shop', 'b').force('open', 1000)
        breakers.get('shop', 'a').reset()
      }
      throw new Error('at once')
    })
    breakers.on('transition', async () => { throw late })
    breakers.on('transition', ({ upstream, to }) => { told.push(`2 ${upstream} ${to}`) })
    fail(app, 'shop', 'a')
    assert.deepEqual(told, ['1 a open', '2 a open', '1 b open', '2 b open', '1 a closed', '2 a closed'])
    assert.equal(breakers.get('shop', 'a').snapshot().state, 'closed')
    await new Promise(resolve => setImmediate(resolve))
    const failures = lines.filter(({ msg, source }) => msg === 'listener_failed' && source === 'breaker-registry').map(({ err }) => (err as { message: string }).message)
    assert.deepEqual(failures.toSorted(), ['at once', 'at once', 'at once', 'late', 'late', 'late'])
    stop()
    breakers.get('shop', 'b').reset()
    assert.deepEqual(told.slice(6), ['2 b closed'])
    await app.close()
  })

  it('are not told after off', async () => {
    const { app, breakers } = await build()
    let told = 0
    const listener = () => { told++ }
    breakers.on('transition', listener)
    breakers.get('shop', 'a').reset()
    breakers.off('transition', listener)
    breakers.get('shop', 'a').reset()
    assert.equal(told, 1)
    await app.close()
  })
})

const timers = () => process.getActiveResourcesInfo().filter(resource => resource === 'Timeout').length

describe('the sweep', () => {
  it('makes the end of open times, forces and leases visible without traffic, until the app is closed', async () => {
    mock.timers.enable({ apis: ['setInterval'] })
    try {
      const { app, breakers, time } = await build({ random: () => 0, defaults: { halfOpen: { probes: 1, probeTimeoutMs: 2000 } } })
      const states = () => breakers.snapshots().map(({ state }) => state)
      fail(app, 'shop', 'a')
      breakers.get('shop', 'b').force('open', 14000)
      time.now += 14000
      mock.timers.tick(1000)
      assert.deepEqual(states(), ['open', 'closed'])
      time.now += 1000
      assert.deepEqual(states(), ['open', 'closed'])
      mock.timers.tick(1000)
      assert.deepEqual(states(), ['half-open', 'closed'])
      breakers.get('shop', 'a').acquire()
      time.now += 2000
      mock.timers.tick(1000)
      assert.equal(breakers.get('shop', 'a').snapshot().probes.expired, 1)
      breakers.get('shop', 'b').force('open', 1000)
      await app.close()
      time.now += 1000
      mock.timers.tick(60000)
      assert.deepEqual(states(), ['half-open', 'open'])
    } finally {
      mock.timers.reset()
    }
  })

  it('keeps no process alive', async () => {
    const app = Fastify()
    await app.ready()
    const before = timers()
    const other = Fastify()
    await other.register(breakerRegistry)
    await other.ready()
    assert.ok(timers() <= before)
    await Promise.all([app.close(), other.close()])
  })
})

describe('docs/plugins/breaker-registry.md', () => {
  const page = readFileSync(shipped('docs/plugins/breaker-registry.md'), 'utf8')

  it('prints what it says', async () => {
    const [, code, printed] = /```js\n([^]*?)```\n\n```text\n([^]*?)```/.exec(page) ?? []
    assert.ok(code !== undefined && printed !== undefined)
    const runnable = code
      .replace('\'fastify\'', JSON.stringify(import.meta.resolve('fastify')))
      .replace('\'fastify-breakwater/plugins/breaker-registry\'', JSON.stringify(import.meta.resolve('../../plugins/breaker-registry.js')))
    const log = mock.method(console, 'log', () => {})
    try {
      await import(`data:text/javascript,${encodeURIComponent(runnable)}`)
      assert.equal(log.mock.calls.map(call => `${String(call.arguments[0])}\n`).join(''), printed)
    } finally {
      log.mock.restore()
    }
  })

  it('names every cause', () => {
    const table = page.slice(page.indexOf('| `cause`'), page.indexOf('An event is'))
    const causes = [...table.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cells = '']) => cells.replaceAll('`', '').split(', '))
    const source = readFileSync(shipped('lib/breaker/types.ts'), 'utf8')
    const declared = [...source.slice(source.indexOf('TransitionCause ='), source.indexOf('/** One change')).matchAll(/'([a-z_]+)'/g)].map(([, cause]) => cause)
    assert.deepEqual(causes.slice(1).toSorted(), declared.toSorted())
  })
})
