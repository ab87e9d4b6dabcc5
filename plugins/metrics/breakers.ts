import type { FastifyInstance } from 'fastify'
import type { BreakerState, BreakerTransition, RegisteredBreaker } from '../breaker-registry.ts'
import { Family, type Labels, type Sample } from './family.ts'
import { Histogram } from './histogram.ts'

const states: readonly BreakerState[] = ['closed', 'open', 'half-open']

/** Upper bounds of the time for which a circuit stays open, in seconds. */
const openBounds = [1, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1800, 3600]

/** The transitions without which no alert can be written are there at 0 from the beginning. */
const usual = ['closed open', 'open half-open', 'half-open closed', 'half-open open']

/** What is counted of a breaker. */
class BreakerSeries {
  /** By `from to`. */
  readonly transitions = new Map<string, number>(usual.map((key) => [key, 0]))
  readonly open = new Histogram(openBounds, false)
  /** Monotonic milliseconds; NaN: it is not open, or was before anybody looked. */
  openSince = Number.NaN
  /** How long it means to stay open this time, in ms. */
  openForMs = 0
  /** When it left closed, in monotonic milliseconds; NaN: it is closed, or left it before anybody looked. */
  leftClosedAt = Number.NaN
}

/** The circuits as they are, and their transitions. What is counted is kept with the breaker, and goes with it. */
export class BreakerMetrics {
  readonly #app: FastifyInstance
  readonly #series = new WeakMap<RegisteredBreaker, BreakerSeries>()

  constructor (app: FastifyInstance) {
    this.#app = app
  }

  transition ({ pool, upstream, from, to, openForMs }: BreakerTransition): void {
    const breaker = this.#app.breakers.find(pool, upstream)
    if (breaker === undefined) return
    const series = this.#of(breaker)
    const key = `${from} ${to}`
    series.transitions.set(key, (series.transitions.get(key) ?? 0) + 1)
    const now = performance.now()
    if (from === 'open' && series.openSince <= now) series.open.observe((now - series.openSince) / 1000, null, now)
    series.openSince = to === 'open' ? now : Number.NaN
    series.openForMs = openForMs
    if (to === 'closed') series.leftClosedAt = Number.NaN
    else if (Number.isNaN(series.leftClosedAt)) series.leftClosedAt = now
  }

  #of (breaker: RegisteredBreaker): BreakerSeries {
    let series = this.#series.get(breaker)
    if (series === undefined) this.#series.set(breaker, series = new BreakerSeries())
    return series
  }

  * #each (samples: (breaker: RegisteredBreaker, labels: Labels) => Iterable<Sample>): IterableIterator<Sample> {
    for (const breaker of this.#app.breakers.list()) yield * samples(breaker, { pool: breaker.pool, upstream: breaker.upstream })
  }

  families (): Family[] {
    const seconds = 'edge_breaker_open_seconds'
    return [
      new Family('gauge', 'edge_breaker_state', '1 for the state that the circuit is in, 0 for the others.', () => this.#each(({ breaker }, labels) =>
        states.map((state) => ({ labels: { ...labels, state }, value: Number(breaker.state === state) })))),
      new Family('counter', 'edge_breaker_transitions_total', 'Transitions of the circuit.', () => this.#each((breaker, labels) =>
        Array.from(this.#of(breaker).transitions, ([key, value]) => {
          const [from = '', to = ''] = key.split(' ')
          return { labels: { ...labels, from, to }, value }
        }))),
      new Family('histogram', seconds, 'How long the circuit stayed open, each time.', () => this.#each((breaker, labels) => this.#of(breaker).open.samples(seconds, labels))),
      new Family('gauge', 'edge_breaker_open_for_seconds', 'How long the circuit has been open now; 0 where it is not.', () => this.#each((breaker, labels) => {
        const { openSince } = this.#of(breaker)
        return [{ labels, value: breaker.breaker.state === 'open' && openSince > 0 ? (performance.now() - openSince) / 1000 : 0 }]
      })),
      new Family('gauge', 'edge_breaker_open_planned_seconds', 'How long the circuit means to stay open this time; 0 where it is not open.', () => this.#each((breaker, labels) =>
        [{ labels, value: breaker.breaker.state === 'open' ? this.#of(breaker).openForMs / 1000 : 0 }])),
      new Family('gauge', 'edge_breaker_not_closed_seconds', 'How long ago the circuit left closed, further openings included; 0 where it is closed.', () => this.#each((breaker, labels) => {
        const { leftClosedAt } = this.#of(breaker)
        return [{ labels, value: breaker.breaker.state !== 'closed' && leftClosedAt > 0 ? (performance.now() - leftClosedAt) / 1000 : 0 }]
      })),
      new Family('gauge', 'edge_breaker_open_configured_seconds', 'The open time as configured.', () => this.#each(({ options }, labels) => [{ labels, value: options.openMs / 1000 }])),
      new Family('counter', 'edge_breaker_would_refuse_total', 'Requests that mode observe let pass and mode enforce would have refused.', () => this.#each(({ breaker }, labels) =>
        [{ labels, value: breaker.wouldRefuse }]))
    ]
  }
}
