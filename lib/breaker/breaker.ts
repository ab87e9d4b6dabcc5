import type { BreakerOptions } from '../../config/schema.ts'
import type { Random } from '../random.ts'
import { RollingWindow } from '../window.ts'
import { Backoff } from './backoff.ts'
import { batchSize, evidenceOf, ratioReached, type Evidence } from './evidence.ts'
import { noProbes, Probes } from './probes.ts'
import { nextSerial } from './serial.ts'
import { snapshotOf } from './snapshot.ts'
import type { BreakerMode, BreakerSnapshot, BreakerState, Force, Outcome, Permit, Transition, TransitionCause } from './types.ts'
import { Usual } from './usual.ts'

const maxForceMs = 2147483647

/**
 * The circuit breaker of one upstream: arithmetic on (state, event, now), where `now` is monotonic milliseconds. It has no clock,
 * no timer and does no I/O: open time, leases and forces end when an admission or `sweep` notices that they are over.
 *
 * The belief is closed, open or half-open. The effective state is the belief, or what an operator forced over it. Each change of the
 * effective state, and each act of an operator, is a transition: counters clear, a new generation begins, and results of an
 * earlier generation count nowhere. The belief goes on learning below a forced closed state, in silence.
 */
export class Breaker {
  #options: BreakerOptions
  readonly #random: Random
  readonly #onTransition: ((transition: Transition) => void) | undefined
  /** Transitions that arose while one is being told; null while none is. */
  #untold: Transition[] | null = null

  /** What `admit` hands out without a question: the generation; 0 when it must look closer. */
  #pass: Permit = 1
  /** The generation whose results count in the window; 0 while none do. */
  #counted: Permit = 1
  #generation = 1
  #outstanding = 0
  #consecutive = 0
  #window: RollingWindow
  readonly #usual: Usual

  #belief: BreakerState = 'closed'
  #probes = noProbes
  readonly #backoff = new Backoff()
  #usualPeak = 0
  /** When the belief became closed, or else when it became open: half-open keeps it. */
  #since: number
  #reopenAt = Number.NEGATIVE_INFINITY
  #openCount = 0
  #wouldRefuse = 0
  #force: Force | null = null
  #last: BreakerSnapshot['lastTransition'] = null

  /**
   * @param options checked and complete; not copied, so never change it afterwards: use `configure`
   * @param onTransition called after each transition is committed, in order and once, also when it calls back in; must not throw
   */
  constructor (options: BreakerOptions, random: Random, now: number, onTransition?: (transition: Transition) => void) {
    this.#options = options
    this.#random = random
    this.#onTransition = onTransition
    this.#window = new RollingWindow(options.window.seconds, now)
    this.#usual = new Usual(now)
    this.#since = now
    this.#renew(now)
  }

  get mode (): BreakerMode {
    return this.#options.mode
  }

  /** The committed effective state; `half-open` only once an admission or a sweep has noticed that the open time is over. */
  get state (): BreakerState {
    return this.#force === null ? this.#belief : this.#force.state
  }

  /** Permits that were admitted and not settled yet, of any generation. */
  get outstanding (): number {
    return this.#outstanding
  }

  /** How many admissions enforce mode would have refused; counts in observe mode only, and only upwards. */
  get wouldRefuse (): number {
    return this.#wouldRefuse
  }

  /** Asks to proceed. Every permit but 0 must be settled exactly once. */
  admit (now: number): Permit {
    const permit = this.#pass
    if (permit === 0) return this.#consider(now)
    this.#usual.seen(++this.#outstanding)
    return permit
  }

  /**
   * Gives a permit back. Only `success` and `failure` count, and only in the generation that gave it. No effect for 0 and for a
   * probe that is not out. A positive permit that is settled twice frees another's place: that is the caller's duty.
   */
  settle (permit: Permit, outcome: Outcome, now: number): void {
    if (permit < 0) return this.#settleProbe(-permit, outcome, now)
    if (permit === 0) return
    if (this.#outstanding > 0) this.#outstanding--
    if (permit !== this.#counted) return
    if (outcome === 'success') {
      this.#window.record(now, false)
      this.#consecutive = 0
    } else if (outcome === 'failure') {
      this.#window.record(now, true)
      this.#consecutive++
    } else return
    this.#usual.count(now)
    const { consecutiveFailures } = this.#options
    if (consecutiveFailures !== 0 && this.#consecutive >= consecutiveFailures) {
      this.#believe('open', 'consecutive_failures', now, this.#evidence(now))
    } else if (ratioReached(this.#options, this.#window, this.#usual, now)) {
      this.#believe('open', 'failure_ratio', now, this.#evidence(now))
    }
  }

  /** Whether `admit` would give a permit at `now`; changes nothing. */
  wouldAdmit (now: number): boolean {
    if (this.#pass !== 0 || this.#options.mode === 'observe') return true
    const force = this.#force
    if (force !== null && now < force.until) return force.state === 'closed'
    // the end of a force begins a new batch
    if (this.#belief === 'half-open') return force !== null || this.#probes.hasPlace(now)
    return this.#belief === 'closed' || now >= this.#reopenAt
  }

  /** In how many ms it may admit again: 0 if it would now, never Infinity. */
  retryAfterMs (now: number): number {
    if (this.wouldAdmit(now)) return 0
    const until = this.#refusesUntil()
    if (now < until) return until - now
    // every place of a half-open batch is taken; it is mostly decided long before its leases end
    return Math.min(1000, this.#probes.nextLease() - now)
  }

  /** Commits what time alone has brought: an ended force, an ended open time, ended leases. Meant to be called once a second. */
  sweep (now: number): void {
    this.#advance(now)
    this.#usual.roll(now)
  }

  /** Closes the circuit with a clean record and ends a force. What is usual for the upstream is kept. */
  reset (now: number, reason: string | null = null): void {
    const from = this.state
    const evidence = this.#evidence(now)
    this.#cleanSlate(now)
    this.#tell(from, 'reset', now, evidence, reason)
  }

  /**
   * Imposes a state for `ttlMs`, or ends that (`auto`). Forced open admits no probe. Forced closed admits all, while the belief
   * learns from the results. Observe mode refuses nothing, forced or not.
   * @throws RangeError unless 0 < ttlMs < 2^31, for open and closed
   * @throws Error in mode off, which has nothing to force
   */
  force (state: 'open' | 'closed' | 'auto', ttlMs: number | undefined, reason: string | null, now: number): void {
    if (state === 'auto') return this.#endForce(now, reason)
    if (ttlMs === undefined || !(ttlMs > 0 && ttlMs <= maxForceMs)) throw new RangeError(`ttlMs must be more than 0 and at most ${maxForceMs}, got ${ttlMs}`)
    if (this.#options.mode === 'off') throw new Error('the breaker is off: there is nothing to force')
    const from = this.state
    const evidence = this.#evidence(now)
    this.#force = { state, since: now, until: now + ttlMs, reason }
    this.#renew(now)
    this.#tell(from, 'forced', now, evidence, reason)
  }

  /**
   * Swaps the options. Window, state, permits and a running batch or open time stay. Only switching to or from `off` starts afresh;
   * it ends a force, and is a transition if the state was not plainly closed.
   */
  configure (options: BreakerOptions, now: number): void {
    const switched = (this.#options.mode === 'off') !== (options.mode === 'off')
    this.#options = options
    if (options.window.seconds !== this.#window.seconds) this.#window = this.#window.resized(options.window.seconds, now)
    if (!switched) return
    const from = this.state
    const evidence = this.#evidence(now)
    const told = this.#force !== null || from !== 'closed'
    this.#cleanSlate(now)
    if (told) this.#tell(from, 'mode_changed', now, evidence, null)
  }

  /** What it believes and why: a frozen copy. */
  snapshot (now: number): BreakerSnapshot {
    const { state } = this
    const openedAt = this.#belief === 'closed' ? this.#force?.since ?? null : this.#since
    return snapshotOf({
      state,
      generation: this.#generation,
      consecutiveFailures: this.#consecutive,
      openedAt: state === 'closed' ? null : openedAt,
      reopenAt: state === 'open' ? this.#refusesUntil() : null,
      openCount: this.#openCount,
      wouldRefuse: this.#wouldRefuse
    }, {
      options: this.#options,
      outstanding: this.#outstanding,
      window: this.#window,
      usual: this.#usual,
      probes: this.#probes,
      force: this.#force,
      lastTransition: this.#last
    }, now)
  }

  /** The way in while the circuit is not simply closed. */
  #consider (now: number): Permit {
    this.#advance(now)
    if (this.#pass !== 0) return this.admit(now)
    const forced = this.#force?.state
    let permit = 0
    if (this.#belief === 'half-open' && forced !== 'open') {
      const serial = this.#probes.grant(now + this.#options.halfOpen.probeTimeoutMs)
      // not -serial alone: there is a negative 0
      permit = serial === 0 ? 0 : -serial
    }
    if (permit === 0) {
      const observing = this.#options.mode === 'observe'
      if (forced !== 'closed' && !observing) return 0
      if (forced !== 'closed') this.#wouldRefuse++
      // no result of this generation counts while the belief is not closed
      permit = this.#generation
    }
    this.#outstanding++
    return permit
  }

  #settleProbe (serial: number, outcome: Outcome, now: number): void {
    this.#expire(now)
    const standing = this.#probes.take(serial)
    if (standing === 'unknown') return
    if (this.#outstanding > 0) this.#outstanding--
    if (standing === 'late' || (outcome !== 'success' && outcome !== 'failure')) return
    this.#probes.count(outcome === 'failure')
    const passed = this.#probes.verdict(this.#options.window.failureRatio)
    if (passed === null) return
    const evidence = evidenceOf(this.#probes.settled, this.#probes.failed, 0)
    if (passed) this.#believe('closed', 'probes_passed', now, evidence)
    else this.#believe('open', 'probes_failed', now, evidence)
  }

  #advance (now: number): void {
    if (this.#belief === 'open' && now >= this.#reopenAt) this.#believe('half-open', 'open_elapsed', now, this.#evidence(now))
    if (this.#force !== null && now >= this.#force.until) this.#endForce(now, this.#force.reason)
    this.#expire(now)
  }

  #expire (now: number): void {
    if (this.#belief === 'half-open') this.#probes.expire(now)
    this.#outstanding = Math.max(0, this.#outstanding - this.#probes.forget())
  }

  #endForce (now: number, reason: string | null): void {
    if (this.#force === null) return
    const from = this.state
    const evidence = this.#evidence(now)
    this.#force = null
    this.#renew(now)
    this.#tell(from, 'force_ended', now, evidence, reason)
  }

  /** Moves the belief. Below a force nobody is told, because the effective state stays. */
  #believe (to: BreakerState, cause: TransitionCause, now: number, evidence: Evidence): void {
    const from = this.#belief
    this.#belief = to
    if (to === 'open') {
      this.#usualPeak = this.#usual.takePeak(now)
      this.#reopenAt = now + this.#backoff.next(from === 'closed' ? now - this.#since : 0, this.#options, this.#random)
      this.#openCount++
    }
    if (to !== 'half-open') this.#since = now
    this.#renew(now)
    if (this.#force === null) this.#tell(from, cause, now, evidence, null)
  }

  #cleanSlate (now: number): void {
    this.#force = null
    this.#belief = 'closed'
    this.#since = now
    this.#backoff.reset()
    this.#openCount = 0
    this.#probes.begin(0)
    this.#renew(now)
  }

  /** Begins a generation: what came before it counts no more. */
  #renew (now: number): void {
    this.#generation = nextSerial(this.#generation)
    this.#window.clear(now)
    this.#consecutive = 0
    if (this.#belief === 'half-open') {
      if (this.#probes === noProbes) this.#probes = new Probes()
      this.#probes.begin(batchSize(this.#options.halfOpen.probes, this.#usualPeak))
    } else this.#probes.abandon()
    const free = this.#belief === 'closed' && this.#force?.state !== 'open'
    this.#pass = free ? this.#generation : 0
    this.#counted = free && this.#options.mode !== 'off' ? this.#generation : 0
    this.#usual.run(this.#counted !== 0, now)
  }

  #tell (from: BreakerState, cause: TransitionCause, now: number, evidence: Evidence, reason: string | null): void {
    const to = this.state
    const openForMs = to === 'open' ? Math.max(0, this.#refusesUntil() - now) : 0
    this.#last = Object.freeze({ from, to, cause, at: now })
    if (this.#onTransition === undefined) return
    const transition = Object.freeze({ from, to, cause, at: now, generation: this.#generation, evidence, openForMs, reason })
    // a listener that calls back in finds its own transition told first
    if (this.#untold !== null) {
      this.#untold.push(transition)
      return
    }
    this.#untold = [transition]
    try {
      for (const next of this.#untold) this.#onTransition(next)
    } finally {
      this.#untold = null
    }
  }

  /** When the open time, a forced one included, is over. */
  #refusesUntil (): number {
    const believed = this.#belief === 'open' ? this.#reopenAt : Number.NEGATIVE_INFINITY
    return this.#force?.state === 'open' ? Math.max(believed, this.#force.until) : believed
  }

  #evidence (now: number): Evidence {
    return evidenceOf(this.#window.total(now), this.#window.failures(now), this.#consecutive)
  }
}
