/** The pools and their upstreams. Rows are kept and changed in place, so that the focus and an open detail stay where they are. */
import { byId, h, setAttribute, setChildren, setHidden, setText } from './dom.js'
import { millis, percent, plural, rate } from './format.js'
import { latest } from './history.js'
import { Detail } from './detail.js'
import { Strip } from './strip.js'

/** In a pool of more, those that serve are folded away. */
const foldAbove = 12
const columns = ['Upstream', 'State and cause', 'In flight', 'Req/s', 'Errors', 'p50', 'p95', 'p99', 'Breaker window']

export class Pools {
  #pools = new Map()
  #last = null
  #context

  /** @param context `act(action, upstream)`, `chart(upstream)` */
  constructor (context) {
    this.#context = context
    for (const id of ['filter', 'only-trouble']) byId(id).addEventListener('input', () => { if (this.#last !== null) this.show(...this.#last) })
  }

  show (pools, history) {
    this.#last = [pools, history]
    const find = byId('filter').value.trim().toLowerCase()
    const onlyTrouble = byId('only-trouble').checked
    const shown = pools.map((pool) => {
      const known = this.#pools.get(pool.pool) ?? new PoolTable(pool.pool, this.#context, () => { this.show(...this.#last) })
      this.#pools.set(pool.pool, known)
      known.show(pool, history, { find, onlyTrouble })
      return known.element
    })
    const names = new Set(pools.map(({ pool }) => pool))
    for (const name of this.#pools.keys()) if (!names.has(name)) this.#pools.delete(name)
    setChildren(byId('pool-list'), shown)
  }
}

class PoolTable {
  element
  #rows = new Map()
  #facts = h('span', { class: 'facts' })
  #panic = h('span', { class: 'badge out', hidden: true }, 'Panic: all are used')
  #body = h('tbody', { role: 'rowgroup' })
  #fold
  #unfolded = false
  #context

  constructor (name, context, again) {
    this.#context = context
    this.#fold = h('button', { type: 'button', class: 'fold', hidden: true, onclick: () => { this.#unfolded = !this.#unfolded; again() } })
    // The roles stay where the table is laid out as cards.
    const table = h('table', { role: 'table' },
      h('caption', { class: 'hidden' }, `Upstreams of ${name}`),
      h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, columns.map((column, i) => h('th', { scope: 'col', role: 'columnheader', class: i > 2 && i < 8 ? 'number' : null }, column)))),
      this.#body)
    this.element = h('section', { class: 'pool' }, h('h3', {}, name, ' ', this.#facts, ' ', this.#panic), table, this.#fold)
  }

  show (pool, history, { find, onlyTrouble }) {
    const { pool: name, upstreams, balancer, panic, retryBudget } = pool
    const out = upstreams.filter(({ verdict }) => verdict.tone === 'out').length
    const figures = latest(history, { pool: name })
    setText(this.#facts, [
      out === 0 ? plural(upstreams.length, 'upstream') : `${upstreams.length - out} of ${upstreams.length} left`, balancer,
      figures !== null && `${rate(figures.rate)} req/s`, figures !== null && figures.requests > 0 && `p95 ${millis(figures.p95)} ms`,
      retryBudget.taken > 0 && `retries ${retryBudget.taken} of ${retryBudget.allowed}`
    ].filter(Boolean).join(' · '))
    setHidden(this.#panic, !panic)

    const matches = ({ upstream, verdict }) => find === '' || `${name} ${upstream} ${verdict.word} ${verdict.cause}`.toLowerCase().includes(find)
    const isTrouble = ({ verdict }) => verdict.tone !== 'ok'
    const matching = upstreams.filter((each) => matches(each) && (!onlyTrouble || isTrouble(each)))
    const folds = find === '' && matching.length > foldAbove && matching.some((each) => !isTrouble(each))
    const shown = folds && !this.#unfolded ? matching.filter((each) => isTrouble(each) || this.#rows.get(each.key)?.isOpen === true) : matching
    setHidden(this.#fold, !folds)
    setText(this.#fold, this.#unfolded ? 'Fold those that serve' : `Show ${matching.length - shown.length} more that serve`)
    setHidden(this.element, matching.length === 0 && (find !== '' || onlyTrouble))

    const known = new Set(upstreams.map(({ key }) => key))
    for (const key of this.#rows.keys()) if (!known.has(key)) this.#rows.delete(key)
    setChildren(this.#body, shown.flatMap((upstream) => {
      const row = this.#rows.get(upstream.key) ?? new Row(upstream, this.#context)
      this.#rows.set(upstream.key, row)
      row.show(upstream, latest(history, upstream))
      return row.elements
    }))
  }
}

let rows = 0

class Row {
  isOpen = false
  #context
  #upstream
  #row
  #detailRow
  #detail = null
  #toggle
  #mark = h('span', { class: 'mark', 'aria-hidden': 'true' })
  #word = h('strong')
  #cause = h('span', { class: 'cause' })
  #load = h('span', { class: 'figure' })
  #bar = h('span', { class: 'bar', 'aria-hidden': 'true' }, h('span'))
  #numbers = Array.from({ length: 5 }, () => h('span', { class: 'figure' }))
  #strip = new Strip()

  constructor (upstream, context) {
    this.#context = context
    this.#upstream = upstream
    const id = `detail-${++rows}`
    this.#toggle = h('button', { type: 'button', class: 'name', 'aria-expanded': 'false', 'aria-controls': id, onclick: () => { this.#open(!this.isOpen) } }, upstream.upstream)
    const cell = (label, ...content) => h('td', { role: 'cell', 'data-label': label }, ...content)
    this.#row = h('tr', { role: 'row' },
      h('th', { scope: 'row', role: 'rowheader' }, this.#toggle),
      h('td', { role: 'cell' }, h('div', { class: 'state' }, this.#mark, h('span', {}, this.#word, ' ', this.#cause))),
      cell('In flight', this.#load, this.#bar),
      this.#numbers.map((number, i) => h('td', { role: 'cell', class: 'number', 'data-label': columns[i + 3] }, number)),
      h('td', { role: 'cell', class: 'window', 'data-label': columns[8] }, this.#strip.element))
    this.#detailRow = h('tr', { role: 'row', class: 'detail', id, hidden: true })
  }

  get elements () { return [this.#row, this.#detailRow] }

  #open (open) {
    this.isOpen = open
    setAttribute(this.#toggle, 'aria-expanded', open)
    if (open && this.#detail === null) {
      this.#detail = new Detail(this.#upstream, this.#context)
      this.#detailRow.append(h('td', { role: 'cell', colspan: columns.length }, this.#detail.element))
    }
    setHidden(this.#detailRow, !open)
    if (open) this.#detail.show(this.#upstream)
  }

  show (upstream, figures) {
    this.#upstream = upstream
    const { verdict: { tone, word, cause }, inFlight, waiting, maxInFlight = 0, maxConnections = 0, circuit } = upstream
    setAttribute(this.#row, 'data-tone', tone)
    setAttribute(this.#mark, 'class', `mark ${tone}`)
    setText(this.#word, word)
    setText(this.#cause, cause)
    const limit = maxInFlight || maxConnections
    setText(this.#load, `${inFlight}${limit > 0 ? ` of ${limit}` : ''}${waiting > 0 ? `, ${waiting} wait` : ''}`)
    this.#bar.firstChild.style.width = `${limit > 0 ? Math.min(100, 100 * inFlight / limit) : 0}%`
    setAttribute(this.#bar, 'class', limit > 0 && inFlight >= 0.9 * limit ? 'bar full' : 'bar')
    const [perSecond, errors, ...times] = this.#numbers
    setText(perSecond, figures === null ? '–' : rate(figures.rate))
    setText(errors, figures === null || figures.requests === 0 ? '–' : percent(figures.errors))
    setAttribute(errors, 'class', figures !== null && figures.errors > 0 ? 'figure bad' : 'figure')
    for (const [i, name] of ['p50', 'p95', 'p99'].entries()) setText(times[i], figures === null ? '–' : millis(figures[name]))
    if (circuit !== null) this.#strip.show(circuit)
    if (this.isOpen) this.#detail.show(upstream)
  }
}
