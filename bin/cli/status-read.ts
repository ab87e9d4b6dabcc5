import { listOf, objectOf } from '../../config/values.ts'
import { ask, type Admin } from '../admin-client.ts'
import { durationText } from './duration.ts'

/** One upstream: a word for its state, and why it is so. */
export interface UpstreamStatus {
  upstream: string
  state: 'up' | 'draining' | 'leaving' | 'unhealthy' | 'ejected' | 'open' | 'half-open' | 'weight 0' | 'held' | 'unchecked'
  cause: string
  /** Of the state, ISO 8601; null where it is not known. */
  since: string | null
  /** Of an ejection, ISO 8601; null where there is none. */
  ejectedUntil: string | null
  inFlight: number
  /** 0: none. */
  limit: number
  breaker: { state: string, mode: string, forced: boolean, reopenAt: string | null, total: number, failures: number } | null
}

export interface Status {
  ready: boolean
  why: string
  gate: { inFlight: number, maxInFlight: number, pressure: boolean, /** The readings beyond their limits, in words. */ over: string[], shed: Record<string, number> } | null
  config: { version: number, loadedAt: string, file: string | null, rejected: { at: string, errors: number } | null } | null
  pools: Array<{ pool: string, balancer: string, panic: boolean, upstreams: UpstreamStatus[] }>
}

const text = (value: unknown): string => typeof value === 'string' ? value : ''
const number = (value: unknown): number => typeof value === 'number' ? value : 0
const timeOrNull = (value: unknown): string | null => typeof value === 'string' ? value : null
const quoted = (reason: unknown): string => text(reason) === '' ? '' : ` (${text(reason)})`

type Fields = Record<string, unknown>
const keyOf = (each: unknown): string => JSON.stringify([objectOf(each)['pool'], objectOf(each)['upstream']])
const byName = (list: unknown): Map<string, Fields> => new Map(listOf(list).map((each) => [keyOf(each), objectOf(each)]))

/** Why it gets no requests, the strongest reason first; what is true of it although it gets some, last. */
function stateOf (upstream: Fields, breaker: Fields, health: Fields): Pick<UpstreamStatus, 'state' | 'cause' | 'since'> {
  const drain = objectOf(upstream['drain'])
  if (upstream['draining'] === true) {
    const until = timeOrNull(drain['until'])
    return { state: 'draining', cause: `taken out by an operator${quoted(drain['reason'])}${until === null ? '' : `, until ${until}`}`, since: timeOrNull(drain['since']) }
  }
  if (upstream['leaving'] === true) return { state: 'leaving', cause: 'not wanted any more', since: null }
  if (upstream['healthy'] === false) {
    const check = objectOf(health['lastCheck'])
    if (upstream['checked'] === false) return { state: 'unchecked', cause: 'its first health check has not ended', since: null }
    const failed = check['passed'] === false
    return { state: 'unhealthy', cause: failed ? `health check: ${text(check['cause'])}, ${number(health['streak'])} in a row` : 'its health checks have not passed often enough yet', since: timeOrNull(health['since']) }
  }
  const ejected = timeOrNull(upstream['ejectedUntil'])
  if (ejected !== null) {
    const { trigger, failures, total, since } = objectOf(upstream['ejection'])
    const bad = trigger === 'ratio' ? `${number(failures)} of ${number(total)} answers failed` : trigger === 'consecutive' ? `${number(failures)} failures in a row` : 'its answers were bad'
    return { state: 'ejected', cause: `${bad}, until ${ejected}`, since: timeOrNull(since) }
  }
  const [force, transition] = [objectOf(breaker['force']), objectOf(breaker['lastTransition'])]
  const state = breaker['state']
  if (breaker['mode'] === 'enforce' && (state === 'open' || state === 'half-open')) {
    const forced = force['state'] === undefined ? '' : `forced${quoted(force['reason'])}, until ${text(force['until'])}`
    return { state, cause: forced || text(breaker['explanation']) || text(transition['cause']), since: timeOrNull(transition['at']) }
  }
  if (upstream['weight'] === 0) return { state: 'weight 0', cause: 'configured to take no new exchanges', since: null }
  if (health['held'] === true) {
    return { state: 'held', cause: `serves though its checks fail, as too many of its pool fell lately; health check: ${text(objectOf(health['lastCheck'])['cause'])}, ${number(health['streak'])} in a row`, since: null }
  }
  // One that only observes lets requests through whatever it believes.
  if (breaker['mode'] === 'observe' && state !== 'closed') return { state: 'up', cause: text(breaker['explanation']), since: timeOrNull(health['since']) }
  const letsIn = breaker['mode'] === 'enforce' ? timeOrNull(transition['at']) : null
  return { state: 'up', cause: force['state'] === undefined ? '' : `held closed${quoted(force['reason'])}, until ${text(force['until'])}`, since: latest(timeOrNull(health['since']), letsIn) }
}

/** It is up since its checks pass and its breaker lets requests through, whichever came last. */
const latest = (a: string | null, b: string | null): string | null =>
  a === null || b === null ? a ?? b : Date.parse(a) > Date.parse(b) ? a : b

function breakerOf (breaker: Fields): UpstreamStatus['breaker'] {
  if (breaker['state'] === undefined || breaker['mode'] === 'off') return null
  const window = objectOf(breaker['window'])
  return { state: text(breaker['state']), mode: text(breaker['mode']), forced: objectOf(breaker['force'])['state'] !== undefined, reopenAt: timeOrNull(breaker['reopenAt']), total: number(window['total']), failures: number(window['failures']) }
}

const percent = (ratio: number): string => `${Math.round(ratio * 1000) / 10} %`
const mebibytes = (bytes: number): string => `${Math.round(bytes / 1048576)} MiB`

/** A limit of 0 is none. */
function overOf (pressure: Fields): string[] {
  const limits = objectOf(pressure['limits'])
  const readings: Array<[string, string, string, (value: number) => string]> = [
    ['event loop late by', 'eventLoopDelayMs', 'maxEventLoopDelayMs', durationText],
    ['event loop busy for', 'eventLoopUtilization', 'maxEventLoopUtilization', percent],
    ['heap', 'heapUsedBytes', 'maxHeapUsedBytes', mebibytes],
    ['memory', 'rssBytes', 'maxRssBytes', mebibytes]
  ]
  return readings.flatMap(([name, reading, limit, write]) => {
    const [value, most] = [number(pressure[reading]), number(limits[limit])]
    return most > 0 && value > most ? [`${name} ${write(value)}, limit ${write(most)}`] : []
  })
}

function limitOf (config: Fields, pool: string, id: string): number {
  const options = objectOf(objectOf(config['pools'])[pool])
  const own = listOf(options['upstreams']).map(objectOf).find((each) => text(each['url']).endsWith(`//${id}`))
  return number(own?.['maxInFlight'] ?? options['maxInFlightPerUpstream'])
}

/** Reads it all in one round. What the app behind the admin routes does not have is left out. @throws AdminFailure */
export async function readStatus (admin: Admin, signal: AbortSignal): Promise<Status> {
  const get = async (path: string): Promise<{ status: number, fields: Fields }> => {
    const { status, content } = await ask(admin, path, { signal }, path === 'pools' ? [] : [404, 503])
    return { status, fields: status === 200 || path === 'readyz' ? objectOf(content) : {} }
  }
  const answers = await Promise.all(['pools', 'breakers', 'health', 'shedding', 'config', 'readyz'].map(get))
  const [pools, breakers, health, shedding, config, readiness] = answers.map(({ fields }) => fields) as [Fields, Fields, Fields, Fields, Fields, Fields]
  const [breakerAt, healthAt] = [byName(breakers['breakers']), byName(health['upstreams'])]
  const inForce = objectOf(config['status'])
  const rejected = objectOf(inForce['rejected'])
  return {
    ready: answers.at(-1)?.status === 204,
    why: text(readiness['detail']),
    gate: shedding['maxInFlight'] === undefined ? null : {
      inFlight: number(shedding['inFlight']),
      maxInFlight: number(shedding['maxInFlight']),
      pressure: objectOf(shedding['pressure'])['under'] === true,
      over: overOf(objectOf(shedding['pressure'])),
      shed: objectOf(shedding['shed']) as Record<string, number>
    },
    config: inForce['version'] === undefined ? null : {
      version: number(inForce['version']),
      loadedAt: text(inForce['loadedAt']),
      file: timeOrNull(inForce['file']),
      rejected: rejected['at'] === undefined ? null : { at: text(rejected['at']), errors: listOf(rejected['errors']).length }
    },
    pools: listOf(pools['pools']).map(objectOf).map((pool) => ({
      pool: text(pool['pool']),
      balancer: text(pool['balancer']),
      panic: pool['panic'] === true,
      upstreams: listOf(pool['upstreams']).map(objectOf).map((upstream) => {
        const key = keyOf(upstream)
        const breaker = breakerAt.get(key) ?? {}
        return {
          upstream: text(upstream['upstream']),
          ...stateOf(upstream, breaker, healthAt.get(key) ?? {}),
          ejectedUntil: timeOrNull(upstream['ejectedUntil']),
          inFlight: number(upstream['inFlight']),
          limit: limitOf(config, text(pool['pool']), text(upstream['upstream'])),
          breaker: breakerOf(breaker)
        }
      })
    }))
  }
}
