/** One upstream: all that is believed of it, since when and why, and what may be done. */
import { h, setHidden, setText } from './dom.js'
import { ago, at, clock, duration, millis, now, percent, plural, until, words } from './format.js'

const facts = ['Checks', 'Breaker', 'Window', 'Last change', 'Drain', 'Traffic']

export class Detail {
  element
  #facts = new Map(facts.map((name) => [name, h('dd')]))
  #buttons
  #upstream

  constructor (upstream, { act, chart }) {
    this.#upstream = upstream
    const button = (label, action) => h('button', { type: 'button', onclick: () => { act(action, this.#upstream) } }, label)
    this.#buttons = {
      check: button('Check now', 'check'),
      drain: button('Drain…', 'drain'),
      ready: button('Take back…', 'ready'),
      open: button('Force open…', 'open'),
      closed: button('Force closed…', 'closed'),
      auto: button('End the force…', 'auto'),
      reset: button('Reset breaker…', 'reset')
    }
    this.element = h('div', {},
      h('dl', {}, facts.map((name) => [h('dt', {}, name), this.#facts.get(name)])),
      h('div', { class: 'actions', role: 'group', 'aria-label': `Actions for ${upstream.upstream}` }, Object.values(this.#buttons), h('button', { type: 'button', onclick: () => { chart(this.#upstream) } }, 'Show in the charts')))
  }

  show (upstream) {
    this.#upstream = upstream
    const { checks, circuit, draining } = upstream
    const tell = (name, text) => {
      const value = this.#facts.get(name)
      setText(value, text)
      setHidden(value, text === '')
      setHidden(value.previousElementSibling, text === '')
    }
    tell('Checks', checksOf(upstream))
    tell('Breaker', circuit === null ? 'It has none.' : circuit.explanation)
    tell('Window', circuit === null ? '' : windowOf(circuit))
    tell('Last change', circuit === null ? '' : lastOf(circuit))
    tell('Drain', drainOf(upstream))
    tell('Traffic', trafficOf(upstream))
    const { check, drain, ready, open, closed, auto, reset } = this.#buttons
    const off = circuit === null || circuit.mode === 'off'
    setHidden(check, checks === null)
    setHidden(drain, draining)
    setHidden(ready, !draining)
    setHidden(auto, off || circuit.force === null)
    setHidden(open, off || circuit.force?.state === 'open')
    setHidden(closed, off || circuit.force?.state === 'closed')
    setHidden(reset, circuit === null)
  }
}

function checksOf ({ checks, checked }) {
  if (checks === null) return 'There are no health checks here.'
  const { healthy, held, since, lastCheck, streak, polling } = checks
  if (polling === null) return 'Not checked: it counts as healthy.'
  const last = lastCheck === null ? 'No check has ended yet.'
    : `Last check ${ago(lastCheck.at)}: ${words(lastCheck.cause)}${lastCheck.status === null ? '' : ` (${lastCheck.status})`} in ${millis(lastCheck.ms)} ms, ${plural(streak, 'time')} in a row.`
  const how = `${polling.type.toUpperCase()}${polling.path === null ? '' : ` ${polling.path}`} every ${duration(polling.intervalMs)}`
  return `${healthy ? 'Healthy' : checked ? 'Unhealthy' : 'Not checked yet'}${held ? ', held in' : ''} for ${duration(now() - Date.parse(since))}. ${last} ${how}.`
}

function windowOf ({ window: { seconds, total, failures, ratio, needed }, consecutiveFailures, outstanding: { count, usualMs, oldestMs } }) {
  return [
    `${failures} of ${plural(total, 'result')} failed in ${seconds} s${total > 0 ? ` (${percent(ratio)})` : ''}; the ratio counts from ${Math.ceil(needed)}`,
    `${consecutiveFailures} in a row`,
    `${count} under way${oldestMs === null ? '' : `, the oldest in silence for ${duration(oldestMs)}`}`,
    usualMs !== null && `usual p95 ${millis(usualMs)} ms`
  ].filter(Boolean).join(' · ')
}

function lastOf ({ lastTransition, openCount }) {
  if (lastTransition === null) return ''
  const { from, to, cause, at: time } = lastTransition
  return `${clock(time)}, ${ago(time)}: ${from} to ${to}, ${words(cause)}. Opened ${plural(openCount, 'time')} so far.`
}

function drainOf ({ draining, drain, ejectedUntil }) {
  const ejected = ejectedUntil === null ? '' : `Ejected by passive observation for another ${until(ejectedUntil)}. `
  if (!draining) return ejected.trim()
  if (drain === null) return `${ejected}Gone from the pool.`
  return `${ejected}Drained at ${clock(drain.since)}, ${drain.until === null ? 'until it is taken back' : `ends ${at(drain.until)}`}${drain.reason === null ? '' : `: ${drain.reason}`}.`
}

function trafficOf ({ weight, weightNow, priority, inFlight, waiting, busyConnections, connects, maxInFlight = 0, maxConnections = 0, discovered, leaving }) {
  return [
    `${inFlight} in flight${maxInFlight > 0 ? ` of ${maxInFlight}` : ''}`,
    `${busyConnections} of ${plural(maxConnections, 'connection')} busy`,
    `${waiting} wait for one`,
    `${plural(connects, 'connection')} made`,
    `weight ${weight}${weightNow === weight ? '' : `, now ${Number(weightNow.toPrecision(2))}`}`,
    priority > 0 && `tier ${priority}`,
    discovered && 'found by discovery',
    leaving && 'leaving'
  ].filter(Boolean).join(' · ')
}
