import type { FastifyBaseLogger } from 'fastify'
import type { DeepPartial } from '../../config/complete.ts'
import type { BreakerOptions } from '../../config/schema.ts'
import type { BreakerMode, BreakerState, Force, Transition, TransitionCause } from '../../lib/breaker/types.ts'
import type { Clock } from '../../lib/clock.ts'
import { Emitter } from '../../lib/emitter.ts'
import type { Random } from '../../lib/random.ts'
import { completeOptions } from './options.ts'
import { RegisteredBreaker, type BreakerHost, type RegisteredSnapshot } from './registered-breaker.ts'
import { wallClock } from './wall-clock.ts'

/** A transition as listeners get it; frozen. */
export interface BreakerTransition {
  readonly type: 'breaker_transition'
  readonly pool: string
  readonly upstream: string
  readonly from: BreakerState
  readonly to: BreakerState
  readonly cause: TransitionCause
  /** Of the breaker by now: in observe mode nobody is refused, whatever it says. */
  readonly mode: BreakerMode
  readonly generation: number
  /** ISO 8601. */
  readonly at: string
  /** The window, or after half-open the batch, as it was when the decision fell; with the cause `stall` the silence too. */
  readonly evidence: Transition['evidence']
  /** What the last of the failures was that opened it, or the last probe's: a reason, or `status_` and the status of an answer; null: not told, or none was. */
  readonly failure: string | null
  /** How long the circuit stays open, in whole ms, when `to` is open; else 0. */
  readonly openForMs: number
  readonly reason: string | null
  /**
   * Ids of the requests that opened it, of those that the forwarder sent, the oldest first, at most ten: the last ones that failed, or
   * with the cause `stall` the first ones that waited for too long. None for other causes.
   */
  readonly requests: readonly string[]
  /** What has happened, and why, in a sentence. */
  readonly explanation: string
}

export type TransitionListener = (transition: BreakerTransition) => unknown

export interface RegistryOptions {
  defaults: DeepPartial<BreakerOptions>
  clock: Clock
  random: Random
  log: FastifyBaseLogger
}

/** Forces on upstreams that are gone that are remembered for their return. */
const maxRemembered = 1000

/** All breakers of an app, by pool and upstream. */
export class BreakerRegistry {
  readonly #pools = new Map<string, Map<string, RegisteredBreaker>>()
  /** What an operator imposed on upstreams that have gone since, oldest first: a list that comes without one for a moment ends no force. */
  readonly #forces = new Map<string, Omit<Force, 'since'>>()
  /** One queue for all breakers: a listener may act on another breaker than the one it hears of. */
  readonly #events: Emitter<BreakerTransition>
  readonly #log: FastifyBaseLogger
  readonly #host: BreakerHost

  constructor ({ defaults, clock, random, log }: RegistryOptions) {
    this.#log = log
    const isoOf = wallClock(clock)
    this.#events = new Emitter((err) => { log.error({ err, source: 'breaker-registry' }, 'listener_failed') })
    this.#events.on((event) => { this.#write(event) })
    this.#host = {
      clock,
      random,
      defaults: completeOptions({}, defaults),
      isoOf,
      onTransition: (breaker, transition) => {
        const { pool, upstream } = breaker
        const requests = breaker.takeBlamed(transition)
        const { waiting: _waiting, explanation, ...change } = transition
        // nobody is told of a breaker that was removed
        if (this.find(pool, upstream) !== breaker) return
        this.#events.emit(Object.freeze({ type: 'breaker_transition', pool, upstream, mode: breaker.options.mode, ...change, at: isoOf(transition.at), requests, explanation }))
      }
    }
  }

  /**
   * The breaker of this upstream, made on first use. Options are laid over the registry's defaults; given for a breaker that
   * exists, they are swapped in if they differ. Keep what you get: this is no call for the hot path.
   * @throws TypeError naming the path of each invalid option
   */
  get (pool: string, upstream: string, options?: DeepPartial<BreakerOptions>): RegisteredBreaker {
    const known = this.find(pool, upstream)
    if (known !== undefined) {
      if (options !== undefined) known.configure(options)
      return known
    }
    const made = new RegisteredBreaker(pool, upstream, options, this.#host)
    const members = this.#pools.get(pool)
    if (members === undefined) this.#pools.set(pool, new Map([[upstream, made]]))
    else members.set(upstream, made)
    this.#imposeAgain(made)
    return made
  }

  find (pool: string, upstream: string): RegisteredBreaker | undefined {
    return this.#pools.get(pool)?.get(upstream)
  }

  list (): readonly RegisteredBreaker[] {
    return [...this.#pools.values()].flatMap(members => [...members.values()])
  }

  snapshots (): readonly RegisteredSnapshot[] {
    return this.list().map(breaker => breaker.snapshot())
  }

  /** Takes a breaker off the list. Whoever holds it may go on using and settling; nobody is told of its transitions any more. */
  remove (pool: string, upstream: string): boolean {
    const members = this.#pools.get(pool)
    const breaker = members?.get(upstream)
    if (members === undefined || breaker === undefined) return false
    this.#rememberForce(breaker)
    members.delete(upstream)
    if (members.size === 0) this.#pools.delete(pool)
    return true
  }

  /** Calls `listener` after each transition, in order; returns the function that ends it. One that throws is logged and harms nobody. */
  on (_type: 'transition', listener: TransitionListener): () => void {
    return this.#events.on(listener)
  }

  off (_type: 'transition', listener: TransitionListener): void {
    this.#events.off(listener)
  }

  /** Commits what time alone has brought, for all breakers. Called once a second by the plugin. */
  sweep (): void {
    const now = this.#host.clock()
    for (const members of this.#pools.values()) for (const { breaker } of members.values()) breaker.sweep(now)
  }

  /** Lets the silence of every upstream grow; whether `judgeStalls` would open a circuit. Called by the plugin every `tickMs`. */
  tick (): boolean {
    let suspected = false
    for (const members of this.#pools.values()) for (const { breaker } of members.values()) if (breaker.tick()) suspected = true
    return suspected
  }

  /** Opens the circuits whose upstreams answer nobody any more. Called by the plugin when all that has arrived is read. */
  judgeStalls (): void {
    const now = this.#host.clock()
    // a listener may make and remove breakers
    for (const { breaker } of this.list()) breaker.judgeStall(now)
  }

  #rememberForce ({ pool, upstream, breaker }: RegisteredBreaker): void {
    const { force } = breaker.snapshot(this.#host.clock())
    if (force === null) return
    this.#forces.set(keyOf(pool, upstream), force)
    const [oldest] = this.#forces.keys()
    if (this.#forces.size > maxRemembered && oldest !== undefined) this.#forces.delete(oldest)
  }

  #imposeAgain (breaker: RegisteredBreaker): void {
    const key = keyOf(breaker.pool, breaker.upstream)
    const force = this.#forces.get(key)
    if (force === undefined) return
    this.#forces.delete(key)
    const left = force.until - this.#host.clock()
    if (left > 0 && breaker.options.mode !== 'off') breaker.force(force.state, left, force.reason)
  }

  #write ({ pool, upstream, mode, from, to, cause, generation, evidence, failure, openForMs, reason, requests, explanation }: BreakerTransition): void {
    const line = { pool, upstream, mode, from, to, cause, generation, ...evidence, failure, openForMs, reason, ...requests.length > 0 && { requests }, explanation }
    if (to === 'open') this.#log.warn(line, 'breaker_transition')
    else this.#log.info(line, 'breaker_transition')
  }
}

const keyOf = (pool: string, upstream: string): string => JSON.stringify([pool, upstream])
