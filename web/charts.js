/** The plots of the last 15 minutes, drawn by uPlot. Their figures are told in words beside them. */
import { clock, millis, percent, plural, rate } from './format.js'
import { h, setAttribute, setText } from './dom.js'
import { figuresOf, sum } from './history.js'

const windowS = 900
const height = 132

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** What each plot shows: its series of the figures, and the figure of one step in words. */
const plots = [
  {
    title: 'Requests per second',
    series: [{ label: 'all', line: '--line', fill: '--fill' }, { label: 'failed', line: '--trouble', fill: '--trouble-fill' }],
    values: ({ requests, failure }, s) => [requests.map((each) => each / s), failure.map((each) => each / s)],
    tell: ([all, failed]) => `${rate(all ?? 0)}${failed > 0 ? `, ${rate(failed)} failed` : ''}`,
    least: 1
  },
  {
    title: 'Error ratio',
    series: [{ label: 'failed', line: '--trouble', fill: '--trouble-fill' }],
    values: ({ requests, failure }) => [failure.map((each, i) => requests[i] === 0 ? null : 100 * each / requests[i])],
    tell: ([ratio]) => ratio === null || ratio === undefined ? 'no requests' : percent(ratio / 100),
    unit: '%',
    least: 5
  },
  {
    title: 'Head p50 · p95 · p99, ms',
    series: [{ label: 'p50', line: '--line-weak' }, { label: 'p95', line: '--line' }, { label: 'p99', line: '--line', dash: [4, 3] }],
    values: ({ p50, p95, p99 }) => [p50, p95, p99],
    tell: ([p50, p95, p99]) => [p50, p95, p99].map(millis).join(' · '),
    least: 1
  },
  {
    title: 'In flight, most at once',
    series: [{ label: 'in flight', line: '--line', fill: '--fill' }],
    values: ({ inFlight }) => [inFlight],
    tell: ([most]) => String(most ?? 0),
    least: 4
  }
]

export class Charts {
  #parent
  #drawn = []
  #history = null
  #scope = {}
  #data = []

  constructor (parent) {
    this.#parent = parent
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { this.#make() })
    new ResizeObserver(() => { this.#resize() }).observe(parent)
  }

  show (history, scope) {
    this.#history = history
    this.#scope = scope
    if (this.#drawn.length === 0) this.#make()
    const figures = figuresOf(history, scope)
    const { stepMs, first, last, endedAt } = history
    const end = Date.parse(endedAt) / 1000
    const s = stepMs / 1000
    const times = Array.from({ length: Math.max(0, last - first + 1) }, (_each, i) => end - (last - first - i) * s)
    for (const [i, { plot, values, body, tell }] of this.#drawn.entries()) {
      this.#data[i] = figures === null ? [times] : values(figures, s)
      plot.batch(() => {
        plot.setData([times, ...this.#data[i]], false)
        plot.setScale('x', { min: end - windowS, max: end })
      })
      if (plot.cursor.idx === null || plot.cursor.idx === undefined) this.#tell(i, null)
      setAttribute(body, 'aria-label', `${plots[i].title}: ${tell(this.#data[i].map((each) => each.at(-1)))} now; ${plural(figures === null ? 0 : sum(figures.requests), 'request')} in 15 minutes`)
    }
  }

  /** The figure under the pointer, else the newest. */
  #tell (i, index) {
    const { value, plot, tell } = this.#drawn[i]
    const figures = (this.#data[i] ?? []).map((each) => each.at(index ?? -1))
    setText(value, `${tell(figures)}${index === null ? '' : ` at ${clock(1000 * plot.data[0][index])}`}`)
  }

  #make () {
    for (const { plot } of this.#drawn) plot.destroy()
    this.#drawn = []
    const figures = plots.map((spec, i) => {
      const value = h('span', { class: 'value' })
      const body = h('div', { class: 'plot', role: 'img', 'aria-label': spec.title })
      const figure = h('figure', {}, h('figcaption', {}, h('span', { class: 'title' }, spec.title), value), body)
      this.#drawn.push({ plot: this.#plot(spec, i, body), values: spec.values, tell: spec.tell, body, value })
      return figure
    })
    this.#parent.replaceChildren(...figures)
    this.#resize()
    if (this.#history !== null) this.show(this.#history, this.#scope)
  }

  #plot ({ series, unit = '', least }, i, body) {
    const axis = { stroke: colour('--quiet'), font: '11px system-ui, sans-serif', grid: { stroke: colour('--rule'), width: 1 }, ticks: { show: false } }
    const line = ({ label, line: stroke, fill, dash }) => ({ label, stroke: colour(stroke), width: 1.5, points: { show: false }, ...fill !== undefined && { fill: colour(fill) }, ...dash !== undefined && { dash } })
    return new globalThis.uPlot({
      width: 300,
      height,
      legend: { show: false },
      cursor: { sync: { key: 'breakwater' }, drag: { x: false, y: false }, y: false, points: { size: 5 } },
      scales: { x: { time: true }, y: { range: (_plot, _min, max) => [0, Math.max(least, (max ?? 0) * 1.08)] } },
      axes: [
        { ...axis, size: 24, space: 70, values: (_plot, times) => times.map((time) => clock(1000 * time).slice(0, 5)) },
        { ...axis, size: 40, space: 28, values: (_plot, values) => values.map((each) => each >= 10000 ? `${each / 1000}k` : `${each}${unit}`) }
      ],
      series: [{}, ...series.map(line)],
      hooks: { setCursor: [(plot) => { if (this.#drawn[i] !== undefined) this.#tell(i, plot.cursor.idx ?? null) }] }
    }, [[], ...series.map(() => [])], body)
  }

  #resize () {
    for (const { plot, body } of this.#drawn) {
      const width = Math.floor(body.clientWidth)
      if (width > 0 && width !== plot.width) plot.setSize({ width, height })
    }
  }
}
