/** What happened lately: the events in words, and a ribbon for each upstream that was out within the last 15 minutes. */
import { byId, h, setAttribute, setChildren, setHidden, setText } from './dom.js'
import { clock, now, plural } from './format.js'
import { requestLinks } from './requests.js'
import { tell } from './sentences.js'

const spanMs = 900000
/** More is a scroll nobody makes; `/events` has all. */
const mostEvents = 200
const mostLanes = 12
const steps = 180

const list = h('ol', { class: 'events' })
const none = h('p', { class: 'quiet' }, 'Nothing has happened.')

export class Timeline {
  #events = []
  #lanes = new Map()

  constructor () {
    byId('events').append(none, list)
  }

  /** Another run of the proxy tells its events from the first one on: those of the earlier run stay. */
  add (event) {
    const { tone, text, subject, requests } = tell(event)
    const item = h('li', { 'data-tone': tone },
      h('time', { datetime: event.at }, clock(event.at)),
      h('span', { class: `mark ${tone}`, 'aria-hidden': 'true' }),
      h('div', {}, subject === '' ? null : h('strong', {}, subject), ' ', text, requests.length === 0 ? null : requestLinks(requests, plural(requests.length, 'request'))))
    this.#events.push({ at: Date.parse(event.at), item })
    list.prepend(item)
    this.#trim()
    setHidden(byId('timeline'), false)
    return { text: subject === '' ? text : `${subject}: ${text}`, tone }
  }

  #trim () {
    const oldest = now() - spanMs
    while (this.#events.length > mostEvents || (this.#events.length > 20 && this.#events[0].at < oldest)) this.#events.shift().item.remove()
    setHidden(none, this.#events.length > 0)
  }

  /** @param observed whether the breaker of a pool's upstream only observes: that one keeps nobody out */
  show (history, observed) {
    this.#trim()
    if (history === null) return
    setHidden(byId('timeline'), false)
    const troubled = Object.entries(history.pools).flatMap(([pool, { upstreams }]) => Object.entries(upstreams).map(([upstream, { breaker, out }]) => {
      const tones = breaker.map((each, i) => toneAt(each, out[i], observed(pool, upstream)))
      return { pool, upstream, tones, worst: tones.filter((tone) => tone !== 'ok').length, opened: breaker.includes(3) }
    })).filter(({ worst, opened }) => worst > 1 || opened).toSorted((a, b) => b.worst - a.worst).slice(0, mostLanes)
    setHidden(byId('lanes'), troubled.length === 0)
    setChildren(byId('lanes'), [...troubled.map((each) => this.#lane(each)), axis])
  }

  #lane ({ pool, upstream, tones }) {
    const key = `${pool}\n${upstream}`
    let lane = this.#lanes.get(key)
    if (lane === undefined) {
      const paths = Object.fromEntries(['ok', 'out', 'warn', 'quiet'].map((tone) => [tone, h('path', { class: tone })]))
      const svg = h('svg', { role: 'img', preserveAspectRatio: 'none', viewBox: `0 0 ${steps} 10` }, Object.values(paths))
      lane = { element: h('div', { class: 'lane' }, h('span', { title: `${pool} / ${upstream}` }, upstream), svg), svg, paths }
      this.#lanes.set(key, lane)
    }
    const from = steps - tones.length
    // Trouble fills the height, what serves is a line: told apart without colour too.
    const shape = { ok: 'v4z', out: 'v10z', warn: 'v7z', quiet: 'v7z' }
    const top = { ok: 6, out: 0, warn: 3, quiet: 3 }
    for (const [tone, path] of Object.entries(lane.paths)) {
      setAttribute(path, 'd', runsOf(tones, tone).map(([start, end]) => `M${from + start} ${top[tone]}h${end - start}${shape[tone].replace('z', `h${start - end}z`)}`).join(''))
    }
    const seconds = 5 * tones.filter((tone) => tone === 'out').length
    setAttribute(lane.svg, 'aria-label', `${pool} / ${upstream}: out for ${seconds} s of the last 15 minutes`)
    return lane.element
  }
}

const axis = h('div', { class: 'lane axis', 'aria-hidden': 'true' }, h('span'), h('span', {}, h('span', {}, '15 min ago'), h('span', {}, 'now')))

function toneAt (breaker, out, observed) {
  if ((breaker === 3 && !observed) || (out & 5) !== 0) return 'out'
  if (breaker >= 2 || (out & 2) !== 0) return breaker >= 2 && !observed ? 'warn' : 'quiet'
  return 'ok'
}

function runsOf (tones, wanted) {
  const runs = []
  for (const [i, tone] of tones.entries()) {
    if (tone !== wanted) continue
    if (runs.at(-1)?.[1] === i) runs.at(-1)[1] = i + 1
    else runs.push([i, i + 1])
  }
  return runs
}

let pending = []
let timer = 0

/** Tells a screen reader, a few times a minute at most: what matters is there to be read. */
export function announce ({ text, tone }) {
  if (tone === 'quiet') return
  pending.push(text)
  if (timer !== 0) return
  timer = setTimeout(() => {
    timer = 0
    const [first, ...rest] = pending
    setText(byId('news'), rest.length === 0 ? first : `${first} (and ${rest.length} more)`)
    pending = []
  }, 1500)
}
