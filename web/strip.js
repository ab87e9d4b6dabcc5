/** The breaker's window as bars, a second each: what ended, and what of it failed. */
import { h, setAttribute } from './dom.js'
import { percent, plural } from './format.js'

const high = 20

export class Strip {
  element
  #all = h('path', { class: 'all' })
  #failed = h('path', { class: 'failed' })

  constructor () {
    this.element = h('svg', { class: 'strip', role: 'img', preserveAspectRatio: 'none' }, this.#all, this.#failed)
  }

  show ({ window: { seconds, total, failures, ratio, buckets } }) {
    // So long a window is shown in as many bars as can be told apart.
    const perBar = Math.ceil(seconds / 60)
    const bars = Math.ceil(seconds / perBar)
    const sums = Array.from({ length: bars }, () => [0, 0])
    for (const [age, all, failed] of buckets) {
      const bar = sums[bars - 1 - Math.floor(age / perBar)]
      if (bar === undefined) continue
      bar[0] += all
      bar[1] += failed
    }
    const most = Math.max(1, ...sums.map(([all]) => all))
    const path = (index) => sums.map((bar, i) => bar[index] === 0 ? '' : `M${i} ${high}h.8v${-Math.max(1.5, high * bar[index] / most).toFixed(2)}h-.8z`).join('')
    setAttribute(this.element, 'viewBox', `0 0 ${bars} ${high}`)
    setAttribute(this.#all, 'd', path(0))
    setAttribute(this.#failed, 'd', path(1))
    setAttribute(this.element, 'aria-label', `Window of ${seconds} s: ${plural(total, 'result')}, ${failures} failed${total > 0 ? ` (${percent(ratio)})` : ''}`)
  }
}
