import type { BreakerOptions } from '../../config/schema.ts'
import type { Random } from '../random.ts'
import { RollingWindow } from '../window.ts'
import { Backoff } from './backoff.ts'
import { batchSize, evidenceOf, type Evidence } from './evidence.ts'
import { tell } from './explanation.ts'
import { openedAgain, openingOf } from './opening.ts'
import { noProbes, Probes } from './probes.ts'
import { nextSerial } from './serial.ts'
import type { StallTrigger } from './stall.ts'
import type { BreakerSnapshot, BreakerState, Force, Opening, Permit, Transition, TransitionCause } from './types.ts'
import { Usual } from './usual.ts'

const maxForceMs = 2147483647
const nobody: readonly string[] = Object.freeze([])

/**
 * The state of a breaker and how it changes; what makes it change is the breaker's. Times are monotonic milliseconds.
 *
 * The belief is closed, open or half-open. The effective state is the belief, or what an operator forced over it. Each change of the
 * effective state, and each act of an operator, is a transition: counters clear, a new generation begins, and results of an
 * earlier generation count nowhere. The belief goes on learning below a forced closed state, in silence.
 */
export class Circuit {
  options: BreakerOptions
  readonly #random: Random
  readonly #onTransition: ((transition: Transition) => void) | undefined
  /** Transitions that arose while one is being told; null while none is. */
  #untold: Transition[] | null = null

  /** What an admission gets without a question: the generation; 0 when it must look closer. */
  pass: Permit = 1
  /** The generation whose results count; 0 while none do. */
  counted: Permit = 1
  generation = 1

  window: RollingWindow
  consecutive = 0
  /** What the last failure of this generation was; null: not told, or none was. */
  failure: string | null = null
  readonly usual: Usual
  /** null until the first answer is told of. */
  stall: StallTrigger | null = null

  belief: BreakerState = 'closed'
  force: Force | null = null
  probes = noProbes
  /** When it will admit again; only of use while the belief is open. */
  reopenAt = Number.NEGATIVE_INFINITY
  /** How often the belief became open since it was made or reset. */
  openCount = 0
  last: BreakerSnapshot['lastTransition'] = null
  /** What made the belief leave closed, and since then become open again; null while it is closed. */
  opening: Opening | null = null
  /** When the belief became closed, or else when it became open: half-open keeps it. */
  #since: number
  #usualPeak = 0
  /** null while it has not opened since it was made or reset. */
  #backoff: Backoff | null = null

  /** @param onTransition must not throw */
  constructor (options: BreakerOptions, random: Random, now: number, onTransition: ((transition: Transition) => void) | undefined) {
    this.options = options
    this.#random = random
    this.#onTransition = onTransition
    this.window = new RollingWindow(options.window.seconds, now)
    this.usual = new Usual(now)
    this.#since = now
    this.#renew(now)
  }

  /** The effective state. */
  get state (): BreakerState {
    return this.force === null ? this.belief : this.force.state
  }

  /** When the effective state became open, or the belief below a force did; null while closed. */
  get openedAt (): number | null {
    if (this.state === 'closed') return null
    return this.belief === 'closed' ? this.force?.since ?? null : this.#since
  }

  /** When the open time, a forced one included, is over; -Infinity where nothing is open. */
  get refusesUntil (): number {
    const believed = this.belief === 'open' ? this.reopenAt : Number.NEGATIVE_INFINITY
    return this.force?.state === 'open' ? Math.max(believed, this.force.until) : believed
  }

  /** When the belief left closed, and how often it became open again since then; only of use while it is not closed. */
  get leftClosedAt (): number { return this.#backoff?.leftClosedAt ?? this.#since }
  get reopened (): number { return this.#backoff?.reopened ?? 0 }

  /** The numbers in force now, as they go with a transition. */
  evidence (now: number): Evidence {
    return evidenceOf(this.window.total(now), this.window.failures(now), this.consecutive)
  }

  /** Moves the belief. Below a force nobody is told, because the effective state stays. @param waiting the names behind a stall */
  believe (to: BreakerState, cause: TransitionCause, now: number, evidence: Evidence, waiting = nobody): void {
    const from = this.belief
    const { failure } = this
    if (to === 'open') {
      this.opening = this.opening === null ? openingOf(this, cause, evidence, now) : openedAgain(this.opening, evidence, failure)
      this.#usualPeak = this.usual.takePeak(now)
      this.#backoff ??= new Backoff()
      this.#backoff.opens(from === 'closed', now)
      this.reopenAt = now + this.#backoff.next(from === 'closed' ? now - this.#since : 0, this.options, this.#random)
      this.openCount++
    }
    if (to === 'closed') this.opening = null
    if (to !== 'half-open') this.#since = now
    this.belief = to
    this.#renew(now)
    if (this.force === null) this.#tell(from, cause, now, evidence, null, waiting, to === 'open' && cause !== 'stall' ? failure : null)
  }

  /** Commits the ends of an open time and of a force. */
  advance (now: number): void {
    if (this.belief === 'open' && now >= this.reopenAt) this.believe('half-open', 'open_elapsed', now, this.evidence(now))
    if (this.force !== null && now >= this.force.until) this.endForce(now, this.force.reason)
  }

  /** @throws RangeError unless 0 < ttlMs < 2^31 */
  impose (state: 'open' | 'closed', ttlMs: number | undefined, reason: string | null, now: number): void {
    if (ttlMs === undefined || !(ttlMs > 0 && ttlMs <= maxForceMs)) throw new RangeError(`ttlMs must be more than 0 and at most ${maxForceMs}, got ${ttlMs}`)
    if (this.options.mode === 'off') throw new Error('the breaker is off: there is nothing to force')
    this.#setForce({ state, since: now, until: now + ttlMs, reason }, 'forced', now, reason)
  }

  endForce (now: number, reason: string | null): void {
    if (this.force !== null) this.#setForce(null, 'force_ended', now, reason)
  }

  reset (now: number, reason: string | null): void {
    const { state } = this
    const evidence = this.evidence(now)
    this.#cleanSlate(now)
    this.#tell(state, 'reset', now, evidence, reason)
  }

  configure (options: BreakerOptions, now: number): void {
    const switched = (this.options.mode === 'off') !== (options.mode === 'off')
    this.options = options
    // a running silence was measured by the old ones
    this.stall?.end()
    if (options.window.seconds !== this.window.seconds) this.window = this.window.resized(options.window.seconds, now)
    if (!switched) return
    const { state } = this
    const evidence = this.evidence(now)
    const told = this.force !== null || state !== 'closed'
    this.#cleanSlate(now)
    if (told) this.#tell(state, 'mode_changed', now, evidence, null)
  }

  #setForce (force: Force | null, cause: TransitionCause, now: number, reason: string | null): void {
    const { state } = this
    const evidence = this.evidence(now)
    this.force = force
    this.#renew(now)
    this.#tell(state, cause, now, evidence, reason)
  }

  #cleanSlate (now: number): void {
    this.force = null
    this.belief = 'closed'
    this.opening = null
    this.#since = now
    this.#backoff = null
    this.openCount = 0
    this.probes.begin(0)
    this.#renew(now)
  }

  /** Begins a generation: what came before it counts no more. */
  #renew (now: number): void {
    this.generation = nextSerial(this.generation)
    this.window.clear(now)
    this.consecutive = 0
    this.failure = null
    this.stall?.end()
    if (this.belief === 'half-open') {
      if (this.probes === noProbes) this.probes = new Probes()
      this.probes.begin(batchSize(this.options.halfOpen.probes, this.#usualPeak))
    } else this.probes.abandon()
    const free = this.belief === 'closed' && this.force?.state !== 'open'
    this.pass = free ? this.generation : 0
    this.counted = free && this.options.mode !== 'off' ? this.generation : 0
    this.usual.run(this.counted !== 0, now)
  }

  #tell (from: BreakerState, cause: TransitionCause, now: number, evidence: Evidence, reason: string | null, waiting = nobody, failure: string | null = null): void {
    const to = this.state
    const openForMs = to === 'open' ? Math.max(0, Math.round(this.refusesUntil - now)) : 0
    this.last = Object.freeze({ from, to, cause, at: now })
    if (this.#onTransition === undefined) return
    const facts = { from, to, cause, at: now, generation: this.generation, evidence, failure, openForMs, reason, waiting }
    const transition = Object.freeze({ ...facts, explanation: tell(this, facts) })
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
}
