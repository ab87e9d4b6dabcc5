import { PeakEwma } from '../../lib/balance/peak-ewma.ts'
import type { LoadWatch, Signal } from '../../lib/balance/lane.ts'
import { Ramp } from '../../lib/balance/ramp.ts'
import { EjectionState } from '../../lib/health/ejection.ts'

/** Why and until when an operator has taken an upstream out of rotation. */
export interface Drain {
  /** Since when, ISO 8601. */
  readonly since: string
  /** Its end, ISO 8601; null: until somebody ends it. */
  readonly until: string | null
  readonly reason: string | null
}

/**
 * What is running of one upstream: keyed by pool and id, it outlives every reload that keeps the upstream. What decides whether it
 * may be picked touches the pool's signal.
 */
export class UpstreamState {
  readonly #signal: Signal
  #healthy = true
  #checked = false
  #drain: Drain | null = null
  #gone = false
  #drainTimer: NodeJS.Timeout | undefined
  /** Exchanges at it now, from the pick to the end of the answer. */
  inFlight = 0
  /** Attempts since it is known. */
  attempts = 0
  readonly latency = new PeakEwma()
  readonly ejection = new EjectionState()
  readonly ramp: Ramp
  /** The part of its in-flight limit that it may use, by its slow start. */
  share = 1
  watch: LoadWatch | null = null
  slot = 0

  /** @param joins it comes to a pool that runs already */
  constructor (signal: Signal, joins: boolean) {
    this.#signal = signal
    this.ramp = new Ramp(joins)
  }

  get healthy (): boolean { return this.#healthy }
  set healthy (healthy: boolean) {
    if (healthy === this.#healthy) return
    this.#healthy = healthy
    this.#signal.touch()
  }

  get checked (): boolean { return this.#checked }
  set checked (checked: boolean) {
    if (checked === this.#checked) return
    this.#checked = checked
    this.#signal.touch()
  }

  /** Takes no new exchanges: drained by an operator, or gone from the pool. */
  get draining (): boolean { return this.#drain !== null || this.#gone }
  get drain (): Drain | null { return this.#drain }

  /** @param ended called when the time is over */
  setDrain (drain: Drain | null, ttlMs: number, ended: () => void): void {
    clearTimeout(this.#drainTimer)
    this.#drain = drain
    if (drain !== null && ttlMs > 0) this.#drainTimer = setTimeout(ended, ttlMs).unref()
    this.#signal.touch()
  }

  /** It is no member any more: exchanges at it end, new ones do not begin. */
  leave (): void {
    this.#gone = true
    clearTimeout(this.#drainTimer)
    this.#signal.touch()
  }
}
