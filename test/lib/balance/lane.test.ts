import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { EjectionState, type Ejection } from '../../../lib/health/ejection.ts'
import { Lane, type Candidates, type LaneObserver } from '../../../lib/balance/lane.ts'
import { Ramp } from '../../../lib/balance/ramp.ts'
import { laneOf, options, shares, type Given } from './lane-kit.ts'

const unhealthy: Given = { healthy: false }
const drained: Given = { draining: true }
const weightless: Given = { weight: 0 }
const full: Given = { hasRoom: false, breaker: 'closed' }
const fullAndOpen: Given = { hasRoom: false, breaker: 'open' }
const open: Given = { breaker: 'open' }
const late: Given = { breaker: 'late' }
const closed: Given = { breaker: 'closed' }
const bare: Given = {}

function ejectedUntil (until: number): Given {
  const ejection = new EjectionState()
  ejection.until = until
  return { ejection }
}

describe('selection', () => {
  const table: [string, Given[], string | number][] = [
    ['the only one', [bare], 0],
    ['one with a closed breaker', [closed], 0],
    ['nobody of an empty pool', [], 'no_upstream_healthy'],
    ['nobody healthy', [unhealthy, unhealthy], 'no_upstream_healthy'],
    ['all drained', [drained, drained], 'no_upstream_healthy'],
    ['all without weight', [weightless], 'no_upstream_healthy'],
    ['the only one, ejected or not', [ejectedUntil(1)], 0],
    ['the other one than the ejected', [ejectedUntil(1), bare], 1],
    ['one whose ejection is over', [ejectedUntil(0)], 0],
    ['all full', [full], 'upstream_capacity'],
    ['all open', [open, open], 'breaker_open'],
    ['a permit refused at the last moment', [late], 'breaker_open'],
    ['capacity before the breaker', [full, open], 'upstream_capacity'],
    ['capacity before the breaker, whatever the order', [open, full], 'upstream_capacity'],
    ['capacity before a refused permit', [late, full], 'upstream_capacity'],
    ['capacity before health', [unhealthy, full], 'upstream_capacity'],
    ['the breaker before health', [unhealthy, open, drained], 'breaker_open'],
    ['the gate of a member is asked before its breaker', [fullAndOpen], 'upstream_capacity'],
    ['an unhealthy one that is full is only unhealthy', [{ ...full, healthy: false }], 'no_upstream_healthy'],
    ['a drained one that is open is only drained', [{ ...open, draining: true }], 'no_upstream_healthy'],
    ['whoever is left', [unhealthy, drained, weightless, full, open, late, ejectedUntil(5), closed], 7],
    ['the other one after a refused permit', [late, bare], 1]
  ]
  for (const [name, given, expected] of table) {
    it(name, () => {
      const { lane, members } = laneOf(given)
      const refusal = lane.select(0)
      equal(refusal ?? lane.index, expected)
      deepEqual(members.map(({ inFlight }) => inFlight), members.map((_member, index) => Number(index === expected)), 'one place is taken, or none')
    })
  }

  it('takes the permit of the pick and of nobody else', () => {
    const { lane, breakers } = laneOf([closed, closed, closed])
    equal(lane.select(0), null)
    equal(lane.permit, 7)
    equal(breakers.reduce((admits, breaker) => admits + (breaker?.admits ?? 0), 0), 1)
  })

  it('asks no breaker of a member without room', () => {
    const { lane, breakers } = laneOf([full])
    lane.select(0)
    equal(breakers[0]?.admits, 0)
  })

  it('gives the turn of a refused permit back', () => {
    const { lane, breakers } = laneOf([late, closed])
    for (let i = 0; i < 4; i++) lane.select(0)
    const [first] = breakers
    first!.permit = 9
    equal(lane.select(0), null)
    equal(lane.index, 0, 'it has waited longest')
  })

  it('notices what has changed at the next pick', () => {
    const { lane, members, signal } = laneOf([bare, bare])
    lane.select(0)
    Object.assign(members[0]!, { healthy: false })
    signal.touch()
    for (let i = 0; i < 4; i++) equal(lane.select(0) ?? lane.index, 1)
  })

  it('notices that an ejection has ended without being told', () => {
    const { lane } = laneOf([ejectedUntil(100), bare])
    for (let i = 0; i < 4; i++) equal(lane.select(99) ?? lane.index, 1)
    const after = [lane.select(100) ?? lane.index, lane.select(100) ?? lane.index]
    deepEqual(after.toSorted(), [0, 1])
  })

  it('notices that an open time has ended without being told', () => {
    const { lane, breakers } = laneOf([{ ...open, afterMs: 50 }])
    equal(lane.select(0), 'breaker_open')
    Object.assign(breakers[0]!, { would: true, permit: -1 })
    equal(lane.select(49), 'breaker_open')
    equal(lane.select(50), null)
    equal(lane.permit, -1)
  })

  describe('a preferred member', () => {
    it('is taken before its turn', () => {
      const { lane } = laneOf([bare, bare, bare])
      for (let i = 0; i < 5; i++) equal(lane.select(0, -1, 2) ?? lane.index, 2)
    })

    for (const [name, given] of [['unhealthy', unhealthy], ['drained', drained], ['full', full], ['open', open], ['late', late]] as const) {
      it(`is passed over when it is ${name}`, () => {
        const { lane } = laneOf([given, bare])
        equal(lane.select(0, -1, 0) ?? lane.index, 1)
      })
    }
  })

  describe('members that were tried', () => {
    it('are not asked again', () => {
      const { lane } = laneOf([bare, bare, bare])
      for (let i = 0; i < 9; i++) equal(lane.select(0, -1, -1, [0, 2]) ?? lane.index, 1)
    })

    it('leave nobody when they are all', () => {
      equal(laneOf([bare, bare]).lane.select(0, -1, -1, [0, 1]), 'no_upstream_healthy')
    })

    it('are no reason by themselves', () => {
      equal(laneOf([bare, open]).lane.select(0, -1, -1, [0]), 'breaker_open')
    })
  })

  describe('how long a refusal may last', () => {
    it('is the soonest that a breaker admits again', () => {
      equal(laneOf([{ ...open, afterMs: 3000 }, { ...open, afterMs: 2000 }]).lane.expectedMs('breaker_open', 0), 2000)
    })
    it('is a second where no breaker knows', () => {
      equal(laneOf([open]).lane.expectedMs('breaker_open', 0), 1000)
    })
    it('is the time between two health checks where nobody is healthy', () => {
      equal(laneOf([unhealthy]).lane.expectedMs('no_upstream_healthy', 0), 5000)
    })
    it('is a second where there is no room', () => {
      equal(laneOf([full]).lane.expectedMs('upstream_capacity', 0), 1000)
    })
  })
})

describe('tiers', () => {
  const backup: Given = { priority: 1 }

  it('leave the next one in peace while the first carries all', () => {
    deepEqual(shares(laneOf([bare, bare, backup]), 300), [150, 150, 0])
  })

  it('spill over what the first cannot carry', () => {
    const [a, b, c] = shares(laneOf([bare, unhealthy, backup]), 10000) as [number, number, number]
    equal(b, 0)
    ok(Math.abs(a - 7000) < 200 && a + c === 10000, `${a} and ${c}`)
  })

  it('send all to the next one when the first is gone, by health or by its breakers', () => {
    deepEqual(shares(laneOf([unhealthy, open, backup]), 10), [0, 0, 10])
  })

  it('send a request on to the next one when the first has no room', () => {
    const { lane } = laneOf([full, backup])
    equal(lane.select(0) ?? lane.index, 1)
  })

  it('ask the first one when the second has no room', () => {
    const { lane } = laneOf([bare, unhealthy, { priority: 1, hasRoom: false }])
    for (let i = 0; i < 50; i++) equal(lane.select(0) ?? lane.index, 0)
  })
})

describe('panic', () => {
  const threshold = { panic: { threshold: 0.5, whenNone: false } }

  it('uses all when less than half are usable', () => {
    const kit = laneOf([bare, unhealthy, unhealthy], threshold)
    deepEqual(shares(kit, 300), [100, 100, 100])
    equal(kit.lane.panic, true)
    equal(kit.lane.panicPicks, 300)
  })

  it('is none at half', () => {
    const kit = laneOf([bare, unhealthy], threshold)
    deepEqual(shares(kit, 10), [10, 0])
    equal(kit.lane.panic, false)
    equal(kit.lane.panicPicks, 0)
  })

  it('can be off', () => {
    deepEqual(shares(laneOf([bare, unhealthy, unhealthy]), 10), [10, 0, 0])
  })

  it('counts those that may take traffic at all', () => {
    deepEqual(shares(laneOf([bare, drained, drained, weightless], threshold), 10), [10, 0, 0, 0])
  })

  it('uses ejected ones, too', () => {
    deepEqual(shares(laneOf([ejectedUntil(9), ejectedUntil(9), bare], { ...threshold, ejection: { ...options.ejection, maxShare: 0.9 } }), 30), [10, 10, 10])
  })

  it('does not count those that nobody has ever seen: many that join do not make those that are there look few', () => {
    const unknown: Given = { healthy: false, checked: false }
    const kit = laneOf([bare, unhealthy, unknown, unknown], threshold)
    deepEqual(shares(kit, 10), [10, 0, 0, 0])
    equal(kit.lane.panic, false)
    deepEqual(shares(laneOf([bare, bare, unknown, unknown, unknown, { priority: 1 }]), 10), [5, 5, 0, 0, 0, 0])
  })

  it('is the pool\'s, and not told again by the lane of another snapshot', () => {
    const told: unknown[] = []
    const observer: LaneObserver = { panicChanged: (...facts) => { told.push(facts) }, ejection () {}, ejectionEnded () {} }
    const { lane, signal } = laneOf([bare, unhealthy, unhealthy], threshold, observer)
    equal(lane.select(0), null)
    const next = new Lane<Candidates>({ upstreams: laneOf([bare, unhealthy, unhealthy]).members, options: { ...options, ...threshold }, signal }, () => null, () => 0, observer)
    lane.supersede()
    next.sweep(0)
    equal(next.panicPicks, 1)
    signal.touch()
    lane.sweep(0)
    deepEqual(told, [[true, 1, 3]])
  })

  it('never uses a drained one, one without weight, and one that nobody has ever seen', () => {
    const unknown: Given = { healthy: false, checked: false }
    deepEqual(shares(laneOf([bare, unhealthy, unhealthy, unknown, drained, weightless], threshold), 30), [10, 10, 10, 0, 0, 0])
  })

  it('leaves it to the breakers whom not to ask', () => {
    deepEqual(shares(laneOf([bare, unhealthy, { ...unhealthy, ...open }], threshold), 10), [5, 5, 0])
  })

  it('does not send a probe to one that is unhealthy as well: it would fail, and the circuit stay open for twice the time', () => {
    const kit = laneOf([bare, { ...unhealthy, breaker: 'late' }, { ...unhealthy, breaker: 'late' }], threshold)
    deepEqual(shares(kit, 10), [10, 0, 0])
    deepEqual(kit.breakers.map((breaker) => breaker?.admits), [undefined, 0, 0])
    Object.assign(kit.members[1]!, { healthy: true })
    kit.signal.touch()
    kit.breakers[1]!.permit = 7
    deepEqual(shares(kit, 10), [5, 5, 0])
  })

  it('says that the circuits refused when those that are left are unhealthy and their circuits not closed', () => {
    const none = { panic: { threshold: 0.5, whenNone: true } }
    equal(laneOf([{ ...unhealthy, breaker: 'late' }, { ...unhealthy, ...open }], none).lane.select(0), 'breaker_open')
  })

  it('asks unhealthy ones whose circuit only observes', () => {
    const kit = laneOf([bare, { ...unhealthy, breaker: 'late' }, unhealthy], threshold)
    kit.breakers[1]!.mode = 'observe'
    kit.breakers[1]!.permit = 7
    deepEqual(shares(kit, 30), [10, 10, 10])
  })

  it('refuses at once when nobody is left', () => {
    equal(laneOf([unhealthy, unhealthy], threshold).lane.select(0), 'no_upstream_healthy')
  })

  it('uses all when nobody is left, where that is wanted', () => {
    deepEqual(shares(laneOf([unhealthy, unhealthy], { panic: { threshold: 0.5, whenNone: true } }), 10), [5, 5])
  })

  it('is no question while the tiers together carry the traffic', () => {
    const kit = laneOf([bare, unhealthy, unhealthy, { priority: 1 }, { priority: 1 }], threshold)
    equal(shares(kit, 100)[1], 0)
    equal(kit.lane.panic, false)
  })

  it('is told when it begins and when it ends', () => {
    const told: unknown[] = []
    const observer: LaneObserver = { panicChanged: (...facts) => { told.push(facts) }, ejection () {}, ejectionEnded () {} }
    const { lane, members, signal } = laneOf([bare, bare, bare], threshold, observer)
    const set = (healthy: boolean): void => {
      Object.assign(members[0]!, { healthy })
      Object.assign(members[1]!, { healthy })
      signal.touch()
      lane.sweep(0)
      lane.sweep(0)
    }
    lane.sweep(0)
    set(false)
    set(true)
    deepEqual(told, [[true, 1, 3], [false, 3, 3]])
  })
})

describe('a slow start', () => {
  const slowStart = { slowStart: { ms: 10000, minimumShare: 0.1, aggression: 1 }, balancer: 'weighted' as const }

  it('is none for members that are there from the start', () => {
    deepEqual(shares(laneOf([bare, bare], slowStart), 100), [50, 50])
  })

  it('gives one that comes back its full share only after a while, and of its in-flight limit too', () => {
    const kit = laneOf([bare, bare], slowStart)
    const { members, signal } = kit
    shares(kit, 2)
    Object.assign(members[0]!, { healthy: false })
    signal.touch()
    shares(kit, 2, 1000)
    Object.assign(members[0]!, { healthy: true })
    signal.touch()
    const [tenth] = shares(kit, 1100, 2000) as [number]
    ok(Math.abs(tenth - 100) < 3, `${tenth}`)
    equal(members[0]!.share, 0.1)
    const [half] = shares(kit, 1500, 7000) as [number]
    ok(Math.abs(half - 500) < 20, `${half}`)
    equal(members[0]!.share, 0.5)
    const [whole] = shares(kit, 1000, 12000) as [number]
    ok(Math.abs(whole - 500) < 3, `${whole}`)
    equal(members[0]!.share, 1)
  })

  it('is not for those that came while it was off', () => {
    const kit = laneOf([bare, bare])
    kit.lane.select(0)
    Object.assign(kit.members[0]!, { healthy: false })
    kit.signal.touch()
    kit.lane.select(0)
    Object.assign(kit.members[0]!, { healthy: true })
    kit.signal.touch()
    kit.lane.select(1000)
    const later = new Lane<Candidates>({ upstreams: kit.members, options: { ...options, ...slowStart }, signal: kit.signal }, () => null, () => 0)
    later.sweep(90000)
    deepEqual(kit.members.map(({ share }) => share), [1, 1])
  })

  it('spares nobody where everybody is in it', () => {
    const kit = laneOf([{ ramp: new Ramp(true) }, { ramp: new Ramp(true) }], slowStart)
    kit.lane.select(0)
    deepEqual(kit.members.map(({ share }) => share), [1, 1])
  })

  it('is not held up by a circuit that only observes', () => {
    const kit = laneOf([closed, closed], slowStart)
    Object.assign(kit.breakers[0]!, { mode: 'observe', state: 'open' })
    deepEqual(shares(kit, 100), [50, 50])
    equal(kit.members[0]!.share, 1)
  })

  it('begins when a circuit has closed, not while its probes are out', () => {
    const kit = laneOf([closed, closed], slowStart)
    const [first] = kit.breakers
    kit.lane.select(0)
    first!.state = 'half-open'
    kit.signal.touch()
    kit.lane.select(1000)
    equal(kit.members[0]!.share, 0.1)
    first!.state = 'closed'
    kit.signal.touch()
    kit.lane.select(50000)
    equal(kit.members[0]!.share, 0.1)
    kit.lane.select(60000)
    equal(kit.members[0]!.share, 1)
  })
})

describe('passive observation', () => {
  const ejection = { ejection: { ...options.ejection, mode: 'enforce' as const, consecutiveFailures: 3, baseMs: 1000 } }

  it('takes a member out after as many gateway failures as configured, for as long as configured', () => {
    const told: Ejection[] = []
    const observer: LaneObserver = { panicChanged () {}, ejection: (_member, found) => { told.push(found) }, ejectionEnded () {} }
    const kit = laneOf([closed, closed, closed], ejection, observer)
    for (let i = 0; i < 3; i++) kit.lane.settle(0, 7, 'failure', true, 10)
    deepEqual(told.map(({ held, failures, ms }) => ({ held, failures, ms })), [{ held: null, failures: 3, ms: 1000 }])
    deepEqual(shares(kit, 100, 1009), [0, 50, 50])
    ok(shares(kit, 3, 1010)[0]! > 0)
  })

  it('leaves failures alone that are not the gateway\'s, and what says nothing', () => {
    const kit = laneOf([closed, closed], ejection)
    for (let i = 0; i < 9; i++) {
      kit.lane.settle(0, 7, 'failure', false, 0)
      kit.lane.settle(0, 7, 'cancelled', true, 0)
      kit.lane.settle(0, 7, 'ignored', true, 0)
    }
    ok(shares(kit, 4)[0]! > 0)
  })

  it('gives the one back that would return first when the others have become unhealthy', () => {
    const kit = laneOf([closed, closed, closed], ejection)
    for (let i = 0; i < 3; i++) kit.lane.settle(0, 7, 'failure', true, 10)
    for (const index of [1, 2]) Object.assign(kit.members[index]!, { healthy: false })
    kit.signal.touch()
    equal(kit.lane.select(20) ?? kit.lane.index, 0)
  })

  it('keeps the last one', () => {
    const kit = laneOf([closed, unhealthy], ejection)
    for (let i = 0; i < 9; i++) kit.lane.settle(0, 7, 'failure', true, 0)
    equal(kit.lane.select(0), null)
  })

  it('settles the breaker each time, once', () => {
    const { lane, breakers } = laneOf([closed], ejection)
    lane.settle(0, 7, 'success', false, 0)
    lane.settle(0, 8, 'failure', true, 0)
    deepEqual(breakers[0]?.settled, [[7, 'success'], [8, 'failure']])
  })
})
