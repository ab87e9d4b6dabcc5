import { isDeepStrictEqual } from 'node:util'
import type { DeepPartial } from '../../config/complete.ts'
import type { BreakerOptions } from '../../config/schema.ts'
import { Breaker } from '../../lib/breaker/breaker.ts'
import type { BreakerSnapshot, Outcome, Permit, Transition } from '../../lib/breaker/types.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Random } from '../../lib/random.ts'
import { Blamed } from './blamed.ts'
import { BreakerOpenError } from './open-error.ts'
import { completeOptions } from './options.ts'

/** What all breakers of a registry share. */
export interface BreakerHost {
  clock: Clock
  random: Random
  defaults: BreakerOptions
  /** Monotonic milliseconds as ISO 8601. */
  isoOf: (at: number) => string
  onTransition: (breaker: RegisteredBreaker, transition: Transition) => void
}

const nobody: readonly string[] = Object.freeze([])

export interface AcquiredPermit {
  /** Gives the permit back; only the first call counts. @param what a failure was, in a word: told with the transition that it leads to */
  settle (outcome: Outcome, what?: string): void
}

export interface RunOptions<T> {
  /** Whether a returned value is a failure all the same. Default: none is. */
  isFailure?: (result: T) => boolean
  /** What a thrown error counts as. Default: `cancelled` for the caller's own abort, else `failure`. */
  outcomeOf?: (error: unknown) => Outcome
  /** The caller's. With it, an abort is the caller's own only if this signal is aborted; without, every AbortError is. */
  signal?: AbortSignal
}

/** A breaker's snapshot with its names, times as ISO 8601; frozen. */
export interface RegisteredSnapshot extends BreakerSnapshot<string> {
  readonly pool: string
  readonly upstream: string
}

/** A breaker with its names, for people and for calls other than the proxy's. */
export class RegisteredBreaker {
  readonly pool: string
  readonly upstream: string
  /** The breaker itself, for the hot path: its methods want `now`, monotonic milliseconds of the registry's clock. */
  readonly breaker: Breaker
  readonly #host: BreakerHost
  #blamed: Blamed | null = null
  #options: BreakerOptions

  constructor (pool: string, upstream: string, options: DeepPartial<BreakerOptions> | undefined, host: BreakerHost) {
    this.pool = pool
    this.upstream = upstream
    this.#host = host
    this.#options = options === undefined ? host.defaults : completeOptions(host.defaults, options)
    this.breaker = new Breaker(this.#options, host.random, host.clock(), transition => host.onTransition(this, transition))
  }

  /** The options in force: complete and frozen. */
  get options (): BreakerOptions {
    return this.#options
  }

  /**
   * Swaps the options, laid over the registry's defaults; window, state and permits stay.
   * @throws TypeError if one of them is invalid, which changes nothing
   */
  configure (options: DeepPartial<BreakerOptions>): void {
    const complete = completeOptions(this.#host.defaults, options)
    if (isDeepStrictEqual(complete, this.#options)) return
    this.#options = complete
    this.breaker.configure(complete, this.#host.clock())
  }

  /** A request has failed under this permit, which is settled next: where that counts, a transition that follows names it. */
  blame (requestId: string, permit: Permit): void {
    const now = this.#host.clock()
    if (!this.breaker.counts(permit, now)) return
    this.#blamed ??= new Blamed()
    this.#blamed.add(requestId, now)
  }

  /** The requests that a transition is for; what came before it counts no more. */
  takeBlamed ({ cause, at, evidence, waiting }: Transition): readonly string[] {
    const named = cause === 'consecutive_failures' ? evidence.consecutiveFailures : cause === 'failure_ratio' || cause === 'probes_failed' ? evidence.failures : 0
    const since = cause === 'failure_ratio' ? at - 1000 * this.#options.window.seconds : Number.NEGATIVE_INFINITY
    const blamed = this.#blamed?.take(since, named) ?? nobody
    return cause === 'stall' ? waiting : blamed
  }

  /** A permit, to be settled when the work has ended; null when refused. */
  acquire (): AcquiredPermit | null {
    const permit = this.breaker.admit(this.#host.clock())
    if (permit === 0) return null
    let out = true
    return {
      settle: (outcome, what) => {
        if (!out) return
        out = false
        const now = this.#host.clock()
        if (outcome === 'failure') this.breaker.failing(permit, what ?? null, now)
        this.breaker.settle(permit, outcome, now)
      }
    }
  }

  /**
   * Runs `fn` under a permit, which is settled exactly once, and gives its result or rejects with its error.
   * @throws BreakerOpenError when refused; `fn` is not called then
   */
  async run<T> (fn: () => T | PromiseLike<T>, options: RunOptions<T> = {}): Promise<T> {
    const permit = this.acquire()
    if (permit === null) throw new BreakerOpenError(this.pool, this.upstream, this.breaker.retryAfterMs(this.#host.clock()))
    // an error of the callbacks below is nobody's failure
    let outcome: Outcome = 'ignored'
    let what: string | undefined
    try {
      const result = await attempted(fn)
      if ('error' in result) {
        what = nameOf(result.error)
        outcome = (options.outcomeOf ?? outcomeOfError(options.signal))(result.error)
        throw result.error
      }
      outcome = options.isFailure?.(result.value) === true ? 'failure' : 'success'
      return result.value
    } finally {
      permit.settle(outcome, what)
    }
  }

  /** What it believes and why. */
  snapshot (): RegisteredSnapshot {
    const { isoOf, clock } = this.#host
    const raw = this.breaker.snapshot(clock())
    return Object.freeze({
      pool: this.pool,
      upstream: this.upstream,
      ...raw,
      openedAt: raw.openedAt === null ? null : isoOf(raw.openedAt),
      reopenAt: raw.reopenAt === null ? null : isoOf(raw.reopenAt),
      force: raw.force && Object.freeze({ ...raw.force, until: isoOf(raw.force.until) }),
      lastTransition: raw.lastTransition && Object.freeze({ ...raw.lastTransition, at: isoOf(raw.lastTransition.at) }),
      next: raw.next && Object.freeze({ ...raw.next, at: raw.next.at === null ? null : isoOf(raw.next.at) })
    })
  }

  /** Closes the circuit with a clean record and ends a force. */
  reset (reason: string | null = null): void {
    this.breaker.reset(this.#host.clock(), reason)
  }

  /**
   * Imposes a state for `ttlMs`, or ends that (`auto`).
   * @throws RangeError unless 0 < ttlMs < 2^31, for open and closed
   * @throws Error in mode off
   */
  force (state: 'open' | 'closed' | 'auto', ttlMs?: number, reason: string | null = null): void {
    this.breaker.force(state, ttlMs, reason, this.#host.clock())
  }
}

async function attempted<T> (fn: () => T | PromiseLike<T>): Promise<{ value: T } | { error: unknown }> {
  try {
    return { value: await fn() }
  } catch (error) {
    return { error }
  }
}

/** An error's code, or else its name: what it says may hold anything. */
function nameOf (error: unknown): string | undefined {
  const { code, name } = Object(error) as { code?: unknown, name?: unknown }
  return [code, name].find((each): each is string => typeof each === 'string' && /^\w{1,64}$/.test(each))
}

const outcomeOfError = (signal: AbortSignal | undefined) => (error: unknown): Outcome => {
  const cancelled = signal === undefined ? error instanceof Error && error.name === 'AbortError' : signal.aborted
  return cancelled ? 'cancelled' : 'failure'
}
