import type { Outcome, Reason } from '../failure.ts'
import { AttemptHistory, type AttemptFigures } from './attempts.ts'
import { BeliefHistory, isUsable, type Belief, type BeliefFigures } from './belief.ts'
import { smallCounts, stepCount, stepMs } from './column.ts'
import { GateHistory, type GateFigures } from './gate.ts'

export interface PoolFigures extends AttemptFigures {
  /** The fewest upstreams that would have been sent requests; null where nobody looked. */
  readonly usable: ReadonlyArray<number | null>
  readonly upstreams: Readonly<Record<string, AttemptFigures & BeliefFigures>>
}

/** Figures of the steps from `first` to `last`; every array has one for each of them. None: `last` is less than `first`. */
export interface HistoryFigures {
  readonly stepMs: number
  readonly first: number
  /** The newest step that has ended. */
  readonly last: number
  readonly gate: GateFigures
  /** All attempts, whosoever. */
  readonly all: AttemptFigures
  readonly pools: Readonly<Record<string, PoolFigures>>
}

/** An upstream as it stands now. */
export interface Sample extends Belief {
  readonly id: string
  readonly inFlight: number
}

class PoolHistory {
  readonly attempts = new AttemptHistory()
  readonly upstreams = new Map<string, { attempts: AttemptHistory, belief: BeliefHistory }>()
  /** One more than the fewest that were usable; 0: not known. */
  readonly #usable = smallCounts()

  noteUsable (step: number, usable: number): void {
    const known = this.#usable.at(step)
    if (known === 0 || usable + 1 < known) this.#usable.put(step, Math.min(usable + 1, 65535))
  }

  begin (step: number): void {
    this.#usable.clear(step)
    for (const { belief } of this.upstreams.values()) belief.begin(step)
  }

  figures (first: number, last: number): PoolFigures {
    return {
      ...this.attempts.figures(first, last),
      usable: this.#usable.slice(first, last).map((each) => each === 0 ? null : each - 1),
      upstreams: Object.fromEntries(Array.from(this.upstreams, ([id, { attempts, belief }]) => [id, { ...attempts.figures(first, last), ...belief.figures(first, last) }]))
    }
  }
}

/**
 * The last 15 minutes in steps of 5 seconds: requests, outcomes, times and beliefs by pool and upstream. All is kept in rings of a fixed
 * size: 20 kB, and 7 kB for each pool and each upstream.
 *
 * Time is monotonic milliseconds; only `advance` takes it, and what comes between two calls counts in the step of the first. A time that
 * goes back changes nothing; one that leaps leaves empty steps behind.
 */
export class History {
  readonly #firstStep: number
  readonly #gate = new GateHistory()
  readonly #all = new AttemptHistory()
  readonly #pools = new Map<string, PoolHistory>()
  #step: number

  constructor (now: number) {
    this.#firstStep = this.#step = stepAt(now)
  }

  /** Ends the steps that are over, and begins the one that runs. */
  advance (now: number): void {
    const target = stepAt(now)
    if (!(target > this.#step)) return
    for (const each of this.#attempts()) each.end(this.#step)
    // Of a long leap only what is kept.
    for (let step = Math.max(this.#step + 1, target - stepCount); step <= target; step++) this.#begin(step)
    this.#step = target
  }

  /** Takes how the upstreams of a pool stand now. Those that are not among them are forgotten. */
  sample (name: string, samples: readonly Sample[]): void {
    const pool = this.#pools.get(name) ?? this.#add(name)
    const ids = new Set(samples.map(({ id }) => id))
    for (const id of pool.upstreams.keys()) if (!ids.has(id)) pool.upstreams.delete(id)
    const step = this.#step
    let inFlight = 0
    for (const sample of samples) {
      const known = pool.upstreams.get(sample.id) ?? { attempts: new AttemptHistory(), belief: new BeliefHistory() }
      pool.upstreams.set(sample.id, known)
      inFlight += known.attempts.open = sample.inFlight
      known.attempts.begun(step, sample.inFlight)
      known.belief.note(step, sample)
    }
    pool.attempts.open = inFlight
    pool.noteUsable(step, samples.filter(isUsable).length)
  }

  /** Forgets the pools that are not among these, and counts anew what is under way. */
  keep (names: ReadonlySet<string>): void {
    for (const name of this.#pools.keys()) if (!names.has(name)) this.#pools.delete(name)
    let open = 0
    for (const { attempts } of this.#pools.values()) open += attempts.open
    this.#all.open = open
  }

  sampleGate (inFlight: number, loopDelayMs: number): void {
    this.#gate.inFlight(this.#step, inFlight)
    if (loopDelayMs < Number.POSITIVE_INFINITY) this.#gate.loopDelay(this.#step, loopDelayMs)
  }

  exchangeBegun (): void {
    this.#gate.begun(this.#step)
  }

  /** @param reason why it was refused or failed */
  exchangeEnded (reason: Reason | null): void {
    if (reason !== null) this.#gate.ended(this.#step, reason)
  }

  /**
   * An attempt at an upstream that was sampled; another one counts for its pool alone.
   * @param inFlight under way at it now, this one included
   * @param atGate admitted and not answered, of all
   */
  attemptBegun (pool: string, upstream: string, inFlight: number, atGate: number): void {
    const step = this.#step
    this.#gate.inFlight(step, atGate)
    this.#all.begun(step, ++this.#all.open)
    const known = this.#pools.get(pool)
    if (known === undefined) return
    known.attempts.begun(step, ++known.attempts.open)
    known.upstreams.get(upstream)?.attempts.begun(step, inFlight)
  }

  /** @param headMs time to the head; negative: there was none */
  attemptEnded (pool: string, upstream: string, outcome: Outcome, headMs: number): void {
    const step = this.#step
    // Who began before it was sampled is not among the open ones.
    if (this.#all.open > 0) this.#all.open--
    this.#all.ended(step, outcome, headMs)
    const known = this.#pools.get(pool)
    if (known === undefined) return
    if (known.attempts.open > 0) known.attempts.open--
    known.attempts.ended(step, outcome, headMs)
    known.upstreams.get(upstream)?.attempts.ended(step, outcome, headMs)
  }

  /** The steps after `since` that have ended. A number that is none yet is taken for one of an earlier run: all that is kept comes after it. */
  figures (since: number): HistoryFigures {
    const last = this.#step - 1
    const oldest = Math.max(this.#firstStep, this.#step - stepCount)
    const first = since > last ? oldest : Math.max(oldest, since + 1)
    return {
      stepMs,
      first,
      last,
      gate: this.#gate.figures(first, last),
      all: this.#all.figures(first, last),
      pools: Object.fromEntries(Array.from(this.#pools, ([name, pool]) => [name, pool.figures(first, last)]))
    }
  }

  #add (name: string): PoolHistory {
    const pool = new PoolHistory()
    this.#pools.set(name, pool)
    return pool
  }

  #begin (step: number): void {
    this.#gate.begin(step)
    for (const each of this.#attempts()) each.begin(step)
    for (const pool of this.#pools.values()) pool.begin(step)
  }

  * #attempts (): Generator<AttemptHistory> {
    yield this.#all
    for (const { attempts, upstreams } of this.#pools.values()) {
      yield attempts
      for (const each of upstreams.values()) yield each.attempts
    }
  }
}

/** Numbered from 1, so that all of them come after 0. */
const stepAt = (now: number): number => Math.floor(now / stepMs) + 1
