import type { Circuit } from './circuit.ts'
import { evidenceOf, needed } from './evidence.ts'
import { outlookOf } from './outlook.ts'
import { stallAfter } from './stall.ts'
import type { BreakerSnapshot } from './types.ts'

/** Puts a snapshot together: copies, frozen all the way down, so that nobody holds a piece of a running breaker. */
export function snapshotOf (circuit: Circuit, outstanding: number, wouldRefuse: number, now: number): BreakerSnapshot {
  const { state, force, options, window } = circuit
  const { total, failures, ratio } = evidenceOf(window.total(now), window.failures(now), 0)
  const buckets = Object.freeze(window.buckets(now).map(bucket => Object.freeze(bucket)))
  const { size: batch, granted, inFlight, settled, failed, expired } = circuit.probes
  return Object.freeze({
    state,
    generation: circuit.generation,
    mode: options.mode,
    consecutiveFailures: circuit.consecutive,
    outstanding: Object.freeze({ count: outstanding, ...silenceOf(circuit) }),
    window: Object.freeze({ seconds: window.seconds, total, failures, ratio, needed: needed(options, circuit.usual, now), buckets }),
    openedAt: circuit.openedAt,
    reopenAt: state === 'open' ? circuit.refusesUntil : null,
    opening: circuit.opening,
    openCount: circuit.openCount,
    probes: Object.freeze({ batch, granted, inFlight, settled, failed, expired }),
    wouldRefuse,
    force: force && Object.freeze({ state: force.state, until: force.until, reason: force.reason }),
    lastTransition: circuit.last,
    ...outlookOf(circuit, now)
  })
}

function silenceOf ({ stall, options: { mode, stall: options } }: Circuit): Omit<BreakerSnapshot['outstanding'], 'count'> {
  if (stall === null || mode === 'off' || options.outstanding === 0 || stall.usualMs === 0) return { oldestMs: null, usualMs: null, stallAfterMs: null }
  const { oldestMs, usualMs } = stall
  return { oldestMs, usualMs: Math.round(100 * usualMs) / 100, stallAfterMs: Math.round(stallAfter(usualMs, options)) }
}
