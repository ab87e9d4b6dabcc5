import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Exchange } from '../../lib/exchange.ts'
import { failureOf, type Reason } from '../../lib/failure.ts'
import { toldStatus } from '../../lib/access-line.ts'
import type { AttemptKind, ExchangeEnd, Observer, UnparsedRequest } from '../observation.ts'
import type {} from '../routing.ts'
import { Family, type Sample } from './family.ts'
import { Histogram } from './histogram.ts'
import { ReasonTallies } from './tallies.ts'

/** What the label `method` may say; every other method is `other`. */
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'CONNECT', 'other']
const other = methods.length - 1
const placeOf = new Map(methods.map((method, place) => [method, place]))

/** More than a status has. */
const perMethod = 1000

/** Statuses that a route of the table has series of from the beginning, for GET, the first method: of others an alert misses the first ones. */
const usual = [200, 500, 502, 503, 504]

/** Labels of routes that code has given, where there is no table of routes to go by; further ones are `other`. */
const maxGiven = 200

/** What is counted of a route. Labels are made when somebody asks. */
class RouteSeries {
  readonly duration: Histogram
  readonly failures: ReasonTallies<Reason>
  /** By place of the method and status. */
  readonly requests = new Map<number, { value: number }>()
  retries = 0

  constructor (bounds: readonly number[], exemplars: boolean) {
    this.duration = new Histogram(bounds, exemplars)
    this.failures = new ReasonTallies(exemplars)
  }

  count (method: string | null | undefined, status: number): void {
    const key = (placeOf.get(method ?? '') ?? other) * perMethod + status
    const tally = this.requests.get(key)
    if (tally === undefined) this.requests.set(key, { value: 1 })
    else tally.value++
  }
}

/** Counts exchanges by their routes. Those of a route that is not in the table any more are forgotten. */
export class RequestMetrics implements Observer {
  readonly #app: FastifyInstance
  readonly #bounds: readonly number[]
  readonly #exemplars: boolean
  readonly #series = new Map<string, RouteSeries>()
  /** The table that `#series` goes by, and its labels; null: there is none. */
  #table: readonly object[] | null = null
  #labels: ReadonlySet<string> | null = null

  constructor (app: FastifyInstance, bounds: readonly number[], exemplars: boolean) {
    this.#app = app
    this.#bounds = bounds
    this.#exemplars = exemplars
  }

  exchangeEnded ({ raw: { method }, exchange }: FastifyRequest, _reply: unknown, { status, at }: ExchangeEnd): void {
    const series = this.#of(exchange.route)
    const code = toldStatus(exchange.reason, status)
    series.count(method, code)
    // How long somebody keeps a tunnel open is no answer's time.
    if (code !== 101) series.duration.observe((at - exchange.receivedAt) / 1000, exchange, at)
    if (exchange.reason !== null) series.failures.count(exchange.reason, exchange, at)
  }

  unparsed ({ method, reason }: UnparsedRequest): void {
    const series = this.#of(null)
    series.count(method, failureOf(reason).status)
    series.failures.count(reason, null, 0)
  }

  attemptBegun (exchange: Exchange | null, { kind }: { kind: AttemptKind }): void {
    if (exchange !== null && (kind === 'retry' || kind === 'move')) this.#of(exchange.route).retries++
  }

  #of (route: string | null): RouteSeries {
    this.#follow()
    const label = route === null ? 'none' : this.#series.has(route) || this.#isKnown(route) ? route : 'other'
    const series = this.#series.get(label)
    return series ?? this.#add(label)
  }

  /** Of a route in the table. */
  #expect (label: string): void {
    const { requests } = this.#add(label)
    for (const status of usual) requests.set(status, { value: 0 })
  }

  #add (label: string): RouteSeries {
    const series = new RouteSeries(this.#bounds, this.#exemplars)
    this.#series.set(label, series)
    return series
  }

  #isKnown (route: string): boolean {
    return this.#labels === null ? this.#series.size < maxGiven : this.#labels.has(route)
  }

  /** A table is swapped whole. */
  #follow (): void {
    const { routeTable } = this.#app as { routeTable?: FastifyInstance['routeTable'] }
    if (routeTable === undefined || routeTable.routes === this.#table) return
    this.#table = routeTable.routes
    this.#labels = new Set(routeTable.routes.map(({ label }) => label))
    for (const label of this.#series.keys()) if (!this.#labels.has(label) && label !== 'none' && label !== 'other') this.#series.delete(label)
    for (const label of ['none', ...this.#labels]) if (!this.#series.has(label)) this.#expect(label)
  }

  * #each (samples: (series: RouteSeries, route: string) => Iterable<Sample>): IterableIterator<Sample> {
    this.#follow()
    // The table may be swapped before all have been taken, and a route that went and came back would be told twice.
    for (const [route, series] of new Map(this.#series)) yield * samples(series, route)
  }

  families (): Family[] {
    return [
      new Family('counter', 'edge_requests_total', 'Requests by route, method and status; 499 where the client left first.', () => this.#each(requestSamples)),
      new Family('histogram', 'edge_request_duration_seconds', 'Time from a request\'s head to the end of its answer; without tunnels.', () =>
        this.#each(({ duration }, route) => duration.samples('edge_request_duration_seconds', { route }))),
      new Family('counter', 'edge_request_failures_total', 'Requests that were refused or failed, by reason; an upstream\'s own error answer is none.', () =>
        this.#each(({ failures }, route) => Array.from(failures.entries(), ({ reason, ...rest }) => ({ labels: { route, reason }, ...rest })))),
      new Family('counter', 'edge_retry_total', 'Further attempts after one that failed or was moved away from.', () =>
        this.#each(({ retries }, route) => [{ labels: { route }, value: retries }]))
    ]
  }
}

function requestSamples ({ requests }: RouteSeries, route: string): Sample[] {
  return Array.from(requests, ([key, { value }]) => ({
    labels: { route, method: methods[Math.floor(key / perMethod)] as string, code: String(key % perMethod) }, value
  }))
}
