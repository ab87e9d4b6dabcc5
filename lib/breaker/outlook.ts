import type { Circuit } from './circuit.ts'
import { distanceOf } from './distance.ts'
import { explain } from './explanation.ts'
import type { BreakerDistance, BreakerSnapshot, Expected, OpenFor, ProbesToGo } from './types.ts'

type Outlook = Pick<BreakerSnapshot, 'distance' | 'probesToGo' | 'next' | 'openFor' | 'explanation'>

/** An outage that lasts for more than so many open times is longer than configured. */
const overdueAfter = 2

/** How far a breaker is from its next state, and whether it is late; frozen. Pure but for what the passing of time does to the window. */
export function outlookOf (circuit: Circuit, now: number): Outlook {
  const distance = distanceOf(circuit, now)
  const probesToGo = circuit.belief === 'half-open' ? toGo(circuit) : null
  const next = nextOf(circuit, distance, probesToGo, now)
  const openFor = openForOf(circuit, now)
  return { distance, probesToGo, next, openFor, explanation: explain(circuit, { distance, probesToGo, next, openFor }, now) }
}

/** How many further results of one kind decide the batch. */
function toGo ({ probes, options: { window: { failureRatio } } }: Circuit): ProbesToGo {
  const left = probes.size - probes.settled
  const count = (failing: boolean): number | null => {
    for (let k = 1; k <= left; k++) if (probes.verdict(failureRatio, k, failing) === !failing) return k
    return null
  }
  return Object.freeze({ successes: count(false), failures: count(true) })
}

function nextOf (circuit: Circuit, distance: BreakerDistance | null, probesToGo: ProbesToGo | null, now: number): Expected | null {
  const { belief, force, refusesUntil, consecutive, options } = circuit
  if (force !== null) return expected(belief, 'force_ended', force.until, null)
  if (belief === 'open') return expected('half-open', 'open_elapsed', refusesUntil, null)
  if (belief === 'half-open') return probesToGo?.successes == null ? null : expected('closed', 'probes_passed', null, probesToGo.successes)
  if (distance === null) return null
  if (distance.stall?.inMs != null) return expected('open', 'stall', now + distance.stall.inMs, null)
  if (distance.failures === null) return null
  const inARow = options.consecutiveFailures !== 0 && options.consecutiveFailures - consecutive <= distance.failures
  return expected('open', inARow ? 'consecutive_failures' : 'failure_ratio', null, distance.failures)
}

const expected = (to: Expected['to'], cause: Expected['cause'], at: number | null, after: number | null): Expected => Object.freeze({ to, cause, at, after })

function openForOf ({ belief, force, leftClosedAt, reopened, options }: Circuit, now: number): OpenFor | null {
  if (belief !== 'closed') {
    const ms = Math.max(0, Math.round(now - leftClosedAt))
    return Object.freeze({ ms, configuredMs: options.openMs, reopened, overdue: ms > overdueAfter * options.openMs * (1 + options.jitter) })
  }
  if (force?.state !== 'open') return null
  return Object.freeze({ ms: Math.max(0, Math.round(now - force.since)), configuredMs: Math.round(force.until - force.since), reopened: 0, overdue: false })
}
