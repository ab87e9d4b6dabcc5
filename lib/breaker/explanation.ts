import type { Circuit } from './circuit.ts'
import type { BreakerDistance, BreakerSnapshot, OpenFor, ProbesToGo } from './types.ts'

type Facts = Pick<BreakerSnapshot, 'distance' | 'probesToGo' | 'next' | 'openFor'>

const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`
const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`

/** What the numbers say, in a few plain sentences. */
export function explain (circuit: Circuit, { distance, probesToGo, openFor }: Facts, now: number): string {
  const { force, options } = circuit
  if (options.mode === 'off') return 'Off: it counts nothing and refuses nobody.'
  const believed = circuit.belief === 'closed' ? ofClosed(circuit, distance, now) : circuit.belief === 'open' ? ofOpen(circuit, openFor, now) : ofHalfOpen(circuit, probesToGo, openFor)
  const observed = options.mode === 'observe' ? ' Observe mode: it refuses nobody.' : ''
  if (force === null) return believed + observed
  const forced = `Forced ${force.state} for another ${seconds(Math.max(0, force.until - now))}${force.reason === null ? '' : ` (${force.reason})`}.`
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
    const within = holdsForMs === null ? '' : ` within ${seconds(holdsForMs)}`
    sentences.push(`${plural(toRatio, 'more failure')}${within} would reach the ratio ${options.window.failureRatio} (${window.failures(now)} of ${window.total(now)} so far).`)
  }
  if (stall !== null && stall.waiting > 0) {
    const silent = `${plural(stall.waiting, 'attempt')} of ${stall.needed} ${stall.waiting === 1 ? 'waits' : 'wait'} in silence`
    sentences.push(stall.inMs === null ? `${silent}.` : `${silent}: it opens in ${seconds(stall.inMs)} unless something is heard.`)
  }
  return sentences.join(' ')
}

function ofOpen ({ reopenAt, opening }: Circuit, openFor: OpenFor | null, now: number): string {
  const left = reopenAt - now
  return `Open${opened(opening)}: it refuses everybody${left > 0 ? ` for another ${seconds(left)}, then probes try it` : ' until the next request or sweep, whose turn it is to try it'}.${lateness(openFor, null)}`
}

/** By what it left closed; its window is empty since then. */
function opened (opening: Circuit['opening']): string {
  if (opening === null) return ''
  const { cause, evidence: { consecutiveFailures, failures, total, stall } } = opening
  if (stall !== undefined) return ` after ${plural(stall.outstanding, 'request')} got no answer, the oldest for ${seconds(stall.oldestMs)}`
  return cause === 'failure_ratio' ? ` after ${failures} of ${plural(total, 'request')} failed` : ` after ${plural(consecutiveFailures, 'failure')} in a row`
}

function ofHalfOpen ({ probes, opening }: Circuit, probesToGo: ProbesToGo | null, openFor: OpenFor | null): string {
  const { size, settled, failed, inFlight } = probes
  const batch = `Half-open${opened(opening)}: ${settled} of ${plural(size, 'probe')} ${settled === 1 ? 'has' : 'have'} a result${failed > 0 ? `, ${failed} failed` : ''}${inFlight > 0 ? `, ${inFlight} under way` : ''}.`
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
  return ` Overdue: not closed for ${seconds(openFor.ms)} with an open time of ${seconds(openFor.configuredMs)}; ${why}.`
}
