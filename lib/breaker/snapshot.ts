import type { BreakerOptions } from '../../config/schema.ts'
import type { RollingWindow } from '../window.ts'
import { evidenceOf, needed } from './evidence.ts'
import type { Probes } from './probes.ts'
import type { BreakerSnapshot, Force } from './types.ts'
import type { Usual } from './usual.ts'

type Plain = Pick<BreakerSnapshot, 'state' | 'generation' | 'consecutiveFailures' | 'openedAt' | 'reopenAt' | 'openCount' | 'wouldRefuse'>

interface Parts {
  options: BreakerOptions
  outstanding: number
  window: RollingWindow
  usual: Usual
  probes: Probes
  force: Force | null
  lastTransition: BreakerSnapshot['lastTransition']
}

/** Puts a snapshot together: copies, frozen all the way down, so that nobody holds a piece of a running breaker. */
export function snapshotOf (plain: Plain, parts: Parts, now: number): BreakerSnapshot {
  const { options, window, force, lastTransition } = parts
  const { total, failures, ratio } = evidenceOf(window.total(now), window.failures(now), 0)
  const buckets = Object.freeze(window.buckets(now).map(bucket => Object.freeze(bucket)))
  const { size: batch, granted, inFlight, settled, failed, expired } = parts.probes
  return Object.freeze({
    state: plain.state,
    generation: plain.generation,
    mode: options.mode,
    consecutiveFailures: plain.consecutiveFailures,
    outstanding: Object.freeze({ count: parts.outstanding }),
    window: Object.freeze({ seconds: window.seconds, total, failures, ratio, needed: needed(options, parts.usual, now), buckets }),
    openedAt: plain.openedAt,
    reopenAt: plain.reopenAt,
    openCount: plain.openCount,
    probes: Object.freeze({ batch, granted, inFlight, settled, failed, expired }),
    wouldRefuse: plain.wouldRefuse,
    force: force && Object.freeze({ state: force.state, until: force.until, reason: force.reason }),
    lastTransition
  })
}
