import { milliseconds, plural } from '../words.ts'
import type { Circuit } from './circuit.ts'
import type { BreakerDistance, BreakerSnapshot, OpenFor, Opening, ProbesToGo, Transition } from './types.ts'

type Facts = Pick<BreakerSnapshot, 'distance' | 'probesToGo' | 'next' | 'openFor'>

const observing = ' Observe mode: it refuses nobody.'

/** What the numbers say, in a few plain sentences. */
export function explain (circuit: Circuit, { distance, probesToGo, openFor }: Facts, now: number): string {
  const { force, options } = circuit
  if (options.mode === 'off') return 'Off: it counts nothing and refuses nobody.'
  const believed = circuit.belief === 'closed' ? ofClosed(circuit, distance, now) : circuit.belief === 'open' ? ofOpen(circuit, openFor, now) : ofHalfOpen(circuit, probesToGo, openFor)
  const observed = options.mode === 'observe' ? observing : ''
  if (force === null) return believed + observed
  const forced = `Forced ${force.state} for another ${milliseconds(Math.max(0, force.until - now))}${force.reason === null ? '' : ` (${force.reason})`}.`
  // Below a forced open state nothing is learned.
  return (force.state === 'open' && circuit.belief === 'closed' ? forced : `${forced} Without that: ${believed}`) + observed
}

function ofClosed ({ options, consecutive, window }: Circuit, distance: BreakerDistance | null, now: number): string {
  if (distance === null) return 'Closed.'
  const { failures, inARow, toRatio, holdsForMs, stall } = distance
  const sentences = ['Closed.']
  if (failures === null && (stall === null || stall.inMs === null)) sentences.push('No further failures open it now.')
  if (inARow !== null) sentences.push(`${plural(inARow, 'more failure')} in a row would open it (${consecutive} of ${options.consecutiveFailures} so far).`)
  if (toRatio !== null) {
    const within = holdsForMs === null ? '' : ` within ${milliseconds(holdsForMs)}`
    sentences.push(`${plural(toRatio, 'more failure')}${within} would reach the ratio ${options.window.failureRatio} (${window.failures(now)} of ${window.total(now)} so far).`)
  }
  if (stall !== null && stall.waiting > 0) {
    const silent = `${plural(stall.waiting, 'attempt')} of ${stall.needed} ${stall.waiting === 1 ? 'waits' : 'wait'} in silence`
    sentences.push(stall.inMs === null ? `${silent}.` : `${silent}: it opens in ${milliseconds(stall.inMs)} unless something is heard.`)
  }
  return sentences.join(' ')
}

function ofOpen ({ reopenAt, opening, options }: Circuit, openFor: OpenFor | null, now: number): string {
  const left = reopenAt - now
  return `Open${openedBy(opening)}: it ${options.mode === 'observe' ? 'would refuse' : 'refuses'} everybody${left > 0 ? ` for another ${milliseconds(left)}, then probes try it` : ' until the next request or sweep, whose turn it is to try it'}.${lateness(openFor, null)}`
}

/** Why it is not closed: by which trigger, with its numbers and its limits, and what its last probes came to. Follows a word for the state. */
export function openedBy (opening: Opening | null): string {
  if (opening === null) return ''
  const { again } = opening
  return ` after ${triggered(opening)}${again === null ? '' : `, then after ${failedProbes(again)}`}`
}

function triggered (opening: Opening): string {
  const last = opening.failure === null ? '' : `; last: ${opening.failure}`
  switch (opening.cause) {
    case 'consecutive_failures': return `${plural(opening.failures, 'failure')} in a row (consecutiveFailures ${opening.limit}${last})`
    case 'failure_ratio': return `${opening.failures} of ${plural(opening.total, 'request')} failed within ${milliseconds(1000 * opening.seconds)} (failureRatio ${opening.limit}, from ${plural(opening.needed, 'request')} on${last})`
    case 'stall': return `${plural(opening.outstanding, 'request')} got no answer, the oldest for ${milliseconds(opening.oldestMs)} (stall: ${opening.limit} for ${milliseconds(opening.stallAfterMs)})`
  }
}

function failedProbes ({ total, failures, failure }: NonNullable<Opening['again']>): string {
  if (total === 1) return `its probe failed${failure === null ? '' : ` (${failure})`}`
  return `${failures} of ${plural(total, 'probe')} failed${failure === null ? '' : ` (last: ${failure})`}`
}

/** What has happened. */
export function tell ({ opening, options, reopenAt, belief, force, probes }: Circuit, { from, to, cause, at, evidence: { total, failures }, openForMs, reason }: Omit<Transition, 'explanation'>): string {
  const why = reason === null ? '' : ` (${reason})`
  const forTime = openForMs > 0 ? `, for ${milliseconds(openForMs)}` : ''
  const sentence = (): string => {
    switch (cause) {
      case 'consecutive_failures':
      case 'failure_ratio':
      case 'stall': return `Opened${openedBy(opening)}${forTime}.`
      case 'probes_failed': return `Opened again${opening?.again == null ? '' : ` after ${failedProbes(opening.again)}`}${forTime}.`
      case 'open_elapsed': return `Half-open: its open time is over, and ${plural(probes.size, 'probe')} may try it.`
      case 'probes_passed': return `Closed: ${total === 1 ? 'its probe' : `${total - failures} of ${plural(total, 'probe')}`} passed.`
      case 'forced': return `Forced ${to}${force === null ? '' : ` for ${milliseconds(force.until - at)}`}${why}.`
      case 'force_ended': return `Its force has ended${why}: it is ${to}${belief === 'open' && reopenAt > at ? forTime : ''}.`
      case 'reset': return `Reset${why}: it is closed with a clean record${from === 'closed' ? '' : `, and was ${from}`}.`
      case 'mode_changed': return `Its mode is ${options.mode} now: it is closed with a clean record.`
    }
  }
  return sentence() + (options.mode === 'observe' ? observing : '')
}

function ofHalfOpen ({ probes, opening, failure }: Circuit, probesToGo: ProbesToGo | null, openFor: OpenFor | null): string {
  const { size, settled, failed, inFlight } = probes
  const batch = `Half-open${openedBy(opening)}: ${settled} of ${plural(size, 'probe')} ${settled === 1 ? 'has' : 'have'} a result${failed > 0 ? `, ${failed} failed${failure === null ? '' : ` (last: ${failure})`}` : ''}${inFlight > 0 ? `, ${inFlight} under way` : ''}.`
  const { successes = null, failures = null } = probesToGo ?? {}
  const ends = [
    ...successes === null ? [] : [`${plural(successes, 'more success', 'more successes')} would close it`],
    ...failures === null ? [] : [`${plural(failures, 'more failure')} would open it again`]
  ]
  return `${batch}${ends.length === 0 ? '' : ` ${ends.join(', ')}.`}${lateness(openFor, probes)}`
}

/** Why an outage lasts for longer than it should. */
function lateness (openFor: OpenFor | null, probes: Circuit['probes'] | null): string {
  if (openFor === null || !openFor.overdue) return ''
  const why = openFor.reopened > 0 ? `its probes failed ${openFor.reopened === 1 ? 'once' : `${openFor.reopened} times`}`
    : probes !== null && probes.granted === 0 ? 'no request has come to try it'
      : probes !== null && probes.expired > 0 ? 'its probes do not end' : 'its probes take long'
  return ` Overdue: not closed for ${milliseconds(openFor.ms)} with an open time of ${milliseconds(openFor.configuredMs)}; ${why}.`
}
