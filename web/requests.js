/** Requests that were refused or failed, and why, where the proxy keeps records of them. */
import { get, getIfThere, pathOf } from './api.js'
import { byId, h, setAttribute, setChildren, setHidden, setText } from './dom.js'
import { ago, clock, words } from './format.js'

/** Refused ones, and failed ones. */
const most = 8
const rows = new Map()
const body = h('tbody', { role: 'rowgroup' })
const none = h('p', { class: 'quiet' }, 'None is recorded.')
const table = h('table', { role: 'table' },
  h('caption', { class: 'hidden' }, 'Refused and failed requests, newest first'),
  h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, ['When', 'Request', 'Reason', 'Explanation'].map((column) => h('th', { scope: 'col', role: 'columnheader' }, column)))),
  body)

/**
 * @param reasons of refusals lately: each is asked for, so that failures, which may be many, do not hide them
 * @returns false where the proxy keeps no records
 */
export async function showRequests (reasons) {
  const answers = await Promise.all(['', ...reasons.slice(0, 6).map((reason) => `?limit=${most}&reason=${reason}`)].map((query) => getIfThere(`requests${query}`)))
  if (!answers.every((answer) => Array.isArray(answer?.requests))) return false
  setHidden(byId('refused'), false)
  const found = new Map(answers.flatMap(({ requests }) => requests).map((record) => [record.requestId, record]))
  const newest = Array.from(found.values()).toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at))
  const refused = newest.filter(({ kept }) => kept === 'refused').slice(0, most)
  const failed = newest.filter(({ kept }) => kept === 'failed').slice(0, most)
  const shown = newest.filter((record) => refused.includes(record) || failed.includes(record))
  setChildren(byId('requests'), shown.length === 0 ? [none] : [table])
  const ids = new Set(shown.map(({ requestId }) => requestId))
  for (const id of rows.keys()) if (!ids.has(id)) rows.delete(id)
  setChildren(body, shown.flatMap((record) => {
    const row = rows.get(record.requestId) ?? rowOf(record)
    rows.set(record.requestId, row)
    return row
  }))
  return true
}

function rowOf ({ requestId, at, method, path, route, pool, status, reason, explanation }) {
  const id = `request-${requestId}`
  const detail = h('td', { role: 'cell', colspan: 4 })
  const detailRow = h('tr', { role: 'row', class: 'detail', id, hidden: true }, detail)
  const toggle = h('button', { type: 'button', class: 'name', 'aria-expanded': 'false', 'aria-controls': id }, `${method ?? '–'} ${path ?? route ?? requestId}`)
  toggle.addEventListener('click', () => {
    const open = detailRow.hidden
    setHidden(detailRow, !open)
    setAttribute(toggle, 'aria-expanded', open)
    if (open && detail.childElementCount === 0) void explain(detail, requestId, false)
  })
  return [
    h('tr', { role: 'row' }, h('td', { role: 'cell' }, h('time', { datetime: at, title: ago(at) }, clock(at))), h('th', { scope: 'row', role: 'rowheader' }, toggle, pool === null ? null : h('span', { class: 'cause' }, pool)), h('td', { role: 'cell' }, h('strong', {}, reason === null ? 'by the upstream' : words(reason)), ' ', h('span', { class: 'cause' }, status === 0 ? 'no answer' : String(status))), h('td', { role: 'cell' }, explanation ?? '')),
    detailRow
  ]
}

/** The numbers behind a request's end, or why they are not known. @param inFull with the sentence that a row has anyway */
export async function explain (into, requestId, inFull = true) {
  const asking = h('p', {}, 'Asking')
  into.replaceChildren(asking)
  try {
    const { candidates = [], attempts = [], gate, explanation } = await get(`requests/${pathOf(requestId)}`)
    asking.replaceWith(h('dl', {},
      h('dt', {}, 'Request id'), h('dd', {}, requestId),
      !inFull || explanation == null ? [] : [h('dt', {}, 'Why'), h('dd', {}, explanation)],
      gate == null ? [] : [h('dt', {}, 'Gate'), h('dd', {}, `${gate.inFlight} of ${gate.limit} places taken`)],
      attempts.map(({ upstream, outcome, reason, status, ms }) => [h('dt', {}, `Attempt at ${upstream}`), h('dd', {}, `${[outcome, reason && words(reason), status > 0 && status].filter(Boolean).join(', ')}${ms == null ? '' : ` after ${Math.round(ms)} ms`}`)]),
      candidates.filter(({ used }) => used !== true).map(({ upstream, why, detail }) => [h('dt', {}, upstream), h('dd', {}, detail ?? words(why))])))
  } catch (error) {
    setText(asking, error.message)
  }
}
