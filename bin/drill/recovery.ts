import type { UpstreamStatus } from '../cli/status-read.ts'
import type { Promises } from './target.ts'

const marginMs = 5000

/** What the proxy has of an upstream when it is used as ever. */
const isUsed = ({ state, breaker }: UpstreamStatus): boolean => (state === 'up' || state === 'held') && (breaker === null || breaker.state === 'closed')

/** When an upstream is let in again, by the proxy's own word; null: nothing of it waits for a time. */
const letInAt = ({ breaker, ejectedUntil }: UpstreamStatus): number | null => {
  const times = [breaker?.state === 'open' ? breaker.reopenAt : null, ejectedUntil].flatMap((time) => time === null ? [] : [Date.parse(time)])
  return times.length === 0 ? null : Math.max(...times)
}

/** How long after the moment at which it is let in an upstream that is well may wait for its checks and its probes, in ms. */
export const slackOf = ({ health, rise, intervalMs, checkTimeoutMs, headersMs }: Promises): number =>
  Math.ceil((health ? (rise + 1) * intervalMs * 1.2 + checkTimeoutMs : 0) + Math.min(headersMs, 10_000) + marginMs)

/** For how long what was sent before the upstream was well may still fail, in ms, and with it a probe that re-opens the circuit. */
const lateMs = ({ headersMs, probeTimeoutMs }: Promises): number => Math.min(headersMs || Infinity, probeTimeoutMs) + 1000

/**
 * By when upstreams that are well since `since` have to be used again. A circuit's open time grows with each opening, those before
 * this drill included, so that it cannot be told from the configuration: what counts is the time that the proxy itself tells.
 * A re-opening by what was sent to an upstream that is well moves nothing. Times as Date.now() tells them.
 */
export class Recovery {
  readonly #promises: Promises
  readonly #since: number
  /** The latest of the times at which one is let in. */
  letInAt: number

  constructor (promises: Promises, since: number) {
    this.#promises = promises
    this.#since = since
    this.letInAt = since
  }

  get dueAt (): number {
    return Math.max(this.letInAt, this.#since) + slackOf(this.#promises)
  }

  /** Whether all are used, from what the proxy tells of them at `now`. */
  look (upstreams: readonly UpstreamStatus[], now: number): boolean {
    if (now <= this.#since + lateMs(this.#promises)) {
      for (const upstream of upstreams) this.letInAt = Math.max(this.letInAt, letInAt(upstream) ?? 0)
    }
    return upstreams.length > 0 && upstreams.every(isUsed)
  }
}

/** Those that are not used, and why, in words. */
export const unusedText = (upstreams: readonly UpstreamStatus[]): string =>
  upstreams.filter((each) => !isUsed(each)).map(({ upstream, state, cause }) => `${upstream} is ${state}${cause === '' ? '' : `: ${cause}`}`).join('; ') || 'it has no upstreams'
