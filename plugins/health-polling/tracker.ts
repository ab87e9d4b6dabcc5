import type { FastifyBaseLogger } from 'fastify'
import type { Clock } from '../../lib/clock.ts'
import type { CheckCause, FailedCause, HealthCause } from '../../lib/health/cause.ts'
import type { CheckOptions } from '../../lib/health/options.ts'
import { removalLimit, servesNobody, type RemovalLimit } from '../../lib/health/removal.ts'
import { delayUntil, firstShare, nextCheckAt, repeatAt } from '../../lib/health/schedule.ts'
import { afterCheck, heldBack, initialHealth, underOptions, type HealthState } from '../../lib/health/streak.ts'
import type { Random } from '../../lib/random.ts'
import type { Upstream, UpstreamPool } from '../upstream-pools.ts'
import type { Checker, Subject, Verdict } from './checker.ts'
import { HttpChecker } from './http-checker.ts'
import { isSameSubject, subjectOf } from './subject.ts'
import { TcpChecker } from './tcp-checker.ts'
import { pollingView, type CheckResult, type HealthView } from './view.ts'

/** Why a fall is held back: so many members fell within the time, and so many may. */
export interface Hold {
  cause: FailedCause
  removed: number
  limit: number
  seconds: number
}

export interface TrackerContext {
  log: FastifyBaseLogger
  clock: Clock
  random: Random
  changed: (tracker: Tracker, cause: HealthCause) => void
  /** Told once, until the upstream passes a check or has fallen. */
  held: (tracker: Tracker, hold: Hold) => void
  /** The first check failed where nobody believed the upstream to be healthy, or checks began to say nothing. */
  troubled: (tracker: Tracker, type: 'health_first_check_failed' | 'health_check_inconclusive', cause: CheckCause, error: string | null) => void
}

/** An upstream as it stands in its pool: `index` of `count` members. */
export interface Member {
  pool: UpstreamPool
  upstream: Upstream
  index: number
  count: number
  /** The falls of the pool's members. */
  removals: RemovalLimit
}

/** The state of one upstream: what is believed, the last check, the one that runs, and the timer of the next. */
export class Tracker {
  readonly #context: TrackerContext
  #member: Member
  /** The upstream as it stands now, until `update` takes it over. */
  #next: Member | null = null
  #subject: Subject
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
    this.#subject = subjectOf(member.pool, member.upstream, context.clock)
    this.#checker = checkerOf(this.#subject)
    this.#state = initialHealth(this.#options, Date.now())
    this.#tell()
  }

  get #options (): CheckOptions {
    return this.#subject.options
  }

  get view (): HealthView {
    const { pool, upstream } = this.#member
    const { healthy, held, since, streak } = this.#state
    return Object.freeze({
      pool: pool.name,
      upstream: upstream.id,
      healthy,
      held,
      since: new Date(since).toISOString(),
      lastCheck: this.#lastCheck,
      streak: Math.abs(streak),
      polling: pollingView(this.#options, upstream.url.basePath)
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
    this.#next = null
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

  /** Gives it the upstream as it stands now; the last one given counts. */
  expect (member: Member): void {
    this.#next = member
  }

  /**
   * Takes over what it was given, if that has not been done: who is told of it may give it another one meanwhile. The belief is
   * kept. A check that runs is dropped and made anew if the address, the checks or the connection are not what they were.
   */
  update (): void {
    const member = this.#next
    if (member === null) return
    const { pool, upstream } = this.#member
    this.#next = null
    this.#member = member
    if (member.upstream === upstream && member.pool.options === pool.options) return this.#tell()
    const subject = subjectOf(member.pool, member.upstream, this.#context.clock)
    if (isSameSubject(subject, this.#subject)) return this.#tell()
    const polling = this.#polling
    this.stop()
    this.#subject = subject
    this.#checker = checkerOf(subject)
    this.#running = undefined
    // Before anybody is told, who may end the polling.
    if (polling) this.poll()
    this.#commit(underOptions(this.#state, Date.now(), subject.options), 'checks_off')
  }

  #resultOf ({ passed, status, cause, ms }: Verdict): CheckResult {
    const { pool, upstream } = this.#member
    return Object.freeze({ pool: pool.name, upstream: upstream.id, at: new Date().toISOString(), passed, status, cause, ms: Math.round(ms * 10) / 10 })
  }

  /** Commits what a check found and arms the next, before anybody is told. */
  #settle (result: CheckResult, error: Error | null, startedAt: number): void {
    const { at, passed, status, cause, ms } = result
    const { clock, random } = this.#context
    const options = this.#options
    const { index, count } = this.#member
    const endedAt = clock()
    const before = this.#state
    if (passed === null) {
      this.#arm(repeatAt(endedAt, options))
      const told = this.#inconclusive
      this.#inconclusive = true
      if (!told) this.#context.troubled(this, 'health_check_inconclusive', cause, messageOf(error))
      return
    }
    this.#inconclusive = false
    this.#lastCheck = Object.freeze({ at, passed, status, cause, ms })
    this.#arm(nextCheckAt({ startedAt, endedAt, share: before.checked ? 1 : firstShare(index, count), random: random() }, options))
    const found = afterCheck(before, passed, Date.now(), options)
    if (before.healthy && !found.healthy) {
      this.#fall(found, cause as FailedCause, endedAt)
      return
    }
    this.#commit(found, cause as HealthCause)
    if (!before.checked && !found.healthy && options.enabled) {
      this.#context.troubled(this, 'health_first_check_failed', cause, messageOf(error))
    }
  }

  /** The upstream turns unhealthy, unless too many of its pool have lately. */
  #fall (fallen: HealthState, cause: FailedCause, now: number): void {
    const { upstream: { id }, removals, count } = this.#member
    const { removal } = this.#options
    if (servesNobody(cause, this.#subject.target.own)) {
      removals.record(id, now)
    } else if (!removals.admit(id, count, now, removal)) {
      const told = this.#state.held
      this.#commit(heldBack(this.#state, fallen), cause)
      if (!told) this.#context.held(this, { cause, removed: removals.removed(now, removal), limit: removalLimit(count, removal), seconds: removal.seconds })
      return
    }
    this.#commit(fallen, cause)
  }

  #commit (state: HealthState, cause: HealthCause): void {
    const changed = state.healthy !== this.#state.healthy
    this.#state = state
    this.#tell()
    if (changed) this.#context.changed(this, cause)
  }

  /** Others act on a change of these, so they are written only where they differ. Where checks are off there is none to wait for. */
  #tell (): void {
    const { upstream } = this.#member
    const { healthy } = this.#state
    const checked = this.#state.checked || !this.#options.enabled
    if (upstream.checked !== checked) upstream.checked = checked
    if (upstream.healthy !== healthy) upstream.healthy = healthy
  }

  #arm (at: number): void {
    if (!this.#polling) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => { void this.check() }, delayUntil(at, this.#context.clock()))
    this.#timer.unref()
  }
}

/** What goes into the journal stays short. */
const messageOf = (error: Error | null): string | null => error === null ? null : error.message.slice(0, 200)

const checkerOf = (subject: Subject): Checker => subject.options.type === 'tcp' ? new TcpChecker(subject) : new HttpChecker(subject)
