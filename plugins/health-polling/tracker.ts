import type { FastifyBaseLogger } from 'fastify'
import type { HealthOptions } from '../../config/schema.ts'
import type { Clock } from '../../lib/clock.ts'
import type { CheckCause, HealthCause } from '../../lib/health/cause.ts'
import type { Random } from '../../lib/random.ts'
import { delayUntil, firstShare, nextCheckAt, repeatAt } from '../../lib/health/schedule.ts'
import { afterCheck, initialHealth, underOptions, type HealthState } from '../../lib/health/streak.ts'
import type { Upstream, UpstreamPool } from '../upstream-pools.ts'
import { Checker, type Verdict } from './checker.ts'

/** How a check ended. */
export interface CheckResult {
  readonly pool: string
  readonly upstream: string
  /** When it ended, ISO 8601. */
  readonly at: string
  /** null: the check says nothing about the upstream, and its streak stays as it was. */
  readonly passed: boolean | null
  /** The status of the answer, or null where none came. */
  readonly status: number | null
  readonly cause: CheckCause
  /** How long it took, in ms. */
  readonly ms: number
}

/** What is believed of an upstream, and why. */
export interface HealthView {
  readonly pool: string
  readonly upstream: string
  readonly healthy: boolean
  /** Since when, ISO 8601. */
  readonly since: string
  /** The last check that said something about the upstream. Its age is the age of this view. */
  readonly lastCheck: Readonly<{ at: string, passed: boolean, status: number | null, cause: CheckCause, ms: number }> | null
  /** How many checks in a row ended like the last one. */
  readonly streak: number
}

export interface TrackerContext {
  log: FastifyBaseLogger
  clock: Clock
  random: Random
  changed: (tracker: Tracker, cause: HealthCause) => void
}

/** An upstream as it stands in its pool: `index` of `count` members. */
export interface Member {
  pool: UpstreamPool
  upstream: Upstream
  index: number
  count: number
}

/** The state of one upstream: what is believed, the last check, the one that runs, and the timer of the next. */
export class Tracker {
  readonly #context: TrackerContext
  #member: Member
  #fingerprint: string
  #checker: Checker
  #state: HealthState
  #lastCheck: HealthView['lastCheck'] = null
  #running: Promise<CheckResult> | undefined
  #timer: NodeJS.Timeout | undefined
  #polling = false
  /** The check before this one said nothing, and that has been logged. */
  #inconclusive = false

  constructor (member: Member, context: TrackerContext) {
    this.#context = context
    this.#member = member
    this.#fingerprint = fingerprintOf(member)
    this.#checker = this.#makeChecker()
    this.#state = initialHealth(this.#options, Date.now())
    member.upstream.healthy = this.#state.healthy
  }

  get #options (): HealthOptions {
    return this.#member.pool.options.health
  }

  get view (): HealthView {
    const { pool, upstream } = this.#member
    const { healthy, since, streak } = this.#state
    return Object.freeze({
      pool: pool.name,
      upstream: upstream.id,
      healthy,
      since: new Date(since).toISOString(),
      lastCheck: this.#lastCheck,
      streak: Math.abs(streak)
    })
  }

  /** Begins to poll, with a check at once. */
  poll (): void {
    if (this.#polling || !this.#options.enabled) return
    this.#polling = true
    void this.check()
  }

  /** Ends the polling. What a running check finds is dropped. */
  stop (): void {
    this.#polling = false
    clearTimeout(this.#timer)
    this.#checker.destroy()
  }

  /** A check now, or the one that runs already. Never rejects. */
  check (): Promise<CheckResult> {
    if (this.#running !== undefined) return this.#running
    clearTimeout(this.#timer)
    const checker = this.#checker
    const startedAt = this.#context.clock()
    const running = checker.run().then((verdict) => {
      if (this.#running === running) this.#running = undefined
      const result = this.#resultOf(verdict)
      if (checker === this.#checker && result.cause !== 'stopped') this.#settle(result, verdict.error, startedAt)
      return result
    })
    this.#running = running
    return running
  }

  /**
   * Takes the upstream over as it stands after a reload. The belief is kept. A check that runs is dropped and made anew if the
   * address, the checks or the connection are not what they were.
   */
  update (member: Member): void {
    const fingerprint = fingerprintOf(member)
    const same = fingerprint === this.#fingerprint && member.upstream === this.#member.upstream
    this.#member = member
    if (!same) {
      const polling = this.#polling
      this.stop()
      this.#fingerprint = fingerprint
      this.#checker = this.#makeChecker()
      this.#running = undefined
      this.#commit(underOptions(this.#state, Date.now(), this.#options), 'checks_off')
      if (polling) this.poll()
    }
  }

  #makeChecker (): Checker {
    const { pool, upstream } = this.#member
    return new Checker(upstream, pool.options.health, pool.options.connections.keepAliveMs, this.#context.clock)
  }

  #resultOf ({ passed, status, cause, ms }: Verdict): CheckResult {
    const { pool, upstream } = this.#member
    return Object.freeze({ pool: pool.name, upstream: upstream.id, at: new Date().toISOString(), passed, status, cause, ms: Math.round(ms * 10) / 10 })
  }

  /** Commits what a check found and arms the next, before anybody is told. */
  #settle (result: CheckResult, error: Error | null, startedAt: number): void {
    const { pool, upstream, at, passed, status, cause, ms } = result
    const { clock, log, random } = this.#context
    const options = this.#options
    const { index, count } = this.#member
    const endedAt = clock()
    const first = !this.#state.checked
    if (passed === null) {
      this.#arm(repeatAt(endedAt, options))
      if (!this.#inconclusive) log.warn({ pool, upstream, cause, ...(error && { error: error.message }) }, 'health_check_inconclusive')
      this.#inconclusive = true
      return
    }
    this.#inconclusive = false
    this.#lastCheck = Object.freeze({ at, passed, status, cause, ms })
    this.#arm(nextCheckAt({ startedAt, endedAt, share: first ? firstShare(index, count) : 1, random: random() }, options))
    const changed = this.#commit(afterCheck(this.#state, passed, Date.now(), options), cause as HealthCause)
    if (first && !passed && !changed && options.enabled) {
      log.warn({ pool, upstream, healthy: false, cause, ...(error && { error: error.message }) }, 'health_first_check_failed')
    }
  }

  #commit (state: HealthState, cause: HealthCause): boolean {
    const changed = state.healthy !== this.#state.healthy
    this.#state = state
    this.#member.upstream.healthy = state.healthy
    if (changed) this.#context.changed(this, cause)
    return changed
  }

  #arm (at: number): void {
    if (!this.#polling) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => { void this.check() }, delayUntil(at, this.#context.clock()))
    this.#timer.unref()
  }
}

/** All that a check depends on. A pool's options are data, so their text tells whether they are the same. */
const fingerprintOf = ({ pool: { options }, upstream: { url } }: Member): string =>
  JSON.stringify([url, options.health, options.tls ?? null, options.connections.keepAliveMs])
