import type { Outcome } from '../failure.ts'

export type BreakerState = 'closed' | 'open' | 'half-open'

/** What a breaker does with its belief: refuse by it, only show and count it, or hold none. */
export type BreakerMode = 'enforce' | 'observe' | 'off'

/** Why a breaker changed its state. */
export type TransitionCause =
  | 'consecutive_failures' | 'failure_ratio' | 'stall' // closed -> open
  | 'open_elapsed' // open -> half-open
  | 'probes_passed' // half-open -> closed
  | 'probes_failed' // half-open -> open
  | 'forced' | 'force_ended' | 'reset' | 'mode_changed'

/** A silence that opened a circuit. */
export interface StallEvidence {
  /** Attempts that had waited for longer than `stallAfterMs`. */
  readonly outstanding: number
  /** How long the oldest of them had waited, in whole ticks of 100 ms; stalls of our own event loop are left out. */
  readonly oldestMs: number
  readonly stallAfterMs: number
}

/** One change of state; frozen, emitted after it is committed. Times are monotonic milliseconds. */
export interface Transition {
  from: BreakerState
  to: BreakerState
  cause: TransitionCause
  at: number
  generation: number
  /** The window as it was when the decision fell. */
  evidence: {
    total: number
    failures: number
    ratio: number
    consecutiveFailures: number
    /** With the cause `stall` only. */
    stall?: StallEvidence
  }
  /** What the last of the failures was that opened it, of which that was told (`failing`); else null. */
  failure: string | null
  /** How long the circuit stays open, in whole ms, when `to` is open; else 0. */
  openForMs: number
  /** What an operator gave as the reason of a force or reset; else null. */
  reason: string | null
  /** With the cause `stall`: the names of the attempts that had waited for too long, the oldest first, at most ten; else empty. */
  waiting: readonly string[]
  /** What has happened, and why, in a sentence. */
  explanation: string
}

/** The trigger that opened a circuit: the numbers of that moment, and the limit that they reached. */
export type OpeningTrigger =
  /** `failures` in a row. */
  | { readonly cause: 'consecutive_failures', readonly limit: number, readonly failures: number }
  /** `failures` of `total` results within `seconds`; the ratio counts from `needed` results on. */
  | { readonly cause: 'failure_ratio', readonly limit: number, readonly failures: number, readonly total: number, readonly seconds: number, readonly needed: number }
  | ({ readonly cause: 'stall', readonly limit: number } & StallEvidence)

/** Why a circuit is not closed; frozen. */
export type Opening = OpeningTrigger & {
  /** What the last of the failures was of which that was told (`failing`); null where none was, and with the cause `stall`. */
  readonly failure: string | null
  /** The batch of probes that opened it again last, with what the last failure among them was; null: none has. */
  readonly again: { readonly total: number, readonly failures: number, readonly failure: string | null } | null
}

/**
 * A one-shot leave to proceed. 0: refused. Positive: admitted in closed state (the generation). Negative: a probe (its serial).
 * It is given back through `settle` exactly once; a permit of an earlier generation settles as a no-op.
 */
export type Permit = number

export type { Outcome }

/** What an operator imposed over the belief, and until when. */
export interface Force {
  state: 'open' | 'closed'
  since: number
  until: number
  reason: string | null
}

/** What is missing for a closed circuit to open. */
export interface BreakerDistance {
  /** The fewest further failures, one after the other and at once, that open it; null: no number of them does. */
  readonly failures: number | null
  /** Those by `consecutiveFailures`; null: that trigger is off. */
  readonly inARow: number | null
  /** Those by the ratio, with what the window holds; null: that trigger is off, or no number of failures reaches it now. */
  readonly toRatio: number | null
  /** How long the window holds what it does, and `toRatio` with it, in ms; null where that is, or the window is empty. */
  readonly holdsForMs: number | null
  /** The running silence; null where that trigger is off or nothing usual is known. */
  readonly stall: {
    /** So many attempts that wait for too long open the circuit. */
    readonly needed: number
    readonly waiting: number
    readonly overdue: number
    /** It opens after this time at the earliest, in ms, if nothing is heard; null: too few wait. */
    readonly inMs: number | null
  } | null
}

/** How many further probes of one kind decide a half-open circuit; null: so many are not to come. */
export interface ProbesToGo {
  readonly successes: number | null
  readonly failures: number | null
}

/** The transition that is next as far as can be seen. */
export interface Expected<Time = number> {
  readonly to: BreakerState
  readonly cause: TransitionCause
  /** When, at the earliest; null: it hangs on results. */
  readonly at: Time | null
  /** After so many further failures (to open) or successes (to closed); null: it hangs on time. */
  readonly after: number | null
}

/** For how long a circuit has not been closed, or was forced open. */
export interface OpenFor {
  /** Since it left closed, half-open times and further openings included; in ms. */
  readonly ms: number
  /** The configured open time, `openMs`; of a force its whole time. */
  readonly configuredMs: number
  /** How often its probes failed since then. */
  readonly reopened: number
  /** More than twice as long as configured: nobody tries it, or its probes fail or do not end. */
  readonly overdue: boolean
}

/**
 * What a breaker believes and why; frozen, through and through. `Time` is monotonic milliseconds (number) in lib and
 * ISO 8601 (string) at the registry.
 */
export interface BreakerSnapshot<Time = number> {
  /** The committed state: an open circuit whose time is over reads `open` until an admission or a sweep has moved it. */
  readonly state: BreakerState
  readonly generation: number
  readonly mode: BreakerMode
  readonly consecutiveFailures: number
  readonly outstanding: {
    /** Permits that were admitted and not settled yet, of any generation. */
    readonly count: number
    /**
     * How long the oldest attempt on a quick route has waited of those that began since the upstream was last heard, in whole ticks of
     * 100 ms; stalls of our own event loop are left out. null when none does.
     */
    readonly oldestMs: number | null
    /** The usual 95th percentile of the time to a response's head, in ms; null while it is not known. */
    readonly usualMs: number | null
    /** How long a silence must last to open the circuit, in ms; null where the trigger is off or nothing usual is known. */
    readonly stallAfterMs: number | null
  }
  readonly window: {
    readonly seconds: number
    readonly total: number
    readonly failures: number
    /** failures / total; 0 when the window is empty. */
    readonly ratio: number
    /** How many results the window must hold before its ratio counts. */
    readonly needed: number
    /** The buckets that are not empty, newest first. */
    readonly buckets: ReadonlyArray<readonly [ageSeconds: number, total: number, failures: number]>
  }
  /** When the circuit opened; null while closed. */
  readonly openedAt: Time | null
  /** When it will admit again; null unless open. */
  readonly reopenAt: Time | null
  /** Why it is not closed, or would not be but for a force; else null. */
  readonly opening: Opening | null
  /** How often it opened by its triggers since it was made or reset. */
  readonly openCount: number
  /** The half-open batch that runs; otherwise the last one. */
  readonly probes: {
    /** How many results the batch wants. */
    readonly batch: number
    readonly granted: number
    readonly inFlight: number
    readonly settled: number
    readonly failed: number
    /** Probes that were not settled within their lease. */
    readonly expired: number
  }
  /** Admissions that enforce mode would have refused; counts in observe mode only. */
  readonly wouldRefuse: number
  readonly force: { readonly state: 'open' | 'closed', readonly until: Time, readonly reason: string | null } | null
  readonly lastTransition: { readonly from: BreakerState, readonly to: BreakerState, readonly cause: TransitionCause, readonly at: Time } | null
  /** null while nothing that happens opens it: it is not closed, or off. */
  readonly distance: BreakerDistance | null
  /** null unless half-open. */
  readonly probesToGo: ProbesToGo | null
  /** null: none is to be seen. */
  readonly next: Expected<Time> | null
  /** null while closed. */
  readonly openFor: OpenFor | null
  /** What these numbers say, in a few sentences. */
  readonly explanation: string
}
