/** The gate, the pressure on the process, and what was refused before any upstream was asked. */
import { byId, h, setAttribute, setChildren, setHidden, setText } from './dom.js'
import { bytes, millis, percent, plural, words } from './format.js'
import { sum } from './history.js'

const load = h('span', { class: 'figure' })
const bar = h('span', { class: 'bar', 'aria-hidden': 'true' }, h('span'))
const gateLine = h('p', { class: 'load' }, load, bar)
const pressure = h('p', { class: 'quiet' })
const body = h('tbody')
const table = h('table', {},
  h('caption', {}, 'Refused before an upstream was asked'),
  h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Reason'), h('th', { scope: 'col', class: 'number' }, 'Last 5 s'), h('th', { scope: 'col', class: 'number' }, '15 min'))),
  body)
const none = h('p', { class: 'quiet' }, 'Nothing was refused in the last 15 minutes.')
const rows = new Map()

export function showGate (shedding, history) {
  setHidden(byId('gate'), shedding === null && history === null)
  setChildren(byId('gate-body'), [shedding !== null && gateLine, shedding !== null && pressure, table, none].filter(Boolean))
  if (shedding !== null) showLoad(shedding)
  const refused = Object.entries(history?.gate.refused ?? {}).map(([reason, figures]) => ({ reason, lately: figures.at(-1) ?? 0, all: sum(figures) })).filter(({ all }) => all > 0)
  setHidden(table, refused.length === 0)
  setHidden(none, history === null || refused.length > 0)
  setChildren(body, refused.toSorted((a, b) => b.all - a.all).map(rowOf))
}

function showLoad ({ inFlight, maxInFlight, pressure: { under, eventLoopDelayMs, eventLoopUtilization, heapUsedBytes, rssBytes } }) {
  setText(load, `${inFlight} of ${plural(maxInFlight, 'place')} taken`)
  bar.firstChild.style.width = `${Math.min(100, 100 * inFlight / maxInFlight)}%`
  setAttribute(bar, 'class', inFlight >= 0.9 * maxInFlight ? 'bar full' : 'bar')
  setText(pressure, `${under ? 'Under pressure. ' : ''}Event loop ${millis(eventLoopDelayMs)} ms late, ${percent(eventLoopUtilization)} busy; heap ${bytes(heapUsedBytes)}, ${bytes(rssBytes)} in all.`)
  setAttribute(pressure, 'class', under ? 'bad' : 'quiet')
}

function rowOf ({ reason, lately, all }) {
  const known = rows.get(reason) ?? h('tr', {}, h('th', { scope: 'row' }, words(reason)), h('td', { class: 'number' }), h('td', { class: 'number' }))
  rows.set(reason, known)
  const [, first, second] = known.children
  setText(first, lately)
  setText(second, all)
  setAttribute(known, 'data-tone', lately > 0 ? 'out' : null)
  return known
}
