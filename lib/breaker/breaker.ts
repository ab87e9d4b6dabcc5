import type { BreakerOptions } from '../../config/schema.ts'
import type { Random } from '../random.ts'
import { Circuit } from './circuit.ts'
import { evidenceOf, ratioReached } from './evidence.ts'
import { snapshotOf } from './snapshot.ts'
import type { Waiter } from './silence.ts'
import { StallTrigger } from './stall.ts'
import type { BreakerMode, BreakerSnapshot, BreakerState, Outcome, Permit, Transition } from './types.ts'

/**
 * The circuit breaker of one upstream: arithmetic on (state, event, now), where `now` is monotonic milliseconds. It has no clock,
 * no timer and does no I/O: open time, leases and forces end when an admission or `sweep` notices that they are over, and a silence
 * grows by `tick` alone. What its states are and how they follow each other: `Circuit`.
 */
export class Breaker {
  readonly #circuit: Circuit
  #outstanding = 0
  #wouldRefuse = 0

  /**
   * @param options checked and complete; not copied, so never change it afterwards: use `configure`
   * @param onTransition called after each transition is committed, in order and once, also when it calls back in; must not throw
   */
  constructor (options: BreakerOptions, random: Random, now: number, onTransition?: (transition: Transition) => void) {
    this.#circuit = new Circuit(options, random, now, onTransition)
  }

  get mode (): BreakerMode {
    return this.#circuit.options.mode
  }

  /** The committed effective state; `half-open` only once an admission or a sweep has noticed that the open time is over. */
  get state (): BreakerState {
    return this.#circuit.state
  }

  /** Permits that were admitted and not settled yet, of any generation. */
  get outstanding (): number {
    return this.#outstanding
  }

  /** Failures in a row, while they count. */
  get consecutiveFailures (): number {
    return this.#circuit.consecutive
  }

  /** How many admissions enforce mode would have refused; counts in observe mode only, and only upwards. */
  get wouldRefuse (): number {
    return this.#wouldRefuse
  }

  /** Asks to proceed. Every permit but 0 must be settled exactly once. */
  admit (now: number): Permit {
    const { pass, usual } = this.#circuit
    if (pass === 0) return this.#consider(now)
    usual.seen(++this.#outstanding)
    return pass
  }

  /**
   * Gives a permit back. Only `success` and `failure` count, and only in the generation that gave it. No effect for 0 and for a
   * probe that is not out. A positive permit that is settled twice frees another's place: that is the caller's duty.
   */
  settle (permit: Permit, outcome: Outcome, now: number): void {
    if (permit < 0) return this.#settleProbe(-permit, outcome, now)
    if (permit === 0) return
    if (this.#outstanding > 0) this.#outstanding--
    const circuit = this.#circuit
    if (permit !== circuit.counted) return
    if (outcome === 'success') {
      circuit.window.record(now, false)
      circuit.consecutive = 0
    } else if (outcome === 'failure') {
      circuit.window.record(now, true)
      circuit.consecutive++
    } else return
    circuit.usual.count(now)
    const { consecutiveFailures } = circuit.options
    if (consecutiveFailures !== 0 && circuit.consecutive >= consecutiveFailures) {
      circuit.believe('open', 'consecutive_failures', now, circuit.evidence(now))
    } else if (ratioReached(circuit.options, circuit.window, circuit.usual, now)) {
      circuit.believe('open', 'failure_ratio', now, circuit.evidence(now))
    }
  }

  /**
   * The attempt's request was sent whole just now, on a route whose usual time to a response's head is `routeMs` (0: not known).
   * Returns its watch, which `answered` and `gaveUp` take; 0 where its silence would say nothing: on a slow route (`isQuick`), or while
   * nothing is learned. Each attempt calls at most one of `answered`, `heard` and `gaveUp` afterwards, before or after `settle`.
   * @param who names it in the transition that its silence may lead to (`waiting`), and waits at one breaker at a time
   */
  waits (permit: Permit, routeMs: number, who: Waiter | null = null): number {
    const { stall, counted, options } = this.#circuit
    if (stall === null || permit <= 0 || permit !== counted || options.stall.outstanding === 0) return 0
    return stall.waits(routeMs, options.stall, who)
  }

  /** A response's head came, `ms` after its request had been sent whole; `watch` is what `waits` returned, 0 as well. */
  answered (permit: Permit, watch: number, ms: number): void {
    this.heard()
    const circuit = this.#circuit
    const options = circuit.options.stall
    // nothing is learned in another state or from an earlier one
    if (permit <= 0 || permit !== circuit.counted || options.outstanding === 0) return
    circuit.stall ??= new StallTrigger()
    circuit.stall.learn(watch, ms, options)
  }

  /** The upstream did something that is no answer: it refused, it reset, it sent an interim response. It is not silent. */
  heard (): void {
    const { stall } = this.#circuit
    if (stall !== null) stall.end()
  }

  /** An attempt waits no longer although nothing came: the client left, our time limit, another attempt was faster. `who` as it was told to `waits`. */
  gaveUp (watch: number, who: Waiter | null = null): void {
    const { stall } = this.#circuit
    if (stall !== null) stall.leaves(watch, who)
  }

  /**
   * Lets the silence of the upstream grow by 100 ms (`tickMs`): to be called so often, but not for a time in which our own event loop
   * stood still. Returns whether `judgeStall` would open the circuit.
   */
  tick (): boolean {
    const { stall, options } = this.#circuit
    if (stall === null) return false
    stall.tick(options.stall)
    return this.#isStalled()
  }

  /** Opens the circuit if the silence is a stall; returns whether it did. To be called when all that has arrived is read. */
  judgeStall (now: number): boolean {
    const circuit = this.#circuit
    if (circuit.stall === null || !this.#isStalled()) return false
    const stall = circuit.stall.evidence(circuit.options.stall)
    circuit.believe('open', 'stall', now, Object.freeze({ ...circuit.evidence(now), stall }), circuit.stall.overdueNames())
    return true
  }

  /**
   * What the failure is, in a word, that is settled next under this permit: the last one that counted is told with a transition, and while
   * the circuit is not closed. By itself, so that who settles well pays nothing for it.
   */
  failing (permit: Permit, what: string | null, now: number): void {
    if (this.counts(permit, now)) this.#circuit.failure = what
  }

  /** Whether a failure under this permit would count at `now`. */
  counts (permit: Permit, now: number): boolean {
    const { counted, belief, probes } = this.#circuit
    return permit > 0 ? permit === counted : permit < 0 && belief === 'half-open' && probes.isLive(-permit, now)
  }

  /** Whether `admit` would give a permit at `now`; changes nothing. */
  wouldAdmit (now: number): boolean {
    const { belief, force, options, pass, probes, reopenAt } = this.#circuit
    if (pass !== 0 || options.mode === 'observe') return true
    if (force !== null && now < force.until) return force.state === 'closed'
    // the end of a force begins a new batch
    if (belief === 'half-open') return force !== null || probes.hasPlace(now)
    return belief === 'closed' || now >= reopenAt
  }

  /** In how many ms it may admit again: 0 if it would now, never Infinity. */
  retryAfterMs (now: number): number {
    if (this.wouldAdmit(now)) return 0
    const until = this.#circuit.refusesUntil
    if (now < until) return until - now
    // every place of a half-open batch is taken; it is mostly decided long before its leases end
    return Math.min(1000, this.#circuit.probes.nextLease() - now)
  }

  /** Commits what time alone has brought: an ended force, an ended open time, ended leases. Meant to be called once a second. */
  sweep (now: number): void {
    this.#advance(now)
    this.#circuit.usual.roll(now)
  }

  /** Closes the circuit with a clean record and ends a force. What is usual for the upstream is kept. */
  reset (now: number, reason: string | null = null): void {
    this.#circuit.reset(now, reason)
  }

  /**
   * Imposes a state for `ttlMs`, or ends that (`auto`). Forced open admits no probe. Forced closed admits all, while the belief
   * learns from the results. Observe mode refuses nothing, forced or not.
   * @throws RangeError unless 0 < ttlMs < 2^31, for open and closed
   * @throws Error in mode off, which has nothing to force
   */
  force (state: 'open' | 'closed' | 'auto', ttlMs: number | undefined, reason: string | null, now: number): void {
    if (state === 'auto') this.#circuit.endForce(now, reason)
    else this.#circuit.impose(state, ttlMs, reason, now)
  }

  /**
   * Swaps the options. Window, state, permits and a running batch or open time stay. Only switching to or from `off` starts afresh;
   * it ends a force, and is a transition if the state was not plainly closed.
   */
  configure (options: BreakerOptions, now: number): void {
    this.#circuit.configure(options, now)
  }

  /** What it believes and why: a frozen copy. */
  snapshot (now: number): BreakerSnapshot {
    return snapshotOf(this.#circuit, this.#outstanding, this.#wouldRefuse, now)
  }

  /** The way in while the circuit is not simply closed. */
  #consider (now: number): Permit {
    this.#advance(now)
    const { belief, force, generation, options, pass, probes } = this.#circuit
    if (pass !== 0) return this.admit(now)
    const forced = force?.state
    let permit = 0
    if (belief === 'half-open' && forced !== 'open') {
      const serial = probes.grant(now + options.halfOpen.probeTimeoutMs)
      // not -serial alone: there is a negative 0
      permit = serial === 0 ? 0 : -serial
    }
    if (permit === 0) {
      if (forced !== 'closed' && options.mode !== 'observe') return 0
      if (forced !== 'closed') this.#wouldRefuse++
      // no result of this generation counts while the belief is not closed
      permit = generation
    }
    this.#outstanding++
    return permit
  }

  #settleProbe (serial: number, outcome: Outcome, now: number): void {
    this.#expire(now)
    const { probes, options } = this.#circuit
    const standing = probes.take(serial)
    if (standing === 'unknown') return
    if (this.#outstanding > 0) this.#outstanding--
    if (standing === 'late' || (outcome !== 'success' && outcome !== 'failure')) return
    probes.count(outcome === 'failure')
    const passed = probes.verdict(options.window.failureRatio)
    if (passed === null) return
    const evidence = evidenceOf(probes.settled, probes.failed, 0)
    if (passed) this.#circuit.believe('closed', 'probes_passed', now, evidence)
    else this.#circuit.believe('open', 'probes_failed', now, evidence)
  }

  #advance (now: number): void {
    this.#circuit.advance(now)
    this.#expire(now)
  }

  #expire (now: number): void {
    const { belief, probes } = this.#circuit
    if (belief === 'half-open') probes.expire(now)
    this.#outstanding = Math.max(0, this.#outstanding - probes.forget())
  }

  #isStalled (): boolean {
    const { stall, counted, options } = this.#circuit
    return stall !== null && counted !== 0 && options.stall.outstanding !== 0 && stall.reached(options.stall)
  }
}
