/** The admin page: what the proxy believes, since when, on what evidence, and what may be done. */
import { act } from './actions.js'
import { forgetToken, hasToken } from './api.js'
import { Charts } from './charts.js'
import { byId, h, setAttribute, setChildren, setHidden, setText } from './dom.js'
import { ago, clock, duration } from './format.js'
import { showGate } from './gate.js'
import { Live } from './live.js'
import { Pools } from './pools.js'
import { askReload } from './reload.js'
import { showRequests } from './requests.js'
import { overall, upstreamsOf } from './state.js'
import { EventStream } from './stream.js'
import { Timeline, announce } from './timeline.js'
import { tokenForm } from './token.js'

/** Older than this, what is shown is called stale. */
const staleMs = 7000
const requestsMs = 6000
/** Events that came before the page did are no news. */
const openedAt = Date.now()

const charts = new Charts(byId('charts'))
const timeline = new Timeline()
const pools = new Pools({ act: (action, upstream) => { act(action, upstream, changed) }, chart })
const token = tokenForm(start)
let scope = { pool: '', upstream: '' }
let streamState = 'waiting'
let requestsAt = 0
let hasRequests = true

const live = new Live({
  state: show,
  failed: (error) => {
    if (error.status === 401) askToken()
    showAge()
  },
  restarted: () => { hasRequests = true }
})

const stream = new EventStream({
  event: (event) => {
    const told = timeline.add(event)
    if (Date.parse(event.at) > openedAt) announce(told)
    if (event.type.startsWith('config_')) live.config = null
    soon()
  },
  state: (state) => {
    streamState = state
    if (state === 'open' && live.error !== null) void live.refresh()
    showAge()
  }
})

let soonTimer = 0
/** A burst of events is one reason to look. */
function soon () {
  clearTimeout(soonTimer)
  soonTimer = setTimeout(() => { void live.refresh() }, 150)
}

/** Something was done: what it did is looked at at once. */
function changed () {
  live.config = null
  void live.refresh()
}

function show (state) {
  setHidden(byId('main'), false)
  const all = upstreamsOf(state)
  const { trouble, sentence, more } = overall(all, state.shedding, live.history)
  setText(byId('verdict'), sentence)
  setText(byId('verdict-more'), more)
  setAttribute(byId('verdict').parentElement, 'data-tone', trouble ? 'out' : 'ok')
  document.title = `${trouble ? '! ' : ''}${sentence} - Breakwater`
  pools.show(all, live.history)
  showGate(state.shedding, live.history)
  const observed = new Set(all.flatMap(({ pool, upstreams }) => upstreams.filter(({ circuit }) => circuit?.mode === 'observe').map(({ upstream }) => `${pool}\n${upstream}`)))
  timeline.show(live.history, (pool, upstream) => observed.has(`${pool}\n${upstream}`))
  showTraffic(all)
  showConfig(live.config)
  setHidden(byId('forget'), !hasToken())
  if (streamState === 'waiting') stream.start()
  if (hasRequests && Date.now() - requestsAt > requestsMs) {
    requestsAt = Date.now()
    void showRequests().then((there) => hasRequests = there, () => {})
  }
  showAge()
}

function showTraffic (all) {
  setHidden(byId('traffic'), live.history === null)
  if (live.history === null) return
  const options = [['\n', 'all pools'], ...all.map(({ pool }) => [`${pool}\n`, pool])]
  if (scope.upstream !== '') options.push([`${scope.pool}\n${scope.upstream}`, `${scope.pool} / ${scope.upstream}`])
  const select = byId('scope')
  if (select.options.length !== options.length || options.some(([value], i) => select.options[i].value !== value)) {
    setChildren(select, options.map(([value, text]) => h('option', { value }, text)))
    select.value = `${scope.pool}\n${scope.upstream}`
  }
  charts.show(live.history, scope)
}

function chart ({ pool, upstream }) {
  scope = { pool, upstream }
  void live.refresh()
  byId('traffic').scrollIntoView({ block: 'start' })
  byId('scope').focus({ preventScroll: true })
}

function showConfig (config) {
  const status = config?.status
  setHidden(byId('reload'), status === undefined)
  setText(byId('config'), status === undefined ? '' : `Configuration ${status.version}, loaded ${clock(status.loadedAt)} (${ago(status.loadedAt)})${status.file === null ? '' : `, ${status.file}`}`)
  const rejected = status?.rejected ?? null
  setHidden(byId('rejected'), rejected === null)
  if (rejected !== null) setText(byId('rejected'), `The configuration of ${clock(rejected.at)} was refused: ${rejected.errors.map(({ path, message }) => `${path} ${message}`.trim()).join('; ')}`)
}

/** How old what is shown is, said once it matters. */
function showAge () {
  const { freshAt, nextAt, error } = live
  const stale = error !== null || (freshAt > 0 && Date.now() - freshAt > staleMs && !document.hidden)
  const asks = !byId('token').hidden
  document.body.classList.toggle('stale', stale && !asks)
  for (const button of document.querySelectorAll('.actions button, #reload')) button.disabled = stale
  const status = asks ? 'Token wanted' : freshAt === 0 ? stale ? 'No answer' : 'Connecting' : stale ? `Stale since ${clock(freshAt)}` : streamState === 'open' ? 'Live' : streamState === 'absent' ? 'Live, without events' : 'Live, events late'
  setText(byId('status'), status)
  setAttribute(byId('status'), 'class', `status ${asks || stale ? 'bad' : 'good'}`)
  setHidden(byId('stale'), !stale || asks)
  if (stale) {
    const known = freshAt === 0 ? 'Nothing is known yet.' : `What is shown was so at ${clock(freshAt)}.`
    setText(byId('stale'), `${error === null ? 'No answer lately' : error.message}. ${known}`)
    byId('stale').append(h('span', { 'aria-hidden': 'true' }, nextAt > Date.now() ? ` Asking again in ${duration(nextAt - Date.now())}.` : ' Asking again.'))
  }
}

function askToken () {
  live.stop()
  stream.stop()
  if (byId('token').hidden) token.show()
}

function start () {
  live.start()
  stream.start()
}

byId('scope').addEventListener('change', ({ target }) => {
  const [pool = '', upstream = ''] = target.value.split('\n')
  scope = { pool, upstream }
  void live.refresh()
})
byId('reload').addEventListener('click', () => { void askReload(changed) })
byId('forget').addEventListener('click', () => {
  forgetToken()
  location.reload()
})
document.addEventListener('visibilitychange', () => { if (!document.hidden && byId('token').hidden) start() })
setInterval(showAge, 1000)
setText(byId('host'), location.host)
start()
