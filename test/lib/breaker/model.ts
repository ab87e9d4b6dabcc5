import type { BreakerOptions } from '../../../config/schema.ts'
import type { BreakerState, Outcome } from '../../../lib/breaker/types.ts'

interface Held {
  /** Which stretch of the belief it was admitted in. */
  era: number
  kind: 'closed' | 'probe' | 'extra'
  lease: number
}

/**
 * The breaker as one would write it without a thought for speed: lists of everything, looked through each time. Without jitter,
 * with a fixed batch and without the usual volume, which have tables of their own.
 */
export class Model {
  readonly #options: BreakerOptions
  belief: BreakerState = 'closed'
  era = 0
  results: Array<{ second: number, failed: boolean }> = []
  streak = 0
  held = new Map<number, Held>()
  reopenAt = 0
  closedAt = 0
  openForMs = 0
  /** How many doublings the next open time has. */
  doublings = 0
  batch: boolean[] = []
  force: { state: 'open' | 'closed', until: number } | null = null
  wouldRefuse = 0
  /** The effective states told so far. */
  told: Array<{ from: BreakerState, to: BreakerState, cause: string }> = []

  constructor (options: BreakerOptions, now: number) {
    this.#options = options
    this.closedAt = now
  }

  get state (): BreakerState {
    return this.force?.state ?? this.belief
  }

  liveProbes (now: number): number {
    return [...this.held.values()].filter(({ era, kind, lease }) => kind === 'probe' && era === this.era && now < lease).length
  }

  inWindow (now: number) {
    return this.results.filter(({ second }) => Math.floor(now / 1000) - second < this.#options.window.seconds)
  }

  /** What time has brought. */
  look (now: number): void {
    if (this.belief === 'open' && now >= this.reopenAt) this.#move('half-open', 'open_elapsed', now)
    if (this.force !== null && now >= this.force.until) this.#impose(null, 'force_ended')
  }

  /** Whether it is admitted and as what. */
  admit (id: number, now: number): Held['kind'] | null {
    // an admission looks at the time only where it is not simply free
    if (this.belief !== 'closed' || this.force?.state === 'open') this.look(now)
    const kind = this.#kind(now)
    if (kind !== null) this.held.set(id, { era: this.era, kind, lease: now + this.#options.halfOpen.probeTimeoutMs })
    return kind
  }

  settle (id: number, outcome: Outcome, now: number): void {
    const { era, kind, lease } = this.held.get(id)!
    this.held.delete(id)
    if (era !== this.era || (outcome !== 'success' && outcome !== 'failure')) return
    const failed = outcome === 'failure'
    if (kind === 'closed') this.#countClosed(failed, now)
    else if (kind === 'probe' && now < lease) this.#countProbe(failed, now)
  }

  setForce (state: 'open' | 'closed' | 'auto', ttlMs: number, now: number): void {
    if (state !== 'auto') this.#impose({ state, until: now + ttlMs }, 'forced')
    else if (this.force !== null) this.#impose(null, 'force_ended')
  }

  reset (now: number): void {
    const from = this.state
    this.force = null
    this.belief = 'closed'
    this.closedAt = now
    this.doublings = 0
    this.#begin()
    this.told.push({ from, to: 'closed', cause: 'reset' })
  }

  #kind (now: number): Held['kind'] | null {
    const forced = this.force?.state
    if (this.belief === 'closed' && forced !== 'open') return 'closed'
    const places = (this.#options.halfOpen.probes as number) - this.batch.length - this.liveProbes(now)
    if (this.belief === 'half-open' && forced !== 'open' && places > 0) return 'probe'
    if (forced === 'closed') return 'extra'
    if (this.#options.mode !== 'observe') return null
    this.wouldRefuse++
    return 'extra'
  }

  #countClosed (failed: boolean, now: number): void {
    this.results.push({ second: Math.floor(now / 1000), failed })
    this.streak = failed ? this.streak + 1 : 0
    const { consecutiveFailures, window: { failureRatio, minimumRequests } } = this.#options
    const held = this.inWindow(now)
    const ratio = held.filter(result => result.failed).length / held.length
    if (consecutiveFailures > 0 && this.streak >= consecutiveFailures) this.#move('open', 'consecutive_failures', now)
    else if (failureRatio > 0 && held.length >= minimumRequests && ratio >= failureRatio) this.#move('open', 'failure_ratio', now)
  }

  #countProbe (failed: boolean, now: number): void {
    this.batch.push(failed)
    const size = this.#options.halfOpen.probes as number
    // every way in which the rest of the batch could still end
    const failures = this.batch.filter(Boolean).length
    const ends = Array.from({ length: size - this.batch.length + 1 }, (_, more) => failures + more)
    const passes = ends.map(end => end < size && end / size <= this.#options.window.failureRatio)
    if (passes.every(Boolean)) this.#move('closed', 'probes_passed', now)
    else if (!passes.some(Boolean)) this.#move('open', 'probes_failed', now)
  }

  #move (to: BreakerState, cause: string, now: number): void {
    const from = this.belief
    if (to === 'open') {
      if (from === 'closed') for (let left = now - this.closedAt; left >= this.openForMs && this.doublings > 0; left -= this.openForMs) this.doublings--
      const { openMs, maxOpenMs } = this.#options
      const grown = openMs * 2 ** this.doublings
      this.openForMs = Math.min(maxOpenMs, grown)
      if (grown < maxOpenMs) this.doublings++
      this.reopenAt = now + this.openForMs
    }
    if (to === 'closed') this.closedAt = now
    this.belief = to
    this.#begin()
    if (this.force === null) this.told.push({ from, to, cause })
  }

  #impose (force: Model['force'], cause: string): void {
    const from = this.state
    this.force = force
    this.#begin()
    this.told.push({ from, to: this.state, cause })
  }

  #begin (): void {
    this.era++
    this.results = []
    this.streak = 0
    this.batch = []
  }
}
