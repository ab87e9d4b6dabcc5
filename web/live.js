/** Asks for the state again and again, and knows how old it is. */
import { get, getIfThere } from './api.js'
import { mergeHistory } from './history.js'

const intervalMs = 2000
/** Where an answer is much work, it is asked for more seldom. */
const idleShare = 15
const retriesMs = [1000, 2000, 4000, 8000, 15000]
const routes = ['pools', 'breakers', 'health', 'shedding']

export class Live {
  /** When the last whole answer came, epoch ms of this machine; 0: none yet. */
  freshAt = 0
  /** When it is asked next, the same way. */
  nextAt = 0
  /** What failed last; null: nothing. */
  error = null
  config = null
  history = null
  #state = {}
  #absent = new Set()
  #failures = 0
  #timer = 0
  #running = null
  #again = false
  #handlers

  /** @param handlers `state(state)`, `failed(error)`, `restarted()` */
  constructor (handlers) {
    this.#handlers = handlers
  }

  start () { void this.refresh() }
  stop () { clearTimeout(this.#timer) }

  /** Asks now; or once more, where it is being asked. */
  refresh () {
    clearTimeout(this.#timer)
    if (this.#running !== null) {
      this.#again = true
      return this.#running
    }
    return this.#running = this.#ask().finally(() => {
      this.#running = null
      if (this.#again) {
        this.#again = false
        void this.refresh()
      }
    })
  }

  async #ask () {
    const began = performance.now()
    try {
      const config = this.config ?? await this.#optional('config')
      const answers = await Promise.all(routes.map((route) => this.#optional(route)))
      const [history] = [await this.#askHistory()]
      this.config = config
      this.history = history
      this.#state = Object.fromEntries(routes.map((route, i) => [route, answers[i]]))
      this.freshAt = Date.now()
      this.error = null
      this.#failures = 0
      this.#arm(Math.max(intervalMs, idleShare * (performance.now() - began)))
      this.#handlers.state(this.#state)
    } catch (error) {
      this.error = error
      this.#arm(retriesMs[Math.min(this.#failures++, retriesMs.length - 1)])
      this.#handlers.failed(error)
    }
  }

  #arm (ms) {
    this.nextAt = Date.now() + ms
    this.#timer = setTimeout(() => { void this.refresh() }, ms)
  }

  /** What this proxy does not have is not asked for again, until it may be another one. */
  async #optional (path) {
    if (this.#absent.has(path)) return null
    const answer = await getIfThere(path)
    if (answer === null) this.#absent.add(path)
    return answer
  }

  async #askHistory () {
    const known = this.history
    if (this.#absent.has('history')) return null
    const next = await this.#optional(`history?since=${known?.last ?? 0}`)
    if (next === null) {
      this.#absent.add('history')
      return null
    }
    if (known === null || next.run === known.run) return mergeHistory(known, next)
    this.#absent.clear()
    this.config = null
    this.#handlers.restarted()
    return mergeHistory(null, await get('history?since=0'))
  }
}
