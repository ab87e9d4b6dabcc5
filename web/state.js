/** What the proxy believes of each upstream, put together from what it says of pools, breakers and health, in words. */
import { at, ago, clock, duration, now, plural, words } from './format.js'
import { ejectionCause } from './sentences.js'

/** Tones: `out` is trouble, `warn` may become it, `quiet` is somebody's intention, `ok` serves. */
const serving = { tone: 'ok', word: 'Serving', cause: '' }

/** What keeps all requests away comes before what lets some through. */
const place = ({ tone }) => 'out quiet warn ok'.indexOf(tone)

export function upstreamsOf ({ pools, breakers, health }) {
  const key = ({ pool, upstream }) => `${pool}\n${upstream}`
  const healthOf = new Map((health?.upstreams ?? []).map((each) => [key(each), each]))
  const breakerOf = new Map((breakers?.breakers ?? []).map((each) => [key(each), each]))
  return (pools?.pools ?? []).map((pool) => ({
    ...pool,
    upstreams: pool.upstreams.map((upstream) => {
      const own = { ...upstream, key: key(upstream), checks: healthOf.get(key(upstream)) ?? null, circuit: breakerOf.get(key(upstream)) ?? null }
      return { ...own, verdict: verdictOf(own) }
    })
  }))
}

/** What keeps it from serving, the strongest first; and whether it serves all the same. */
function verdictOf (upstream) {
  const found = findings(upstream)
  if (found.length === 0) return serving
  const { tone, word } = found[0]
  return { tone, word, cause: found.map(({ word: what, cause }, i) => i === 0 ? cause : [what, cause].filter(Boolean).join(': ')).filter(Boolean).join('; ') }
}

function findings ({ healthy, checked, draining, drain, ejectedUntil, ejection, leaving, weight, weightNow, circuit, checks }) {
  const found = []
  if (!healthy) found.push({ tone: 'out', word: checked ? 'Unhealthy' : 'Not checked yet', cause: checkCause(checks) })
  if (ejectedUntil !== null) found.push({ tone: 'out', word: 'Ejected', cause: `${ejectionCause(ejection)}; back ${at(ejectedUntil)}` })
  if (circuit !== null && circuit.force !== null) {
    const { state, until, reason } = circuit.force
    const refuses = state === 'open' && circuit.mode !== 'observe'
    found.push({ tone: refuses ? 'out' : 'warn', word: `Forced ${state}`, cause: `${refuses || state === 'closed' ? '' : 'refuses nobody, as it only observes; '}for ${duration(Date.parse(until) - now())}, until ${clock(until)}${reason === null ? '' : ` (${reason})`}` })
  } else if (circuit !== null && circuit.state !== 'closed') {
    const observed = circuit.mode === 'observe'
    const tone = !observed && circuit.state === 'open' ? 'out' : 'warn'
    found.push({ tone, word: circuit.state === 'open' ? observed ? 'Would be open' : 'Breaker open' : 'Half-open', cause: circuitCause(circuit) })
  }
  if (draining) found.push({ tone: 'quiet', word: 'Draining', cause: drainCause(drain) })
  if (leaving) found.push({ tone: 'quiet', word: 'Leaving', cause: 'serves until the others have been checked' })
  if (healthy && checks?.held) found.push({ tone: 'warn', word: 'Held', cause: `fails its checks, but too many of its pool fell lately; ${checkCause(checks)}` })
  if (weight === 0) found.push({ tone: 'quiet', word: 'Weight 0', cause: 'takes no new requests' })
  // 0 is one that nobody has looked at yet.
  else if (found.length === 0 && weightNow > 0 && weightNow < weight) found.push({ tone: 'ok', word: 'Serving', cause: `slow start, weight ${Number(weightNow.toPrecision(2))} of ${weight}` })
  return found.toSorted((a, b) => place(a) - place(b))
}

function circuitCause ({ state, opening, reopenAt, probes }) {
  if (state === 'half-open') return `${probes.settled} of ${plural(probes.batch, 'probe')} done${probes.failed > 0 ? `, ${probes.failed} failed` : ''}`
  const why = opening === null ? '' : openedBy(opening)
  if (reopenAt === null) return why
  return `${why}; ${Date.parse(reopenAt) > now() ? `probes ${at(reopenAt)}` : 'probes with the next request'}`
}

function openedBy ({ cause, failures, total, outstanding, failure, again }) {
  const by = (what) => what === null ? '' : ` (${words(what)})`
  const why = cause === 'stall' ? `${plural(outstanding, 'request')} in silence` : cause === 'failure_ratio' ? `${failures} of ${total} failed` : `${plural(failures, 'failure')} in a row`
  return `${why}${by(failure)}${again === null ? '' : `, then ${plural(again.failures, 'probe')} failed${by(again.failure)}`}`
}

function checkCause (checks) {
  if (checks === null) return ''
  const { lastCheck, streak } = checks
  if (lastCheck === null) return 'no check has ended'
  return `${words(lastCheck.cause)}, ${plural(streak, 'check')} in a row, last ${ago(lastCheck.at)}`
}

function drainCause (drain) {
  if (drain === null) return 'gone from the pool'
  return `${drain.until === null ? 'until taken back' : `ends ${at(drain.until)}`}${drain.reason === null ? '' : ` (${drain.reason})`}`
}

/** The page in one sentence. */
export function overall (pools, shedding, history) {
  // Not in the plots.
  const refused = Object.values(history?.gate.refused ?? {}).reduce((all, figures) => all + (figures.at(-1) ?? 0), 0)
  const upstreams = pools.flatMap((pool) => pool.upstreams)
  const count = (tone) => upstreams.filter(({ verdict }) => verdict.tone === tone).length
  const out = count('out')
  const dead = pools.filter((pool) => pool.upstreams.length > 0 && pool.upstreams.every(({ verdict }) => verdict.tone === 'out'))
  const panic = pools.filter((pool) => pool.panic)
  const more = [
    dead.length > 0 && `No upstream left in ${dead.map(({ pool }) => pool).join(', ')}`,
    panic.length > 0 && `Panic in ${panic.map(({ pool }) => pool).join(', ')}: all are used, healthy or not`,
    count('warn') > 0 && `${count('warn')} to watch`,
    count('quiet') > 0 && `${count('quiet')} taken out on purpose`,
    refused > 0 && `${plural(refused, 'request')} refused in the last ${duration(history.stepMs)}`,
    shedding?.pressure.under === true && 'The process is under pressure'
  ].filter(Boolean)
  const trouble = out > 0 || panic.length > 0 || shedding?.pressure.under === true
  const sentence = upstreams.length === 0 ? 'There are no upstreams'
    : out === 0 ? `${upstreams.length === 1 ? 'The upstream serves' : `All ${upstreams.length - count('quiet')} upstreams serve`}`
      : `${out} of ${plural(upstreams.length, 'upstream')} ${out === 1 ? 'is' : 'are'} out`
  return { trouble, sentence, more: more.join('. ') }
}
