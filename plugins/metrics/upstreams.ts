import type { FastifyInstance } from 'fastify'
import type { Exchange } from '../../lib/exchange.ts'
import { failureOf, type Outcome, type Reason } from '../../lib/failure.ts'
import type { UpstreamLane } from '../forwarder/terms.ts'
import type { ObservedAttempt, Observer } from '../observation.ts'
import type { PoolEvent, Upstream } from '../upstream-pools.ts'
import { Family, type Labels, type Sample } from './family.ts'
import { Histogram } from './histogram.ts'
import { ReasonTallies } from './tallies.ts'

const outcomes: readonly Outcome[] = ['success', 'failure', 'cancelled', 'ignored']
const placeOf: Readonly<Record<Outcome, number>> = { success: 0, failure: 1, cancelled: 2, ignored: 3 }

/** What is counted of an upstream. */
class UpstreamSeries {
  readonly outcomes = new Float64Array(outcomes.length)
  readonly duration: Histogram
  readonly errors: ReasonTallies<Reason>
  ejections = 0
  ejectionsHeld = 0

  constructor (bounds: readonly number[], exemplars: boolean) {
    this.duration = new Histogram(bounds, exemplars)
    this.errors = new ReasonTallies(exemplars)
  }
}

const kSeries = Symbol('breakwater.upstreamSeries')
/** The series of a lane's members, by their index: nothing is looked up by name while a request waits. */
interface TaggedLane { [kSeries]?: readonly UpstreamSeries[] }

/** Counts attempts by upstream. Series are kept with the upstream's running state, and go with it. */
export class UpstreamMetrics implements Observer {
  readonly #app: FastifyInstance
  readonly #bounds: readonly number[]
  readonly #exemplars: boolean
  readonly #series = new WeakMap<object, UpstreamSeries>()

  constructor (app: FastifyInstance, bounds: readonly number[], exemplars: boolean) {
    this.#app = app
    this.#bounds = bounds
    this.#exemplars = exemplars
  }

  attemptEnded (exchange: Exchange | null, { lane, index, begunAt, headAt, status, outcome, reason }: ObservedAttempt): void {
    const series = this.#ofLane(lane)[index] as UpstreamSeries
    const place = placeOf[outcome as Outcome]
    series.outcomes[place] = (series.outcomes[place] as number) + 1
    const at = headAt > 0 ? headAt : performance.now()
    if (status !== 101) series.duration.observe((at - begunAt) / 1000, exchange, at)
    if (reason !== null && place < placeOf.cancelled && failureOf(reason).side === 'upstream') series.errors.count(reason, exchange, at)
  }

  poolEvent (event: PoolEvent): void {
    if (event.type !== 'upstream_ejected' && event.type !== 'ejection_held') return
    const upstream = this.#app.pools.find(event.pool, event.upstream)
    if (upstream === undefined) return
    if (event.type === 'upstream_ejected' && event.enforced) this.#of(upstream).ejections++
    else this.#of(upstream).ejectionsHeld++
  }

  #ofLane (lane: UpstreamLane): readonly UpstreamSeries[] {
    return (lane as TaggedLane)[kSeries] ??= lane.pool.upstreams.map((upstream) => this.#of(upstream))
  }

  #of ({ state }: Upstream): UpstreamSeries {
    let series = this.#series.get(state)
    if (series === undefined) this.#series.set(state, series = new UpstreamSeries(this.#bounds, this.#exemplars))
    return series
  }

  * #each (samples: (upstream: Upstream, labels: Labels) => Iterable<Sample>): IterableIterator<Sample> {
    for (const { upstreams } of this.#app.pools.list()) {
      for (const upstream of upstreams) yield * samples(upstream, { pool: upstream.pool, upstream: upstream.id })
    }
  }

  #counter (name: string, help: string, samples: (series: UpstreamSeries, labels: Labels) => Iterable<Sample>): Family {
    return new Family('counter', name, help, () => this.#each((upstream, labels) => samples(this.#of(upstream), labels)))
  }

  #gauge (name: string, help: string, value: (upstream: Upstream) => number): Family {
    return new Family('gauge', name, help, () => this.#each((upstream, labels) => [{ labels, value: value(upstream) }]))
  }

  families (): Family[] {
    return [
      this.#counter('edge_upstream_requests_total', 'Attempts by how they ended for the breaker, copies among them.', (series, labels) =>
        outcomes.map((outcome, place) => ({ labels: { ...labels, outcome }, value: series.outcomes[place] as number }))),
      new Family('histogram', 'edge_upstream_duration_seconds', 'Time from the pick to the head of the answer, or to the end of an attempt without one; without tunnels.', () =>
        this.#each((upstream, labels) => this.#of(upstream).duration.samples('edge_upstream_duration_seconds', labels))),
      this.#counter('edge_upstream_errors_total', 'Attempts that the upstream spoilt, by reason; an error answer is none.', ({ errors }, labels) =>
        Array.from(errors.entries(), ({ reason, ...rest }) => ({ labels: { ...labels, reason }, ...rest }))),
      this.#gauge('edge_upstream_alive', '1 where the health checks take it for healthy, else 0.', ({ healthy }) => Number(healthy)),
      this.#gauge('edge_upstream_in_flight', 'Exchanges at it.', ({ inFlight }) => inFlight),
      this.#gauge('edge_upstream_waiting', 'Attempts that wait for a connection.', ({ waiting }) => waiting),
      this.#gauge('edge_upstream_draining', '1 where an operator has taken it out of rotation, else 0.', ({ drain }) => Number(drain !== null)),
      this.#gauge('edge_upstream_ejected', '1 while it is ejected by passive observation, else 0.', ({ ejectedUntil }) => Number(ejectedUntil > performance.now())),
      this.#counter('edge_upstream_ejections_total', 'Ejections by passive observation.', ({ ejections }, labels) => [{ labels, value: ejections }]),
      this.#counter('edge_upstream_ejections_held_total', 'Ejections that were due, and were not carried out.', ({ ejectionsHeld }, labels) => [{ labels, value: ejectionsHeld }])
    ]
  }
}
