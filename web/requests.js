/** Requests that were refused or failed, and why, where the proxy keeps records of them: a row for all that are alike. */
import { get, getIfThere, pathOf } from './api.js'
import { byId, h, setAttribute, setChildren, setHidden, setText } from './dom.js'
import { ago, clock, plural, words } from './format.js'

const wanted = 'requests?kept=refused&kept=failed&distinct=true&limit=20'
const rows = new Map()
const body = h('tbody', { role: 'rowgroup' })
const none = h('p', { class: 'quiet' }, 'None is recorded.')
const table = h('table', { role: 'table' },
  h('caption', { class: 'hidden' }, 'Refused and failed requests, one row for all alike'),
  h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, ['Latest', 'Request', 'Reason', 'Explanation'].map((column) => h('th', { scope: 'col', role: 'columnheader' }, column)))),
  body)

/** @returns false where the proxy keeps no records */
export async function showRequests () {
  const found = (await getIfThere(wanted))?.requests
  if (!Array.isArray(found)) return false
  setHidden(byId('refused'), false)
  setChildren(byId('requests'), [found.length === 0 ? none : table])
  const gone = new Set(rows.keys())
  // A row stays in its place, for who is about to press it; one that is new comes first.
  for (const record of found.toReversed()) {
    const kind = [record.kept, record.reason, record.status, record.pool].join()
    if (!gone.delete(kind)) rows.set(kind, new Row())
    rows.get(kind).show(record)
  }
  for (const kind of gone) rows.delete(kind)
  setChildren(body, Array.from(rows.values()).toReversed().flatMap(({ elements }) => elements))
  return true
}

let made = 0

class Row {
  #record
  #when = h('time')
  #name = h('button', { type: 'button', class: 'name', 'aria-expanded': 'false', onclick: () => { this.#toggle() } })
  #pool = h('span', { class: 'cause' })
  #reason = h('strong')
  #count = h('span', { class: 'cause' })
  #why = h('td', { role: 'cell' })
  #detail = h('td', { role: 'cell', colspan: 4 })
  elements

  constructor () {
    const id = `kind-${++made}`
    setAttribute(this.#name, 'aria-controls', id)
    this.elements = [
      h('tr', { role: 'row' }, h('td', { role: 'cell' }, this.#when), h('th', { scope: 'row', role: 'rowheader' }, this.#name, this.#pool), h('td', { role: 'cell' }, this.#reason, ' ', this.#count), this.#why),
      h('tr', { role: 'row', class: 'detail', id, hidden: true }, this.#detail)
    ]
  }

  show (record) {
    this.#record = record
    const { requestId, at, method, path, route, pool, status, reason, explanation, alike } = record
    setText(this.#when, clock(at))
    setAttribute(this.#when, 'datetime', at)
    setAttribute(this.#when, 'title', ago(at))
    setText(this.#name, `${method ?? '–'} ${path ?? route ?? requestId}`)
    setText(this.#pool, pool ?? '')
    setText(this.#reason, reason === null ? 'by the upstream' : words(reason))
    setText(this.#count, [status === 0 ? 'no answer' : status, alike?.count > 1 && `${alike.count} alike`].filter(Boolean).join(', '))
    setText(this.#why, explanation)
  }

  /** Those that are told are those of the moment at which it was opened. */
  #toggle () {
    const row = this.elements[1]
    setHidden(row, !row.hidden)
    setAttribute(this.#name, 'aria-expanded', !row.hidden)
    if (row.hidden) return
    const { requestId, alike } = this.#record
    const first = h('div')
    const others = alike?.requestIds.slice(1) ?? []
    this.#detail.replaceChildren(first, ...others.length === 0 ? [] : [requestLinks(others, `${plural(others.length, 'earlier request')} like it`)])
    void explain(first, requestId)
  }
}

/** Request ids, folded away: each gives its explanation once it is asked for. */
export function requestLinks (ids, summary) {
  const explanation = h('div')
  const ask = (pressed, id) => {
    const shown = pressed.getAttribute('aria-expanded') === 'true'
    for (const each of pressed.closest('ul').querySelectorAll('button')) setAttribute(each, 'aria-expanded', each === pressed && !shown)
    explanation.replaceChildren()
    if (!shown) void explain(explanation, id)
  }
  return h('details', {}, h('summary', {}, summary),
    h('ul', {}, ids.map((id) => h('li', {}, h('button', { type: 'button', class: 'name', 'aria-expanded': 'false', onclick: (event) => { ask(event.currentTarget, id) } }, id)))),
    explanation)
}

/** The numbers behind a request's end, or why they are not known. */
async function explain (into, requestId) {
  const asking = h('p', {}, 'Asking')
  into.replaceChildren(asking)
  try {
    const { at, candidates = [], attempts = [], gate, explanation } = await get(`requests/${pathOf(requestId)}`)
    asking.replaceWith(h('dl', {},
      [['Request id', requestId], ['Received', clock(at)], ['Why', explanation],
        gate && ['Gate', `${gate.inFlight} of ${gate.limit} places taken`],
        ...attempts.map(({ upstream, outcome, reason, status, ms }) => [`Attempt at ${upstream}`, `${[outcome, reason && words(reason), status > 0 && status].filter(Boolean).join(', ')}${ms == null ? '' : ` after ${Math.round(ms)} ms`}`]),
        ...candidates.filter(({ used }) => used !== true).map(({ upstream, why, detail }) => [upstream, detail ?? words(why)])
      ].map((each) => each && [h('dt', {}, each[0]), h('dd', {}, each[1])])))
  } catch (error) {
    setText(asking, error.message)
  }
}
